use super::{FIRST_WORDS, Fib, PAGE_WORDS, Prefix, Reader};
use crate::entry::Entry;
use crate::ids::Full;
use crate::mem::{Cells, LINE};
use crate::oracle::{Oracle, around, entries};
use crate::random::Random;
use crate::synthetic::ip6 as synthetic;

fn fib(pages: usize, leaves: usize) -> Fib {
    Fib::new(
        Cells::mapped(FIRST_WORDS).unwrap(),
        Cells::mapped(pages * PAGE_WORDS).unwrap(),
        Cells::mapped(leaves * LINE).unwrap(),
    )
}

fn prefix(text: &str) -> Prefix {
    text.parse().unwrap()
}

fn wide(random: &mut Random) -> u128 {
    u128::from(random.bits()) << 64 | u128::from(random.bits())
}

/// Prefixes that nest and collide: few values for the bits of each level, any length.
fn nested(random: &mut Random) -> Prefix {
    let len = match random.below(1000) {
        0 => random.below(16),
        1..300 => 16 + random.below(33),
        300..500 => 48,
        500..800 => 49 + random.below(79),
        _ => 128,
    };
    // Now dense in one place, now in another.
    let mask = match random.below(3) {
        0 => 0x0001_0107_0000_0107_0000_0000_0000_0003,
        1 => 0x0000_0000_ffff_0000_0000_0000_0000_0000,
        _ => 0x0000_0001_0000_0000_8000_0000_0f00_00ff,
    };
    let addr = 0x2001_0db8 << 96 | (wide(random) & mask);
    Prefix::new(addr, len as u8).unwrap()
}

fn check(reader: &Reader, oracle: &Oracle<u128>, dst: u128) {
    assert_eq!(
        reader.lookup(&dst),
        oracle.lookup(dst),
        "{}",
        std::net::Ipv6Addr::from(dst)
    );
}

/// `operations` random insertions and removals, looked at after each one around the change and
/// every so often everywhere. `leaves` is small enough to be used up in some tests.
fn agrees_with_oracle(seed: u64, pages: usize, leaves: usize, operations: usize) {
    println!("seed {seed:#x}, {pages} pages, {leaves} leaves");
    let (mut random, mut fib) = (Random::new(seed), fib(pages, leaves));
    let (mut oracle, reader) = (Oracle::new(), fib.reader());
    let mut full = 0;
    for step in 0..operations {
        let prefix = match (random.below(2), fib.routes().len()) {
            (0, 1..) => {
                let keys: Vec<_> = oracle.0.keys().take(16).collect();
                *keys[random.below(keys.len() as u32) as usize]
            }
            _ => nested(&mut random),
        };
        // Phases of growth and of decay.
        let grow = (step / (operations / 8)).is_multiple_of(2);
        if random.below(4) < if grow { 3 } else { 1 } {
            let entry = Entry::new(random.below(1 << 20), random.below(2) == 1);
            match fib.insert(prefix, entry) {
                Ok(old) => assert_eq!(old, oracle.0.insert(prefix, entry)),
                Err(Full) => full += 1,
            }
        } else {
            assert_eq!(fib.remove(prefix), oracle.0.remove(&prefix));
        }
        for dst in around(prefix) {
            check(&reader, &oracle, dst);
        }
        let inside = wide(&mut random) & (prefix.last() - prefix.addr());
        check(&reader, &oracle, prefix.addr() | inside);
        if full == 0 {
            fits_its_routes(&fib);
        }
        if random.below(16) == 0 {
            let retired = fib.retired();
            fib.reclaim(retired);
        }
        if step.is_multiple_of(operations / 16) {
            oracle.edges().for_each(|dst| check(&reader, &oracle, dst));
            assert_eq!(entries(fib.routes()), oracle.0);
            fib.assert_least();
        }
    }
    println!("{fib:?} in the end, {full} insertions found no node");
    assert_eq!(full > 0, leaves < 1000);
    for prefix in entries(fib.routes()).into_keys() {
        fib.remove(prefix);
    }
    let usage = fib.usage();
    assert_eq!(usage.pages.free + usage.pages.retired, pages);
    assert_eq!(usage.leaves.free + usage.leaves.retired, leaves);
    assert!(fib.first_level_is_empty());
}

/// The worst case that the module's documentation states.
fn fits_its_routes(fib: &Fib) {
    let (routes, usage) = (fib.routes().len(), fib.usage());
    let (pages, leaves) = (usage.pages.used(), usage.leaves.used());
    assert!(pages * 2 <= routes && leaves <= routes * 7, "{fib:?}");
}

#[test]
fn random_routes_agree_with_oracle() {
    agrees_with_oracle(0x7061_7273, 4096, 1 << 15, 60_000);
}

