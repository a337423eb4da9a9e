//! VLAN tags (IEEE 802.1Q clause 9): they stand in a frame between the addresses and the type, the
//! outer one first.

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::eth;

/// Bytes of a tag.
pub const LEN: usize = size_of::<Tag>();
/// Offset of the outer tag in a frame.
pub const AT: usize = eth::ETHERTYPE_AT;
/// Bits of the control information that are the VLAN's identifier; above it are a bit that allows
/// dropping and three bits of priority.
const VLAN: u16 = 0xfff;

/// A tag.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Tag {
    tpid: U16,
    tci: U16,
}

impl Tag {
    /// A tag of this type, [`eth::VLAN`] or [`eth::SERVICE_VLAN`], for a VLAN from 0 to 4095, of
    /// the lowest priority.
    pub const fn new(tpid: u16, vlan: u16) -> Self {
        Self {
            tpid: U16::new(tpid),
            tci: U16::new(vlan & VLAN),
        }
    }

    /// Its priority, 0 to 7.
    #[inline(always)]
    pub const fn priority(&self) -> u16 {
        self.tci.get() >> 13
    }

    /// The same with another tag's priority and whether it may be dropped.
    #[must_use]
    pub const fn with_priority_of(self, other: &Self) -> Self {
        let priority = other.tci.get() & !VLAN;
        Self {
            tci: U16::new(self.vlan() | priority),
            ..self
        }
    }

    /// Its bytes in a frame.
    pub const fn to_bytes(self) -> [u8; LEN] {
        zerocopy::transmute!(self)
    }

    /// True if it is a tag: its type is [`eth::VLAN`] or [`eth::SERVICE_VLAN`].
    #[inline(always)]
    pub const fn is_tag(&self) -> bool {
        is_tag(self.tpid.get())
    }

    /// Its type; where no tag is, the frame's.
    #[inline(always)]
    pub const fn tpid(&self) -> u16 {
        self.tpid.get()
    }

    /// The VLAN's identifier, 0 to 4095; 0 says nothing but the priority.
    #[inline(always)]
    pub const fn vlan(&self) -> u16 {
        self.tci.get() & VLAN
    }
}

/// True if this type announces a tag: [`eth::VLAN`] or [`eth::SERVICE_VLAN`].
#[inline(always)]
pub const fn is_tag(ethertype: u16) -> bool {
    matches!(ethertype, eth::VLAN | eth::SERVICE_VLAN)
}

/// What follows an Ethernet header of this type behind up to two tags, and its type. None if it ends
/// within a tag.
pub fn behind_tags(ethertype: u16, payload: &[u8]) -> Option<(u16, &[u8])> {
    let mut behind = (ethertype, payload);
    for _ in 0..2 {
        let (ethertype, payload) = behind;
        if !is_tag(ethertype) {
            break;
        }
        // The type has announced it: what comes is its control information and the next type.
        let ([_, _, a, b], rest) = payload.split_first_chunk::<LEN>()?;
        behind = (u16::from_be_bytes([*a, *b]), rest);
    }
    Some(behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_tags_are_passed_and_no_third() {
        let bytes = [0, 1, 0x81, 0, 0, 2, 0x08, 0, 9];
        assert_eq!(behind_tags(eth::IP4, &bytes), Some((eth::IP4, &bytes[..])));
        assert_eq!(
            behind_tags(eth::VLAN, &bytes[4..]),
            Some((eth::IP4, &[9][..]))
        );
        assert_eq!(
            behind_tags(eth::SERVICE_VLAN, &bytes),
            Some((eth::IP4, &[9][..]))
        );
        assert_eq!(behind_tags(eth::VLAN, &bytes[..7]), None);
        let three = [0, 1, 0x81, 0, 0, 2, 0x81, 0, 0, 3];
        let behind = Some((eth::VLAN, &three[8..]));
        assert_eq!(behind_tags(eth::VLAN, &three), behind);
    }

    #[test]
    fn a_tag_is_its_type_and_its_vlan() {
        let tag = Tag::new(eth::SERVICE_VLAN, 0x123);
        assert_eq!(tag.to_bytes(), [0x88, 0xa8, 0x01, 0x23]);
        assert_eq!((tag.is_tag(), tag.vlan()), (true, 0x123));
        let urgent = Tag::read_from_bytes(&[0x81, 0, 0xe1, 0x23]).unwrap();
        assert_eq!((urgent.is_tag(), urgent.vlan()), (true, 0x123));
        assert_eq!((urgent.priority(), tag.priority()), (7, 0));
        let urgent = tag.with_priority_of(&urgent);
        assert_eq!(urgent.to_bytes(), [0x88, 0xa8, 0xe1, 0x23]);
        assert_eq!(urgent.with_priority_of(&tag), tag);
        let ip4 = Tag::read_from_bytes(&[8, 0, 0x45, 0]).unwrap();
        assert!(!ip4.is_tag());
    }
}
