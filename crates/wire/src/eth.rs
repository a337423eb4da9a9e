//! Ethernet II (IEEE 802.3 clause 3, RFC 894).

use std::array::TryFromSliceError;
use std::fmt;
use std::mem::offset_of;
use std::str::FromStr;

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::view;

/// Type of IPv4.
pub const IP4: u16 = 0x0800;
/// Type of ARP.
pub const ARP: u16 = 0x0806;
/// Type of a VLAN tag (IEEE 802.1Q).
pub const VLAN: u16 = 0x8100;
/// Type of IPv6.
pub const IP6: u16 = 0x86dd;
/// Type of a service VLAN tag (IEEE 802.1ad).
pub const SERVICE_VLAN: u16 = 0x88a8;
/// Type of the slow protocols, LACP among them (IEEE 802.3 annex 57A).
pub const SLOW: u16 = 0x8809;
/// Type of EAP over LAN (IEEE 802.1X).
pub const EAPOL: u16 = 0x888e;
/// Type of LLDP (IEEE 802.1AB).
pub const LLDP: u16 = 0x88cc;
/// Up to this the type is the length of an LLC frame (IEEE 802.3 clause 3.2.6): IS-IS, spanning
/// tree.
pub const MAX_LLC_LEN: u16 = 1500;

/// Offset of the type in a frame without tags.
pub const ETHERTYPE_AT: usize = offset_of!(Header, ethertype);

/// Least length of a frame without its checksum, in bytes; a shorter one is padded.
pub const MIN_FRAME: usize = 60;

/// A 48-bit address.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Default,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
)]
#[repr(transparent)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// Everyone.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Multicast or broadcast.
    #[inline(always)]
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl From<[u8; 6]> for Mac {
    fn from(bytes: [u8; 6]) -> Self {
        Self(bytes)
    }
}

impl TryFrom<&[u8]> for Mac {
    type Error = TryFromSliceError;

    /// Of exactly six bytes.
    fn try_from(bytes: &[u8]) -> Result<Self, TryFromSliceError> {
        bytes.try_into().map(Self)
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        f.pad(&format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}"))
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Not of the form `02:00:00:00:00:01`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidMac(String);

impl fmt::Display for InvalidMac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not an Ethernet address such as 02:00:00:00:00:01",
            self.0
        )
    }
}

impl std::error::Error for InvalidMac {}

impl FromStr for Mac {
    type Err = InvalidMac;

    fn from_str(text: &str) -> Result<Self, InvalidMac> {
        parse(text).ok_or_else(|| InvalidMac(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Mac> {
    let mut mac = Mac::default();
    let mut parts = text.split(':');
    for byte in &mut mac.0 {
        let part = parts
            .next()
            .filter(|part| part.len() == 2 && part.bytes().all(|c| c.is_ascii_hexdigit()))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(mac)
}

/// The header of a frame.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    /// Destination.
    pub dst: Mac,
    /// Source.
    pub src: Mac,
    ethertype: U16,
}

view!(Header, 14);

impl Header {
    /// A header.
    pub const fn new(dst: Mac, src: Mac, ethertype: u16) -> Self {
        Self {
            dst,
            src,
            ethertype: U16::new(ethertype),
        }
    }

    /// Type of the payload; below 1536 it is a length (IEEE 802.3).
    #[inline(always)]
    pub fn ethertype(&self) -> u16 {
        self.ethertype.get()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn round_trip(dst: [u8; 6], src: [u8; 6], ethertype: u16) {
            let header = Header::new(Mac(dst), Mac(src), ethertype);
            let (read, rest) = Header::parse(header.bytes()).unwrap();
            prop_assert_eq!((read, read.ethertype(), rest.len()), (&header, ethertype, 0));
            prop_assert_eq!(&header.bytes()[..6], dst);
            prop_assert_eq!(Mac(src).to_string().parse(), Ok(Mac(src)));
        }
    }

    #[test]
    fn bad_text() {
        for text in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:01:02",
            "2:0:0:0:0:1",
            "0x:00:00:00:00:01",
            "+2:00:00:00:00:01",
        ] {
            assert!(text.parse::<Mac>().is_err(), "{text}");
        }
        assert!(Mac::BROADCAST.is_group() && !Mac([2, 0, 0, 0, 0, 1]).is_group());
        assert!(Header::parse(&[0; LEN - 1]).is_none());
    }
}
