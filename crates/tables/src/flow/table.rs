//! The table itself: look-up, and the way of a flow from insertion to removal.
#![allow(unsafe_code)]

use super::bucket::{Bucket, SLOTS, Slot, Tag};
use super::queue::Reference;
use super::{
    Annex, EMBRYONIC, Entry, Flow, Hasher, Key, LIVE, Memory, Refused, SECOND, Second, Sizes, USE,
};
use crate::mem::prefetch;

/// Number of no entry.
const NONE: u32 = u32::MAX;

/// Flows ahead of which memory is asked for.
const AHEAD: u32 = 4;

/// Where a key may be: its slot, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate(Slot);

impl Candidate {
    /// Nothing has been looked for, or found.
    pub const NONE: Self = Candidate(Slot::EMPTY);
}

/// A flow that a key leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Its number.
    pub number: u32,
    /// It was found by its second key.
    pub second: bool,
}

/// How buckets are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Any,
    /// Only where the processor has it.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Only where the processor has it.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Way {
    /// Those of this processor, the best one last.
    pub fn all() -> impl Iterator<Item = Way> {
        let mut ways = [Some(Way::Any), None, None];
        #[cfg(target_arch = "x86_64")]
        {
            ways[1] = is_x86_feature_detected!("avx2").then_some(Way::Avx2);
            let is_wide = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("bmi1");
            ways[2] = is_wide.then_some(Way::Avx512);
        }
        ways.into_iter().flatten()
    }
}

/// The flows of a worker.
#[derive(Debug)]
pub struct Flows {
    memory: Memory,
    hasher: Hasher,
    pub(super) way: Way,
    /// The number that was last freed, which leads to the others.
    free: u32,
    /// Entries that have been used: those behind them never were.
    used: u32,
    live: u32,
    embryonic: u32,
    /// Keys in the index.
    keys: u32,
    /// The entry that the sweep looks at next.
    hand: u32,
    counts: Counts,
}

/// What has happened to the flows of a table since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Flows that have begun.
    pub inserted: u64,
    /// Those that found no room ([`Refused`]).
    pub refused: u64,
    /// Embryonic ones that went because their queue was full.
    pub displaced: u64,
    /// Those that were idle for their timeout.
    pub expired: u64,
}

impl Flows {
    /// An empty table in this memory.
    pub fn new(memory: Memory, hasher: Hasher) -> Self {
        Flows {
            memory,
            hasher,
            way: Way::all().last().unwrap_or(Way::Any),
            free: NONE,
            used: 0,
            live: 0,
            embryonic: 0,
            keys: 0,
            hand: 0,
            counts: Counts::default(),
        }
    }

    /// What has happened so far.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Sizes of its memory.
    pub const fn sizes(&self) -> Sizes {
        self.memory.sizes
    }

    /// All numbers of flows are below this one, which only grows.
    pub const fn used(&self) -> u32 {
        self.used
    }

    /// The flow with a number below [`used`](Self::used), if there is one.
    #[inline(always)]
    pub fn live(&self, number: u32) -> Option<(&Entry, &Annex)> {
        let (entry, annex) = self.at(number);
        entry.is_live().then_some((entry, annex))
    }

    /// Flows in it.
    pub const fn len(&self) -> usize {
        self.live as usize
    }

    /// There are none.
    pub const fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Those of them that are embryonic.
    pub const fn embryonic(&self) -> usize {
        self.embryonic as usize
    }

