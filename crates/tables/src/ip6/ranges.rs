//! The ranges of a leaf, as the writer works on them.

use super::Prefix;

/// Bits of the address that a leaf looks at.
pub(super) const WINDOW: u8 = 32;

/// Content of one place of the table: a word, and the length of the prefix that it comes from; of a
/// node the least of those in and below it, so that shorter prefixes pass it by.
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

/// A part of what a leaf looks at, in which all addresses share whole bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub first: u32,
    /// Bits that its addresses share: 8, 16 or 24.
    pub bits: u8,
}

impl Block {
    /// The block of the addresses that begin with `first`'s highest byte.
    pub fn of_byte(byte: u8) -> Self {
        Self {
            first: u32::from(byte) << 24,
            bits: 8,
        }
    }

    /// The block of a size that `start` lies in.
    fn around(start: u32, bits: u8) -> Self {
        let first = start & !(u32::MAX >> bits);
        Self { first, bits }
    }

    pub fn last(self) -> u32 {
        self.first | u32::MAX >> self.bits
    }

    /// The ranges inside of it, as a node behind its bits sees them.
    pub fn inside(self, ranges: &[Range]) -> Vec<Range> {
        let from = ranges.partition_point(|range| range.start <= self.first) - 1;
        let inside = ranges[from..].iter();
        inside
            .take_while(|range| range.start <= self.last())
            .map(|range| Range {
                start: range.start.max(self.first) << self.bits,
                slot: range.slot,
            })
            .collect()
    }

    /// Number of ranges once this block is one of them.
    fn ranges_with(self, ranges: &[Range]) -> usize {
        let inside = |range: &&Range| self.first < range.start && range.start <= self.last();
        let begins = |start| {
            ranges
                .binary_search_by_key(&start, |range| range.start)
                .is_ok()
        };
        let borders = usize::from(!begins(self.first))
            + usize::from(
                self.last()
                    .checked_add(1)
                    .is_some_and(|behind| !begins(behind)),
            );
        ranges.len() - ranges.iter().filter(inside).count() + borders
    }
}

/// The block to be put into a node of its own so that the rest has at most `most` ranges: the one that
/// leaves the fewest, and of those the smallest.
pub(super) fn crowded(ranges: &[Range], most: usize) -> Option<Block> {
    let starts = ranges.iter().map(|range| range.start);
    let blocks = starts.flat_map(|start| [24, 16, 8].map(|bits| Block::around(start, bits)));
    let rest = blocks.map(|block| (block.ranges_with(ranges), block));
    let (left, block) = rest.min_by_key(|&(left, block)| (left, u8::MAX - block.bits))?;
    (left <= most).then_some(block)
}
