//! Places outside that stand for an end of a flow, as a word: of a packet's note, and of a flow.
//!
//! Whoever has sent a packet of a flow is seen as `outside[direction]`, whoever receives it as that
//! of the other direction: both directions follow the same rule. A destination is put in its place as
//! the packet comes in, which its note then has; a source when it leaves.

use tables::flow::Key;
use wire::nat::Place;

use crate::flow::Direction;
use crate::flow::key::between4;

/// A word that stands for no place: the end is seen as it is.
pub(crate) const NONE: u64 = 0;

/// There is one.
const THERE: u64 = 1 << 48;

/// The word of a place.
#[inline(always)]
pub(crate) const fn word(of: Place) -> u64 {
    THERE | (of.address as u64) << 16 | of.port as u64
}

/// The place that a word stands for.
#[inline(always)]
pub(crate) const fn place(word: u64) -> Option<Place> {
    if word & THERE == 0 {
        return None;
    }
    Some(Place {
        address: (word >> 16) as u32,
        port: word as u16,
    })
}

/// Source and destination of a packet with this key; `swapped`: its source is the second end.
#[inline(always)]
pub(crate) fn ends(key: &Key, swapped: bool) -> [Place; 2] {
    let [first, second] = between4(key).map(|(address, port)| Place { address, port });
    if swapped {
        [second, first]
    } else {
        [first, second]
    }
}

/// The words of a packet that goes in a direction: of its source, of its destination.
#[inline(always)]
pub(crate) const fn of_packet(outside: [u64; 2], direction: Direction) -> [u64; 2] {
    let [original, reply] = outside;
    match direction {
        Direction::Original => [original, reply],
        Direction::Reply => [reply, original],
    }
}