    /// All flows with their numbers, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Entry, &Annex)> {
        let used = (0..self.used).zip(&self.memory.flows[..]);
        let live = used.filter(|(_, flow)| flow.entry.is_live());
        live.map(|(number, flow)| (number, &flow.entry, &flow.annex))
    }

    /// Those of all flows that are or were there, to be changed.
    pub fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        let used = self.memory.flows.iter_mut().take(self.used as usize);
        used.map(|flow| &mut flow.entry)
    }

    /// What hashes its keys.
    pub const fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// The bucket that a key is in, mostly.
    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        hash as usize & (self.memory.buckets.len() - 1)
    }

    /// The other bucket that a slot with this tag may be in.
    #[inline(always)]
    fn other(&self, bucket: usize, tag: Tag) -> usize {
        (bucket ^ tag.apart()) & (self.memory.buckets.len() - 1)
    }

    /// The two buckets that a key may be in.
    #[inline(always)]
    fn both(&self, hash: u64) -> [usize; 2] {
        let home = self.home(hash);
        [home, self.other(home, Tag::of(hash))]
    }

    /// Asks the processor for the buckets of these hashes.
    #[inline(always)]
    pub fn prefetch(&self, hashes: &[u64]) {
        let buckets = self.memory.buckets.as_ptr();
        for hash in hashes {
            prefetch(buckets.wrapping_add(self.home(*hash)));
        }
    }

    /// Where the keys of these hashes may be; as many as there are both hashes and places. Asks the
    /// processor for the entries there, and the annexes; where there are none, for the other
    /// buckets that the keys may be in.
    pub fn candidates(&self, hashes: &[u64], found: &mut [Candidate]) {
        match self.way {
            Way::Any => self.candidates_by(hashes, found, Bucket::lanes),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the processor has it.
            Way::Avx2 => unsafe { self.candidates_avx2(hashes, found) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the processor has it.
            Way::Avx512 => unsafe { self.candidates_avx512(hashes, found) },
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,bmi1")]
    fn candidates_avx512(&self, hashes: &[u64], found: &mut [Candidate]) {
        self.candidates_by(hashes, found, |bucket, tag| bucket.lanes_avx512(tag));
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn candidates_avx2(&self, hashes: &[u64], found: &mut [Candidate]) {
        self.candidates_by(hashes, found, |bucket, tag| bucket.lanes_avx2(tag));
    }

    #[inline(always)]
    fn candidates_by(
        &self,
        hashes: &[u64],
        found: &mut [Candidate],
        lanes: impl Fn(&Bucket, Tag) -> u16,
    ) {
        for (hash, found) in hashes.iter().zip(found) {
            let [home, other] = self.both(*hash);
            let bucket = &self.memory.buckets[home];
            let lanes = lanes(bucket, Tag::of(*hash));
            // Whether there is one is random: what a lane holds is read in any case.
            let slot = bucket.slot(lanes.trailing_zeros());
            let slot = if lanes == 0 { Slot::EMPTY } else { slot };
            self.prefetch_entry(slot.number());
            let other: *const Bucket = self.memory.buckets.as_ptr().wrapping_add(other);
            let second = self.memory.seconds.as_ptr();
            let second: *const Second = second.wrapping_add(slot.number() as usize);
            // Few are there: what is random is which of them is where.
            if lanes == 0 {
                prefetch(other);
            } else if slot.is_second() {
                prefetch(second);
            }
            *found = Candidate(slot);
        }
    }

    /// Asks the processor for an entry and its annex; the number need not be good.
    #[inline(always)]
    fn prefetch_entry(&self, number: u32) {
        let flow: *const Flow = self.memory.flows.as_ptr().wrapping_add(number as usize);
        let lines: *const Entry = flow.cast();
        prefetch(lines);
        prefetch(lines.wrapping_add(1));
    }

    /// The key that a slot leads to.
    #[inline(always)]
    fn key(&self, slot: Slot) -> &Key {
        let number = slot.number() as usize;
        let first = &self.memory.flows[number].entry.key;
        let second = &self.memory.seconds[number].key;
        if slot.is_second() { second } else { first }
    }

    /// The flow that a key with this hash leads to. Quick if it is at the candidate of the key;
    /// else the whole table is searched.
    #[inline(always)]
    pub fn get(&self, candidate: Candidate, hash: u64, key: &Key) -> Option<Found> {
        if self.leads_to(candidate.0, key) {
            return Some(Found::at(candidate.0));
        }
        self.find(hash, key)
    }

    /// True if a slot is not empty and leads to this key.
    #[inline(always)]
    fn leads_to(&self, slot: Slot, key: &Key) -> bool {
        self.key(slot).is(key) && slot != Slot::EMPTY
    }

    /// The flow that a key with this hash leads to, without a candidate.
    #[inline(never)]
    pub fn find(&self, hash: u64, key: &Key) -> Option<Found> {
        self.both(hash).into_iter().find_map(|bucket| {
            let bucket = &self.memory.buckets[bucket];
            let mut lanes = self.lanes(bucket, Tag::of(hash));
            while lanes != 0 {
                let slot = bucket.slot(lanes.trailing_zeros());
                if self.leads_to(slot, key) {
                    return Some(Found::at(slot));
                }
                lanes &= lanes - 1;
            }
            None
        })
    }

    #[inline(always)]
    fn lanes(&self, bucket: &Bucket, tag: Tag) -> u16 {
        match self.way {
            Way::Any => bucket.lanes(tag),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the processor has it.
            Way::Avx2 => unsafe { bucket.lanes_avx2(tag) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the processor has it.
            Way::Avx512 => unsafe { bucket.lanes_avx512(tag) },
        }
    }

    /// The entry of a flow and its annex.
    ///
    /// # Panics
    /// If the table has no such number; here and below.
    #[inline(always)]
    pub fn at(&self, number: u32) -> (&Entry, &Annex) {
        let flow = &self.memory.flows[number as usize];
        (&flow.entry, &flow.annex)
    }

    /// The same, to be changed.
    #[inline(always)]
    pub fn at_mut(&mut self, number: u32) -> (&mut Entry, &mut Annex) {
        let flow = &mut self.memory.flows[number as usize];
        (&mut flow.entry, &mut flow.annex)
    }

    /// The second key of a flow.
    pub fn second(&self, number: u32) -> Option<&Key> {
        let second = &self.memory.seconds[number as usize].key;
        self.at(number).0.has_second().then_some(second)
    }

    /// Words of the user's that lie beside the second key, whether there is one or not. They are
    /// what they were last set to, whichever flow had the number.
    ///
    /// # Panics
    /// As [`Flows::at`].
    #[inline(always)]
    pub fn words(&self, number: u32) -> [u64; 2] {
        self.memory.seconds[number as usize].words
    }

    /// Sets the [words](Self::words).
    pub fn set_words(&mut self, number: u32, words: [u64; 2]) {
        self.memory.seconds[number as usize].words = words;
    }

    /// A flow to be kept.
    pub fn reference(&self, number: u32) -> Reference {
        let uses = self.at(number).0.uses();
        Reference { number, uses }
    }

    /// The number of a flow that was kept, unless it has gone.
    pub fn follow(&self, kept: Reference) -> Option<u32> {
        let entry = &self.memory.flows.get(kept.number as usize)?.entry;
        (entry.is_live() && entry.uses() == kept.uses).then_some(kept.number)
    }

    /// Inserts an embryonic flow that [`Flows::get`] has not found, seen now (in seconds). Its
    /// words and its annex are zero. If the queue is full, the oldest flow in it goes, unless it
    /// has gone or is established; `displaced` sees it before.
    ///
    /// # Errors
    /// [`Refused::Full`] and [`Refused::Crowded`].
    pub fn insert(
        &mut self,
        key: Key,
        hash: u64,
        now: u32,
        displaced: impl FnOnce(u32, &Entry, &Annex),
    ) -> Result<u32, Refused> {
        let inserted = self.try_insert(key, hash, now, displaced);
        match inserted {
            Ok(_) => self.counts.inserted += 1,
            Err(_) => self.counts.refused += 1,
        }
        inserted
    }

    #[inline(always)]
    fn try_insert(
        &mut self,
        key: Key,
        hash: u64,
        now: u32,
        displaced: impl FnOnce(u32, &Entry, &Annex),
    ) -> Result<u32, Refused> {
        debug_assert!(self.find(hash, &key).is_none(), "the flow is there");
        let (bucket, lane) = self.room(hash)?;
        if self.memory.queue.is_full() {
            self.displace(displaced);
        }
        // Its key may be what was needed.
        if self.keys == self.memory.sizes.keys {
            return Err(Refused::Full);
        }
        let number = self.alloc()?;
        self.memory.buckets[bucket].put(lane, Slot::new(Tag::of(hash), false, number));
        self.keys += 1;
        self.embryonic += 1;
        self.live += 1;
        let (entry, annex) = self.at_mut(number);
        *annex = Annex::default();
        *entry = Entry {
            key,
            seen: now,
            state: 0,
            flags: 0,
            generation: 0,
            interfaces: [0; 2],
            next: 0,
            marks: entry.marks | LIVE | EMBRYONIC,
        };
        let kept = self.reference(number);
        self.memory.queue.push(kept);
        Ok(number)
    }

    /// An empty slot for a key with this hash: its bucket and its lane. Where both buckets are full,
    /// a slot is moved to its other one.
    fn room(&mut self, hash: u64) -> Result<(usize, u32), Refused> {
        let both = self.both(hash);
        let empty = both.into_iter().find_map(|bucket| self.empty(bucket));
        let empty = empty.or_else(|| both.into_iter().find_map(|bucket| self.make_room(bucket)));
        empty.ok_or(Refused::Crowded)
    }

    /// An empty slot of a bucket.
    #[inline(always)]
    fn empty(&self, bucket: usize) -> Option<(usize, u32)> {
        let lanes = self.lanes(&self.memory.buckets[bucket], Tag::EMPTY);
        (lanes != 0).then(|| (bucket, lanes.trailing_zeros()))
    }

    /// Moves a slot of a full bucket to its other one, if there is room for any; gives its place.
    #[cold]
    fn make_room(&mut self, bucket: usize) -> Option<(usize, u32)> {
        (0..SLOTS as u32).find_map(|lane| {
            let slot = self.memory.buckets[bucket].slot(lane);
            let (other, empty) = self.empty(self.other(bucket, slot.tag()))?;
            self.memory.buckets[other].put(empty, slot);
            self.memory.buckets[bucket].put(lane, Slot::EMPTY);
            Some((bucket, lane))
        })
    }

    /// A number that is free.
    fn alloc(&mut self) -> Result<u32, Refused> {
        if self.free != NONE {
            let number = self.free;
            self.free = self.at(number).0.next;
            // Wherever the next one lies, it is there when it is needed.
            self.prefetch_entry(self.free);
            return Ok(number);
        }
        if self.used == self.memory.sizes.flows {
            return Err(Refused::Full);
        }
        self.used += 1;
        Ok(self.used - 1)
    }

    /// Asks the processor for what the next ones to be displaced need: first for entries, then for
    /// the buckets that these are found by.
    fn prefetch_queued(&self) {
        self.prefetch_entry(self.memory.queue.ahead(2 * AHEAD).number);
        let hash = self
            .hasher
            .one(&self.at(self.memory.queue.ahead(AHEAD).number).0.key);
        for bucket in self.both(hash) {
            prefetch(self.memory.buckets.as_ptr().wrapping_add(bucket));
        }
    }

    /// Takes the oldest flow out of the queue, and out of the table if it is still embryonic.
    fn displace(&mut self, displaced: impl FnOnce(u32, &Entry, &Annex)) {
        self.prefetch_queued();
        let kept = self.memory.queue.pop();
        let number = self.follow(kept);
        if let Some(number) = number.filter(|number| self.at(*number).0.is_embryonic()) {
            let (entry, annex) = self.at(number);
            displaced(number, entry, annex);
            self.remove(number);
            self.counts.displaced += 1;
        }
    }

    /// Gives a flow a second key with this hash.
    ///
    /// # Errors
    /// [`Refused::Taken`] if a flow has the key or this flow a second one; [`Refused::Full`] and
    /// [`Refused::Crowded`].
    pub fn add_key(&mut self, number: u32, key: Key, hash: u64) -> Result<(), Refused> {
        if self.at(number).0.has_second() || self.find(hash, &key).is_some() {
            return Err(Refused::Taken);
        }
        if self.keys == self.memory.sizes.keys {
            return Err(Refused::Full);
        }
        let (bucket, lane) = self.room(hash)?;
        self.memory.buckets[bucket].put(lane, Slot::new(Tag::of(hash), true, number));
        self.keys += 1;
        self.memory.seconds[number as usize].key = key;
        self.at_mut(number).0.marks |= SECOND;
        Ok(())
    }

    /// A flow has been answered: it is no longer embryonic.
    #[inline(always)]
    pub fn establish(&mut self, number: u32) {
        let marks = &mut self.at_mut(number).0.marks;
        let was = *marks & EMBRYONIC != 0;
        *marks &= !EMBRYONIC;
        self.embryonic -= u32::from(was);
    }

    /// Removes a flow and its keys; false if there is none with this number.
    pub fn remove(&mut self, number: u32) -> bool {
        let entry = *self.at(number).0;
        if !entry.is_live() {
            return false;
        }
        self.forget(&entry.key, false, number);
        if entry.has_second() {
            let second = self.memory.seconds[number as usize].key;
            self.forget(&second, true, number);
        }
        self.live -= 1;
        self.embryonic -= u32::from(entry.is_embryonic());
        let free = std::mem::replace(&mut self.free, number);
        let entry = self.at_mut(number).0;
        entry.next = free;
        entry.marks = entry.uses().wrapping_add(1) * USE;
        true
    }

    /// Takes a key out of the index.
    fn forget(&mut self, key: &Key, second: bool, number: u32) {
        let hash = self.hasher.one(key);
        let slot = Slot::new(Tag::of(hash), second, number);
        let mut both = self.both(hash).into_iter();
        let gone = both.any(|bucket| self.memory.buckets[bucket].take(slot));
        debug_assert!(gone, "the index has no key of flow {number}");
        self.keys -= u32::from(gone);
    }

    /// Looks at the next `budget` entries, those never used left out, and removes flows that have
    /// been idle for their timeout in seconds or longer. `removed` sees them before. Gives how many
    /// they were. A flow is not idle if it was seen in the future: clocks of workers differ.
    pub fn sweep(
        &mut self,
        budget: u32,
        now: u32,
        timeout: impl Fn(&Entry) -> u32,
        mut removed: impl FnMut(u32, &Entry, &Annex),
    ) -> u32 {
        let before = self.live;
        for _ in 0..budget.min(self.used) {
            let number = self.hand;
            self.hand = if number + 1 >= self.used {
                0
            } else {
                number + 1
            };
            let (entry, annex) = self.at(number);
            let idle = (now.wrapping_sub(entry.seen) as i32).max(0) as u32;
            if entry.is_live() && idle >= timeout(entry) {
                removed(number, entry, annex);
                self.remove(number);
            }
        }
        let expired = before - self.live;
        self.counts.expired += u64::from(expired);
        expired
    }

    /// Removes all flows.
    pub fn clear(&mut self) {
        for number in 0..self.used {
            self.remove(number);
        }
    }
}

impl Found {
    #[inline(always)]
    fn at(slot: Slot) -> Self {
        Found {
            number: slot.number(),
            second: slot.is_second(),
        }
    }
}
