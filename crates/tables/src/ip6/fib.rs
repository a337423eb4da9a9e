//! The writer's side of the table.

use std::fmt;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Relaxed, Release};

use super::word::{FIRST_WORDS, MOST, Node, PAGE_WORDS, RANGES, WORDS};
use super::{Prefix, Reader};
use crate::entry::Entry;
use crate::ids::{Full, Ids, Retired, Usage};
use crate::mem::{Cells, LINE};
use crate::rib::Rib;

/// Bits of the address that a leaf looks at.
const WINDOW: u8 = 32;

/// Nodes that must be free before a new prefix is inserted; none needs more. A full leaf whose
/// ranges begin with the same bytes becomes a page in each of the 4 bytes it looks at, with at most
/// 10 leaves below; a prefix that goes on behind it needs 4 more.
const SPARE_PAGES: usize = 4;
const SPARE_LEAVES: usize = 16;

/// What stands at one place of the table: a word, and if it is an entry the length of the prefix
/// that it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    word: u32,
    len: u8,
}

/// Part of what a leaf looks at, from `start` to where the next one begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    start: u32,
    slot: Slot,
}

/// The routes and the table made from them; the one writer.
///
/// Beside every entry in the table the writer keeps the length of the prefix that it comes from. A
/// prefix owns exactly those places below it whose length does not exceed its own.
pub struct Fib {
    reader: Reader,
    rib: Rib<Prefix, Entry>,
    first_len: Box<[u8]>,
    page_len: Box<[u8]>,
    leaf_len: Box<[[u8; RANGES]]>,
    /// Ranges that each leaf uses; the others repeat the last one.
    leaf_used: Box<[u8]>,
    pages: Ids<Page>,
    leaves: Ids<Leaf>,
}

/// What a number of a page is a number of.
#[derive(Debug)]
pub struct Page;
/// What a number of a leaf is a number of.
#[derive(Debug)]
pub struct Leaf;

/// Use of both kinds of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usages {
    /// Pages, 1 KiB each.
    pub pages: Usage,
    /// Leaves, 64 bytes each.
    pub leaves: Usage,
}

impl Fib {
    /// An empty table. `first` must have [`FIRST_WORDS`] words, `pages` [`PAGE_WORDS`] for each
    /// page and `leaves` [`LINE`] for each leaf; all must be zero.
    ///
    /// # Panics
    /// If `first` has another length, or there are more than 2^26 pages or leaves.
    pub fn new(first: Cells, pages: Cells, leaves: Cells) -> Self {
        assert_eq!(first.len(), FIRST_WORDS, "words of the first level");
        let (page_count, leaf_count) = (pages.len() / PAGE_WORDS, leaves.len() / LINE);
        assert!(page_count.max(leaf_count) <= MOST, "too many nodes");
        Self {
            first_len: vec![0; first.len()].into(),
            page_len: vec![0; pages.len()].into(),
            leaf_len: vec![[0; RANGES]; leaf_count].into(),
            leaf_used: vec![0; leaf_count].into(),
            pages: Ids::new(0, page_count as u32),
            leaves: Ids::new(0, leaf_count as u32),
            rib: Rib::new(),
            reader: Reader {
                first,
                pages,
                leaves,
            },
        }
    }

    /// A reader of this table; clone it for every worker.
    pub fn reader(&self) -> Reader {
        self.reader.clone()
    }

    /// Adds a route or replaces the one of this prefix, whose entry it returns. Readers see every
    /// address change from the old entry to the new one, with nothing in between.
    ///
    /// # Errors
    /// [`Full`]: a new prefix longer than /16 may need more nodes than are free. Nothing has
    /// changed.
    pub fn insert(&mut self, prefix: Prefix, entry: Entry) -> Result<Option<Entry>, Full> {
        if prefix.len() > 16 && self.rib.get(prefix).is_none() && !self.has_spare() {
            return Err(Full);
        }
        let slot = Slot {
            word: entry.bits(),
            len: prefix.len(),
        };
        self.set(prefix, slot)?;
        Ok(self.rib.insert(prefix, entry))
    }

    /// Removes a route and returns its entry; the next shorter prefix takes its addresses over.
    pub fn remove(&mut self, prefix: Prefix) -> Option<Entry> {
        let old = self.rib.remove(prefix)?;
        let (word, len) = match self.cover(prefix) {
            Some((cover, entry)) => (entry.bits(), cover.len()),
            None => (Entry::NO_ROUTE.bits(), 0),
        };
        let done = self.set(prefix, Slot { word, len });
        debug_assert!(done.is_ok(), "a removal needs no new node");
        Some(old)
    }

