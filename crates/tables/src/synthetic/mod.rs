//! Route sets like the Internet's, from a seed, for tests and benches.

pub mod ip4;
pub mod ip6;
