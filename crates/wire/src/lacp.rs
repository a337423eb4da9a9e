//! Link Aggregation Control Protocol and its marker protocol (IEEE 802.1AX-2014 clauses 6.4.2 and
//! 6.5.3).
//!
//! The receiver of an LACPDU must not look at its version, the types of its TLVs and reserved fields
//! (clause 6.4.12), so that other versions may have more to say; nor at what follows the first 110
//! bytes, since a long LACPDU has more there (clause 6.4.2.4). It may look at the lengths of the TLVs,
//! which are what says that fields are where they are read.

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::eth::{self, Mac};
use crate::view;

/// Destination of the slow protocols (IEEE 802.3 table 57A-1), which no bridge forwards.
pub const GROUP: Mac = Mac([0x01, 0x80, 0xc2, 0, 0, 2]);
/// Subtype of the slow protocols: LACPDU.
pub const LACP: u8 = 1;
/// Subtype of the slow protocols: marker PDU.
pub const MARKER: u8 = 2;

/// Bits of the state of a port (clause 6.4.2.3, Actor_State).
pub mod state {
    /// It speaks first, and not only when the other end does.
    pub const ACTIVITY: u8 = 1 << 0;
    /// It wants to hear each second (short timeout), not every 30 s (long timeout).
    pub const TIMEOUT: u8 = 1 << 1;
    /// It may be one of several links.
    pub const AGGREGATION: u8 = 1 << 2;
    /// It is in the right aggregate.
    pub const SYNCHRONIZATION: u8 = 1 << 3;
    /// It takes in what comes.
    pub const COLLECTING: u8 = 1 << 4;
    /// It sends.
    pub const DISTRIBUTING: u8 = 1 << 5;
    /// It goes by defaults: it has not heard from the other end.
    pub const DEFAULTED: u8 = 1 << 6;
    /// It has not heard from the other end for too long.
    pub const EXPIRED: u8 = 1 << 7;
}

/// What a port says of itself, or of its partner.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
)]
#[repr(C)]
pub struct Info {
    system_priority: U16,
    /// Ethernet address of the system.
    pub system: Mac,
    key: U16,
    port_priority: U16,
    port: U16,
    /// Bits of [`state`].
    pub state: u8,
}

impl Info {
    /// A port without any state: its system's priority and address, its key, priority and number.
    pub const fn new(system: (u16, Mac), key: u16, port: (u16, u16)) -> Self {
        Self {
            system_priority: U16::new(system.0),
            system: system.1,
            key: U16::new(key),
            port_priority: U16::new(port.0),
            port: U16::new(port.1),
            state: 0,
        }
    }

    /// Priority of the system; the lowest is the best.
    pub fn system_priority(&self) -> u16 {
        self.system_priority.get()
    }

    /// Ports of a system with the same key may be aggregated.
    pub fn key(&self) -> u16 {
        self.key.get()
    }

    /// Priority of the port; the lowest is the best.
    pub fn port_priority(&self) -> u16 {
        self.port_priority.get()
    }

    /// Number of the port in its system.
    pub fn port(&self) -> u16 {
        self.port.get()
    }

    /// True if all of these bits of [`state`] are set.
    pub const fn is(&self, bits: u8) -> bool {
        self.state & bits == bits
    }

    /// Sets these bits of [`state`], or clears them.
    pub const fn set(&mut self, bits: u8, to: bool) {
        if to {
            self.state |= bits;
        } else {
            self.state &= !bits;
        }
    }
}

/// A port's TLV.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
struct PortTlv {
    kind: u8,
    len: u8,
    info: Info,
    reserved: [u8; 3],
}

impl PortTlv {
    const LEN: u8 = 20;

    const fn new(kind: u8, info: Info) -> Self {
        Self {
            kind,
            len: Self::LEN,
            info,
            reserved: [0; 3],
        }
    }
}

/// An LACPDU, behind the Ethernet header.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    subtype: u8,
    version: u8,
    actor: PortTlv,
    partner: PortTlv,
    collector: u8,
    collector_len: u8,
    max_delay: U16,
    collector_reserved: [u8; 12],
    terminator: u8,
    terminator_len: u8,
    reserved: [u8; 50],
}

view!(Header, 110);

/// Length of the collector's TLV.
const COLLECTOR_LEN: u8 = 16;

