//! UDP (RFC 768).

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{checksum, ip, view};

/// The header.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    src_port: U16,
    dst_port: U16,
    length: U16,
    checksum: U16,
}

view!(Header, 8);

/// Where the checksum is in the header.
pub const CHECKSUM_AT: usize = std::mem::offset_of!(Header, checksum);

impl Header {
    /// A header over `payload` bytes without a checksum, which IPv4 allows. More than 65527 do not
    /// fit and are cut.
    pub fn new(src_port: u16, dst_port: u16, payload: usize) -> Self {
        let length = u16::try_from(LEN + payload).unwrap_or(u16::MAX);
        Self {
            src_port: src_port.into(),
            dst_port: dst_port.into(),
            length: length.into(),
            checksum: U16::ZERO,
        }
    }

    /// Source port.
    #[inline(always)]
    pub fn src_port(&self) -> u16 {
        self.src_port.get()
    }

    /// Destination port.
    #[inline(always)]
    pub fn dst_port(&self) -> u16 {
        self.dst_port.get()
    }

    /// Length of header and payload in bytes.
    pub fn length(&self) -> u16 {
        self.length.get()
    }

    /// The checksum field; 0: none.
    pub fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// Sets the checksum field; 0: none.
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum.set(checksum);
    }
}

/// Computes and sets the checksum of a whole segment between two addresses; one that is too short
/// is left alone.
pub fn seal<A: checksum::Address>(src: A, dst: A, segment: &mut [u8]) {
    if let Some((header, _)) = Header::parse_mut(segment) {
        header.checksum = U16::ZERO;
        // 0 would say that there is none.
        let sum = match checksum::transport(src, dst, ip::UDP, segment) {
            0 => 0xffff,
            sum => sum,
        };
        segment[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn round_trip(src: u32, dst: u32, ports: (u16, u16), payload in prop::collection::vec(any::<u8>(), 0..64)) {
            let header = Header::new(ports.0, ports.1, payload.len());
            let mut segment = [&header.bytes()[..], &payload].concat();
            seal(src, dst, &mut segment);
            let (read, rest) = Header::parse(&segment).unwrap();
            prop_assert_eq!((read.src_port(), read.dst_port()), ports);
            prop_assert_eq!((usize::from(read.length()), rest), (segment.len(), &payload[..]));
            prop_assert_ne!(read.checksum(), 0);
            prop_assert_eq!(checksum::transport(src, dst, ip::UDP, &segment), 0);
        }
    }

    #[test]
    fn no_checksum_is_never_computed() {
        let mut segment = *Header::new(0, 0, 0).bytes();
        // Addresses that sum up to 0xffff with length and protocol.
        seal(0xffff - 17 - 16, 0, &mut segment);
        assert_eq!(segment[6..], [0xff, 0xff]);
        seal(0, 0, &mut segment[..7]);
        assert_eq!(Header::new(0, 0, 70_000).length(), u16::MAX);
    }
}