#[test]
fn random_routes_agree_with_oracle_when_nodes_run_out() {
    agrees_with_oracle(0x6861_6c6c, 64, 256, 60_000);
}

/// Groups of /48s, of each of which all but one are withdrawn: nothing is left of the pages that the
/// neighbors needed.
#[test]
fn neighbors_that_are_withdrawn_take_their_nodes_along() {
    for len in [24, 33, 40, 48, 64, 100, 128] {
        let mut fib = fib(1024, 4096);
        // Of `group`, every other prefix.
        let member = |group: u32, number: u32| {
            let addr = 0x2001 << 112 | u128::from(group) << 100;
            Prefix::new(addr | u128::from(number) << (129 - len), len as u8).unwrap()
        };
        let (groups, members) = (if len > 28 { 256 } else { 1 }, 8);
        for group in 0..groups {
            for number in 0..members {
                fib.insert(member(group, number), Entry::new(16, false))
                    .unwrap();
            }
            for number in 1..members {
                fib.remove(member(group, number)).unwrap();
            }
            let retired = fib.retired();
            fib.reclaim(retired);
        }
        fits_its_routes(&fib);
        let usage = fib.usage();
        // One for the second byte and what follows it.
        assert!(usage.pages.used() <= 17, "/{len}: {fib:?}");
    }
}

#[test]
fn covering_routes_come_back() {
    let mut fib = fib(64, 64);
    let reader = fib.reader();
    let dst = u128::from("2001:db8:1:2::42".parse::<std::net::Ipv6Addr>().unwrap());
    let chain = [
        "::/0",
        "2001::/16",
        "2001:db8::/32",
        "2001:db8:1::/48",
        "2001:db8:1:2::/64",
        "2001:db8:1:2::42/127",
        "2001:db8:1:2::42",
    ]
    .map(prefix);
    let routes: Vec<_> = (16..).zip(chain).collect();
    for &(number, route) in routes.iter().rev() {
        assert_eq!(fib.insert(route, Entry::new(number, false)), Ok(None));
    }
    for &(number, route) in routes.iter().rev() {
        let entry = Entry::new(number, false);
        assert_eq!(
            (reader.lookup(&dst), fib.routes().longest_match(dst)),
            (entry, Some((route, &entry)))
        );
        assert_eq!(fib.remove(route), Some(entry));
    }
    assert!(fib.routes().is_empty() && fib.first_level_is_empty());
}

#[test]
fn half_a_million_operations_on_internet_like_routes() {
    let (mut fib, mut oracle) = (fib(1 << 14, 1 << 17), Oracle::new());
    let reader = fib.reader();
    let prefixes = synthetic::routes(250_000, 3);
    for (number, &prefix) in (16..).zip(&prefixes) {
        let entry = Entry::new(number, false);
        fib.insert(prefix, entry).unwrap();
        let retired = fib.retired();
        fib.reclaim(retired);
        oracle.0.insert(prefix, entry);
    }
    println!("{fib:?}");
    fib.assert_least();
    let agree = |oracle: &Oracle<u128>, seed| {
        for dst in synthetic::destinations(&prefixes, 20_000, seed) {
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

/// Neighbors at the end of what a leaf looks at, and of the address.
#[test]
fn the_last_addresses_are_routes_too() {
    let mut fib = fib(64, 64);
    let reader = fib.reader();
    let last = u128::MAX;
    for (number, addr) in [(16, last), (16, last - 1), (17, last - 2)] {
        fib.insert(Prefix::host(addr), Entry::new(number, false))
            .unwrap();
    }
    let found = |addr: u128| reader.lookup(&addr).group();
    assert_eq!(
        [last - 3, last - 2, last - 1, last].map(found),
        [0, 17, 16, 16]
    );
    fib.remove(Prefix::host(last));
    assert_eq!([last - 2, last - 1, last].map(found), [17, 16, 0]);
}

/// Shows the need for the grace period: a look-up holds a node's number while another prefix gets
/// the node.
#[test]
fn without_grace_a_lookup_gives_another_networks_entry() {
    for grace in [true, false] {
        let mut fib = fib(16, 32);
        let reader = fib.reader();
        let [ours, theirs] = ["2001:db8::/32", "2002:db8::/32"].map(prefix);
        let (entry, foreign) = (Entry::new(16, false), Entry::new(17, false));
        fib.insert(ours, entry).unwrap();
        let dst = ours.addr();
        let held = reader.begin(&dst);
        fib.remove(ours);
        if !grace {
            let retired = fib.retired();
            fib.reclaim(retired);
        }
        fib.insert(theirs, foreign).unwrap();
        let found = reader.step(held, &dst).entry();
        assert_eq!(found, Some(if grace { Entry::NO_ROUTE } else { foreign }));
    }
}
