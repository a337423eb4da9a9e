use std::collections::{HashMap, VecDeque};

use super::bucket::{Bucket, SLOTS, Slot, Tag};
use super::table::Way;
use super::*;
use crate::random::Random;

fn table(flows: u32, keys: u32, embryonic: u32) -> Flows {
    let sizes = Sizes {
        flows,
        keys,
        embryonic,
    };
    Flows::new(Memory::mapped(sizes).unwrap(), Hasher::new(random_secret()))
}

fn random_secret() -> [u64; 6] {
    let mut random = Random::new(31);
    [(); 6].map(|()| random.bits())
}

/// One of so many keys: few, so that they meet again.
fn key(random: &mut Random, of: u32) -> Key {
    numbered(random.below(of))
}

fn numbered(number: u32) -> Key {
    let number = u64::from(number);
    Key([number << 32 | 7, number % 3, 0, 0, 6 << 32 | number])
}

fn insert(flows: &mut Flows, key: Key) -> Result<u32, Refused> {
    let hash = flows.hasher().one(&key);
    flows.insert(key, hash, 0, |_, _, _| ())
}

fn find(flows: &Flows, key: Key) -> Option<Found> {
    let hash = flows.hasher().one(&key);
    let mut candidate = [Candidate::NONE];
    flows.prefetch(&[hash]);
    flows.candidates(&[hash], &mut candidate);
    let found = flows.get(candidate[0], hash, &key);
    assert_eq!(
        found,
        flows.find(hash, &key),
        "with and without a candidate"
    );
    found
}

/// What a flow is to be.
#[derive(Debug, Clone)]
struct Model {
    first: Key,
    second: Option<Key>,
    seen: u32,
    embryonic: bool,
    word: u64,
    kept: Reference,
}

/// The same table, slowly.
struct Oracle {
    flows: HashMap<u32, Model>,
    keys: HashMap<Key, (u32, bool)>,
    /// Whoever came, with his serial number as a word of the annex.
    queue: VecDeque<(u32, u64)>,
    gone: Vec<Reference>,
    sizes: Sizes,
}

impl Oracle {
    fn forget(&mut self, number: u32) -> Model {
        let model = self.flows.remove(&number).expect("a flow");
        self.keys.remove(&model.first);
        model.second.map(|key| self.keys.remove(&key));
        if self.gone.len() < 100 {
            self.gone.push(model.kept);
        }
        model
    }

    /// Who goes where a new flow comes.
    fn displaced(&mut self) -> Option<u32> {
        if self.queue.len() < self.sizes.embryonic as usize {
            return None;
        }
        let (number, serial) = self.queue.pop_front().expect("a queue of one at least");
        let is_same = |model: &Model| model.word == serial && model.embryonic;
        self.flows
            .get(&number)
            .is_some_and(is_same)
            .then_some(number)
    }
}

#[derive(Debug, Default)]
struct Counts {
    inserted: u32,
    displaced: u32,
    full: u32,
    swept: u32,
    second_hits: u32,
    first_hits: u32,
    removed: u32,
    seconds: u32,
}

fn insert_both(
    flows: &mut Flows,
    oracle: &mut Oracle,
    key: Key,
    now: u32,
    serial: u64,
    counts: &mut Counts,
) {
    let hash = flows.hasher().one(&key);
    let mut displaced = None;
    let inserted = flows.insert(key, hash, now, |number, entry, annex| {
        displaced = Some((number, *entry.key(), annex.0[3]));
    });
    let wanted = oracle.displaced();
    assert_eq!(displaced.map(|(number, ..)| number), wanted);
    if let Some((number, key, word)) = displaced {
        let model = oracle.forget(number);
        assert_eq!((key, word), (model.first, model.word));
        counts.displaced += 1;
    }
    let has_room = oracle.flows.len() < oracle.sizes.flows as usize
        && oracle.keys.len() < oracle.sizes.keys as usize;
    if !has_room {
        assert_eq!(inserted, Err(Refused::Full));
        counts.full += 1;
        return;
    }
    let number = inserted.expect("there is room");
    let (entry, annex) = flows.at_mut(number);
    assert_eq!((entry.state, entry.next, entry.interfaces), (0, 0, [0; 2]));
    assert_eq!((entry.seen, *annex), (now, Annex::default()));
    annex.0[3] = serial;
    // What the user writes into an entry does not touch what the table keeps there.
    (entry.flags, entry.next, entry.generation) = (0xff, u32::MAX, 0xffff);
    let model = Model {
        first: key,
        second: None,
        seen: now,
        embryonic: true,
        word: serial,
        kept: flows.reference(number),
    };
    oracle.queue.push_back((number, serial));
    assert!(
        oracle.flows.insert(number, model).is_none(),
        "the number is in use"
    );
    oracle.keys.insert(key, (number, false));
    counts.inserted += 1;
}

