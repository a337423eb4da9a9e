//! Talking to the kernel by netlink (RFC 3549, linux/netlink.h, linux/rtnetlink.h), synchronously.
//!
//! Messages are read by an allocation-free walk of their attributes: a full Internet table is a million messages and
//! is to be read in the time the kernel needs to write it. Whatever is malformed is skipped, never trusted.

pub mod decode;
pub mod ethtool;
pub mod request;
pub mod socket;
pub mod wire;

pub use request::Requests;
pub use socket::Socket;
