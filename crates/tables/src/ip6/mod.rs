//! IPv6 longest-prefix match: a trie whose nodes are as large as their routes need (docs/adr/0010).
//!
//! The first level has a word for every /16. A word is an [`Entry`](crate::entry::Entry), or it
//! names a node and the byte of the address that the node begins with. There are two kinds of nodes:
//!
//! - a *leaf*, one 64-byte line: the next 32 bits of the address in at most 8 ranges, a word each;
//! - a *page*, 256 words: one for every value of the next byte.
//!
//! A leaf that would need more ranges puts those that stand close together into a leaf below; where
//! they are spread out, it becomes a page. When few are left, they become one leaf again.
//!
//! Their words may name further nodes. So a look-up in a full table of the Internet is four or five
//! loads, the first two of them in lines that all destinations share; in a small table it is two.
//!
//! A leaf's ranges never change: another leaf takes its place by one store, and the old one is
//! retired. Everything else is a store of one word.
//!
//! A change writes all words that its prefix owns, and visits no node that longer prefixes own
//! alone. So the shorter a prefix, the more it costs: most change a word or a leaf, in a
//! microsecond; the default route beside 250,000 others takes about 10 ms. The worst is a visit to
//! every node, 35 ms for those of 250,000 routes.
//!
//! Memory: 256 KiB of first level, 1 KiB a page, 64 bytes a leaf; on the writer's side a byte for
//! each word and 40 to 75 bytes a route. 250,000 routes of the Internet's mix take 9,500 pages and
//! 43,600 leaves. Whatever the prefixes and whatever was there before, there are no more than half as
//! many pages as routes, and no more than 7 leaves a route: two leaves of a route's path span at least
//! 32 of the 112 bits behind the first level, and a page stays one only while it has more than 5
//! ranges, which takes two prefixes of its own.

mod fib;
mod leaf;
mod nodes;
mod ranges;
mod reader;
#[cfg(test)]
mod tests;
pub(crate) mod word;

pub use fib::{Fib, Usages};
pub(crate) use fib::{SPARE_LEAVES, SPARE_PAGES};
pub use nodes::{Leaf, Page};
pub use reader::{Cursor, Destination, Reader};
pub use word::{FIRST_WORDS, PAGE_WORDS};

/// An IPv6 prefix; addresses are numbers in host byte order.
pub type Prefix = crate::prefix::Prefix<u128>;
