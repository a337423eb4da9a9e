//! The memory of all tables, wherever it lies.

use std::io;

use crate::interface::OUTER_TAGS_LINES;
use crate::ip4::{FIRST_WORDS, GROUP_WORDS};
use crate::ip6;
use crate::mem::{Cells, LINE};
use crate::translated;

/// Sizes of the tables; each a power of two.
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
    /// Interfaces, 64 bytes each, 512 for the VLAN identifiers of sub-interfaces, and 64 for a
    /// tunnel, number 0 (never an interface) included; 65,536 at most.
    pub interfaces: u32,
}

impl Default for Sizes {
    /// Room for twice the routes of the Internet, and for 50,000 IPv4 routes and 18,000 IPv6 routes
    /// whatever their prefixes are: 65,536 of each, but of IPv6 32,768 pages and 131,072 leaves; and
    /// for 4,095 interfaces with a host interface each.
    fn default() -> Self {
        Self {
            ip4_groups: 1 << 16,
            ip6_pages: 1 << 15,
            ip6_leaves: 1 << 17,
            nexthop_groups: 1 << 16,
            adjacencies: 1 << 16,
            interfaces: 1 << 13,
        }
    }
}

/// Routes of a family that [`Sizes::for_ip4_routes`] and [`Sizes::for_ip6_routes`] make room for at
/// most whatever their prefixes are; for more of them, the mix counts.
const ANY: u32 = 50_000;

impl Sizes {
    /// Routes of a family that the tables may be asked to have room for: each table is then one of
    /// 4 GiB at most, which is what a BPF map may have where XDP programs read them.
    pub const MOST_ROUTES: u32 = 50_000_000;

    /// These, but with room for so many IPv4 routes ([`MOST_ROUTES`](Self::MOST_ROUTES) at most):
    /// for up to 50,000 whatever their prefixes are, for more twice what the Internet's mix takes.
    #[must_use]
    pub fn for_ip4_routes(self, routes: u32) -> Self {
        let any = routes.min(ANY);
        Self {
            ip4_groups: any.max(routes / 16).next_power_of_two(),
            ..self
        }
    }

    /// These, but with room for so many IPv6 routes ([`MOST_ROUTES`](Self::MOST_ROUTES) at most):
    /// for up to 50,000 whatever their prefixes are, for more twice what the Internet's mix takes.
    #[must_use]
    pub fn for_ip6_routes(self, routes: u32) -> Self {
        let any = routes.min(ANY);
        let pages = (any / 2 + ip6::SPARE_PAGES).max(routes / 13);
        let leaves = (any * 7 + ip6::SPARE_LEAVES).max(routes / 20 * 7);
        Self {
            ip6_pages: pages.next_power_of_two(),
            ip6_leaves: leaves.next_power_of_two(),
            ..self
        }
    }

    /// Bytes of all tables, those of a fixed size included.
    pub fn bytes(self) -> u64 {
        let interfaces = u64::from(self.interfaces) * (2 + OUTER_TAGS_LINES as u64);
        let lines = u64::from(self.nexthop_groups) + u64::from(self.adjacencies) + interfaces;
        let lines = lines + translated::LINES as u64;
        self.ip4_bytes() + self.ip6_bytes() + bytes(lines, LINE)
    }

    /// Bytes of the IPv4 FIB.
    pub fn ip4_bytes(self) -> u64 {
        bytes(FIRST_WORDS as u64, 1) + bytes(self.ip4_groups.into(), GROUP_WORDS)
    }

    /// Bytes of the IPv6 FIB.
    pub fn ip6_bytes(self) -> u64 {
        let nodes =
            bytes(self.ip6_pages.into(), ip6::PAGE_WORDS) + bytes(self.ip6_leaves.into(), LINE);
        bytes(ip6::FIRST_WORDS as u64, 1) + nodes
    }
}

