//! The writer's side of the table.

use std::fmt;
use std::sync::atomic::Ordering::{Relaxed, Release};

use super::{Prefix, Reader};
use crate::entry::{EXT, Entry};
use crate::ids::{Full, Ids, Retired, Usage};
use crate::mem::Cells;
use crate::rib::Rib;

/// Words of the first level: one for every /24.
pub const FIRST_WORDS: usize = 1 << 24;

/// Words of one second-level group: one for every address of a /24.
pub const GROUP_WORDS: usize = 256;

/// In place of a depth: a second-level group stands here.
const EXTENDED: u8 = 0xff;

/// The routes and the table made from them; the one writer.
///
/// Beside every table entry the writer keeps its depth, the length of the prefix that it comes
/// from. A prefix owns exactly those entries below it whose depth does not exceed its length, which
/// makes both insertion and removal one pass over them. Nothing and the default route both have
/// depth 0. So a change costs as much as its prefix has places: a /24 one store, the default route
/// 16 million, about 60 ms.
pub struct Fib {
    first: Cells,
    second: Cells,
    routes: Rib<u32, Entry>,
    /// Depth of each first-level entry, or `EXTENDED`.
    first_depth: Box<[u8]>,
    /// Depth of each second-level entry.
    second_depth: Box<[u8]>,
    /// For each group the number of prefixes longer than /24 in it (510 at most).
    longer: Box<[u16]>,
    groups: Ids<Self>,
}

impl Fib {
    /// An empty table. `first` must have [`FIRST_WORDS`] words and `second` [`GROUP_WORDS`] for
    /// every /24 that may have longer prefixes in it; both must be zero.
    ///
    /// # Panics
    /// If `first` has another length, or `second` has less than one group or more than 2^24.
    pub fn new(first: Cells, second: Cells) -> Self {
        let groups = second.len() / GROUP_WORDS;
        assert_eq!(first.len(), FIRST_WORDS, "words of the first level");
        assert!(
            (1..=FIRST_WORDS).contains(&groups),
            "second level of {groups} groups"
        );
        Self {
            first_depth: vec![0; first.len()].into(),
            second_depth: vec![0; second.len()].into(),
            longer: vec![0; groups].into(),
            groups: Ids::new(0, groups as u32),
            routes: Rib::new(),
            first,
            second,
        }
    }

    /// A reader of this table; clone it for every worker.
    pub fn reader(&self) -> Reader {
        Reader::new(self.first.clone(), self.second.clone())
    }

    /// Adds a route or replaces the one of this prefix, whose entry it returns. Readers see every
    /// address change from the old entry to the new one, with nothing in between.
    ///
    /// # Errors
    /// [`Full`]: a prefix longer than /24 needs a second-level group and none is free. Nothing has
    /// changed.
    pub fn insert(&mut self, prefix: Prefix, entry: Entry) -> Result<Option<Entry>, Full> {
        let group = if prefix.len() > 24 {
            Some(self.group_of(prefix)?)
        } else {
            None
        };
        let old = self.routes.insert(prefix, entry);
        if let (Some(group), None) = (group, old) {
            self.longer[group] += 1;
        }
        self.paint(prefix, entry, prefix.len());
        Ok(old)
    }

    /// Removes a route and returns its entry; the next shorter prefix takes its addresses over.
    pub fn remove(&mut self, prefix: Prefix) -> Option<Entry> {
        let old = self.routes.remove(prefix)?;
        let (entry, depth) = match self.routes.covers(prefix).next() {
            Some((cover, entry)) => (*entry, cover.len()),
            None => (Entry::NO_ROUTE, 0),
        };
        self.paint(prefix, entry, depth);
        if prefix.len() > 24 {
            self.release_group(prefix);
        }
        Some(old)
    }

    /// The routes.
    pub fn routes(&self) -> &Rib<u32, Entry> {
        &self.routes
    }

    /// Use of the second level, in groups.
    pub fn usage(&self) -> Usage {
        self.groups.usage()
    }

