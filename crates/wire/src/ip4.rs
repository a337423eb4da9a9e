//! IPv4 (RFC 791, RFC 1812; type of service as of RFC 2474 and RFC 3168).

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{checksum, view};

/// First byte of a header without options: version 4, five words.
pub const PLAIN: u8 = 0x45;
/// The most bytes of a header with options.
pub const MAX_LEN: usize = 60;
/// Of the fragment word: do not fragment.
pub const DONT_FRAGMENT: u16 = 0x4000;
/// Of the fragment word: not the last fragment.
pub const MORE_FRAGMENTS: u16 = 0x2000;
/// Of the fragment word: the offset, in units of 8 bytes.
pub const FRAGMENT_OFFSET: u16 = 0x1fff;

/// The header without its options, which follow it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    /// Version in the high four bits, header length in 32-bit words in the low four.
    pub version_ihl: u8,
    /// DSCP in the high six bits, ECN in the low two.
    pub tos: u8,
    total_len: U16,
    id: U16,
    fragment: U16,
    /// Hops left.
    pub ttl: u8,
    /// Protocol of the payload ([`crate::ip`]).
    pub proto: u8,
    checksum: U16,
    src: U32,
    dst: U32,
}

view!(Header, 20);

/// Offsets of the fields, for code that compares or changes single bytes of a packet.
pub mod at {
    use std::mem::offset_of;

    use super::Header;

    /// [`Header::total_len`].
    pub const TOTAL_LEN: usize = offset_of!(Header, total_len);
    /// [`Header::proto`].
    pub const PROTO: usize = offset_of!(Header, proto);
    /// [`Header::checksum`].
    pub const CHECKSUM: usize = offset_of!(Header, checksum);
    /// [`Header::src`].
    pub const SRC: usize = offset_of!(Header, src);
    /// [`Header::dst`].
    pub const DST: usize = offset_of!(Header, dst);
}

impl Header {
    /// A header without options and fragments, TTL 64, its checksum right. `payload` is the length
    /// of what follows.
    ///
    /// `payload` above 65515 bytes does not fit the length field and is cut.
    pub fn new(src: u32, dst: u32, proto: u8, payload: usize) -> Self {
        let total = u16::try_from(LEN + payload).unwrap_or(u16::MAX);
        let mut header = Self {
            version_ihl: PLAIN,
            tos: 0,
            total_len: U16::new(total),
            id: U16::ZERO,
            fragment: U16::ZERO,
            ttl: 64,
            proto,
            checksum: U16::ZERO,
            src: U32::new(src),
            dst: U32::new(dst),
        };
        header.seal();
        header
    }

    /// Version, 4 if all is well.
    #[inline(always)]
    pub const fn version(&self) -> u8 {
        self.version_ihl >> 4
    }

    /// Length of the header with its options in bytes, as the field says: 0 to 60; less than 20 is
    /// wrong.
    #[inline(always)]
    pub const fn header_len(&self) -> usize {
        (self.version_ihl & 0xf) as usize * 4
    }

    /// Version 4 and no options.
    #[inline(always)]
    pub const fn is_plain(&self) -> bool {
        self.version_ihl == PLAIN
    }

    /// Length of the packet, header included, in bytes.
    #[inline(always)]
    pub fn total_len(&self) -> u16 {
        self.total_len.get()
    }

    /// Identification, the same in all fragments of a packet.
    #[inline(always)]
    pub fn id(&self) -> u16 {
        self.id.get()
    }

    /// The fragment word: [`DONT_FRAGMENT`], [`MORE_FRAGMENTS`], [`FRAGMENT_OFFSET`].
    #[inline(always)]
    pub fn fragment(&self) -> u16 {
        self.fragment.get()
    }

    /// Offset of this fragment in its packet, in bytes.
    #[inline(always)]
    pub fn fragment_offset(&self) -> usize {
        usize::from(self.fragment() & FRAGMENT_OFFSET) * 8
    }

    /// True if it is a part of a packet: the transport header is missing, or some of the data.
    #[inline(always)]
    pub fn is_fragment(&self) -> bool {
        self.fragment() & (MORE_FRAGMENTS | FRAGMENT_OFFSET) != 0
    }

