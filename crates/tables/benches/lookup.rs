//! Fill, change and look-up rates of the tables: `cargo bench -p tables`.

use std::hint::black_box;
use std::time::Instant;

use tables::adjacency::{Adjacency, Slab};
use tables::hash::flow5;
use tables::ip4::{Entry, FIRST_WORDS, Fib, GROUP_WORDS, Reader};
use tables::mem::{Cells, LINE};
use tables::nexthop::{Groups, Member};
use tables::synthetic;

const ROUTES: usize = 1_000_000;
const LOOKUPS: usize = 1 << 22;

/// Runs `work` on `count` things five times and prints the median cost of one.
fn report(name: &str, count: usize, mut work: impl FnMut()) {
    let mut nanos: Vec<f64> = (0..5)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_nanos() as f64 / count as f64
        })
        .collect();
    nanos.sort_by(f64::total_cmp);
    println!("{name:<44} {:>8.2} ns (least {:.2})", nanos[2], nanos[0]);
}

fn empty() -> Fib {
    let map = |words| Cells::mapped(words).expect("memory for the table");
    Fib::new(map(FIRST_WORDS), map(65_536 * GROUP_WORDS))
}

fn lookups(name: &str, reader: &Reader, destinations: &[u32]) {
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

fn main() {
    let prefixes = synthetic::routes(ROUTES, 1);
    let entries: Vec<_> = (0..ROUTES as u32)
        .map(|number| Entry::new(16 + number % 254, number.is_multiple_of(5)))
        .collect();
    report("insert, 1M routes into an empty table", ROUTES, || {
        let mut fib = empty();
        for (&prefix, &entry) in prefixes.iter().zip(&entries) {
            fib.insert(prefix, entry).expect("second-level groups");
        }
        black_box(fib.len());
    });
    let mut fib = empty();
    for (&prefix, &entry) in prefixes.iter().zip(&entries) {
        fib.insert(prefix, entry).expect("second-level groups");
    }
    println!("  second level: {:?}", fib.usage());
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
    let many = synthetic::destinations(&prefixes, LOOKUPS, 2);
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
