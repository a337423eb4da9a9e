//! IPv4 routes.

use std::collections::HashSet;

use crate::ip4::Prefix;
use crate::random::Random;

/// Prefixes of each length in a thousand. The rest are longer than /24, evenly.
const PER_MILLE: [(u8, u32); 9] = [
    (24, 599),
    (22, 120),
    (23, 102),
    (21, 50),
    (20, 49),
    (19, 25),
    (18, 12),
    (16, 9),
    (17, 6),
];

/// `count` distinct prefixes, in random order: 59.9 % /24, 12 % /22, 10.2 % /23, 5 % /21, 4.9 %
/// /20, 2.5 % /19, 2.7 % /16 to /18, 2.8 % longer than /24. They lie in 1.0.0.0 to 223.255.255.255
/// without 10.0.0.0/8 and 127.0.0.0/8, anywhere with the same likelihood, so they nest less than
/// the Internet's.
///
/// A length that is nearly used up (some millions of prefixes on) gives way to the next longer one.
pub fn routes(count: usize, seed: u64) -> Vec<Prefix> {
    let mut random = Random::new(seed);
    let mut seen = HashSet::with_capacity(count);
    (0..count)
        .map(|_| distinct(&mut random, &mut seen))
        .collect()
}

/// Tries that a length gets before the next longer one is taken.
const TRIES: usize = 64;

fn distinct(random: &mut Random, seen: &mut HashSet<Prefix>) -> Prefix {
    let mut len = length(random);
    loop {
        for _ in 0..TRIES {
            let prefix = Prefix::cut(unicast(random), len);
            if seen.insert(prefix) {
                return prefix;
            }
        }
        len = (len + 1).min(32);
    }
}

fn length(random: &mut Random) -> u8 {
    let mut at = random.below(1000);
    for (len, share) in PER_MILLE {
        if at < share {
            return len;
        }
        at -= share;
    }
    25 + random.below(8) as u8
}

/// A global address, roughly.
fn unicast(random: &mut Random) -> u32 {
    loop {
        let addr = random.word();
        match addr >> 24 {
            0 | 10 | 127 | 224.. => {}
            _ => return addr,
        }
    }
}

/// `count` random addresses in random ones of these prefixes; none if there are no prefixes.
pub fn destinations(prefixes: &[Prefix], count: usize, seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed);
    let mut address = || {
        let prefix = prefixes[random.below(prefixes.len() as u32) as usize];
        prefix.addr() | random.word() & (prefix.last() - prefix.addr())
    };
    let count = if prefixes.is_empty() { 0 } else { count };
    (0..count).map(|_| address()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_as_promised() {
        let routes = routes(100_000, 1);
        let share = |lens: &std::ops::RangeInclusive<u8>| {
            routes
                .iter()
                .filter(|route| lens.contains(&route.len()))
                .count() as f64
                / 1000.0
        };
        for (lens, percent) in [
            (24..=24, 59.9),
            (22..=22, 12.0),
            (16..=16, 0.9),
            (25..=32, 2.8),
            (16..=32, 100.0),
        ] {
            assert!(
                (share(&lens) - percent).abs() < 0.5,
                "{lens:?}: {}",
                share(&lens)
            );
        }
        assert_eq!(routes.iter().collect::<HashSet<_>>().len(), routes.len());
        assert_eq!(routes, super::routes(100_000, 1));
        let inside = |dst: &u32| routes[..10].iter().any(|route| route.contains(*dst));
        assert!(destinations(&routes[..10], 1000, 2).iter().all(inside));
        assert!(destinations(&[], 1, 2).is_empty());
    }
}