    /// Groups that no entry names any more since the last call. Wait for a grace period (see
    /// [`crate::ids`]), then [`reclaim`](Self::reclaim) them.
    pub fn retired(&mut self) -> Retired<Self> {
        self.groups.take_retired()
    }

    /// Makes groups usable again that no reader holds any more.
    pub fn reclaim(&mut self, retired: Retired<Self>) {
        self.groups.reclaim(retired);
    }

    /// The group of a prefix longer than /24; makes one, filled with the /24's present entry, where
    /// none is.
    fn group_of(&mut self, prefix: Prefix) -> Result<usize, Full> {
        let slot = first_slot(prefix);
        // Relaxed: this is the one writer, and reads its own stores.
        let bits = self.first.at(slot).load(Relaxed);
        if self.first_depth[slot] == EXTENDED {
            return Ok((bits & !EXT) as usize);
        }
        let group = self.groups.alloc()? as usize;
        for at in group_slots(group) {
            // Relaxed: no reader knows the group yet.
            self.second.at(at).store(bits, Relaxed);
        }
        self.second_depth[group_slots(group)].fill(self.first_depth[slot]);
        // Release: the group is filled before it is named.
        self.first.at(slot).store(EXT | group as u32, Release);
        self.first_depth[slot] = EXTENDED;
        Ok(group)
    }

    /// Counts down the prefixes longer than /24 in the group of `prefix`, which has just been
    /// removed. Without any all entries of the group are the same, and go back to the first level.
    fn release_group(&mut self, prefix: Prefix) {
        let slot = first_slot(prefix);
        let group = (self.first.at(slot).load(Relaxed) & !EXT) as usize;
        self.longer[group] -= 1;
        if self.longer[group] == 0 {
            let at = group_slots(group).start;
            self.first
                .at(slot)
                .store(self.second.at(at).load(Relaxed), Release);
            self.first_depth[slot] = self.second_depth[at];
            // Not freed: a reader may be between its two loads.
            self.groups.retire(group as u32);
        }
    }

    /// Gives all entries of `prefix` that no longer prefix owns the entry and the depth of their
    /// new owner.
    fn paint(&mut self, prefix: Prefix, entry: Entry, depth: u8) {
        let (slot, len) = (first_slot(prefix), prefix.len());
        if len > 24 {
            let group = (self.first.at(slot).load(Relaxed) & !EXT) as usize;
            let start = group_slots(group).start + (prefix.addr() & 0xff) as usize;
            return self.paint_second(start..start + (1 << (32 - len)), len, entry, depth);
        }
        for slot in slot..slot + (1 << (24 - len)) {
            let old = self.first_depth[slot];
            if old == EXTENDED {
                let group = (self.first.at(slot).load(Relaxed) & !EXT) as usize;
                self.paint_second(group_slots(group), len, entry, depth);
            } else if old <= len {
                self.first_depth[slot] = depth;
                // Release: what the entry names was written before.
                self.first.at(slot).store(entry.bits(), Release);
            }
        }
    }

    fn paint_second(&mut self, slots: std::ops::Range<usize>, len: u8, entry: Entry, depth: u8) {
        for at in slots {
            if self.second_depth[at] <= len {
                self.second_depth[at] = depth;
                self.second.at(at).store(entry.bits(), Release);
            }
        }
    }
}

impl fmt::Debug for Fib {
    /// Without the tables, which have millions of entries.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fib({} routes, {:?})", self.routes.len(), self.usage())
    }
}

/// The first (or only) first-level entry of a prefix.
fn first_slot(prefix: Prefix) -> usize {
    (prefix.addr() >> 8) as usize
}

fn group_slots(group: usize) -> std::ops::Range<usize> {
    group * GROUP_WORDS..(group + 1) * GROUP_WORDS
}

#[cfg(test)]
impl Fib {
    /// No entry is left anywhere.
    pub(super) fn first_level_is_empty(&self) -> bool {
        self.first.iter().all(|word| word.load(Relaxed) == 0)
            && self.first_depth.iter().all(|&depth| depth == 0)
    }
}