    /// The checksum field.
    #[inline(always)]
    pub fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// Source.
    #[inline(always)]
    pub fn src(&self) -> u32 {
        self.src.get()
    }

    /// Destination.
    #[inline(always)]
    pub fn dst(&self) -> u32 {
        self.dst.get()
    }

    /// Differentiated services code point, 0 to 63.
    pub const fn dscp(&self) -> u8 {
        self.tos >> 2
    }

    /// Congestion notification, 0 to 3 ([`crate::ip::ecn`]).
    pub const fn ecn(&self) -> u8 {
        self.tos & 3
    }

    /// Sets the congestion notification, of which two bits count, and the checksum with it.
    pub fn set_ecn(&mut self, ecn: u8) {
        let word = |tos| u16::from_be_bytes([self.version_ihl, tos]);
        let tos = self.tos & !3 | ecn & 3;
        let checksum = checksum::update(self.checksum.get(), word(self.tos), word(tos));
        self.tos = tos;
        self.checksum.set(checksum);
    }

    /// True if the checksum of these 20 bytes is right. For a header with options use
    /// [`checksum::of`] over all its bytes: 0 is right.
    #[inline(always)]
    pub fn checksum_ok(&self) -> bool {
        checksum::ip4(self.bytes()) == 0
    }

    /// Sets the length field; renew the checksum afterwards.
    pub fn set_total_len(&mut self, bytes: u16) {
        self.total_len.set(bytes);
    }

    /// Sets the identification; renew the checksum afterwards.
    pub fn set_id(&mut self, id: u16) {
        self.id.set(id);
    }

    /// Sets the fragment word; renew the checksum afterwards.
    pub fn set_fragment(&mut self, word: u16) {
        self.fragment.set(word);
    }

    /// Sets the checksum field.
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum.set(checksum);
    }

    /// Computes the checksum of these 20 bytes, which are the whole header.
    pub fn seal(&mut self) {
        self.checksum = U16::ZERO;
        self.checksum.set(checksum::ip4(self.bytes()));
    }

    /// One hop less, and the checksum with it. The TTL must not be 0.
    #[inline(always)]
    pub fn decrement_ttl(&mut self) {
        self.ttl = self.ttl.wrapping_sub(1);
        self.checksum
            .set(checksum::decrement_ttl(self.checksum.get()));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn round_trip(src: u32, dst: u32, proto: u8, payload in 0usize..65_516, id: u16, fragment: u16, ttl in 1u8.., tos: u8, ecn: u8) {
            let mut header = Header::new(src, dst, proto, payload);
            prop_assert!(header.checksum_ok() && header.is_plain() && !header.is_fragment());
            header.set_id(id);
            header.set_fragment(fragment);
            header.ttl = ttl;
            header.seal();
            let bytes = *header.bytes();
            let read = Header::parse(&bytes).unwrap().0;
            prop_assert_eq!((read.src(), read.dst(), read.proto), (src, dst, proto));
            prop_assert_eq!((usize::from(read.total_len()), read.id()), (payload + LEN, id));
            prop_assert_eq!((read.fragment(), read.fragment_offset()), (fragment, usize::from(fragment & 0x1fff) * 8));
            prop_assert_eq!((read.version(), read.header_len()), (4, LEN));
            prop_assert!(read.checksum_ok());
            header.decrement_ttl();
            prop_assert!(header.checksum_ok() && header.ttl == ttl - 1);
            header.tos = tos;
            header.seal();
            header.set_ecn(ecn);
            prop_assert!(header.checksum_ok() && header.ecn() == ecn & 3 && header.dscp() == tos >> 2);
        }

        #[test]
        fn any_bytes_can_be_read(bytes: [u8; LEN]) {
            let header = Header::parse(&bytes).unwrap().0;
            prop_assert_eq!(header.bytes(), &bytes);
            prop_assert_eq!(header.checksum_ok(), checksum::of(&bytes) == 0);
            prop_assert_eq!(header.tos, header.dscp() << 2 | header.ecn());
        }
    }

    #[test]
    fn oversize_is_cut() {
        assert_eq!(
            Header::new(0, 0, crate::ip::UDP, 70_000).total_len(),
            u16::MAX
        );
        assert!(Header::parse(&[0; LEN - 1]).is_none());
    }
}