/// Random operations on a table and on a map, which always say the same.
fn compare(way: Way, sizes: Sizes, hasher: Hasher, operations: u32) -> Counts {
    let mut random = Random::new(u64::from(sizes.keys));
    let mut flows = Flows::new(Memory::mapped(sizes).unwrap(), hasher);
    flows.way = way;
    let mut oracle = Oracle {
        flows: HashMap::new(),
        keys: HashMap::new(),
        queue: VecDeque::new(),
        gone: Vec::new(),
        sizes,
    };
    // The clock passes its end half way.
    let mut now = 0u32.wrapping_sub(operations / 2000);
    let mut counts = Counts::default();
    for serial in 0..u64::from(operations) {
        now = now.wrapping_add(u32::from(serial.is_multiple_of(1000)));
        let key = key(&mut random, sizes.flows * 3);
        let found = find(&flows, key);
        let wanted = oracle.keys.get(&key).copied();
        assert_eq!(found.map(|found| (found.number, found.second)), wanted);
        match (random.below(18), wanted) {
            (0..6, None) => insert_both(&mut flows, &mut oracle, key, now, serial, &mut counts),
            (6..14, None) if !oracle.keys.is_empty() => {
                // Another key of a flow whose first one is near.
                let near = numbered(key.0[4] as u32 ^ 1);
                let Some(&(number, _)) = oracle.keys.get(&near) else {
                    continue;
                };
                let added = flows.add_key(number, key, flows.hasher().one(&key));
                let keys = oracle.keys.len() as u32;
                let model = oracle.flows.get_mut(&number).expect("a flow");
                let wanted = match model.second {
                    Some(_) => Err(Refused::Taken),
                    None if keys == sizes.keys => Err(Refused::Full),
                    None => Ok(()),
                };
                assert_eq!(added, wanted);
                if added.is_ok() {
                    model.second = Some(key);
                    oracle.keys.insert(key, (number, true));
                    counts.seconds += 1;
                }
            }
            (0..14, Some((number, second))) => {
                let model = oracle.flows.get_mut(&number).expect("a flow");
                let (entry, annex) = flows.at_mut(number);
                assert_eq!((*entry.key(), annex.0[3]), (model.first, model.word));
                assert_eq!(
                    (entry.seen, entry.is_embryonic()),
                    (model.seen, model.embryonic)
                );
                (entry.seen, model.seen) = (now, now);
                assert_eq!(flows.second(number), model.second.as_ref());
                assert_eq!(flows.follow(model.kept), Some(number));
                counts.second_hits += u32::from(second);
                counts.first_hits += u32::from(!second);
                if second || random.below(4) == 0 {
                    flows.establish(number);
                    model.embryonic = false;
                }
            }
            (14, Some((number, _))) => {
                flows.establish(number);
                oracle.flows.get_mut(&number).expect("a flow").embryonic = false;
            }
            (15, Some((number, _))) => {
                assert!(flows.remove(number) && !flows.remove(number));
                oracle.forget(number);
                counts.removed += 1;
            }
            (16, _) => sweep_both(&mut flows, &mut oracle, now, &mut counts),
            _ => {}
        }
        if serial % 4096 == 0 {
            check_all(&flows, &oracle);
        }
    }
    check_all(&flows, &oracle);
    let said = flows.counts();
    let [inserted, refused, displaced, expired] =
        [counts.inserted, counts.full, counts.displaced, counts.swept].map(u64::from);
    assert_eq!((said.inserted, said.refused), (inserted, refused));
    assert_eq!((said.displaced, said.expired), (displaced, expired));
    flows.clear();
    assert!(flows.is_empty() && flows.iter().next().is_none() && flows.embryonic() == 0);
    assert!(oracle.keys.keys().all(|key| find(&flows, *key).is_none()));
    counts
}

fn timeout(entry: &Entry) -> u32 {
    if entry.is_embryonic() { 3 } else { 40 }
}

fn sweep_both(flows: &mut Flows, oracle: &mut Oracle, now: u32, counts: &mut Counts) {
    let mut swept = Vec::new();
    let count = flows.sweep(16, now, timeout, |number, _, annex| {
        swept.push((number, annex.0[3]))
    });
    assert_eq!(count as usize, swept.len());
    for (number, word) in swept {
        let model = oracle.forget(number);
        let timeout = if model.embryonic { 3 } else { 40 };
        assert!(model.word == word && now.wrapping_sub(model.seen) >= timeout);
        counts.swept += 1;
    }
}

