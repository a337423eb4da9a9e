//! Timers for nodes: a hashed timing wheel (Varghese and Lauck, 1987, scheme 6) with ticks of a
//! millisecond.
//!
//! A node keeps a wheel for its entries, which it numbers itself. It asks for those that have
//! expired when it is polled ([`Each::poll`](crate::Each::poll)), with
//! [`Emit::tick`](crate::Emit::tick) as the time. Only [`Timers::new`] allocates.

/// Slots of a wheel, a tick each: about a second. Entries that are due a whole number of rounds
/// apart share one.
const SLOTS: u64 = 1024;

/// No entry.
const NONE: u32 = u32::MAX;

/// A timer each for entries 0 to n - 1.
#[derive(Debug)]
pub struct Timers {
    /// By slot: the first of its entries.
    slots: Box<[u32]>,
    entries: Box<[Entry]>,
    /// The latest tick that [`Timers::expired`] was called with.
    now: u64,
    /// The tick whose slot is being searched, and the next entry there.
    tick: u64,
    next: u32,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Tick at which it expires; 0: not set.
    at: u64,
    /// Its neighbors in the list of its slot.
    before: u32,
    after: u32,
}

impl Timers {
    /// Timers for `entries` entries, at most 2^32 - 1, none of them set.
    pub fn new(entries: u32) -> Self {
        let unset = Entry {
            at: 0,
            before: NONE,
            after: NONE,
        };
        Timers {
            slots: vec![NONE; SLOTS as usize].into(),
            entries: vec![unset; entries as usize].into(),
            now: 0,
            tick: 0,
            next: NONE,
        }
    }

    /// Sets the timer of an entry, whether it was set or not. It expires at tick `at`, or at the
    /// next tick if that has passed.
    ///
    /// # Panics
    /// Panics if there is no such entry.
    pub fn set(&mut self, entry: u32, at: u64) {
        self.clear(entry);
        let at = at.max(self.now + 1);
        let slot = &mut self.slots[(at % SLOTS) as usize];
        let after = std::mem::replace(slot, entry);
        self.entries[entry as usize] = Entry {
            at,
            before: NONE,
            after,
        };
        if after != NONE {
            self.entries[after as usize].before = entry;
        }
    }

    /// Stops the timer of an entry, if it is set.
    ///
    /// # Panics
    /// Panics if there is no such entry.
    pub fn clear(&mut self, entry: u32) {
        let found = &mut self.entries[entry as usize];
        let Entry { at, before, after } = *found;
        if at == 0 {
            return;
        }
        found.at = 0;
        match before {
            NONE => self.slots[(at % SLOTS) as usize] = after,
            before => self.entries[before as usize].after = after,
        }
        if after != NONE {
            self.entries[after as usize].before = before;
        }
        if self.next == entry {
            self.next = after;
        }
    }

    /// The number of an entry whose timer has expired at tick `now`; it is no longer set. Call it
    /// until there is none. They come in no particular order.
    pub fn expired(&mut self, now: u64) -> Option<u32> {
        self.now = self.now.max(now);
        loop {
            while self.next != NONE {
                let entry = self.next;
                self.next = self.entries[entry as usize].after;
                if self.entries[entry as usize].at <= self.now {
                    self.clear(entry);
                    return Some(entry);
                }
            }
            if self.tick == self.now {
                return None;
            }
            // After a long pause, every slot is searched once.
            self.tick = (self.tick + 1).max(self.now.saturating_sub(SLOTS - 1));
            self.next = self.slots[(self.tick % SLOTS) as usize];
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const ENTRIES: u32 = 16;

    #[derive(Debug, Clone)]
    enum Step {
        Set(u32, u64),
        Clear(u32),
        Expire(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        // From within a slot's width to several rounds of the wheel.
        let ticks = || prop_oneof![0..4u64, 0..2000u64, 1020..1030u64, 0..10_000u64];
        prop_oneof![
            3 => (0..ENTRIES, ticks()).prop_map(|(entry, ticks)| Step::Set(entry, ticks)),
            1 => (0..ENTRIES).prop_map(Step::Clear),
            2 => ticks().prop_map(Step::Expire),
        ]
    }

    proptest! {
        #[test]
        fn entries_expire_as_in_a_sorted_map(steps in prop::collection::vec(step(), 0..300)) {
            let (mut timers, mut now) = (Timers::new(ENTRIES), 0);
            let mut oracle = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Set(entry, ticks) => {
                        // Some of them in the past.
                        let at = (now + ticks).saturating_sub(2);
                        timers.set(entry, at);
                        oracle.insert(entry, at.max(now + 1));
                    }
                    Step::Clear(entry) => {
                        timers.clear(entry);
                        oracle.remove(&entry);
                    }
                    Step::Expire(ticks) => {
                        now += ticks;
                        let mut expired = Vec::new();
                        while let Some(entry) = timers.expired(now) {
                            expired.push(entry);
                            // What is set or stopped meanwhile is not of this time.
                            if entry % 3 == 0 {
                                timers.set(entry, now);
                                timers.clear((entry + 1) % ENTRIES);
                            }
                        }
                        let mut due = oracle.extract_if(.., |_, at| *at <= now).map(|(entry, _)| entry).collect::<Vec<_>>();
                        for entry in &expired {
                            prop_assert!(due.contains(entry));
                            due.retain(|other| other != entry);
                            if entry % 3 == 0 {
                                oracle.insert(*entry, now + 1);
                                let stopped = (entry + 1) % ENTRIES;
                                oracle.remove(&stopped);
                                due.retain(|other| *other != stopped);
                            }
                        }
                        prop_assert!(due.is_empty(), "{due:?} did not expire");
                    }
                }
            }
        }
    }
}
