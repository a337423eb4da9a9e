//! IPv4 forwarding (RFC 791, RFC 1812).

pub mod features;
pub mod fragment;
pub mod input;
pub mod lookup;
pub mod rewrite;

pub use features::Features;
pub use fragment::Fragment;
pub use input::Input;
pub use lookup::Lookup;
pub use rewrite::Rewrite;

/// Offsets in the IPv4 header.
pub(crate) mod at {
    pub const TOTAL_LENGTH: u8 = 2;
    pub const FRAGMENT: u8 = 6;
    pub const TTL: u8 = 8;
    pub const SOURCE: u8 = 12;
    pub const DESTINATION: u8 = 16;
}

/// Don't Fragment, in the fragment word.
pub(crate) const DF: u16 = 0x4000;
/// More Fragments, in the fragment word.
pub(crate) const MF: u16 = 0x2000;
/// Offset bits of the fragment word, in units of 8 bytes.
pub(crate) const OFFSET: u16 = 0x1fff;
