//! The memory of all tables, wherever it lies.

use std::io;

use crate::interface::INTERFACES;
use crate::ip4::{FIRST_WORDS, GROUP_WORDS};
use crate::ip6;
use crate::mem::{Cells, LINE};

/// How large the tables are; each a power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Second-level groups of the IPv4 FIB, 1 KiB each: one for each /24 that holds a longer
    /// prefix.
    pub ip4_groups: u32,
    /// Pages of the IPv6 FIB, 1 KiB each: about one for each 26 routes of the Internet, never more
    /// than one for two routes.
    pub ip6_pages: u32,
    /// Leaves of the IPv6 FIB, 64 bytes each: about one for each 6 routes of the Internet, never
    /// more than 7 for one.
    pub ip6_leaves: u32,
    /// Next-hop groups, 64 bytes each, [`FIRST_FREE`](crate::special::FIRST_FREE) special ones
    /// among them.
    pub nexthop_groups: u32,
    /// Adjacencies, 64 bytes each, as many special ones among them.
    pub adjacencies: u32,
}

impl Default for Sizes {
    /// Room for twice the routes of the Internet: 65,536 of each, but of IPv6 32,768 pages and
    /// 131,072 leaves.
    fn default() -> Self {
        Self {
            ip4_groups: 1 << 16,
            ip6_pages: 1 << 15,
            ip6_leaves: 1 << 17,
            nexthop_groups: 1 << 16,
            adjacencies: 1 << 16,
        }
    }
}

impl Sizes {
    /// Bytes of all tables, those of a fixed size included.
    pub fn bytes(self) -> u64 {
        let words = |count: u32, words: usize| u64::from(count) * words as u64;
        let sized = [
            words(self.ip4_groups, GROUP_WORDS),
            words(self.ip6_pages, ip6::PAGE_WORDS),
            words(self.ip6_leaves, LINE),
            words(self.nexthop_groups, LINE),
            words(self.adjacencies, LINE),
        ];
        let fixed = FIRST_WORDS + ip6::FIRST_WORDS + INTERFACES * LINE;
        4 * (sized.iter().sum::<u64>() + fixed as u64)
    }
}

/// The memory of all tables, zeroed: one writer fills it, workers and XDP programs read it.
#[derive(Debug, Clone)]
pub struct Memory {
    /// First level of the IPv4 FIB: a word for every /24.
    pub ip4_first: Cells,
    /// Second level of the IPv4 FIB: 256 words a group.
    pub ip4_second: Cells,
    /// First level of the IPv6 FIB: a word for every /16.
    pub ip6_first: Cells,
    /// Pages of the IPv6 FIB: 256 words each.
    pub ip6_pages: Cells,
    /// Leaves of the IPv6 FIB, a line each.
    pub ip6_leaves: Cells,
    /// Next-hop groups, a line each.
    pub nexthop_groups: Cells,
    /// Adjacencies, a line each.
    pub adjacencies: Cells,
    /// Interfaces, a line each.
    pub interfaces: Cells,
}

impl Memory {
    /// Memory from `make`, which gets the name of each table and its length in words.
    ///
    /// # Errors
    /// The first error of `make`.
    pub fn of<E>(
        sizes: Sizes,
        mut make: impl FnMut(&'static str, usize) -> Result<Cells, E>,
    ) -> Result<Self, E> {
        let mut lines = |name, count: usize| make(name, count * LINE);
        Ok(Self {
            ip4_second: lines("ip4_second", sizes.ip4_groups as usize * GROUP_WORDS / LINE)?,
            ip6_first: lines("ip6_first", ip6::FIRST_WORDS / LINE)?,
            ip6_pages: lines(
                "ip6_pages",
                sizes.ip6_pages as usize * ip6::PAGE_WORDS / LINE,
            )?,
            ip6_leaves: lines("ip6_leaves", sizes.ip6_leaves as usize)?,
            nexthop_groups: lines("nexthop_groups", sizes.nexthop_groups as usize)?,
            adjacencies: lines("adjacencies", sizes.adjacencies as usize)?,
            interfaces: lines("interfaces", INTERFACES)?,
            // The largest last, so that refused sizes cost little.
            ip4_first: lines("ip4_first", FIRST_WORDS / LINE)?,
        })
    }

    /// Memory of this process's own, in huge pages where there are some.
    ///
    /// # Errors
    /// The error of mmap(2), usually `ENOMEM`.
    ///
    /// # Panics
    /// If a size is not a power of two.
    pub fn mapped(sizes: Sizes) -> io::Result<Self> {
        Self::of(sizes, |_, words| Cells::mapped(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_all_tables() {
        let sizes = Sizes {
            ip4_groups: 1 << 3,
            ip6_pages: 1 << 4,
            ip6_leaves: 1 << 6,
            nexthop_groups: 1 << 5,
            adjacencies: 1 << 7,
        };
        let mut words = 0;
        let made = Memory::of(sizes, |_, count| {
            words += count as u64;
            Ok::<_, std::convert::Infallible>(Cells::boxed(LINE))
        });
        assert!(made.is_ok());
        assert_eq!(sizes.bytes(), 4 * words);
    }
}
