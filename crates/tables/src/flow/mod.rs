//! Flows: what a worker knows of the connections whose packets it has seen.
//!
//! A [`Flows`] table belongs to one worker, which reads and writes it. It has a fixed size and three
//! parts, each found by the number of a flow, and an index that leads from keys to numbers:
//!
//! | | |
//! | --- | --- |
//! | index | buckets of a line, 16 slots each: 7 bits of the key's hash, whether it is the second key, 24 bits of the number. A key that finds its bucket full goes into another one, which the tag leads to; if that is full too, a slot there moves to its own other one (Fan, Andersen, Kaminsky, Mitzenmacher, "Cuckoo Filter", CoNEXT 2014) |
//! | [`Entry`] | a line: the key and what each packet needs |
//! | [`Annex`] | a line of the user's own, beside it |
//! | second keys | a line for each flow, of which few have one: those of translated packets. It has words for these, too |
//!
//! It is made for nodes that pass over their packets three times, so that all of them wait for
//! memory together: [`Hasher::hash`] and [`Flows::prefetch`]; [`Flows::candidates`]; [`Flows::get`].
//!
//! A flow that has not been answered is *embryonic*. These stand in a queue of a fixed length, and
//! where that is full, a new one takes the place of the oldest: whoever opens connections and never
//! answers displaces his like. A flow that is established goes only by [`Flows::remove`] or, when it
//! has been idle, by [`Flows::sweep`]; a table that is full refuses new ones.

mod bucket;
mod hash;
mod memory;
mod queue;
mod table;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::mem::Zeroed;
pub use hash::Hasher;
pub use memory::{Memory, Sizes};
pub use queue::Reference;
pub use table::{Candidate, Counts, Flows, Found};

/// What flows are told apart by: words whose meaning is the user's. Packets of both directions have
/// the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(C)]
pub struct Key(pub [u64; 5]);

impl Key {
    /// Compares all words, whatever the first ones say: a branch for each costs more.
    #[inline(always)]
    fn is(&self, other: &Key) -> bool {
        let pairs = std::iter::zip(self.0, other.0);
        pairs.fold(0, |bits, (a, b)| bits | a ^ b) == 0
    }
}

/// What each packet of a flow needs: a line. But for the key, its words are the user's.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct Entry {
    key: Key,
    /// When the last packet passed, in seconds of a clock that may wrap.
    pub seen: u32,
    /// State of the connection.
    pub state: u8,
    /// Bits of the user's.
    pub flags: u8,
    /// Generation of the policies that have let it pass.
    pub generation: u16,
    /// The interfaces that it uses: where the original direction comes in and leaves, where the
    /// reply does. 0: not known yet.
    pub interfaces: [u32; 2],
    /// What is next for its packets, such as an adjacency. Of a free entry: the next free one.
    pub next: u32,
    /// [`LIVE`], [`EMBRYONIC`], [`SECOND`], and above them how often the number has been used.
    marks: u32,
}

const _: () = assert!(size_of::<Entry>() == 64);

/// The entry is in use.
const LIVE: u32 = 1;
/// It has not been answered.
const EMBRYONIC: u32 = 1 << 1;
/// It has a second key.
const SECOND: u32 = 1 << 2;
/// One use of a number.
const USE: u32 = 1 << 3;

impl Entry {
    /// The key that it was inserted with.
    pub const fn key(&self) -> &Key {
        &self.key
    }

    /// No reply has been seen: [`Flows::establish`] has not been called.
    #[inline(always)]
    pub const fn is_embryonic(&self) -> bool {
        self.marks & EMBRYONIC != 0
    }

    /// It has a second key.
    #[inline(always)]
    pub const fn has_second(&self) -> bool {
        self.marks & SECOND != 0
    }

    const fn is_live(&self) -> bool {
        self.marks & LIVE != 0
    }

    /// How often the number had been used before.
    const fn uses(&self) -> u32 {
        self.marks / USE
    }
}

/// What belongs to a flow beside its entry: a line of the user's, zero at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C, align(64))]
pub struct Annex(pub [u64; 8]);

/// A flow. Its lines lie side by side: they are needed together, and so are in one page, and in one
/// row of memory.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(128))]
struct Flow {
    entry: Entry,
    annex: Annex,
}

const _: () = assert!(size_of::<Flow>() == 128);

/// What few flows have, in a line of its own: a second key, and words of the user's.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Second {
    key: Key,
    words: [u64; 2],
}

// SAFETY: numbers, and padding.
#[allow(unsafe_code)]
unsafe impl Zeroed for Flow {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Zeroed for Second {}

/// Why a flow or a second key was not taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// There are as many flows, or keys, as the table has room for.
    Full,
    /// Both buckets that the key may be in are full, and no slot in them can be moved, though the
    /// table is not full. It does not happen to keys that are not chosen by who knows the secret.
    Crowded,
    /// Another flow has this key, or the flow has a second one.
    Taken,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::Full => "the flow table is full",
            Refused::Crowded => "too many flows have nearly the same hash",
            Refused::Taken => "another flow has this key",
        })
    }
}

impl std::error::Error for Refused {}
