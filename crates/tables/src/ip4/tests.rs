//! The table against an oracle.

use super::{FIRST_WORDS, Fib, GROUP_WORDS, Prefix, Reader};
use crate::entry::Entry;
use crate::ids::Full;
use crate::mem::Cells;
use crate::oracle::{Oracle, around, entries};
use crate::random::Random;
use crate::synthetic::ip4 as synthetic;

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

/// Prefixes that nest and collide: few values for the bits of each level.
fn nested(random: &mut Random) -> Prefix {
    let len = match random.below(100_000) {
        0 => random.below(8),
        1..500 => 8 + random.below(8),
        500..30_000 => 16 + random.below(8),
        30_000..45_000 => 24,
        _ => 25 + random.below(8),
    };
    let addr = 0x0a00_0000 | (random.word() & 0x0103_07ff);
    Prefix::new(addr, len as u8).unwrap()
}

fn entry(random: &mut Random) -> Entry {
    Entry::new(random.below(1 << 20), random.below(2) == 1)
}

fn check(reader: &Reader, oracle: &Oracle<u32>, dst: u32) {
    assert_eq!(
        reader.lookup(dst),
        oracle.lookup(dst),
        "{}",
        std::net::Ipv4Addr::from(dst)
    );
}

/// `operations` random insertions and removals, looked at after each one around the change and
/// every so often everywhere. `groups` is small enough to be used up often.
fn agrees_with_oracle(seed: u64, groups: usize, operations: usize) {
    println!("seed {seed:#x}, {groups} groups");
    let (mut random, mut fib, mut oracle) = (Random::new(seed), fib(groups), Oracle::new());
    let reader = fib.reader();
    let mut full = 0;
    for step in 0..operations {
        let prefix = nested(&mut random);
        // Phases of growth and of decay.
        let grow = (step / (operations / 8)).is_multiple_of(2);
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
        if step.is_multiple_of(operations / 16) {
            oracle.edges().for_each(|dst| check(&reader, &oracle, dst));
            assert_eq!(entries(fib.routes()), oracle.0);
        }
    }
    println!(
        "{} routes in the end, {full} insertions found no group",
        fib.routes().len()
    );
    assert_eq!(
        full > 0,
        groups < 16,
        "the second level is to be used up in the small table only"
    );
    for prefix in entries(fib.routes()).into_keys() {
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

#[test]
fn a_million_operations_on_internet_like_routes() {
    let (mut fib, mut oracle) = (fib(1 << 15), Oracle::new());
    let reader = fib.reader();
    let prefixes = synthetic::routes(500_000, 3);
    for (number, &prefix) in (16..).zip(&prefixes) {
        let entry = Entry::new(number, false);
        fib.insert(prefix, entry).unwrap();
        oracle.0.insert(prefix, entry);
    }
    let agree = |oracle: &Oracle<u32>, seed| {
        for dst in synthetic::destinations(&prefixes, 100_000, seed) {
            reader.prefetch(dst);
            check(&reader, oracle, dst);
        }
    };
    agree(&oracle, 4);
    for prefix in prefixes.iter().step_by(2) {
        assert_eq!(fib.remove(*prefix), oracle.0.remove(prefix));
    }
    agree(&oracle, 5);
    for prefix in &prefixes {
        assert_eq!(fib.remove(*prefix), oracle.0.remove(prefix));
    }
    assert!(fib.routes().is_empty() && fib.first_level_is_empty());
}

#[test]
fn covering_routes_come_back() {
    let mut fib = fib(4);
    let (reader, dst) = (fib.reader(), addr("192.0.2.130"));
    let chain = [
        "0.0.0.0/0",
        "192.0.0.0/9",
        "192.0.2.0/24",
        "192.0.2.128/25",
        "192.0.2.130/32",
    ]
    .map(prefix);
    let routes = [0, 1, 2, 3, 4].map(|at| (16 + at as u32, chain[at]));
    // Most specific first, both ways.
    for (number, route) in routes.into_iter().rev() {
        assert_eq!(fib.insert(route, Entry::new(number, false)), Ok(None));
    }
    for (number, route) in routes.into_iter().rev() {
        let entry = Entry::new(number, false);
        assert_eq!(
            (reader.lookup(dst), fib.routes().longest_match(dst)),
            (entry, Some((route, &entry)))
        );
        assert_eq!(
            (
                fib.routes().get(route).copied(),
                fib.remove(route),
                fib.routes().get(route).copied()
            ),
            (Some(entry), Some(entry), None)
        );
    }
    assert_eq!(
        (
            reader.lookup(dst),
            fib.routes().longest_match(dst),
            fib.routes().len()
        ),
        (Entry::NO_ROUTE, None, 0)
    );
}

#[test]
fn a_full_second_level_changes_nothing() {
    let mut fib = fib(2);
    let reader = fib.reader();
    let [a, b, c] = ["10.0.1.0/25", "10.0.2.4/32", "10.0.3.128/26"].map(prefix);
    let (cover, entry) = (Entry::new(16, false), Entry::new(17, true));
    fib.insert(prefix("10.0.0.0/8"), cover).unwrap();
    assert_eq!(
        (fib.insert(a, entry), fib.insert(b, entry)),
        (Ok(None), Ok(None))
    );
    assert_eq!(fib.insert(c, entry), Err(Full));
    assert_eq!(
        (
            fib.routes().get(c).copied(),
            reader.lookup(c.addr()),
            fib.routes().len()
        ),
        (None, cover, 3)
    );
    // A group that is there takes more; a group that is not needed any more is free only after the
    // grace period.
    assert_eq!(fib.insert(prefix("10.0.1.128/32"), entry), Ok(None));
    assert_eq!(fib.remove(b), Some(entry));
    assert_eq!(
        (reader.lookup(b.addr()), fib.insert(c, entry)),
        (cover, Err(Full))
    );
    let retired = fib.retired();
    assert_eq!(retired.len(), 1);
    fib.reclaim(retired);
    assert_eq!(
        (fib.insert(c, entry), reader.lookup(c.addr())),
        (Ok(None), entry)
    );
}

/// The reason for the grace period: a look-up that holds a group's number while another /24 gets
/// the group.
#[test]
fn without_grace_a_lookup_gives_another_networks_entry() {
    for grace in [true, false] {
        let mut fib = fib(2);
        let reader = fib.reader();
        let [ours, theirs] = ["10.0.1.0/25", "10.0.2.0/25"].map(prefix);
        let (entry, cover, foreign) = (
            Entry::new(16, false),
            Entry::new(17, false),
            Entry::new(18, false),
        );
        fib.insert(prefix("10.0.1.0/24"), cover).unwrap();
        fib.insert(ours, entry).unwrap();
        let found = reader.lookup_interrupted(ours.addr(), || {
            fib.remove(ours);
            let retired = fib.retired();
            if !grace {
                fib.reclaim(retired);
            }
            fib.insert(theirs, foreign).unwrap();
        });
        assert_eq!(found, if grace { cover } else { foreign });
    }
}
