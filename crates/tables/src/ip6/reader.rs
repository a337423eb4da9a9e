//! The workers' side of the table.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::word::{Node, PAGE_WORDS, RANGES, WORDS};
use crate::entry::{EXT, Entry};
use crate::mem::{Cells, LINE, Line};

/// Looks destinations up while the writer changes routes.
#[derive(Debug, Clone)]
pub struct Reader {
    pub(super) first: Cells,
    pub(super) pages: Cells,
    pub(super) leaves: Cells,
}

/// How far a look-up has come: a word of the table.
#[derive(Debug, Clone, Copy)]
pub struct Cursor(u32);

impl Cursor {
    /// The entry, once it is reached.
    #[inline(always)]
    pub fn entry(self) -> Option<Entry> {
        (self.0 & EXT == 0).then_some(Entry::from_bits(self.0))
    }
}

/// Four bytes more than the address, so that a leaf may read past its end.
pub type Padded = [u8; 20];

/// An address with room behind it.
#[inline(always)]
pub fn padded(dst: &[u8; 16]) -> Padded {
    let mut out = [0; 20];
    out[..16].copy_from_slice(dst);
    out
}

/// One of many destinations that are looked up together.
#[derive(Debug, Clone, Copy)]
pub struct Query {
    dst: Padded,
    at: Cursor,
}

impl Query {
    /// A destination that has not been looked up.
    #[inline(always)]
    pub fn new(dst: &[u8; 16]) -> Self {
        Query {
            dst: padded(dst),
            at: Cursor(0),
        }
    }

    /// What [`Reader::lookup_all`] has found.
    #[inline(always)]
    pub fn entry(&self) -> Entry {
        Entry::from_bits(self.at.0)
    }

    #[inline(always)]
    fn is_done(&self) -> bool {
        self.at.entry().is_some()
    }
}

impl Reader {
    /// The entry of the longest prefix that contains `dst`.
    #[inline(always)]
    pub fn lookup(&self, dst: &[u8; 16]) -> Entry {
        let dst = padded(dst);
        let mut at = self.begin(&dst);
        loop {
            match at.entry() {
                Some(entry) => return entry,
                None => at = self.step(at, &dst),
            }
        }
    }

    /// Looks many destinations up. Each load is asked for while those of the others are made.
    #[inline(always)]
    pub fn lookup_all(&self, queries: &mut [Query]) {
        for query in queries.iter_mut() {
            query.at = self.begin(&query.dst);
            self.prefetch_step(query.at, &query.dst);
        }
        let mut more = true;
        while more {
            more = false;
            for query in queries.iter_mut().filter(|query| !query.is_done()) {
                query.at = self.step(query.at, &query.dst);
                self.prefetch_step(query.at, &query.dst);
                more |= !query.is_done();
            }
        }
    }

    /// The first loads, up to the first line that is likely to be cold.
    #[inline(always)]
    pub fn begin(&self, dst: &Padded) -> Cursor {
        let at = Cursor(self.first.at(first_index(dst)).load(Acquire));
        match Node::of(at.0) {
            Some(Node::Page { byte: 2, index }) => {
                Cursor(self.pages.at(slot(index, dst[2])).load(Acquire))
            }
            _ => at,
        }
    }

    /// The next load.
    #[inline(always)]
    pub fn step(&self, at: Cursor, dst: &Padded) -> Cursor {
        match Node::of(at.0) {
            None => at,
            Some(Node::Page { byte, index }) => {
                let byte = dst[usize::from(byte & 15)];
                Cursor(self.pages.at(slot(index, byte)).load(Acquire))
            }
            Some(Node::Leaf { byte, index }) => {
                let at = usize::from(byte & 15);
                let bits = u32::from_be_bytes([dst[at], dst[at + 1], dst[at + 2], dst[at + 3]]);
                Cursor(find(self.leaves.line(index as usize), bits))
            }
        }
    }

    /// Asks for the line that the first load reads.
    #[inline(always)]
    pub fn prefetch(&self, dst: &[u8; 16]) {
        self.first
            .prefetch(usize::from(u16::from_be_bytes([dst[0], dst[1]])));
    }

    /// Asks for the line that the next load reads.
    #[inline(always)]
    pub fn prefetch_step(&self, at: Cursor, dst: &Padded) {
        match Node::of(at.0) {
            None => {}
            Some(Node::Page { byte, index }) => {
                self.pages
                    .prefetch(slot(index, dst[usize::from(byte & 15)]));
            }
            Some(Node::Leaf { index, .. }) => self.leaves.prefetch(index as usize * LINE),
        }
    }
}

#[inline(always)]
pub(super) fn first_index(dst: &Padded) -> usize {
    usize::from(u16::from_be_bytes([dst[0], dst[1]]))
}

#[inline(always)]
pub(super) fn slot(index: u32, byte: u8) -> usize {
    index as usize * PAGE_WORDS + usize::from(byte)
}

/// The word of the range that `bits` lie in.
#[inline(always)]
pub(super) fn find(line: &Line, bits: u32) -> u32 {
    let mut range = 0;
    for start in &line[..RANGES - 1] {
        range += usize::from(start.load(Relaxed) <= bits);
    }
    line[WORDS + (range & (RANGES - 1))].load(Acquire)
}
