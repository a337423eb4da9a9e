//! Fill, change and look-up rates of the tables: `cargo bench -p tables`.

mod report;

use std::hint::black_box;

use report::report;
use tables::adjacency::{Adjacency, Slab};
use tables::entry::Entry;
use tables::hash::flow5;
use tables::ip4::{FIRST_WORDS, GROUP_WORDS};
use tables::ip6::Cursor;
use tables::mac::{self, Key, Macs, Station};
use tables::mem::{Cells, LINE};
use tables::nexthop::{Groups, Member};
use tables::random::Random;
use tables::synthetic;
use tables::{ip4, ip6};

/// IPv4 routes.
const ROUTES: usize = 1_000_000;
/// IPv6 routes.
const ROUTES6: usize = 250_000;
const LOOKUPS: usize = 1 << 22;

fn empty() -> ip4::Fib {
    let map = |words| Cells::mapped(words).expect("memory for the table");
    ip4::Fib::new(map(FIRST_WORDS), map(65_536 * GROUP_WORDS))
}

fn lookups(name: &str, reader: &ip4::Reader, destinations: &[u32]) {
    report(
        &format!("{name}, nothing ahead"),
        destinations.len(),
        || {
            black_box(
                destinations
                    .iter()
                    .fold(0, |sum, &dst| sum ^ reader.lookup(dst).bits()),
            );
        },
    );
    report(
        &format!("{name}, prefetched 12 ahead"),
        destinations.len(),
        || {
            let pairs = destinations.iter().zip(&destinations[12..]);
            black_box(pairs.fold(0, |sum, (&dst, &ahead)| {
                reader.prefetch(ahead);
                sum ^ reader.lookup(dst).bits()
            }));
        },
    );
    report(
        &format!("{name}, each after the last"),
        destinations.len(),
        || {
            black_box(
                destinations
                    .iter()
                    .fold(0, |sum, &dst| reader.lookup(dst ^ (sum >> 30 << 8)).bits()),
            );
        },
    );
}

/// Destinations at once, as a node has them: a load for each, then the next one for each.
const BATCH: usize = 32;

fn batches(reader: &ip6::Reader, destinations: &[u128]) -> u32 {
    let mut sum = 0;
    for batch in destinations.chunks(BATCH) {
        let mut at = [Cursor::from_word(0); BATCH];
        for (at, dst) in at.iter_mut().zip(batch) {
            *at = reader.begin(dst);
            reader.prefetch(*at, dst);
        }
        let mut more = true;
        while more {
            more = false;
            for (at, dst) in at.iter_mut().zip(batch) {
                if at.entry().is_none() {
                    *at = reader.step(*at, dst);
                    reader.prefetch(*at, dst);
                    more |= at.entry().is_none();
                }
            }
        }
        sum = at.iter().fold(sum, |sum, at| sum ^ at.word());
    }
    sum
}

fn lookups6(name: &str, reader: &ip6::Reader, destinations: &[u128]) {
    let count = destinations.len();
    report(&format!("{name}, one by one"), count, || {
        let look_up = |sum, dst| sum ^ reader.lookup(dst).bits();
        black_box(destinations.iter().fold(0, look_up));
    });
    report(&format!("{name}, {BATCH} at once"), count, || {
        black_box(batches(reader, destinations));
    });
}

fn empty6() -> ip6::Fib {
    let map = |words| Cells::mapped(words).expect("memory for the table");
    ip6::Fib::new(
        map(ip6::FIRST_WORDS),
        map((1 << 16) * ip6::PAGE_WORDS),
        map((1 << 18) * LINE),
    )
}

fn fill6(fib: &mut ip6::Fib, prefixes: &[ip6::Prefix]) {
    for (number, &prefix) in (16..).zip(prefixes) {
        let entry = Entry::new(16 + number % 254, false);
        fib.insert(prefix, entry).expect("nodes");
        if number % 1024 == 0 {
            let retired = fib.retired();
            fib.reclaim(retired);
        }
    }
    let retired = fib.retired();
    fib.reclaim(retired);
}

/// Routes that many places are written for.
fn short6(fib: &mut ip6::Fib) {
    for text in ["::/0", "2000::/3"] {
        let prefix: ip6::Prefix = text.parse().expect("a prefix");
        let mut group = 16;
        report(
            &format!("replace {text}, 250k IPv6 routes below"),
            1,
            || {
                group += 1;
                fib.insert(prefix, Entry::new(group, false)).expect("nodes");
            },
        );
        fib.remove(prefix).expect("it was inserted");
    }
}

