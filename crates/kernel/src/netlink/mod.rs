//! Netlink (RFC 3549, linux/netlink.h): messages, sockets that wait for the kernel's answer,
//! generic families.
//!
//! Messages are read by a walk over their attributes that allocates nothing: a full Internet table
//! is a million messages, and must be read as fast as the kernel writes it (docs/adr/0005).
//! Malformed parts are skipped, never trusted.

mod family;
pub mod layout;
mod message;
mod socket;

pub use family::Family;
pub use message::{Attributes, Builder, HEADER, Message, Messages, text, u16_at, u32_at, u64_at};
pub use socket::{Dump, Socket};
