//! The table against an oracle.

use std::collections::HashMap;

use super::{Entry, FIRST_WORDS, Fib, GROUP_WORDS, Prefix, Reader};
use crate::ids::Full;
use crate::mem::Cells;
use crate::random::Random;

fn fib(groups: usize) -> Fib {
    Fib::new(
        Cells::mapped(FIRST_WORDS).unwrap(),
        Cells::mapped(groups * GROUP_WORDS).unwrap(),
    )
}

fn prefix(text: &str) -> Prefix {
    text.parse().unwrap()
}

fn addr(text: &str) -> u32 {
    text.parse::<std::net::Ipv4Addr>().unwrap().into()
}

/// Longest match by trying every length.
#[derive(Default)]
struct Oracle(HashMap<Prefix, Entry>);

impl Oracle {
    fn lookup(&self, dst: u32) -> Entry {
        let candidates = (0..=32).rev().filter_map(|len| Prefix::new(dst, len));
        candidates
            .filter_map(|prefix| self.0.get(&prefix))
            .next()
            .copied()
            .unwrap_or(Entry::NO_ROUTE)
    }

    /// Addresses at and just outside the edges of every route.
    fn edges(&self) -> impl Iterator<Item = u32> {
        self.0.keys().flat_map(|prefix| around(*prefix))
    }
}

fn around(prefix: Prefix) -> [u32; 4] {
    [
        prefix.addr().wrapping_sub(1),
        prefix.addr(),
        prefix.last(),
        prefix.last().wrapping_add(1),
    ]
}

/// Prefixes that nest and collide: few values for the bits of each level.
fn nested(random: &mut Random) -> Prefix {
    let len = match random.below(100_000) {
        0 => random.below(8),
        1..500 => 8 + random.below(8),
        500..30_000 => 16 + random.below(8),
        30_000..45_000 => 24,
        _ => 25 + random.below(8),
    };
    let addr = (random.word() & 0x0100_0000) + 0x0a00_0000 | random.word() & 0x0003_07ff;
    Prefix::new(addr, len as u8).unwrap()
}

fn entry(random: &mut Random) -> Entry {
    Entry::new(random.below(1 << 20), random.below(2) == 1)
}

fn check(reader: &Reader, oracle: &Oracle, dst: u32) {
    assert_eq!(
        reader.lookup(dst),
        oracle.lookup(dst),
        "{}",
        std::net::Ipv4Addr::from(dst)
    );
}

/// `operations` random insertions and removals, looked at after each one around the change and every so often everywhere.
/// `groups` is small enough to be used up often.
fn agrees_with_oracle(seed: u64, groups: usize, operations: usize) {
    println!("seed {seed:#x}, {groups} groups");
    let (mut random, mut fib, mut oracle) = (Random::new(seed), fib(groups), Oracle::default());
    let reader = fib.reader();
    let mut full = 0;
    for step in 0..operations {
        let prefix = nested(&mut random);
        // Phases of growth and of decay.
        let grow = step / (operations / 8) % 2 == 0;
        if random.below(4) < if grow { 3 } else { 1 } {
            let entry = entry(&mut random);
            match fib.insert(prefix, entry) {
                Ok(old) => assert_eq!(old, oracle.0.insert(prefix, entry)),
                Err(Full) => full += 1,
            }
        } else {
            assert_eq!(fib.remove(prefix), oracle.0.remove(&prefix));
        }
        check(&reader, &oracle, around(prefix)[random.below(4) as usize]);
        check(
            &reader,
            &oracle,
            prefix.addr() | random.word() & (prefix.last() - prefix.addr()),
        );
        if random.below(64) == 0 {
            let retired = fib.retired();
            fib.reclaim(retired);
        }
        if step % (operations / 16) == 0 {
            oracle.edges().for_each(|dst| check(&reader, &oracle, dst));
            assert_eq!(fib.iter().collect::<HashMap<_, _>>(), oracle.0);
        }
    }
    println!(
        "{} routes in the end, {full} insertions found no group",
        fib.len()
    );
    assert_eq!(
        full > 0,
        groups < 16,
        "the second level is to be used up in the small table only"
    );
    for (prefix, _) in fib.iter().collect::<Vec<_>>() {
        fib.remove(prefix);
    }
    assert_eq!(fib.usage().free + fib.usage().retired, groups);
    assert!(fib.first_level_is_empty());
}

#[test]
fn random_routes_agree_with_oracle() {
    agrees_with_oracle(0x7061_7273, 128, 3_000_000);
}

#[test]
fn random_routes_agree_with_oracle_when_groups_run_out() {
    agrees_with_oracle(0x6861_6c6c, 8, 2_000_000);
}