fn check_all(flows: &Flows, oracle: &Oracle) {
    assert_eq!(flows.len(), oracle.flows.len());
    let embryonic = oracle.flows.values().filter(|model| model.embryonic);
    assert_eq!(flows.embryonic(), embryonic.count());
    assert!(flows.embryonic() <= oracle.sizes.embryonic as usize);
    assert_eq!(flows.iter().count(), flows.len());
    let live = (0..flows.used()).filter(|number| flows.live(*number).is_some());
    assert_eq!(live.count(), flows.len());
    for (number, entry, annex) in flows.iter() {
        let model = &oracle.flows[&number];
        assert_eq!((entry.key(), annex.0[3]), (&model.first, model.word));
    }
    for (key, &(number, second)) in &oracle.keys {
        assert_eq!(find(flows, *key), Some(Found { number, second }));
    }
    assert!(oracle.gone.iter().all(|kept| flows.follow(*kept).is_none()));
}

#[test]
fn a_table_says_what_a_map_says() {
    let operations = if cfg!(miri) { 2000 } else { 1_500_000 };
    let way = Way::all().last().expect("a way");
    let sizes = Sizes {
        flows: 1000,
        keys: 1500,
        embryonic: 300,
    };
    let counts = compare(way, sizes, Hasher::new(random_secret()), operations);
    println!("{counts:?}");
    let Counts {
        inserted,
        displaced,
        full,
        swept,
        second_hits,
        first_hits,
        removed,
        seconds,
    } = counts;
    let hits = [first_hits, second_hits];
    let changes = [inserted, displaced, full, swept, removed, seconds];
    let is_tried = |count: &u32| *count > 500 || cfg!(miri);
    assert!(hits.iter().chain(&changes).all(is_tried), "all is tried");
}

/// A small table is full most of the time; and so is each way of comparing tried.
#[test]
fn small_tables_and_all_ways_say_what_a_map_says() {
    let operations = if cfg!(miri) { 1000 } else { 200_000 };
    let hashers = [
        Hasher::new(random_secret()),
        Hasher::portable(random_secret()),
    ];
    for way in Way::all() {
        for hasher in hashers {
            for (flows, keys, embryonic) in [(1, 1, 1), (20, 25, 19), (64, 64, 64), (100, 200, 7)] {
                let sizes = Sizes {
                    flows,
                    keys,
                    embryonic,
                };
                let counts = compare(way, sizes, hasher, operations);
                assert!(
                    cfg!(miri) || embryonic < flows / 2 || counts.full > 0,
                    "{sizes:?} {counts:?}"
                );
            }
        }
    }
}

#[test]
fn each_way_finds_the_same_lanes() {
    let mut random = Random::new(5);
    let memory = Memory::mapped(Sizes {
        flows: 1,
        keys: 1,
        embryonic: 1,
    });
    let empty = memory.unwrap().buckets[0];
    for _ in 0..10_000 {
        let mut bucket = empty;
        // Few tags, of which 0 becomes another.
        let mut tag = || Tag::of(u64::from(random.below(4) << 25 | random.below(1 << 25)));
        let tags: [Tag; SLOTS] = std::array::from_fn(|_| tag());
        let mut filled = [false; SLOTS];
        for (lane, tag) in (0..).zip(tags) {
            filled[lane as usize] = random.below(3) != 0;
            if filled[lane as usize] {
                bucket.put(
                    lane,
                    Slot::new(tag, random.below(2) == 1, random.below(1 << 24)),
                );
            }
        }
        for wanted in tags.into_iter().chain([Tag::EMPTY]) {
            let has = |lane: usize| {
                if filled[lane] {
                    tags[lane] == wanted
                } else {
                    wanted == Tag::EMPTY
                }
            };
            let lanes = (0..SLOTS).fold(0, |bits, lane| bits | u16::from(has(lane)) << lane);
            assert_eq!(bucket.lanes(wanted), lanes);
            assert!(Way::all().all(|way| by(way, &bucket, wanted) == lanes));
        }
    }
}

