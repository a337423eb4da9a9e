//! The workers' side of the table.

use std::sync::atomic::Ordering::Acquire;

use super::leaf::find;
use super::word::{Node, PAGE_WORDS};
use crate::entry::{EXT, Entry};
use crate::mem::{Cells, LINE};

/// Looks destinations up while the writer changes routes.
#[derive(Debug, Clone)]
pub struct Reader {
    pub(super) first: Cells,
    pub(super) pages: Cells,
    pub(super) leaves: Cells,
}

/// A destination as the table reads it.
pub trait Destination {
    /// 32 bits of the address from its byte `at` on, 0 to 15. It does not matter what stands for
    /// those behind its end.
    fn bits(&self, at: usize) -> u32;
}

impl Destination for u128 {
    #[inline(always)]
    fn bits(&self, at: usize) -> u32 {
        (self << ((at & 15) * 8) >> 96) as u32
    }
}

/// Progress of a look-up: a word of the table.
#[derive(Debug, Clone, Copy)]
pub struct Cursor(u32);

impl Cursor {
    /// The entry, once it is reached.
    #[inline(always)]
    pub fn entry(self) -> Option<Entry> {
        (self.0 & EXT == 0).then_some(Entry::from_bits(self.0))
    }

    /// Its 32 bits: an entry's own, once that is reached.
    #[inline(always)]
    pub const fn word(self) -> u32 {
        self.0
    }

    /// The cursor of a [`word`](Self::word). Any word is safe: another table's leads astray, but
    /// not out of the table.
    #[inline(always)]
    pub const fn from_word(word: u32) -> Self {
        Self(word)
    }
}

impl Reader {
    /// The entry of the longest prefix that contains `dst`.
    #[inline(always)]
    pub fn lookup(&self, dst: &impl Destination) -> Entry {
        let mut at = self.begin(dst);
        loop {
            match at.entry() {
                Some(entry) => return entry,
                None => at = self.step(at, dst),
            }
        }
    }

    /// The first loads, up to the first line that is likely to be cold.
    ///
    /// Of many destinations, begin all, then step each: so each load is asked for
    /// ([`prefetch`](Self::prefetch)) while those of the others are made.
    #[inline(always)]
    pub fn begin(&self, dst: &impl Destination) -> Cursor {
        let bits = dst.bits(0);
        // Acquire, here and for each node: the node that the word names is seen filled.
        let at = Cursor(self.first.at((bits >> 16) as usize).load(Acquire));
        match Node::of(at.0) {
            Some(Node::Page { byte: 2, index }) => {
                Cursor(self.pages.at(slot(index, bits << 16)).load(Acquire))
            }
            _ => at,
        }
    }

    /// The next load.
    #[inline(always)]
    pub fn step(&self, at: Cursor, dst: &impl Destination) -> Cursor {
        match Node::of(at.0) {
            None => at,
            Some(Node::Page { byte, index }) => {
                let bits = dst.bits(byte.into());
                Cursor(self.pages.at(slot(index, bits)).load(Acquire))
            }
            Some(Node::Leaf { byte, index }) => {
                let bits = dst.bits(byte.into());
                Cursor(find(self.leaves.line(index as usize), bits))
            }
        }
    }

    /// Asks for the line that the next load reads.
    #[inline(always)]
    pub fn prefetch(&self, at: Cursor, dst: &impl Destination) {
        match Node::of(at.0) {
            None => {}
            Some(Node::Page { byte, index }) => {
                self.pages.prefetch(slot(index, dst.bits(byte.into())));
            }
            Some(Node::Leaf { index, .. }) => self.leaves.prefetch(index as usize * LINE),
        }
    }
}

/// The place of a page's word: the page is that of the byte that `bits` begins with.
#[inline(always)]
pub(super) fn slot(index: u32, bits: u32) -> usize {
    index as usize * PAGE_WORDS + (bits >> 24) as usize
}
