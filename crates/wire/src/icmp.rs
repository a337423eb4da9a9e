//! The header that all messages of ICMP begin with, for IPv4 (RFC 792) and for IPv6 (RFC 4443).

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::view;

/// The header common to all messages.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    /// Type.
    pub kind: u8,
    /// Meaning depends on the type.
    pub code: u8,
    checksum: U16,
    rest: U32,
}

view!(Header, 8);

/// Offset of the checksum in the header.
pub const CHECKSUM_AT: usize = std::mem::offset_of!(Header, checksum);

impl Header {
    /// A header without a checksum; `rest` is what follows it: identifier and sequence number of an
    /// echo, for example.
    pub fn new(kind: u8, code: u8, rest: u32) -> Self {
        Self {
            kind,
            code,
            checksum: U16::ZERO,
            rest: rest.into(),
        }
    }

    /// The checksum field.
    pub fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// The four bytes after the checksum.
    pub fn rest(&self) -> u32 {
        self.rest.get()
    }
}

/// Sets the checksum of a whole message to what `compute` makes of the message without one; one
/// that is too short is left alone.
pub(crate) fn seal(message: &mut [u8], compute: impl FnOnce(&[u8]) -> u16) {
    if let Some((header, _)) = Header::parse_mut(message) {
        header.checksum = U16::ZERO;
        let sum = compute(message);
        if let Some((header, _)) = Header::parse_mut(message) {
            header.checksum = sum.into();
        }
    }
}