fn ip6() {
    let prefixes = synthetic::ip6::routes(ROUTES6, 1);
    report(
        "insert, 250k IPv6 routes into an empty table",
        ROUTES6,
        || {
            let mut fib = empty6();
            fill6(&mut fib, &prefixes);
            black_box(fib.routes().len());
        },
    );
    let mut fib = empty6();
    fill6(&mut fib, &prefixes);
    short6(&mut fib);
    let usage = fib.usage();
    let [pages, leaves] = [usage.pages, usage.leaves].map(|usage| usage.total - usage.free);
    let bytes = (ip6::FIRST_WORDS + pages * ip6::PAGE_WORDS + leaves * LINE) * 4;
    println!(
        "  {pages} pages, {leaves} leaves: {} bytes a route",
        bytes / ROUTES6
    );
    let reader = fib.reader();
    let many = synthetic::ip6::destinations(&prefixes, LOOKUPS, 2);
    let few: Vec<_> = (0..LOOKUPS).map(|number| many[number % 251]).collect();
    lookups6("look-up, IPv6, 251 destinations", &reader, &few);
    lookups6("look-up, IPv6, 250k routes, random", &reader, &many);
    report(
        "remove and insert, each of 250k IPv6 routes",
        2 * ROUTES6,
        || {
            for &prefix in &prefixes {
                let entry = fib.remove(prefix).expect("a route");
                fib.insert(prefix, entry).expect("nodes");
                let retired = fib.retired();
                fib.reclaim(retired);
            }
        },
    );
}

/// Stations of a bridge domain.
const STATIONS: usize = 20_000;

fn macs() {
    let mut macs = Macs::new(Cells::boxed((1 << 16) * mac::WORDS_FOR_EACH));
    let mut random = Random::new(1);
    let keys: Vec<_> = (0..STATIONS).map(|_| Key::new(1, random.bits())).collect();
    let station = Station {
        interface: 1,
        fixed: false,
    };
    for key in &keys {
        macs.set(*key, station).expect("room for stations");
    }
    let reader = macs.reader();
    let mut any = || keys[random.below(STATIONS as u32) as usize];
    let many: Vec<_> = (0..LOOKUPS).map(|_| any()).collect();
    let found = |key: &Key| reader.find(*key).map_or(0, |hot| hot.station().interface);
    report("station, 20k, random, nothing ahead", LOOKUPS, || {
        black_box(many.iter().fold(0, |sum, key| sum ^ found(key)));
    });
    report("station, 20k, random, prefetched 12 ahead", LOOKUPS, || {
        let pairs = many.iter().zip(&many[12..]);
        black_box(pairs.fold(0, |sum, (key, ahead)| {
            reader.prefetch(*ahead);
            sum ^ found(key)
        }));
    });
}

fn main() {
    macs();
    ip6();
    let prefixes = synthetic::ip4::routes(ROUTES, 1);
    let entries: Vec<_> = (0..ROUTES as u32)
        .map(|number| Entry::new(16 + number % 254, number.is_multiple_of(5)))
        .collect();
    report("insert, 1M routes into an empty table", ROUTES, || {
        let mut fib = empty();
        for (&prefix, &entry) in prefixes.iter().zip(&entries) {
            fib.insert(prefix, entry).expect("second-level groups");
        }
        black_box(fib.routes().len());
    });
    let mut fib = empty();
    for (&prefix, &entry) in prefixes.iter().zip(&entries) {
        fib.insert(prefix, entry).expect("second-level groups");
    }
    println!("  second level: {:?}", fib.usage());
    let default = "0.0.0.0/0".parse().expect("a prefix");
    let mut group = 16;
    report("replace 0.0.0.0/0, 1M routes below", 1, || {
        group += 1;
        fib.insert(default, Entry::new(group, false))
            .expect("there");
    });
    fib.remove(default).expect("it was inserted");
    report("replace, 1M routes", ROUTES, || {
        for (&prefix, &entry) in prefixes.iter().zip(entries.iter().rev()) {
            fib.insert(prefix, entry).expect("second-level groups");
        }
    });
    report("remove and insert, each of 1M routes", 2 * ROUTES, || {
        for (&prefix, &entry) in prefixes.iter().zip(&entries) {
            fib.remove(prefix);
            fib.insert(prefix, entry).expect("second-level groups");
            let retired = fib.retired();
            fib.reclaim(retired);
        }
    });

    let reader = fib.reader();
    let many = synthetic::ip4::destinations(&prefixes, LOOKUPS, 2);
    let few: Vec<_> = (0..LOOKUPS).map(|number| many[number % 251]).collect();
    lookups("look-up, 251 destinations", &reader, &few);
    lookups("look-up, 1M routes, random", &reader, &many);

    let mut slab = Slab::new(Cells::boxed(4096 * LINE));
    let mut groups = Groups::new(Cells::boxed(4096 * LINE));
    let ids = [(); 256].map(|()| slab.alloc(&Adjacency::DROP).expect("adjacencies"));
    let members: Vec<_> = ids
        .iter()
        .take(4)
        .map(|&adjacency| Member {
            adjacency,
            weight: 1,
        })
        .collect();
    for _ in 0..256 {
        groups.alloc(&members).expect("groups");
    }
    let (groups, slab) = (groups.reader(), slab.reader());
    report("flow hash", LOOKUPS, || {
        black_box(
            many.iter()
                .fold(0, |sum, &dst| sum ^ flow5(1, dst, 17, 2, 3)),
        );
    });
    report("flow hash, bucket, adjacency", LOOKUPS, || {
        black_box(many.iter().fold(0, |sum, &dst| {
            let hot = slab.load(groups.bucket(dst >> 24, flow5(1, dst, 17, 2, 3)));
            sum ^ hot.words[3] ^ u32::from(hot.fast_mtu())
        }));
    });
}
