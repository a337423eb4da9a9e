//! The writer's side of the table.

use std::fmt;

use super::nodes::{Leaf, Nodes, Page};
use super::ranges::{Block, Range, Slot, WINDOW, crowded, merge, split, window};
use super::word::{Node, PAGE_WORDS, RANGES};
use super::{Prefix, Reader};
use crate::entry::Entry;
use crate::ids::{Full, Retired, Usage};
use crate::mem::Cells;
use crate::rib::Rib;

/// Nodes that must be free before a new prefix is inserted; none needs more. Only the leaf that gets
/// its borders can be full. It becomes a page with at most 9 leaves below, or it and up to 4 leaves
/// below each other; a prefix that goes on behind it needs 4 more.
pub(crate) const SPARE_PAGES: u32 = 1;
pub(crate) const SPARE_LEAVES: u32 = 16;

/// A page, or a leaf and one below it, that need no more ranges than these become one leaf. Fewer than
/// a leaf holds, so that routes that come and go do not change the nodes each time.
const FEW: usize = 5;

/// The routes and the table made from them; the one writer.
///
/// Beside every entry in the table the writer keeps the length of the prefix that it comes from. A
/// prefix owns exactly those places below it whose length does not exceed its own. Beside every node
/// it keeps the least of these, so that it visits only nodes where the prefix owns something.
pub struct Fib {
    nodes: Nodes,
    routes: Rib<u128, Entry>,
}

/// Use of both kinds of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usages {
    /// Pages, 1 KiB each.
    pub pages: Usage,
    /// Leaves, 64 bytes each.
    pub leaves: Usage,
}

impl Fib {
    /// An empty table. `first` must have [`FIRST_WORDS`](super::FIRST_WORDS) words, `pages` [`PAGE_WORDS`] for each
    /// page and `leaves` [`LINE`](crate::mem::LINE) for each leaf; all must be zero.
    ///
    /// # Panics
    /// If `first` has another length, or there are more than 2^26 pages or leaves.
    pub fn new(first: Cells, pages: Cells, leaves: Cells) -> Self {
        Self {
            nodes: Nodes::new(first, pages, leaves),
            routes: Rib::new(),
        }
    }

    /// A reader of this table; clone it for every worker.
    pub fn reader(&self) -> Reader {
        self.nodes.reader.clone()
    }

    /// Adds a route or replaces the one of this prefix, whose entry it returns. Readers see every
    /// address change from the old entry to the new one, with nothing in between.
    ///
    /// # Errors
    /// [`Full`]: a new prefix longer than /16 may need more nodes than are free. Nothing has
    /// changed.
    pub fn insert(&mut self, prefix: Prefix, entry: Entry) -> Result<Option<Entry>, Full> {
        // Shorter prefixes fill words of the first level, and a known one has its nodes.
        if prefix.len() > 16 && self.routes.get(prefix).is_none() && !self.has_spare() {
            return Err(Full);
        }
        let slot = Slot {
            word: entry.bits(),
            len: prefix.len(),
        };
        self.set(prefix, slot)?;
        Ok(self.routes.insert(prefix, entry))
    }

    /// Removes a route and returns its entry; the next shorter prefix takes its addresses over.
    pub fn remove(&mut self, prefix: Prefix) -> Option<Entry> {
        let old = self.routes.remove(prefix)?;
        let (word, len) = match self.routes.covers(prefix).next() {
            Some((cover, entry)) => (entry.bits(), cover.len()),
            None => (Entry::NO_ROUTE.bits(), 0),
        };
        let done = self.set(prefix, Slot { word, len });
        debug_assert!(done.is_ok(), "a removal needs no new node");
        Some(old)
    }

    /// The routes.
    pub fn routes(&self) -> &Rib<u128, Entry> {
        &self.routes
    }

    /// Use of the nodes.
    pub fn usage(&self) -> Usages {
        Usages {
            pages: self.nodes.pages.usage(),
            leaves: self.nodes.leaves.usage(),
        }
    }

    /// Nodes that no word names any more since the last call. Wait for a grace period (see
    /// [`crate::ids`]), then [`reclaim`](Self::reclaim) them.
    pub fn retired(&mut self) -> (Retired<Page>, Retired<Leaf>) {
        (
            self.nodes.pages.take_retired(),
            self.nodes.leaves.take_retired(),
        )
    }

    /// Makes nodes usable again that no reader holds any more.
    pub fn reclaim(&mut self, (pages, leaves): (Retired<Page>, Retired<Leaf>)) {
        self.nodes.pages.reclaim(pages);
        self.nodes.leaves.reclaim(leaves);
    }

    fn has_spare(&self) -> bool {
        self.nodes.pages.usage().free >= SPARE_PAGES as usize
            && self.nodes.leaves.usage().free >= SPARE_LEAVES as usize
    }

