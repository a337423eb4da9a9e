//! Common part of IPv4 and IPv6.

pub mod show;
