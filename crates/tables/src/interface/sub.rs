//! Sub-interfaces by parent and tags: a hash table of lines of 16 words.
//!
//! A word is 16 bits of the hash and the number of a sub-interface, whose own line says whether it
//! is the one that was asked for. So a word is stored and read at once, and what is found is right
//! whatever is changed meanwhile.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::Tags;
use crate::mem::{Cells, LINE};

/// Parent and tags of a sub-interface.
pub(super) type Place = (u16, Tags);

/// Interfaces for each line: with a quarter of its words in use a line hardly ever overflows into
/// the next.
const FOR_EACH_LINE: usize = 4;
/// A word of a line that never overflowed, or no longer matters: here a search ends.
const FREE: u32 = 0;
/// A word that is free in a line that was full: a search goes on to the next line.
const REMOVED: u32 = 0xffff << 16;

/// The hash table.
#[derive(Debug, Clone)]
pub(super) struct Subs {
    cells: Cells,
}

impl Subs {
    /// Room for so many interfaces, a power of two.
    pub(super) fn new(interfaces: usize) -> Self {
        let lines = (interfaces / FOR_EACH_LINE).max(1);
        Self {
            cells: Cells::boxed(lines * LINE),
        }
    }

    /// The sub-interfaces that may be the one at this place.
    #[inline(always)]
    pub(super) fn candidates(&self, place: Place) -> impl Iterator<Item = u16> {
        let (home, hash) = hash(place);
        let words = self.lines(home).flat_map(|line| {
            let words = line.iter();
            // Acquire: the sub-interface's own line, which is compared next, was written before the
            // word.
            words.map(|word| word.load(Acquire))
        });
        let ours = move |word: &u32| word >> 16 == hash && *word as u16 != 0;
        words
            .take_while(|word| *word != FREE)
            .filter(ours)
            .map(|word| word as u16)
    }

    /// Adds a sub-interface.
    pub(super) fn insert(&mut self, place: Place, sub: u16) {
        let (home, hash) = hash(place);
        let mut words = self.lines(home).flatten();
        let free = words.find(|word| matches!(word.load(Relaxed), FREE | REMOVED));
        // There are four words for each interface.
        if let Some(word) = free {
            word.store(hash << 16 | u32::from(sub), Release);
        }
    }

    /// Takes a sub-interface out.
    pub(super) fn remove(&mut self, place: Place, sub: u16) {
        let (home, hash) = hash(place);
        let wanted = hash << 16 | u32::from(sub);
        for line in self.lines(home) {
            let Some(at) = line.iter().position(|word| word.load(Relaxed) == wanted) else {
                continue;
            };
            let last = line.iter().skip(at + 1).all(|w| w.load(Relaxed) == FREE);
            // Behind the last word of a line that is not full nobody looks.
            let is_end = last && at + 1 < LINE;
            line[at].store(if is_end { FREE } else { REMOVED }, Release);
            return;
        }
    }

    /// All lines, from `home` on.
    #[inline(always)]
    fn lines(&self, home: u32) -> impl Iterator<Item = &crate::mem::Line> {
        let lines = self.cells.len() / LINE;
        (0..lines).map(move |n| self.cells.line(home as usize + n))
    }
}

/// The line of a place, modulo their number, and the 16 bits that its words begin with.
#[inline(always)]
fn hash((parent, tags): Place) -> (u32, u32) {
    let bits = u64::from(tags.outer_bits()) << 16 | u64::from(tags.inner);
    let bits = bits << 2 | u64::from(tags.count) & 3;
    let key = bits << 16 | u64::from(parent);
    // The multipliers of `hash`, for the same reasons.
    let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    ((mixed >> 32) as u32, (mixed >> 16) as u32 & 0xffff)
}