    /// The route of exactly this prefix.
    pub fn get(&self, prefix: Prefix) -> Option<Entry> {
        self.rib.get(prefix).copied()
    }

    /// The longest prefix that contains `dst` (host byte order), and its entry.
    pub fn longest_match(&self, dst: u128) -> Option<(Prefix, Entry)> {
        let (prefix, entry) = self.rib.longest_match(dst)?;
        Some((prefix, *entry))
    }

    /// The longest prefix that is shorter than this one and covers it, and its entry.
    pub fn cover(&self, prefix: Prefix) -> Option<(Prefix, Entry)> {
        let (cover, entry) = self.rib.covers(prefix).next()?;
        Some((cover, *entry))
    }

    /// All routes, shorter prefixes first, in no other order.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix, Entry)> {
        self.rib.iter().map(|(prefix, entry)| (prefix, *entry))
    }

    /// Number of routes.
    pub fn len(&self) -> usize {
        self.rib.len()
    }

    /// Without a route.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Use of the nodes.
    pub fn usage(&self) -> Usages {
        Usages {
            pages: self.pages.usage(),
            leaves: self.leaves.usage(),
        }
    }

    /// Nodes that no word names any more since the last call. Wait for a grace period (see
    /// [`crate::ids`]), then [`reclaim`](Self::reclaim) them.
    pub fn retired(&mut self) -> (Retired<Page>, Retired<Leaf>) {
        (self.pages.take_retired(), self.leaves.take_retired())
    }

    /// Makes nodes usable again that no reader holds any more.
    pub fn reclaim(&mut self, (pages, leaves): (Retired<Page>, Retired<Leaf>)) {
        self.pages.reclaim(pages);
        self.leaves.reclaim(leaves);
    }

    fn has_spare(&self) -> bool {
        self.pages.usage().free >= SPARE_PAGES && self.leaves.usage().free >= SPARE_LEAVES
    }

    /// Gives all addresses of `prefix` that no longer prefix owns to `owner`.
    fn set(&mut self, prefix: Prefix, owner: Slot) -> Result<(), Full> {
        let at = (prefix.addr() >> 112) as usize;
        if prefix.len() > 16 {
            let old = self.first(at);
            let new = self.within(old, 16, prefix, owner)?;
            self.set_first(at, new);
            return Ok(());
        }
        for at in at..at + (1 << (16 - prefix.len())) {
            let new = self.cover_slot(self.first(at), prefix.len(), owner);
            self.set_first(at, new);
        }
        Ok(())
    }

    /// What takes the place of a slot that the first `depth` bits of the longer `prefix` lead to.
    fn within(&mut self, slot: Slot, depth: u8, prefix: Prefix, owner: Slot) -> Result<Slot, Full> {
        match Node::of(slot.word) {
            None => {
                let ranges = vec![Range { start: 0, slot }];
                self.within_leaf(None, depth, ranges, prefix, owner)
            }
            Some(Node::Leaf { byte, index }) => {
                let ranges = self.ranges(index);
                self.within_leaf(Some(index), byte * 8, ranges, prefix, owner)
            }
            Some(Node::Page { byte, index }) => {
                self.within_page(slot, index, byte * 8, prefix, owner)
            }
        }
    }

    fn within_page(
        &mut self,
        slot: Slot,
        page: u32,
        depth: u8,
        prefix: Prefix,
        owner: Slot,
    ) -> Result<Slot, Full> {
        let first = page as usize * PAGE_WORDS;
        let byte = usize::from(window(prefix, depth).to_be_bytes()[0]);
        if prefix.len() > depth + 8 {
            let old = self.page(first + byte);
            let new = self.within(old, depth + 8, prefix, owner)?;
            self.set_page(first + byte, new);
        } else {
            for at in byte..byte + (1 << (depth + 8 - prefix.len())) {
                let new = self.cover_slot(self.page(first + at), prefix.len(), owner);
                self.set_page(first + at, new);
            }
        }
        // All slots of one shorter prefix: it owns the slot of the page.
        let any = self.page(first);
        let one = any.len <= depth && (1..PAGE_WORDS).all(|at| self.page(first + at) == any);
        if !one || Node::of(any.word).is_some() {
            return Ok(slot);
        }
        self.pages.retire(page);
        Ok(any)
    }

    fn within_leaf(
        &mut self,
        leaf: Option<u32>,
        depth: u8,
        mut ranges: Vec<Range>,
        prefix: Prefix,
        owner: Slot,
    ) -> Result<Slot, Full> {
        let start = window(prefix, depth);
        let at = ranges.partition_point(|range| range.start <= start) - 1;
        let below = Node::of(ranges[at].slot.word);
        let end = depth.saturating_add(WINDOW);
        if below.is_some_and(|node| node.depth() < prefix.len()) {
            ranges[at].slot = self.within(ranges[at].slot, end, prefix, owner)?;
        } else if prefix.len() > end {
            let at = split(&mut ranges, start, start);
            ranges[at.start].slot = self.within(ranges[at.start].slot, end, prefix, owner)?;
        } else {
            let host = u32::MAX.checked_shr(u32::from(prefix.len() - depth));
            for at in split(&mut ranges, start, start | host.unwrap_or(0)) {
                ranges[at].slot = self.cover_slot(ranges[at].slot, prefix.len(), owner);
            }
        }
        self.write(leaf, depth, ranges)
    }

    /// A slot inside of a prefix of length `len` that gets a new owner.
    fn cover_slot(&mut self, slot: Slot, len: u8, owner: Slot) -> Slot {
        match Node::of(slot.word) {
            None if slot.len <= len => return owner,
            None => {}
            Some(Node::Page { index, .. }) => {
                let first = index as usize * PAGE_WORDS;
                for at in first..first + PAGE_WORDS {
                    let new = self.cover_slot(self.page(at), len, owner);
                    self.set_page(at, new);
                }
            }
            Some(Node::Leaf { index, .. }) => {
                let mut ranges = self.ranges(index);
                for range in &mut ranges {
                    range.slot = self.cover_slot(range.slot, len, owner);
                }
                self.store(index, &ranges);
            }
        }
        slot
    }

    /// Writes a leaf of these ranges in place of `old`, and gives the slot that names it.
    fn write(&mut self, old: Option<u32>, depth: u8, ranges: Vec<Range>) -> Result<Slot, Full> {
        let name = |index| Slot {
            word: Node::Leaf {
                byte: depth / 8,
                index,
            }
            .word(),
            len: 0,
        };
        let merged = merge(depth, &ranges);
        let same = old.filter(|&old| self.same_starts(old, &ranges));
        if let Some(old) = same {
            self.store(old, &ranges);
            if merged.len() == ranges.len() {
                return Ok(name(old));
            }
        }
        let new = match merged.len() {
            1 => merged[0].slot,
            2..=RANGES => match (self.leaves.alloc(), same) {
                (Ok(index), _) => {
                    self.fill(index, &merged);
                    name(index)
                }
                // Larger than it need be, but right.
                (Err(Full), Some(old)) => return Ok(name(old)),
                (Err(full), None) => return Err(full),
            },
            _ => self.write_page(depth, &merged)?,
        };
        if let Some(old) = old {
            self.leaves.retire(old);
        }
        Ok(new)
    }

    /// Writes a page of what are too many ranges for a leaf.
    fn write_page(&mut self, depth: u8, ranges: &[Range]) -> Result<Slot, Full> {
        let index = self.pages.alloc()?;
        for byte in 0..PAGE_WORDS {
            let start = (byte as u32) << 24;
            let below = part(ranges, start);
            let slot = match below[..] {
                [only] => only.slot,
                _ => self.write(None, depth + 8, below)?,
            };
            self.set_page(index as usize * PAGE_WORDS + byte, slot);
        }
        let word = Node::Page {
            byte: depth / 8,
            index,
        }
        .word();
        Ok(Slot { word, len: 0 })
    }

    fn first(&self, at: usize) -> Slot {
        Slot {
            word: self.reader.first.at(at).load(Relaxed),
            len: self.first_len[at],
        }
    }

    fn set_first(&mut self, at: usize, slot: Slot) {
        self.first_len[at] = slot.len;
        publish(self.reader.first.at(at), slot.word);
    }

    fn page(&self, at: usize) -> Slot {
        Slot {
            word: self.reader.pages.at(at).load(Relaxed),
            len: self.page_len[at],
        }
    }

    fn set_page(&mut self, at: usize, slot: Slot) {
        self.page_len[at] = slot.len;
        publish(self.reader.pages.at(at), slot.word);
    }

    fn ranges(&self, leaf: u32) -> Vec<Range> {
        let line = self.reader.leaves.line(leaf as usize);
        let range = |at: usize| Range {
            start: match at {
                0 => 0,
                _ => line[at - 1].load(Relaxed),
            },
            slot: Slot {
                word: line[WORDS + at].load(Relaxed),
                len: self.leaf_len[leaf as usize][at],
            },
        };
        let used = self.leaf_used[leaf as usize].into();
        let mut ranges = Vec::with_capacity(RANGES + 2);
        ranges.extend((0..used).map(range));
        ranges
    }

    fn same_starts(&self, leaf: u32, ranges: &[Range]) -> bool {
        let old = self.ranges(leaf);
        let starts = old.iter().map(|range| range.start);
        starts.eq(ranges.iter().map(|range| range.start))
    }

    /// Writes where a new leaf's ranges begin, and the rest.
    fn fill(&mut self, leaf: u32, ranges: &[Range]) {
        let line = self.reader.leaves.line(leaf as usize);
        self.leaf_used[leaf as usize] = ranges.len() as u8;
        for at in 1..RANGES {
            let start = ranges.get(at).map_or(u32::MAX, |range| range.start);
            line[at - 1].store(start, Relaxed);
        }
        self.store(leaf, ranges);
    }

    /// Writes the words of a leaf, a store each.
    fn store(&mut self, leaf: u32, ranges: &[Range]) {
        let line = self.reader.leaves.line(leaf as usize);
        for at in 0..RANGES {
            let slot = ranges[at.min(ranges.len() - 1)].slot;
            self.leaf_len[leaf as usize][at] = slot.len;
            publish(&line[WORDS + at], slot.word);
        }
    }
}

