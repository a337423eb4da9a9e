//! Rates of the flow table: `cargo bench -p tables --bench flow`. It takes 2 GB.

mod report;

use std::hint::black_box;

use report::report;
use tables::flow::{Candidate, Flows, Hasher, Key, Memory, Sizes};
use tables::random::Random;

/// Packets of a frame.
const FRAME: usize = 256;
const LOOKUPS: usize = 1 << 22;

/// The key of a flow with this number.
fn key(number: u32) -> Key {
    let ports = u64::from(number).wrapping_mul(0x9e37_79b9) & 0xffff_ffff;
    Key([
        0x0a00_0000_0b00_0000 + u64::from(number),
        0,
        0,
        0,
        6 << 32 | ports,
    ])
}

fn empty(flows: u32) -> Flows {
    let capacity = flows + flows / 5;
    let sizes = Sizes {
        flows: capacity,
        keys: capacity,
        embryonic: capacity / 8,
    };
    let mut random = Random::new(1);
    let secret = [(); 6].map(|()| random.bits());
    Flows::new(
        Memory::mapped(sizes).expect("memory for the table"),
        Hasher::new(secret),
    )
}

/// Looks up a frame as a node does: in three passes. What is not there is inserted.
fn frame(flows: &mut Flows, keys: &[Key; FRAME], now: u32, established: bool) {
    let mut hashes = [0; FRAME];
    let mut candidates = [Candidate::NONE; FRAME];
    flows.hasher().hash(keys, &mut hashes);
    flows.prefetch(&hashes);
    flows.candidates(&hashes, &mut candidates);
    for ((key, hash), candidate) in keys.iter().zip(hashes).zip(candidates) {
        let number = match flows.get(candidate, hash, key) {
            Some(found) => found.number,
            None => {
                let number = flows.insert(*key, hash, now, |_, _, _| ()).expect("room");
                if established {
                    flows.establish(number);
                }
                number
            }
        };
        let (entry, annex) = flows.at_mut(number);
        entry.seen = now;
        annex.0[0] += 1;
        annex.0[1] += 64;
    }
}

/// Rounds of a report, each of which does a part of the work.
const ROUNDS: u32 = 5;

/// Fills a table that is empty.
fn fill(name: &str, flows: &mut Flows, count: u32) {
    let mut next = 0;
    report(
        &format!("{name}, {count} flows"),
        (count / ROUNDS) as usize,
        || {
            let end = next + count / ROUNDS;
            while next < end {
                let keys = std::array::from_fn(|n| key((next + n as u32).min(end - 1)));
                frame(flows, &keys, 0, true);
                next += FRAME as u32;
            }
            next = end;
        },
    );
    assert_eq!(flows.len(), count as usize);
}

fn sized(count: u32) {
    let mut flows = empty(count);
    fill("insert into new memory", &mut flows, count);
    flows.clear();
    fill("insert", &mut flows, count);
    let mut random = Random::new(2);
    report(&format!("hit, {count} flows, random"), LOOKUPS, || {
        for _ in 0..LOOKUPS / FRAME {
            let keys = std::array::from_fn(|_| key(random.below(count)));
            frame(&mut flows, &keys, 1, true);
        }
    });
    assert_eq!(flows.len(), count as usize, "all were hits");
    report(
        &format!("sweep, {count} flows, none idle"),
        count as usize,
        || {
            black_box(flows.sweep(count, 1, |_| 10, |_, _, _| ()));
        },
    );
    let mut next = count;
    report(
        &format!("new flow for the oldest embryonic, {count} established"),
        LOOKUPS,
        || {
            for _ in 0..LOOKUPS / FRAME {
                let keys = std::array::from_fn(|n| key(next.wrapping_add(n as u32)));
                next = next.wrapping_add(FRAME as u32);
                frame(&mut flows, &keys, 1, false);
            }
        },
    );
    assert!(flows.len() > count as usize);
    let all = count + count / 5;
    let part = all / ROUNDS;
    report(
        &format!("sweep, {count} flows, removed"),
        part as usize,
        || {
            black_box(flows.sweep(part, 100, |_| 10, |_, _, _| ()));
        },
    );
}

fn hashes() {
    let mut random = Random::new(3);
    let keys: Vec<_> = (0..FRAME).map(|_| key(random.word())).collect();
    let hasher = Hasher::new([(); 6].map(|()| random.bits()));
    let mut hashes = [0; FRAME];
    report("hash of a key", LOOKUPS, || {
        for _ in 0..LOOKUPS / FRAME {
            hasher.hash(&keys, &mut hashes);
            black_box(&hashes);
        }
    });
}

fn main() {
    hashes();
    for count in [2_000, 1_000_000, 10_000_000] {
        sized(count);
    }
}
