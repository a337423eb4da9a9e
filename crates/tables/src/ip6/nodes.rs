//! The first level and the nodes as the writer sees them: a word, and beside each entry the length of
//! the prefix that it comes from, beside a node's name the least of those in and below it.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Relaxed, Release};

use super::Reader;
use super::ranges::{Range, Slot};
use super::word::{FIRST_WORDS, MOST, PAGE_WORDS, RANGES, WORDS};
use crate::ids::Ids;
use crate::mem::{Cells, LINE};

/// Marks numbers as those of pages.
#[derive(Debug)]
pub struct Page;
/// Marks numbers as those of leaves.
#[derive(Debug)]
pub struct Leaf;

/// The memory of the table, and what the writer knows about it beside.
pub(super) struct Nodes {
    pub reader: Reader,
    pub pages: Ids<Page>,
    pub leaves: Ids<Leaf>,
    first_len: Box<[u8]>,
    page_len: Box<[u8]>,
    leaf_len: Box<[[u8; RANGES]]>,
    /// Ranges that each leaf uses; the others repeat the last one.
    leaf_used: Box<[u8]>,
}

impl Nodes {
    /// None yet, in zeroed memory.
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
            reader: Reader {
                first,
                pages,
                leaves,
            },
        }
    }

    /// A slot of the first level.
    pub fn first(&self, at: usize) -> Slot {
        Slot {
            // Relaxed: this is the one writer, and reads its own stores.
            word: self.reader.first.at(at).load(Relaxed),
            len: self.first_len[at],
        }
    }

    pub fn set_first(&mut self, at: usize, slot: Slot) {
        self.first_len[at] = slot.len;
        publish(self.reader.first.at(at), slot.word);
    }

    /// A slot of the pages: those of page n begin at n times [`PAGE_WORDS`].
    pub fn page(&self, at: usize) -> Slot {
        Slot {
            word: self.reader.pages.at(at).load(Relaxed),
            len: self.page_len[at],
        }
    }

    pub fn set_page(&mut self, at: usize, slot: Slot) {
        self.page_len[at] = slot.len;
        publish(self.reader.pages.at(at), slot.word);
    }

    /// The least length of a page's slots.
    pub fn least(&self, page: u32) -> u8 {
        let first = page as usize * PAGE_WORDS;
        let all = self.page_len[first..first + PAGE_WORDS].iter();
        all.copied().fold(u8::MAX, u8::min)
    }

    /// The ranges that a leaf uses.
    pub fn ranges(&self, leaf: u32) -> Vec<Range> {
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
        let mut ranges = Vec::with_capacity(RANGES + 2);
        ranges.extend((0..self.used(leaf)).map(range));
        ranges
    }

    /// Number of ranges that a leaf uses.
    pub fn used(&self, leaf: u32) -> usize {
        self.leaf_used[leaf as usize].into()
    }

    /// Writes where a new leaf's ranges begin, and the rest.
    pub fn fill(&mut self, leaf: u32, ranges: &[Range]) {
        let line = self.reader.leaves.line(leaf as usize);
        self.leaf_used[leaf as usize] = ranges.len() as u8;
        for at in 1..RANGES {
            let start = ranges.get(at).map_or(u32::MAX, |range| range.start);
            // Relaxed: no reader knows the leaf yet; the Release of the word that names it comes
            // later.
            line[at - 1].store(start, Relaxed);
        }
        self.store(leaf, ranges);
    }

    /// Writes the words of a leaf, a store each.
    pub fn store(&mut self, leaf: u32, ranges: &[Range]) {
        let line = self.reader.leaves.line(leaf as usize);
        for at in 0..RANGES {
            let slot = ranges[at.min(ranges.len() - 1)].slot;
            self.leaf_len[leaf as usize][at] = slot.len;
            publish(&line[WORDS + at], slot.word);
        }
    }
}

fn publish(at: &AtomicU32, word: u32) {
    // A store would take the line from the workers' caches, even one of the same word. Release: a
    // node is filled before a word names it.
    if at.load(Relaxed) != word {
        at.store(word, Release);
    }
}

#[cfg(test)]
impl Nodes {
    /// No node and no entry is left anywhere.
    pub fn first_level_is_empty(&self) -> bool {
        self.reader.first.iter().all(|word| word.load(Relaxed) == 0)
            && self.first_len.iter().all(|&len| len == 0)
    }
}
