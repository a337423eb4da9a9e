//! The workers' side of the table.

use std::sync::atomic::Ordering::Acquire;

use crate::entry::{EXT, Entry};
use crate::mem::Cells;

/// Looks destinations up while the writer changes routes.
#[derive(Debug, Clone)]
pub struct Reader {
    first: Cells,
    second: Cells,
}

impl Reader {
    pub(super) fn new(first: Cells, second: Cells) -> Self {
        Self { first, second }
    }

    /// The entry of the longest prefix that contains `dst` (host byte order). One load, two where
    /// prefixes longer than /24 exist.
    #[inline(always)]
    pub fn lookup(&self, dst: u32) -> Entry {
        self.lookup_interrupted(dst, || {})
    }

    /// A look-up in which something happens between its two loads.
    #[inline(always)]
    pub(super) fn lookup_interrupted(&self, dst: u32, between: impl FnOnce()) -> Entry {
        // Acquire pairs with the writer's Release: the group that the word names is seen filled.
        let bits = self.first.at(first_index(dst)).load(Acquire);
        if bits & EXT == 0 {
            return Entry::from_bits(bits);
        }
        between();
        Entry::from_bits(self.second.at(second_index(bits, dst)).load(Acquire))
    }

    /// Prefetches the first-level line of `dst`: call it some packets ahead of
    /// [`lookup`](Self::lookup).
    #[inline(always)]
    pub fn prefetch(&self, dst: u32) {
        self.first.prefetch(first_index(dst));
    }
}

#[inline(always)]
fn first_index(dst: u32) -> usize {
    (dst >> 8) as usize
}

#[inline(always)]
fn second_index(bits: u32, dst: u32) -> usize {
    ((bits & !EXT) as usize) << 8 | (dst & 0xff) as usize
}