#[allow(unsafe_code)]
fn by(way: Way, bucket: &Bucket, tag: Tag) -> u16 {
    match way {
        Way::Any => bucket.lanes(tag),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has it.
        Way::Avx2 => unsafe { bucket.lanes_avx2(tag) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has it.
        Way::Avx512 => unsafe { bucket.lanes_avx512(tag) },
    }
}

#[test]
fn a_full_table_refuses_and_keeps_what_it_has() {
    let mut flows = table(100, 100, 100);
    let mut random = Random::new(1);
    let mut keys: Vec<_> = (0..101).map(|_| key(&mut random, u32::MAX)).collect();
    let last = keys.pop().expect("a key");
    for key in &keys {
        let number = insert(&mut flows, *key).unwrap();
        flows.establish(number);
    }
    assert_eq!(insert(&mut flows, last), Err(Refused::Full));
    assert_eq!(
        flows.add_key(3, last, flows.hasher().one(&last)),
        Err(Refused::Full)
    );
    assert!(keys.iter().all(|key| find(&flows, *key).is_some()));
    assert!(flows.remove(17));
    assert_eq!(insert(&mut flows, last), Ok(17));
    assert_eq!(flows.len(), 100);
}

/// Keys of one pair of buckets, all with one tag: what an attacker would have to make.
#[test]
fn keys_that_collide_are_told_apart_until_their_buckets_are_full() {
    let mut flows = table(64, 128, 64);
    let mut random = Random::new(2);
    let hasher = *flows.hasher();
    let collides = |key: &Key| {
        let hash = hasher.one(key);
        hash as usize % 16 == 5 && Tag::of(hash) == Tag::of(0x0200_0000)
    };
    let keys = std::iter::repeat_with(|| key(&mut random, u32::MAX)).filter(collides);
    let keys: Vec<_> = keys.take(2 * SLOTS + 1).collect();
    let (last, keys) = keys.split_last().expect("keys");
    for (number, key) in (0..).zip(keys) {
        assert_eq!(insert(&mut flows, *key), Ok(number));
        assert_eq!(find(&flows, *last), None);
    }
    let all_found = |flows: &Flows| {
        let at = |number, second| Some(Found { number, second });
        (0..)
            .zip(keys)
            .all(|(number, key)| find(flows, *key) == at(number, false))
    };
    assert!(all_found(&flows));
    assert_eq!(insert(&mut flows, *last), Err(Refused::Crowded));
    assert_eq!(
        flows.add_key(9, *last, hasher.one(last)),
        Err(Refused::Crowded)
    );
    assert!(all_found(&flows) && flows.len() == keys.len());
    let other = Key([1, 2, 3, 4, 5]);
    assert!(!collides(&other) && insert(&mut flows, other).is_ok());
}

/// Up to its last key: where some pairs of buckets are full, slots are moved.
#[test]
fn a_table_takes_as_many_flows_as_it_says() {
    let count = if cfg!(miri) { 256 } else { 1 << 17 };
    let mut flows = table(count, count, count);
    let mut moved = 0;
    for round in 0..4u32 {
        let mut next = 0;
        while flows.len() < count as usize {
            let number = insert(&mut flows, numbered(round << 20 | next)).expect("room for all");
            flows.establish(number);
            next += 1;
        }
        let all: Vec<_> = flows
            .iter()
            .map(|(number, entry, _)| (number, *entry.key()))
            .collect();
        for &(number, key) in &all {
            let hash = flows.hasher().one(&key);
            let mut candidate = [Candidate::NONE];
            flows.candidates(&[hash], &mut candidate);
            moved += u32::from(candidate == [Candidate::NONE]);
            assert_eq!(find(&flows, key).map(|found| found.number), Some(number));
        }
        let gone = all.iter().filter(|(number, _)| number % 3 == round % 3);
        gone.for_each(|(number, _)| assert!(flows.remove(*number)));
    }
    assert!(cfg!(miri) || moved > 100, "buckets have been full");
}

#[test]
fn who_opens_and_never_answers_displaces_his_like() {
    let mut flows = table(1000, 1000, 50);
    let established: Vec<_> = (0..200).map(|n| Key([n, 0, 0, 0, 1])).collect();
    for key in &established {
        let number = insert(&mut flows, *key).unwrap();
        flows.establish(number);
    }
    for n in 0..10_000 {
        insert(&mut flows, Key([n, 0, 0, 0, 2])).expect("there is always room");
    }
    assert!(established.iter().all(|key| find(&flows, *key).is_some()));
    assert_eq!((flows.len(), flows.embryonic()), (250, 50));
    let stays = |n| find(&flows, Key([n, 0, 0, 0, 2])).is_some();
    assert!((9950..10_000).all(stays) && !stays(9949));
}

#[test]
fn a_second_key_is_taken_once() {
    let mut flows = table(10, 20, 10);
    let [a, b, c, d] = [1, 2, 3, 4].map(|n| Key([n, 0, 0, 0, 0]));
    let [x, y] = [a, b].map(|key| insert(&mut flows, key).unwrap());
    let mut add = |number, key| flows.add_key(number, key, flows.hasher().one(&key));
    assert_eq!(add(x, a), Err(Refused::Taken));
    assert_eq!(add(x, c), Ok(()));
    assert_eq!(add(y, c), Err(Refused::Taken));
    assert_eq!(add(x, d), Err(Refused::Taken));
    assert_eq!(flows.second(x), Some(&c));
    assert!(flows.remove(x));
    assert_eq!((find(&flows, a), find(&flows, c)), (None, None));
    assert_eq!(flows.add_key(y, c, flows.hasher().one(&c)), Ok(()));
}

#[test]
fn the_sweep_compares_times_that_wrap() {
    let mut flows = table(10, 10, 10);
    let now = 5u32;
    for (n, seen) in [(0, u32::MAX - 10), (1, 1), (2, 100)] {
        let key = Key([n, 0, 0, 0, 0]);
        let hash = flows.hasher().one(&key);
        flows.insert(key, hash, seen, |_, _, _| ()).unwrap();
    }
    let mut sweep = |timeout| {
        let mut gone = Vec::new();
        flows.sweep(3, now, |_| timeout, |number, _, _| gone.push(number));
        gone
    };
    assert_eq!(sweep(17), []);
    assert_eq!(sweep(16), [0]);
    assert_eq!(sweep(5), []);
    assert_eq!(sweep(4), [1]);
    // Seen in the future: another worker's clock was ahead.
    assert_eq!(sweep(1), []);
}

#[test]
fn hashes_are_spread_and_depend_on_every_bit_and_the_secret() {
    let secret = random_secret();
    let other = secret.map(|word| word ^ 1 << 40);
    for (hasher, other) in [
        (Hasher::new(secret), Hasher::new(other)),
        (Hasher::portable(secret), Hasher::portable(other)),
    ] {
        let keys: Vec<_> = (0..65_536u64)
            .map(|n| Key([n, 0, 0, 0, 6 << 32 | 80]))
            .collect();
        let mut hashes = vec![0; keys.len()];
        hasher.hash(&keys, &mut hashes);
        for shift in [0, 8, 24, 32, 56] {
            let mut counts = [0u32; 256];
            hashes
                .iter()
                .for_each(|hash| counts[(hash >> shift) as usize % 256] += 1);
            // 256 each, with a deviation of 16.
            assert!(
                counts.iter().all(|count| (176..336).contains(count)),
                "{shift} {counts:?}"
            );
        }
        let key = Key([0x0a00_0001_0a00_0002, 0, 0, 0, 6 << 32 | 0x1234_0050]);
        for bit in 0..320 {
            let mut changed = key;
            changed.0[bit / 64] ^= 1 << (bit % 64);
            let differs = (hasher.one(&key) ^ hasher.one(&changed)).count_ones();
            assert!((10..54).contains(&differs), "bit {bit}: {differs} bits");
        }
        assert_ne!(hasher.one(&key), other.one(&key));
    }
}

#[test]
fn sizes_are_checked_and_counted() {
    let error = |flows, keys, embryonic| {
        Memory::mapped(Sizes {
            flows,
            keys,
            embryonic,
        })
        .unwrap_err()
        .to_string()
    };
    assert_eq!(error(0, 1, 1), "flow table: 0 flows: must be 1 to 16777214");
    assert_eq!(
        error(1 << 24, 1, 1),
        "flow table: 16777216 flows: must be 1 to 16777214"
    );
    assert_eq!(error(10, 21, 1), "flow table: 21 keys: must be 10 to 20");
    assert_eq!(error(10, 9, 1), "flow table: 9 keys: must be 10 to 20");
    assert_eq!(
        error(10, 20, 11),
        "flow table: 11 embryonic flows: must be 1 to 10"
    );
    let sizes = Sizes {
        flows: 1_000_000,
        keys: 1_500_000,
        embryonic: 1000,
    };
    let memory = Memory::mapped(sizes).unwrap();
    let bytes = size_of_val(&memory.buckets[..])
        + size_of_val(&memory.flows[..])
        + size_of_val(&memory.seconds[..500_000])
        + 8 * sizes.embryonic as usize;
    assert_eq!(sizes.bytes(), bytes as u64);
    assert!(
        Memory::mapped(Sizes {
            flows: Sizes::MOST,
            keys: 2 * Sizes::MOST,
            embryonic: 1
        })
        .is_ok()
    );
}
