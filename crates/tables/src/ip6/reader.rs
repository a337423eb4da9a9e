//! The workers' side of the table.

use std::sync::atomic::Ordering::Acquire;
#[cfg(not(target_arch = "x86_64"))]
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

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

/// How far a look-up has come: a word of the table.
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

/// The word of the range that `bits` lie in.
#[inline(always)]
pub(super) fn find(line: &Line, bits: u32) -> u32 {
    line[WORDS + (range(line, bits) & (RANGES - 1))].load(Acquire)
}

/// The range that `bits` lie in: as many of the others begin at `bits` or before.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn range(line: &Line, bits: u32) -> usize {
    let begins = |start: &AtomicU32| usize::from(start.load(Relaxed) <= bits);
    line[..RANGES - 1].iter().map(begins).sum()
}

/// The range that `bits` lie in: the one before the first that begins behind them.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[allow(unsafe_code)]
fn range(line: &Line, bits: u32) -> usize {
    use std::arch::x86_64::*;
    const { assert!(RANGES == 8 && WORDS >= RANGES) };
    let starts = line.as_ptr().cast::<__m128i>();
    // SAFETY: a line has 64 bytes. Where the ranges of a leaf begin is written before anything names
    // the leaf, and not again while readers may hold its name; the eighth word is never written.
    let low = unsafe { _mm_loadu_si128(starts) };
    // SAFETY: as for the first four words.
    let high = unsafe { _mm_loadu_si128(starts.add(1)) };
    // SAFETY: every x86-64 has SSE2.
    let behind = unsafe { behind(low, high, bits) };
    // The eighth is none: it stands for the end.
    (behind | 1 << (RANGES - 1)).trailing_zeros() as usize
}

/// Which of eight numbers are above `bits`, the first lowest.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn behind(low: std::arch::x86_64::__m128i, high: std::arch::x86_64::__m128i, bits: u32) -> u32 {
    use std::arch::x86_64::*;
    // There are only comparisons of signed numbers.
    let sign = _mm_set1_epi32(i32::MIN);
    let bits = _mm_xor_si128(_mm_set1_epi32(bits as i32), sign);
    let low = _mm_cmpgt_epi32(_mm_xor_si128(low, sign), bits);
    let high = _mm_cmpgt_epi32(_mm_xor_si128(high, sign), bits);
    let words = _mm_packs_epi32(low, high);
    _mm_movemask_epi8(_mm_packs_epi16(words, _mm_setzero_si128())) as u32
}
