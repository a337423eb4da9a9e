//! Buckets of the index, compared with a tag in one pass.
#![allow(unsafe_code)]

use crate::mem::Zeroed;

/// Slots of a bucket.
pub(super) const SLOTS: usize = 16;

/// Bits of a slot that are the number of a flow.
const NUMBER: u32 = (1 << 24) - 1;
/// The slot leads to the second key of the flow.
const SECOND: u32 = 1 << 24;
/// The other bits are the tag.
const TAG_SHIFT: u32 = 25;
const TAG: u32 = !(NUMBER | SECOND);

/// A slot: tag, whether it is of a second key, and number. The tag is never 0, so that 0 is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot(u32);

impl Slot {
    pub const EMPTY: Self = Slot(0);

    #[inline(always)]
    pub fn new(tag: Tag, second: bool, number: u32) -> Self {
        Slot(tag.0 | u32::from(second) << (TAG_SHIFT - 1) | number)
    }

    #[inline(always)]
    pub fn number(self) -> u32 {
        self.0 & NUMBER
    }

    #[inline(always)]
    pub fn tag(self) -> Tag {
        Tag(self.0 & TAG)
    }

    #[inline(always)]
    pub fn is_second(self) -> bool {
        self.0 & SECOND != 0
    }
}

/// The part of a key's hash that slots have, in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag(u32);

impl Tag {
    /// The one that empty slots have.
    pub const EMPTY: Self = Tag(0);

    /// Of a hash. Its lowest bits choose the bucket: these are the highest of its lower half.
    #[inline(always)]
    pub fn of(hash: u64) -> Self {
        Tag((hash as u32 & TAG).max(1 << TAG_SHIFT))
    }

    /// How far apart, by exclusive or, the two buckets are that a slot with this tag may be in: the
    /// way from either to the other is known without the key. Odd, so never 0.
    #[inline(always)]
    pub fn apart(self) -> usize {
        ((self.0 >> TAG_SHIFT).wrapping_mul(0x9e37_79b1) >> 8 | 1) as usize
    }
}

/// A line of slots.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Bucket([u32; SLOTS]);

// SAFETY: numbers.
unsafe impl Zeroed for Bucket {}

impl Bucket {
    /// The slot in a lane, modulo their number.
    #[inline(always)]
    pub fn slot(&self, lane: u32) -> Slot {
        Slot(self.0[lane as usize % SLOTS])
    }

    /// Writes the slot in a lane.
    #[inline(always)]
    pub fn put(&mut self, lane: u32, slot: Slot) {
        self.0[lane as usize % SLOTS] = slot.0;
    }

    /// Empties a slot; false if it is not there.
    pub fn take(&mut self, slot: Slot) -> bool {
        let place = self.0.iter_mut().find(|place| **place == slot.0);
        place.map(|place| *place = 0).is_some()
    }

    /// The lanes whose slots have this tag: for any processor.
    #[inline(always)]
    pub fn lanes(&self, tag: Tag) -> u16 {
        let lanes = self.0.iter().enumerate();
        lanes.fold(0, |bits, (lane, slot)| {
            bits | u16::from(slot & TAG == tag.0) << lane
        })
    }

    /// As [`Bucket::lanes`], where the processor has AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    #[inline]
    pub fn lanes_avx512(&self, tag: Tag) -> u16 {
        use std::arch::x86_64::*;
        // SAFETY: 64 bytes, which may have any address.
        let slots = unsafe { _mm512_loadu_si512(self.0.as_ptr().cast()) };
        let differs = _mm512_xor_si512(slots, _mm512_set1_epi32(tag.0 as i32));
        _mm512_testn_epi32_mask(differs, _mm512_set1_epi32(TAG as i32))
    }

    /// As [`Bucket::lanes`], where the processor has AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    #[inline]
    pub fn lanes_avx2(&self, tag: Tag) -> u16 {
        use std::arch::x86_64::*;
        let half = |at: usize| {
            let half = &self.0[at..][..SLOTS / 2];
            // SAFETY: 32 bytes, which may have any address.
            let slots = unsafe { _mm256_loadu_si256(half.as_ptr().cast()) };
            let tags = _mm256_and_si256(slots, _mm256_set1_epi32(TAG as i32));
            let hits = _mm256_cmpeq_epi32(tags, _mm256_set1_epi32(tag.0 as i32));
            _mm256_movemask_ps(_mm256_castsi256_ps(hits)) as u16
        };
        half(0) | half(SLOTS / 2) << (SLOTS / 2)
    }
}