impl Header {
    /// An LACPDU of `actor` about itself and its partner, as far as it knows it.
    pub const fn new(actor: Info, partner: Info) -> Self {
        Self {
            subtype: LACP,
            version: 1,
            actor: PortTlv::new(1, actor),
            partner: PortTlv::new(2, partner),
            collector: 3,
            collector_len: COLLECTOR_LEN,
            max_delay: U16::new(0),
            collector_reserved: [0; 12],
            terminator: 0,
            terminator_len: 0,
            reserved: [0; 50],
        }
    }

    /// What the sender says of itself.
    pub const fn actor(&self) -> Info {
        self.actor.info
    }

    /// What the sender knows of the receiver.
    pub const fn partner(&self) -> Info {
        self.partner.info
    }

    /// The frame, from this address.
    pub fn frame(&self, from: Mac) -> [u8; eth::LEN + LEN] {
        let mut frame = [0; eth::LEN + LEN];
        frame[..6].copy_from_slice(&GROUP.0);
        frame[6..12].copy_from_slice(&from.0);
        frame[12..14].copy_from_slice(&eth::SLOW.to_be_bytes());
        frame[eth::LEN..].copy_from_slice(self.bytes());
        frame
    }

    fn fits(&self) -> bool {
        let lengths = [
            self.actor.len,
            self.partner.len,
            self.collector_len,
            self.terminator_len,
        ];
        lengths == [PortTlv::LEN, PortTlv::LEN, COLLECTOR_LEN, 0]
    }
}

/// A marker PDU begins so, behind the Ethernet header; it is as long as an LACPDU.
const MARKER_TLV_AT: usize = 2;
const MARKER_TLV_LEN: u8 = 16;
const MARKER_TLV: u8 = 1;
const MARKER_RESPONSE_TLV: u8 = 2;

/// A PDU of the slow protocols that we speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pdu {
    /// An LACPDU.
    Lacp(Header),
    /// Somebody asks whether all frames before this one have come: [`answer_marker`].
    Marker,
    /// The answer to that.
    MarkerResponse,
}

/// Why it is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// Of another slow protocol.
    Subtype,
    /// Fewer than [`LEN`] bytes.
    Short,
    /// A TLV is not as long as it must be.
    Length,
    /// Neither marker nor marker response.
    MarkerType,
}

/// Reads what is behind the Ethernet header of a frame of type [`eth::SLOW`].
///
/// # Errors
/// [`Malformed`].
pub fn parse(bytes: &[u8]) -> Result<Pdu, Malformed> {
    match *bytes.first().ok_or(Malformed::Short)? {
        LACP | MARKER => {}
        _ => return Err(Malformed::Subtype),
    }
    let (header, _) = Header::parse(bytes).ok_or(Malformed::Short)?;
    if header.subtype == LACP {
        return match header.fits() {
            true => Ok(Pdu::Lacp(*header)),
            false => Err(Malformed::Length),
        };
    }
    match [bytes[MARKER_TLV_AT], bytes[MARKER_TLV_AT + 1]] {
        [MARKER_TLV, MARKER_TLV_LEN] => Ok(Pdu::Marker),
        [MARKER_RESPONSE_TLV, MARKER_TLV_LEN] => Ok(Pdu::MarkerResponse),
        [MARKER_TLV | MARKER_RESPONSE_TLV, _] => Err(Malformed::Length),
        _ => Err(Malformed::MarkerType),
    }
}

