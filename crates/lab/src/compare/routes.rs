//! Routes of IPv6, about as many as the Internet has.
//!
//! Destinations are random within [`BLOCK`], and most of its routes are a /48 or longer, so that
//! nearly every packet meets another route than those before it. The Internet's own prefixes lie so
//! far apart that random addresses would hit only the shortest of them.

use std::collections::HashSet;
use std::net::Ipv6Addr;

use crate::random::Random;

/// The block that all routes are in: documentation addresses (RFC 9637), and its prefix length.
pub const BLOCK: (Ipv6Addr, u8) = (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 30);

/// Lengths of the routes, and of 100 how many have it: the commonest ones of the Internet's table
/// in about its order, as far as the block has room for them, and the /56 of sites.
const LENGTHS: [(u8, u64); 5] = [(48, 60), (56, 29), (44, 8), (40, 2), (36, 1)];
/// Length of the longest routes.
pub const LONGEST: u8 = 56;

/// That many different prefixes, up to millions, the same every time: the block first, the others
/// in random order.
pub fn prefixes(count: u32) -> Vec<String> {
    let (block, len) = BLOCK;
    let mut seen = HashSet::from([(block, len)]);
    let mut prefixes = vec![format!("{block}/{len}")];
    let mut random = Random::new(0);
    while prefixes.len() < count as usize {
        let len = length(&mut random);
        let inside = random.next() & ((1 << (LONGEST - BLOCK.1)) - 1);
        let longest = block.to_bits() | u128::from(inside) << (128 - LONGEST);
        let prefix = Ipv6Addr::from_bits(longest >> (128 - len) << (128 - len));
        if seen.insert((prefix, len)) {
            prefixes.push(format!("{prefix}/{len}"));
        }
    }
    prefixes
}

fn length(random: &mut Random) -> u8 {
    let mut left = random.next() % 100;
    let found = LENGTHS.iter().find(|(_, share)| {
        let here = left < *share;
        left = left.saturating_sub(*share);
        here
    });
    found.map_or(LONGEST, |(len, _)| *len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_different_and_of_the_block() {
        let prefixes = prefixes(250_000);
        assert_eq!(prefixes.iter().collect::<HashSet<_>>().len(), 250_000);
        assert_eq!(prefixes[0], "3fff::/30");
        let mut counts = [0; 129];
        let mut covered = HashSet::new();
        for prefix in &prefixes {
            let (address, len) = prefix.split_once('/').unwrap();
            let (address, len): (Ipv6Addr, u8) = (address.parse().unwrap(), len.parse().unwrap());
            let bits = address.to_bits();
            assert_eq!(bits >> 98, BLOCK.0.to_bits() >> 98, "{prefix}");
            assert!(bits.trailing_zeros() >= 128 - u32::from(len), "{prefix}");
            counts[usize::from(len)] += 1;
            if len >= 48 {
                covered.insert(bits >> 80);
            }
        }
        assert!((130_000..150_000).contains(&counts[48]), "{}", counts[48]);
        assert!((80_000..100_000).contains(&counts[56]), "{}", counts[56]);
        // Most random destinations are in a /48 that has routes.
        assert!(covered.len() > (1 << 18) / 2, "{}", covered.len());
    }
}
