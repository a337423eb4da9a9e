//! VXLAN: Ethernet frames in UDP (RFC 7348 section 5).

use zerocopy::byteorder::network_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::view;

/// The I flag, in the first byte: there is a network identifier.
const HAS_VNI: u8 = 0x08;

/// Largest network identifier (VNI): it has 24 bits.
pub const MAX_VNI: u32 = (1 << 24) - 1;

/// The header.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    flags: u8,
    reserved: [u8; 3],
    /// The identifier, and 8 reserved bits below it.
    vni: U32,
}

view!(Header, 8);

impl Header {
    /// A header of a network, of whose identifier 24 bits count.
    pub fn new(vni: u32) -> Self {
        Self {
            flags: HAS_VNI,
            reserved: [0; 3],
            vni: U32::new(vni << 8),
        }
    }

    /// The network identifier, 0 to [`MAX_VNI`]; `None`: the header says that it has none. Reserved
    /// bits are ignored.
    #[inline(always)]
    pub fn vni(&self) -> Option<u32> {
        (self.flags & HAS_VNI != 0).then(|| self.vni.get() >> 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_laid_out_as_in_the_rfc() {
        let header = Header::new(0x0012_3456);
        assert_eq!(header.bytes(), &[0x08, 0, 0, 0, 0x12, 0x34, 0x56, 0]);
        assert_eq!(Header::new(0xff00_0001).vni(), Some(1));
        let (header, rest) = Header::parse(&[0xff, 1, 2, 3, 0xff, 0xff, 0xff, 9, 7]).unwrap();
        assert_eq!((header.vni(), rest), (Some(MAX_VNI), &[7][..]));
        let (header, _) = Header::parse(&[0xf7, 1, 2, 3, 0, 0, 1, 0]).unwrap();
        assert_eq!(header.vni(), None);
        assert_eq!(Header::parse(&[8, 0, 0, 0, 0, 0, 1]), None);
    }
}
