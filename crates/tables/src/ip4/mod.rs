//! IPv4 longest-prefix match: DIR-24-8 (Gupta, Lin, McKeown, INFOCOM 1998).
//!
//! The first level has a 32-bit [`Entry`](crate::entry::Entry) for every /24. Where a prefix longer than /24 exists, the
//! entry names a second-level group of 256 entries, one an address. A look-up is one load, or two.
//!
//! Memory: 64 MiB of first level whatever the number of routes, 1 KiB for each /24 with a longer
//! prefix in it; on the writer's side one byte for each of these entries (the length of the prefix
//! it comes from) and 9 to 21 bytes a route. A million routes of the Internet's mix take about 64 +
//! 30 + 16 + 8 + 18 MiB; pages that were never written take none.

mod fib;
mod reader;
#[cfg(test)]
mod tests;

pub use fib::{FIRST_WORDS, Fib, GROUP_WORDS};
pub use reader::Reader;

/// An IPv4 prefix; addresses are numbers in host byte order.
pub type Prefix = crate::prefix::Prefix<u32>;
