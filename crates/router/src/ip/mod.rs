//! What IPv4 and IPv6 have in common.

pub mod show;
