//! IPv6 routes.
//!
//! Their shape follows the table of 2024 and 2025 (bgp.potaroo.net, AS 131072 and AS 6447: 220,000
//! to 226,000 prefixes, 43 bits long on average, 57 % of them inside of others): registries give
//! out neighboring /32s and /29s, some holders announce many parts of theirs, and networks with a
//! /48 of their own stand close together in blocks made for that.

use std::collections::HashSet;

use crate::ip6::Prefix;
use crate::random::Random;

/// A block that a registry gives prefixes out of, one after the other.
struct Block {
    /// The first 32 bits of its first address.
    first: u32,
    /// Holders in a hundred that have theirs from here.
    share: u32,
}

/// Blocks that /32s and /29s are given out from.
const BLOCKS: [Block; 8] = [
    Block {
        first: 0x2001_0200,
        share: 8,
    },
    Block {
        first: 0x2400_0000,
        share: 22,
    },
    Block {
        first: 0x2600_0000,
        share: 16,
    },
    Block {
        first: 0x2610_0000,
        share: 4,
    },
    Block {
        first: 0x2800_0000,
        share: 12,
    },
    Block {
        first: 0x2804_0000,
        share: 12,
    },
    Block {
        first: 0x2a00_0000,
        share: 24,
    },
    Block {
        first: 0x2c0f_0000,
        share: 2,
    },
];

/// First 32 bits of the blocks that single /48s are given out from.
const INDEPENDENT: [u32; 3] = [0x2001_067c, 0x2620_0000, 0x2001_0df0];

/// Most parts of its prefix that a holder announces.
const MOST_PARTS: u32 = 2000;

/// `count` distinct prefixes, in random order: about 55 % /48, 14 % /32, 8 % each of /44 and /40,
/// 4 % each of /36 and /29, a few of each other length from /33 on, 0.1 % longer than /48.
pub fn routes(count: usize, seed: u64) -> Vec<Prefix> {
    let mut world = World {
        random: Random::new(seed),
        given: [0; BLOCKS.len()],
        independent: 0,
        seen: HashSet::with_capacity(count),
        routes: Vec::with_capacity(count),
    };
    while world.routes.len() < count {
        match world.random.below(100) {
            0..55 => world.independent(),
            _ => world.holder(),
        }
    }
    let World {
        mut random,
        mut routes,
        ..
    } = world;
    routes.truncate(count);
    for at in (1..routes.len()).rev() {
        routes.swap(at, random.below(at as u32 + 1) as usize);
    }
    routes
}

struct World {
    random: Random,
    /// For each block, how many /32s are given out.
    given: [u32; BLOCKS.len()],
    /// Number of single /48s given out.
    independent: u32,
    seen: HashSet<Prefix>,
    routes: Vec<Prefix>,
}

impl World {
    fn announce(&mut self, addr: u128, len: u8) {
        let prefix = Prefix::new(addr, len).filter(|prefix| self.seen.insert(*prefix));
        self.routes.extend(prefix);
    }

    /// Somebody with a /48, near to the last one.
    fn independent(&mut self) {
        self.independent += 1 + self.random.below(3);
        let block = INDEPENDENT[self.independent as usize % INDEPENDENT.len()];
        self.announce(
            (u128::from(block) << 96) + (u128::from(self.independent) << 80),
            48,
        );
    }

    /// Somebody with a /32 or /29, announced or not, and perhaps parts of it.
    fn holder(&mut self) {
        let mut share = self.random.below(100);
        let of_share = |block: &Block| {
            let found = share < block.share;
            share = share.saturating_sub(block.share);
            found
        };
        let block = BLOCKS.iter().position(of_share).unwrap_or(0);
        let wide = self.random.below(2) == 0;
        self.given[block] += if wide { 8 } else { 1 };
        let first = BLOCKS[block].first + self.given[block];
        let holder = u128::from(first) << 96;
        if self.random.below(100) < 80 {
            let len = if wide && self.random.below(5) < 2 {
                29
            } else {
                32
            };
            self.announce(holder, len);
        }
        if self.random.below(100) < 28 {
            self.parts(holder);
        }
    }

    /// A few parts of a /32, seldom very many (Pareto's law): the first ones, or any.
    fn parts(&mut self, holder: u128) {
        let most = (1 << 20) * 6 / 5 / (1 + self.random.below(1 << 20));
        let in_order = self.random.below(2) == 0;
        for number in 0..most.min(MOST_PARTS) {
            let len = self.part_len();
            let number = if in_order {
                u64::from(number)
            } else {
                self.random.bits()
            };
            let below = u128::from(number) & ((1 << (len - 32)) - 1);
            self.announce(holder | below << (128 - len), len);
        }
    }

    fn part_len(&mut self) -> u8 {
        match self.random.below(1000) {
            0..480 => 48,
            480..640 => 44,
            640..790 => 40,
            790..870 => 36,
            870..930 => 33 + self.random.below(3) as u8,
            930..975 => 45 + self.random.below(3) as u8,
            975..998 => 37 + self.random.below(7) as u8,
            _ => 49 + self.random.below(16) as u8,
        }
    }
}

/// `count` random addresses in random ones of these prefixes; none if there are no prefixes.
pub fn destinations(prefixes: &[Prefix], count: usize, seed: u64) -> Vec<u128> {
    let mut random = Random::new(seed);
    let mut address = || {
        let prefix = prefixes[random.below(prefixes.len() as u32) as usize];
        let wide = u128::from(random.bits()) << 64 | u128::from(random.bits());
        prefix.addr() | wide & (prefix.last() - prefix.addr())
    };
    let count = if prefixes.is_empty() { 0 } else { count };
    (0..count).map(|_| address()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rib::Rib;

    #[test]
    fn the_shape_is_as_promised() {
        let routes = routes(250_000, 1);
        assert_eq!(routes.iter().collect::<HashSet<_>>().len(), 250_000);
        let mean = |of: &dyn Fn(&Prefix) -> f64| routes.iter().map(of).sum::<f64>() / 250_000.0;
        let share = |len: u8| 100.0 * mean(&|route| f64::from(u8::from(route.len() == len)));
        for (len, percent) in [
            (48, 55.0),
            (32, 14.0),
            (44, 8.0),
            (40, 8.0),
            (36, 4.0),
            (29, 4.0),
        ] {
            println!("/{len}: {:.1} %", share(len));
            assert!((share(len) - percent).abs() < 3.0, "/{len}: {}", share(len));
        }
        let length = mean(&|route| f64::from(route.len()));
        assert!((length - 43.0).abs() < 1.0, "{length}");
        let mut rib = Rib::new();
        for route in &routes {
            rib.insert(*route, ());
        }
        let inside = mean(&|route| f64::from(u8::from(rib.covers(*route).next().is_some())));
        assert!((inside - 0.57).abs() < 0.1, "{inside}");
        assert_eq!(routes[..1000], super::routes(250_000, 1)[..1000]);
    }

    #[test]
    fn destinations_lie_in_prefixes() {
        let routes = routes(10, 1);
        let inside = |dst: &u128| routes.iter().any(|route| route.contains(*dst));
        assert!(destinations(&routes, 1000, 2).iter().all(inside));
        assert!(destinations(&[], 1, 2).is_empty());
    }
}
