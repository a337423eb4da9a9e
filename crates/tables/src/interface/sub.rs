//! Sub-interfaces by parent and tags: a hash table of lines of 16 words.
//!
//! A word is 16 bits of the hash and the number of a sub-interface, whose own line says whether it
//! is the one that was asked for. So a word is stored and read at once, and what is found is right
//! whatever is changed meanwhile.
//!
//! Beside it each parent has a word that says how many sub-interfaces it has, and how many of them
//! allow further tags: who has none of either is spared the search.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::tags::vlan_of;
use super::{INNER_TAG, OUTER_TAG, PARENT, TAGS, TAGS_FURTHER, Tags};
use crate::field::Field;
use crate::hash::mixed;
use crate::mem::{Cells, LINE};

/// Parent and tags of a sub-interface, as the two words of its line that hold them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The word of the parent.
    pub(super) outer: u32,
    /// The word of the inner tag.
    pub(super) inner: u32,
}

impl Place {
    #[inline(always)]
    pub(super) const fn new(parent: u16, tags: Tags) -> Self {
        let inner = INNER_TAG.put(tags.inner as u32);
        let further = TAGS_FURTHER.put(tags.further as u32);
        Self {
            outer: PARENT.put(parent as u32) | OUTER_TAG.put(tags.outer_bits()),
            inner: inner | TAGS.put(tags.count as u32) | further,
        }
    }

    /// The parent; 0 if it is no place of a sub-interface.
    #[inline(always)]
    pub(super) const fn parent(self) -> u16 {
        PARENT.of(self.outer) as u16
    }

    /// The outer VLAN identifier, of whichever kind the tag is.
    pub(super) const fn outer_vlan(self) -> u16 {
        vlan_of(OUTER_TAG.of(self.outer))
    }
}

/// Interfaces for each line: with a quarter of its words in use a line hardly ever overflows into
/// the next.
const FOR_EACH_LINE: usize = 4;
/// A word of a line that never overflowed, or no longer matters: here a search ends.
const FREE: u32 = 0;
/// A word that is free in a line that was full: a search goes on to the next line.
const REMOVED: u32 = 0xffff << 16;
/// Sub-interfaces of a parent.
const ALL: Field = Field::low("ALL", 0);
/// Those of them that allow further tags.
const FURTHER: Field = Field::high("FURTHER", 0);

/// The sub-interfaces that somebody found last, by their VLAN identifiers. Each is looked at before it
/// is believed: it may be another one's now, or nobody's.
#[derive(Debug)]
pub struct Remembered([u16; 256]);

impl Default for Remembered {
    fn default() -> Self {
        Remembered([0; _])
    }
}

impl Remembered {
    /// The one found last for tags like these.
    #[inline(always)]
    pub(super) fn like(&self, tags: Tags) -> u16 {
        self.0[at(tags)]
    }

    /// The same, to change.
    #[inline(always)]
    pub(super) fn like_mut(&mut self, tags: Tags) -> &mut u16 {
        &mut self.0[at(tags)]
    }
}

/// Where one for these tags is remembered.
#[inline(always)]
fn at(tags: Tags) -> usize {
    usize::from((tags.outer ^ tags.inner) as u8)
}

/// The hash table.
#[derive(Debug, Clone)]
pub(super) struct Subs {
    cells: Cells,
    /// By parent.
    counts: Cells,
}

impl Subs {
    /// Room for so many interfaces, a power of two.
    pub(super) fn new(interfaces: usize) -> Self {
        let lines = (interfaces / FOR_EACH_LINE).max(1);
        Self {
            cells: Cells::boxed(lines * LINE),
            counts: Cells::boxed(interfaces),
        }
    }

    /// True if an interface has any.
    #[inline(always)]
    pub(super) fn any(&self, parent: u16) -> bool {
        ALL.of(self.count(parent)) != 0
    }

    /// True if an interface has any that allow further tags.
    #[inline(always)]
    pub(super) fn any_further(&self, parent: u16) -> bool {
        FURTHER.of(self.count(parent)) != 0
    }

    #[inline(always)]
    fn count(&self, parent: u16) -> u32 {
        self.counts.at(parent.into()).load(Relaxed)
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
            let count = self.count(place.parent()).wrapping_add(share(place));
            self.counts.at(place.parent().into()).store(count, Release);
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
            let count = self.count(place.parent()).wrapping_sub(share(place));
            self.counts.at(place.parent().into()).store(count, Release);
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

/// Part of a sub-interface in its parent's count.
fn share(place: Place) -> u32 {
    ALL.put(1) | FURTHER.put(TAGS_FURTHER.of(place.inner))
}

/// The line of a place, modulo their number, and the 16 bits that its words begin with.
#[inline(always)]
fn hash(place: Place) -> (u32, u32) {
    let key = u64::from(place.inner) << 32 | u64::from(place.outer);
    let mixed = mixed(key);
    ((mixed >> 32) as u32, (mixed >> 16) as u32 & 0xffff)
}
