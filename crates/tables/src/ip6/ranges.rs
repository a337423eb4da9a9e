//! The ranges of a leaf, as the writer works on them.

use super::Prefix;

/// Bits of the address that a leaf looks at.
pub(super) const WINDOW: u8 = 32;

/// What stands at one place of the table: a word, and if it is an entry the length of the prefix
/// that it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub word: u32,
    pub len: u8,
}

/// Part of what a leaf looks at, from `start` to where the next one begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub start: u32,
    pub slot: Slot,
}

/// The 32 bits of a prefix's first address behind the first `depth` ones; zeros behind its end.
pub(super) fn window(prefix: Prefix, depth: u8) -> u32 {
    ((prefix.addr() << depth) >> 96) as u32
}

/// Lets ranges begin at `first` and behind `last`, and gives those in between.
pub(super) fn split(ranges: &mut Vec<Range>, first: u32, last: u32) -> std::ops::Range<usize> {
    let mut cut = |start: u32| match ranges.binary_search_by_key(&start, |range| range.start) {
        Ok(at) => at,
        Err(at) => {
            let slot = ranges[at - 1].slot;
            ranges.insert(at, Range { start, slot });
            at
        }
    };
    let start = cut(first);
    let end = last.checked_add(1).map(&mut cut);
    start..end.unwrap_or(ranges.len())
}

/// The ranges without the borders inside of a prefix that owns both sides.
pub(super) fn merge(depth: u8, ranges: &[Range]) -> Vec<Range> {
    let mut merged: Vec<Range> = Vec::with_capacity(ranges.len());
    for range in ranges {
        let one = merged.last().is_some_and(|last| {
            let ours = range.slot.len.saturating_sub(depth).min(WINDOW);
            let differ = last.start ^ range.start;
            let apart = differ.checked_shr(u32::from(WINDOW - ours)).unwrap_or(0);
            last.slot == range.slot && apart == 0
        });
        if !one {
            merged.push(*range);
        }
    }
    merged
}

/// The ranges that begin with a byte, `start`'s highest, as a node behind that byte sees them.
pub(super) fn part(ranges: &[Range], start: u32) -> Vec<Range> {
    let from = ranges.partition_point(|range| range.start <= start) - 1;
    let inside = ranges[from..]
        .iter()
        .take_while(|range| range.start <= start | 0xff_ffff);
    inside
        .map(|range| Range {
            start: range.start.max(start) << 8,
            slot: range.slot,
        })
        .collect()
}