/// Bytes of `count` entries of so many words each.
fn bytes(count: u64, words: usize) -> u64 {
    4 * count * words as u64
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
    /// The outer VLAN identifiers of their sub-interfaces, 8 lines each.
    pub outer_tags: Cells,
    /// The tunnels that they are, a line each.
    pub tunnels: Cells,
    /// What is translated though it is for an own address, 512 lines.
    pub translated: Cells,
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
            interfaces: lines("interfaces", sizes.interfaces as usize)?,
            outer_tags: lines("outer_tags", sizes.interfaces as usize * OUTER_TAGS_LINES)?,
            tunnels: lines("tunnels", sizes.interfaces as usize)?,
            translated: lines("translated", translated::LINES)?,
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
    use crate::entry::Entry;
    use crate::fib::Fib;
    use crate::prefix::Prefix;
    use crate::random::Random;
    use crate::{ip4, synthetic};

    #[test]
    fn the_bytes_are_those_of_all_tables() {
        let sizes = Sizes {
            ip4_groups: 1 << 3,
            ip6_pages: 1 << 4,
            ip6_leaves: 1 << 6,
            nexthop_groups: 1 << 5,
            adjacencies: 1 << 7,
            interfaces: 1 << 2,
        };
        let mut words = 0;
        let made = Memory::of(sizes, |_, count| {
            words += count as u64;
            Ok::<_, std::convert::Infallible>(Cells::boxed(LINE))
        });
        assert!(made.is_ok());
        assert_eq!(sizes.bytes(), 4 * words);
    }

    /// Inserts the routes into tables of these sizes, where each must find room.
    fn all_fit(sizes: Sizes, ip4: &[ip4::Prefix], ip6: &[ip6::Prefix]) {
        let memory = Memory::mapped(sizes).expect("there is memory");
        let mut fib = ip4::Fib::new(memory.ip4_first, memory.ip4_second);
        fill(&mut fib, ip4);
        let mut fib = ip6::Fib::new(memory.ip6_first, memory.ip6_pages, memory.ip6_leaves);
        fill(&mut fib, ip6);
    }

    fn fill<F: Fib>(fib: &mut F, prefixes: &[Prefix<F::Address>]) {
        for (done, &prefix) in prefixes.iter().enumerate() {
            let inserted = fib.insert(prefix, Entry::new(16, false));
            assert!(inserted.is_ok(), "full after {done} of {}", prefixes.len());
            if let Some(retired) = fib.retired() {
                fib.reclaim(retired);
            }
        }
    }

    fn small() -> Sizes {
        Sizes {
            ip4_groups: 1,
            ip6_pages: 1,
            ip6_leaves: 1,
            nexthop_groups: 1 << 5,
            adjacencies: 1 << 5,
            interfaces: 1,
        }
    }

    /// IPv4 routes that each take a group of their own, and IPv6 routes that are scattered.
    fn worst(ip4: u32, ip6: u32) -> (Vec<ip4::Prefix>, Vec<ip6::Prefix>) {
        let hosts = (0..ip4).map(|n| ip4::Prefix::cut((1 << 24) + (n << 8), 32));
        // Pairs that part late, of many lengths, all below one /16.
        let mut random = Random::new(7);
        let pair = |n: u32| {
            let bits = u128::from(random.bits()) << 48 | u128::from(random.bits() >> 16);
            let addr = 0x2001 << 112 | bits >> (n % 3 * 8);
            [128, 97 - n as u8 % 64].map(|len| ip6::Prefix::cut(addr, len))
        };
        (hosts.collect(), (0..ip6 / 2).flat_map(pair).collect())
    }

    /// As many as were asked for fit, and of what nobody has asked for as many as the guide says.
    #[test]
    fn few_routes_fit_whatever_they_are() {
        for count in [1000, 4096, ANY] {
            let (ip4, ip6) = worst(count, count);
            let sizes = small().for_ip4_routes(count).for_ip6_routes(count);
            all_fit(sizes, &ip4, &ip6);
        }
        let (ip4, ip6) = worst(ANY, 18_000);
        all_fit(Sizes::default(), &ip4, &ip6);
    }

    /// As many as were asked for fit, and half as many again, if they are like the Internet's.
    #[test]
    fn many_routes_fit_if_they_are_the_internets() {
        let (ip4, ip6) = (1_000_000, 250_000);
        let sizes = small().for_ip4_routes(ip4).for_ip6_routes(ip6);
        all_fit(
            sizes,
            &synthetic::ip4::routes(ip4 as usize * 3 / 2, 1),
            &synthetic::ip6::routes(ip6 as usize * 3 / 2, 1),
        );
    }
}