impl fmt::Debug for Fib {
    /// Without the tables, which may have a million entries.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fib({} routes, {:?})", self.len(), self.usage())
    }
}

fn publish(at: &AtomicU32, word: u32) {
    if at.load(Relaxed) != word {
        at.store(word, Release);
    }
}

/// The 32 bits of a prefix's first address behind the first `depth` ones; zeros behind its end.
fn window(prefix: Prefix, depth: u8) -> u32 {
    ((prefix.addr() << depth) >> 96) as u32
}

/// Lets ranges begin at `first` and behind `last`, and gives those in between.
fn split(ranges: &mut Vec<Range>, first: u32, last: u32) -> std::ops::Range<usize> {
    let mut cut = |start: u32| match ranges.binary_search_by_key(&start, |range| range.start) {
        Ok(at) => at,
        Err(at) => {
            let slot = ranges[at - 1].slot;
            ranges.insert(at, Range { start, slot });
            at
        }
    };
    let start = cut(first);
    let end = last.checked_add(1).map(&mut cut);
    start..end.unwrap_or(ranges.len())
}

/// The ranges without the borders inside of a prefix that owns both sides.
fn merge(depth: u8, ranges: &[Range]) -> Vec<Range> {
    let mut merged: Vec<Range> = Vec::with_capacity(ranges.len());
    for range in ranges {
        let one = merged.last().is_some_and(|last| {
            let ours = range.slot.len.saturating_sub(depth).min(WINDOW);
            let differ = last.start ^ range.start;
            let apart = differ.checked_shr(u32::from(WINDOW - ours)).unwrap_or(0);
            last.slot == range.slot && apart == 0
        });
        if !one {
            merged.push(*range);
        }
    }
    merged
}

/// The ranges that begin with a byte, `start`'s highest, as a node behind that byte sees them.
fn part(ranges: &[Range], start: u32) -> Vec<Range> {
    let from = ranges.partition_point(|range| range.start <= start) - 1;
    let inside = ranges[from..]
        .iter()
        .take_while(|range| range.start <= start | 0xff_ffff);
    inside
        .map(|range| Range {
            start: range.start.max(start) << 8,
            slot: range.slot,
        })
        .collect()
}

#[cfg(test)]
impl Fib {
    /// No node and no entry is left anywhere.
    pub(super) fn first_level_is_empty(&self) -> bool {
        self.reader.first.iter().all(|word| word.load(Relaxed) == 0)
            && self.first_len.iter().all(|&len| len == 0)
    }
}
