//! The queue of embryonic flows: a ring.

use crate::mem::Array;

/// A flow for those who keep it: when the flow has gone, it names no other, though one may have its
/// number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    pub(super) number: u32,
    pub(super) uses: u32,
}

impl Reference {
    const fn word(self) -> u64 {
        (self.uses as u64) << 32 | self.number as u64
    }

    const fn from_word(word: u64) -> Self {
        Reference {
            number: word as u32,
            uses: (word >> 32) as u32,
        }
    }
}

/// References in the order in which they came, as many as there are places.
#[derive(Debug)]
pub(super) struct Queue {
    places: Array<u64>,
    /// The oldest place that is filled, and how many are.
    oldest: usize,
    filled: usize,
}

impl Queue {
    /// One with no place at all is of no use.
    pub fn new(places: Array<u64>) -> Self {
        Queue {
            places,
            oldest: 0,
            filled: 0,
        }
    }

    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.filled == self.places.len()
    }

    /// The place that is so many behind the oldest, at most their number.
    #[inline(always)]
    fn place(&self, behind: usize) -> usize {
        let (place, length) = (self.oldest + behind, self.places.len());
        if place >= length {
            place - length
        } else {
            place
        }
    }

    /// Puts a reference into a queue that is not full.
    #[inline(always)]
    pub fn push(&mut self, kept: Reference) {
        let place = self.place(self.filled);
        self.places[place] = kept.word();
        self.filled += 1;
    }

    /// Takes the oldest one out of a queue that is full.
    #[inline(always)]
    pub fn pop(&mut self) -> Reference {
        let kept = Reference::from_word(self.places[self.oldest]);
        self.oldest = self.place(1);
        self.filled -= 1;
        kept
    }

    /// The one in a full queue that is so many behind the oldest, or the last one.
    #[inline(always)]
    pub fn ahead(&self, behind: u32) -> Reference {
        let place = self.place((behind as usize).min(self.places.len() - 1));
        Reference::from_word(self.places[place])
    }
}
