//! IPv6 (RFC 8200).

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::view;

/// The header without its extensions, which follow it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    version_class_flow: U32,
    payload_len: U16,
    /// The next header: an extension or a protocol ([`crate::ip`]).
    pub next_header: u8,
    /// Hops left.
    pub hop_limit: u8,
    /// Source.
    pub src: [u8; 16],
    /// Destination.
    pub dst: [u8; 16],
}

view!(Header, 40);