    /// Gives all addresses of `prefix` that no longer prefix owns to `owner`.
    fn set(&mut self, prefix: Prefix, owner: Slot) -> Result<(), Full> {
        let at = (prefix.addr() >> 112) as usize;
        if prefix.len() > 16 {
            let old = self.nodes.first(at);
            let new = self.within(old, 16, prefix, owner)?;
            self.nodes.set_first(at, new);
            return Ok(());
        }
        for at in at..at + (1 << (16 - prefix.len())) {
            let new = self.cover_slot(self.nodes.first(at), prefix.len(), owner);
            self.nodes.set_first(at, new);
        }
        Ok(())
    }

    /// Replacement for a slot that the first `depth` bits of the longer `prefix` lead to.
    fn within(&mut self, slot: Slot, depth: u8, prefix: Prefix, owner: Slot) -> Result<Slot, Full> {
        match Node::of(slot.word) {
            None => {
                let ranges = vec![Range { start: 0, slot }];
                self.within_leaf(None, depth, ranges, prefix, owner)
            }
            Some(Node::Leaf { byte, index }) => {
                let ranges = self.nodes.ranges(index);
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
            let old = self.nodes.page(first + byte);
            let new = self.within(old, depth + 8, prefix, owner)?;
            self.nodes.set_page(first + byte, new);
        } else {
            for at in byte..byte + (1 << (depth + 8 - prefix.len())) {
                let new = self.cover_slot(self.nodes.page(first + at), prefix.len(), owner);
                self.nodes.set_page(first + at, new);
            }
        }
        Ok(self.shrink(slot, page, depth))
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
            // A prefix that ends with the window is one number: there is no shift by 32.
            let host = u32::MAX.checked_shr(u32::from(prefix.len() - depth));
            for at in split(&mut ranges, start, start | host.unwrap_or(0)) {
                ranges[at].slot = self.cover_slot(ranges[at].slot, prefix.len(), owner);
            }
        }
        self.write(leaf, depth, ranges)
    }

    /// A slot inside of a prefix of length `len` that gets a new owner.
    fn cover_slot(&mut self, slot: Slot, len: u8, owner: Slot) -> Slot {
        if slot.len > len {
            return slot;
        }
        let least = match Node::of(slot.word) {
            None => return owner,
            Some(Node::Page { index, .. }) => {
                let first = index as usize * PAGE_WORDS;
                for at in first..first + PAGE_WORDS {
                    let new = self.cover_slot(self.nodes.page(at), len, owner);
                    self.nodes.set_page(at, new);
                }
                self.nodes.least(index)
            }
            Some(Node::Leaf { index, .. }) => {
                let mut ranges = self.nodes.ranges(index);
                for range in &mut ranges {
                    range.slot = self.cover_slot(range.slot, len, owner);
                }
                self.nodes.store(index, &ranges);
                least(&ranges)
            }
        };
        Slot { len: least, ..slot }
    }

    /// Writes a leaf of these ranges in place of `old`, and gives the slot that names it.
    fn write(&mut self, old: Option<u32>, depth: u8, ranges: Vec<Range>) -> Result<Slot, Full> {
        // Ranges are only ever split: if there are as many as before, they begin where they did.
        let same = old.filter(|&old| self.nodes.used(old) == ranges.len());
        if let Some(old) = same {
            self.nodes.store(old, &ranges);
        }
        let (compact, taken_in) = self.compact(depth, &ranges);
        if let Some(old) = same
            && taken_in.is_empty()
            && compact.len() == ranges.len()
        {
            return Ok(leaf_at(depth, old, &ranges));
        }
        let new = match (self.write_new(depth, &compact), same) {
            (Ok(new), _) => new,
            // Larger than it need be, but right.
            (Err(Full), Some(old)) => return Ok(leaf_at(depth, old, &ranges)),
            (Err(full), None) => return Err(full),
        };
        for leaf in taken_in.into_iter().chain(old) {
            self.nodes.leaves.retire(leaf);
        }
        Ok(new)
    }

    /// Ranges with as few borders as will do, and the leaves below that are taken into them: those
    /// that begin within this leaf's reach and leave it room.
    fn compact(&self, depth: u8, ranges: &[Range]) -> (Vec<Range>, Vec<u32>) {
        let mut compact = merge(depth, ranges);
        let mut taken_in = Vec::new();
        while let Some((at, leaf, inside)) = self.small_leaf(depth, &compact) {
            taken_in.push(leaf);
            compact.splice(at..=at, inside);
            compact = merge(depth, &compact);
        }
        (compact, taken_in)
    }

    /// A leaf below that would fit into the one of these ranges: which range names it, its number,
    /// and its own ranges.
    fn small_leaf(&self, depth: u8, ranges: &[Range]) -> Option<(usize, u32, Vec<Range>)> {
        let most = (FEW + 1).checked_sub(ranges.len())?;
        ranges.iter().enumerate().find_map(|(at, range)| {
            let Some(Node::Leaf { byte, index }) = Node::of(range.slot.word) else {
                return None;
            };
            let bits = byte * 8 - depth;
            if bits >= WINDOW || self.nodes.used(index) > most {
                return None;
            }
            let inside = self.nodes.ranges(index).into_iter().map(|inner| {
                let fits = inner.start << (WINDOW - bits) == 0;
                fits.then_some(Range {
                    start: range.start | inner.start >> bits,
                    slot: inner.slot,
                })
            });
            Some((at, index, inside.collect::<Option<Vec<_>>>()?))
        })
    }