/// Makes the answer of a frame with a [marker](Pdu::Marker), from this address (clause 6.5.4).
pub fn answer_marker(frame: &mut [u8], from: Mac) {
    if let Some((header, pdu)) = eth::Header::parse_mut(frame)
        && let Some(kind) = pdu.get_mut(MARKER_TLV_AT)
    {
        (header.dst, header.src) = (GROUP, from);
        *kind = MARKER_RESPONSE_TLV;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const US: Info = Info {
        state: state::ACTIVITY | state::TIMEOUT | state::AGGREGATION | state::DEFAULTED,
        ..Info::new((0x8000, Mac([2, 0, 0, 0, 0, 1])), 0x0102, (0x00ff, 0x0304))
    };
    const PEER: Info = Info {
        state: state::SYNCHRONIZATION,
        ..Info::new((0xffff, Mac([2, 0, 0, 0, 0, 9])), 7, (0x8001, 5))
    };

    /// Figure 6-7, field by field.
    #[test]
    fn an_lacpdu_byte_by_byte() {
        let frame = Header::new(US, PEER).frame(Mac([2, 0, 0, 0, 0, 3]));
        let mut wanted = vec![1, 0x80, 0xc2, 0, 0, 2, 2, 0, 0, 0, 0, 3, 0x88, 9];
        wanted.extend([1, 1]);
        wanted.extend([1, 20, 0x80, 0, 2, 0, 0, 0, 0, 1, 1, 2, 0, 0xff, 3, 4, 0x47]);
        wanted.extend([0, 0, 0]);
        wanted.extend([2, 20, 0xff, 0xff, 2, 0, 0, 0, 0, 9, 0, 7, 0x80, 1, 0, 5, 8]);
        wanted.extend([0, 0, 0]);
        wanted.extend([3, 16, 0, 0]);
        wanted.extend([0; 12]);
        wanted.extend([0, 0]);
        wanted.extend([0; 50]);
        assert_eq!(frame[..], wanted);
        let Ok(Pdu::Lacp(read)) = parse(&frame[eth::LEN..]) else {
            panic!("an LACPDU");
        };
        assert_eq!((read.actor(), read.partner()), (US, PEER));
    }

    #[test]
    fn what_the_receiver_looks_at() {
        let good = *Header::new(US, PEER).bytes();
        for len in 1..LEN {
            assert_eq!(parse(&good[..len]), Err(Malformed::Short), "{len}");
        }
        assert_eq!(parse(&[]), Err(Malformed::Short));
        let with = |at: usize, byte: u8| {
            let mut pdu = good;
            pdu[at] = byte;
            parse(&pdu)
        };
        // The lengths of the TLVs: actor, partner, collector, terminator.
        for (at, right) in [(3, 20), (23, 20), (43, 16), (59, 0)] {
            assert_eq!(good[at], right);
            for wrong in (0..=255).filter(|len| *len != right) {
                assert_eq!(with(at, wrong), Err(Malformed::Length), "{at} {wrong}");
            }
        }
        // Version, types and reserved fields.
        for at in [1, 2, 19, 22, 42, 46, 58, 60, 109] {
            assert!(matches!(with(at, 99), Ok(Pdu::Lacp(_))), "{at}");
        }
        for subtype in (0..=255).filter(|s| ![LACP, MARKER].contains(s)) {
            assert_eq!(with(0, subtype), Err(Malformed::Subtype), "{subtype}");
        }
    }

    #[test]
    fn a_marker_and_its_answer() {
        let mut frame = [7; eth::LEN + LEN];
        frame[eth::LEN..eth::LEN + 4].copy_from_slice(&[2, 1, 1, 16]);
        let asked = frame;
        assert_eq!(parse(&frame[eth::LEN..]), Ok(Pdu::Marker));
        answer_marker(&mut frame, Mac([2; 6]));
        assert_eq!(frame[..12], [1, 0x80, 0xc2, 0, 0, 2, 2, 2, 2, 2, 2, 2]);
        assert_eq!(frame[eth::LEN..eth::LEN + 4], [2, 1, 2, 16]);
        assert_eq!(frame[eth::LEN + 4..], asked[eth::LEN + 4..]);
        assert_eq!(parse(&frame[eth::LEN..]), Ok(Pdu::MarkerResponse));
        frame[eth::LEN + 3] = 15;
        assert_eq!(parse(&frame[eth::LEN..]), Err(Malformed::Length));
        frame[eth::LEN + 2] = 3;
        assert_eq!(parse(&frame[eth::LEN..]), Err(Malformed::MarkerType));
        assert_eq!(parse(&frame[eth::LEN..][..109]), Err(Malformed::Short));
        answer_marker(&mut frame[..15], Mac([2; 6]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(mut bytes: Vec<u8>, subtype in 0u8..4) {
            if let Some(first) = bytes.first_mut() {
                *first = subtype;
            }
            if let Ok(Pdu::Lacp(pdu)) = parse(&bytes) {
                prop_assert_eq!(&pdu.bytes()[..], &bytes[..LEN]);
            }
        }
    }
}
