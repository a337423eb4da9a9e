//! TCP (RFC 9293).

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{checksum, ip, view};

/// Flag: no more data from the sender.
pub const FIN: u8 = 0x01;
/// Flag: opens a connection.
pub const SYN: u8 = 0x02;
/// Flag: aborts the connection.
pub const RST: u8 = 0x04;
/// Flag: asks to deliver the data at once.
pub const PSH: u8 = 0x08;
/// Flag: the acknowledgment field counts.
pub const ACK: u8 = 0x10;

/// The header without its options, which follow it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    src_port: U16,
    dst_port: U16,
    seq: U32,
    ack: U32,
    /// Length of the header in 32-bit words in the high four bits.
    offset: u8,
    /// [`FIN`], [`SYN`] and so on.
    pub flags: u8,
    window: U16,
    checksum: U16,
    urgent: U16,
}

view!(Header, 20);

/// Where the checksum is in the header.
pub const CHECKSUM_AT: usize = std::mem::offset_of!(Header, checksum);

impl Header {
    /// A header without options and without a checksum, window 65535.
    pub fn new(src_port: u16, dst_port: u16, flags: u8, seq: u32, ack: u32) -> Self {
        Self {
            src_port: src_port.into(),
            dst_port: dst_port.into(),
            seq: seq.into(),
            ack: ack.into(),
            offset: (20 / 4) << 4,
            flags,
            window: U16::MAX_VALUE,
            checksum: U16::ZERO,
            urgent: U16::ZERO,
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

    /// Sequence number of the first byte.
    pub fn seq(&self) -> u32 {
        self.seq.get()
    }

    /// Sequence number expected next.
    pub fn ack(&self) -> u32 {
        self.ack.get()
    }

    /// Length of the header with its options in bytes, as the field says: 0 to 60; less than 20 is
    /// wrong.
    pub const fn header_len(&self) -> usize {
        (self.offset >> 4) as usize * 4
    }

    /// Bytes that the sender may take, before scaling.
    pub fn window(&self) -> u16 {
        self.window.get()
    }

    /// Sets the bytes that the sender may take, before scaling.
    pub fn set_window(&mut self, window: u16) {
        self.window = window.into();
    }

    /// The checksum field.
    pub fn checksum(&self) -> u16 {
        self.checksum.get()
    }
}

/// Computes and sets the checksum of a whole segment between two addresses; one that is too short
/// is left alone.
pub fn seal<A: checksum::Address>(src: A, dst: A, segment: &mut [u8]) {
    if let Some((header, _)) = Header::parse_mut(segment) {
        header.checksum = U16::ZERO;
        let sum = checksum::transport(src, dst, ip::TCP, segment);
        segment[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn round_trip(src: u32, dst: u32, ports: (u16, u16), flags: u8, seq: u32, ack: u32, payload: [u8; 9]) {
            let header = Header::new(ports.0, ports.1, flags, seq, ack);
            let mut segment = [&header.bytes()[..], &payload].concat();
            seal(src, dst, &mut segment);
            let (read, rest) = Header::parse(&segment).unwrap();
            prop_assert_eq!((read.src_port(), read.dst_port(), read.flags), (ports.0, ports.1, flags));
            prop_assert_eq!((read.seq(), read.ack(), read.window()), (seq, ack, u16::MAX));
            prop_assert_eq!((read.header_len(), rest), (LEN, &payload[..]));
            prop_assert_eq!(read.checksum(), u16::from_be_bytes([segment[16], segment[17]]));
            prop_assert_eq!(checksum::transport(src, dst, ip::TCP, &segment), 0);
        }
    }
}