    /// Writes new nodes for these ranges.
    fn write_new(&mut self, depth: u8, ranges: &[Range]) -> Result<Slot, Full> {
        match ranges {
            [only] => Ok(only.slot),
            _ if ranges.len() <= RANGES => {
                let index = self.nodes.leaves.alloc()?;
                self.nodes.fill(index, ranges);
                Ok(leaf_at(depth, index, ranges))
            }
            _ => match crowded(ranges, RANGES - 2) {
                Some(block) => {
                    let below = self.write_new(depth + block.bits, &block.inside(ranges))?;
                    let mut ranges = ranges.to_vec();
                    let at = split(&mut ranges, block.first, block.last());
                    ranges[at.start].slot = below;
                    ranges.drain(at.start + 1..at.end);
                    self.write_new(depth, &ranges)
                }
                None => self.write_page(depth, ranges),
            },
        }
    }

    /// Writes a page of what are too many ranges for a leaf.
    fn write_page(&mut self, depth: u8, ranges: &[Range]) -> Result<Slot, Full> {
        let index = self.nodes.pages.alloc()?;
        for byte in 0..=u8::MAX {
            let below = Block::of_byte(byte).inside(ranges);
            let slot = self.write_new(depth + 8, &below)?;
            let at = index as usize * PAGE_WORDS + usize::from(byte);
            self.nodes.set_page(at, slot);
        }
        let word = Node::Page {
            byte: depth / 8,
            index,
        }
        .word();
        let len = self.nodes.least(index);
        Ok(Slot { word, len })
    }

    /// Puts a leaf, or what the page's slots all are, in place of a page that needs no more.
    fn shrink(&mut self, slot: Slot, page: u32, depth: u8) -> Slot {
        let first = page as usize * PAGE_WORDS;
        let slot = Slot {
            len: self.nodes.least(page),
            ..slot
        };
        let borders = (1..PAGE_WORDS)
            .filter(|&at| self.nodes.page(first + at) != self.nodes.page(first + at - 1));
        // So many borders make more ranges than those of a leaf.
        if borders.take(FEW).count() == FEW {
            return slot;
        }
        let ranges: Vec<Range> = (0..=u8::MAX)
            .map(|byte| Range {
                start: Block::of_byte(byte).first,
                slot: self.nodes.page(first + usize::from(byte)),
            })
            .collect();
        let (compact, taken_in) = self.compact(depth, &ranges);
        if compact.len() > FEW {
            return slot;
        }
        let Ok(new) = self.write_new(depth, &compact) else {
            return slot;
        };
        self.nodes.pages.retire(page);
        for leaf in taken_in {
            self.nodes.leaves.retire(leaf);
        }
        new
    }
}

/// The slot that names a leaf of these ranges behind the first `depth` bits.
fn leaf_at(depth: u8, index: u32, ranges: &[Range]) -> Slot {
    let byte = depth / 8;
    Slot {
        word: Node::Leaf { byte, index }.word(),
        len: least(ranges),
    }
}

/// The least length of these ranges' slots.
fn least(ranges: &[Range]) -> u8 {
    ranges.iter().map(|range| range.slot.len).min().unwrap_or(0)
}

impl fmt::Debug for Fib {
    /// Without the tables, which may have a million entries.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fib({} routes, {:?})", self.routes.len(), self.usage())
    }
}

#[cfg(test)]
impl Fib {
    /// No node and no entry is left anywhere.
    pub(super) fn first_level_is_empty(&self) -> bool {
        self.nodes.first_level_is_empty()
    }

    /// Fails unless the least length in and below each node stands beside its name.
    pub(super) fn assert_least(&self) {
        let first = 0..super::FIRST_WORDS;
        first.for_each(|at| self.assert_least_in(self.nodes.first(at)));
    }

    fn assert_least_in(&self, slot: Slot) {
        let inside: Vec<Slot> = match Node::of(slot.word) {
            None => return,
            Some(Node::Page { index, .. }) => {
                let first = index as usize * PAGE_WORDS;
                (first..first + PAGE_WORDS)
                    .map(|at| self.nodes.page(at))
                    .collect()
            }
            Some(Node::Leaf { index, .. }) => {
                let ranges = self.nodes.ranges(index).into_iter();
                ranges.map(|range| range.slot).collect()
            }
        };
        let least = inside.iter().map(|slot| slot.len).min();
        assert_eq!(Some(slot.len), least, "{slot:?}");
        inside
            .into_iter()
            .for_each(|slot| self.assert_least_in(slot));
    }
}
