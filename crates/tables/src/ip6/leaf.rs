//! The look-up in a leaf.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering::Acquire;
#[cfg(not(target_arch = "x86_64"))]
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::word::{RANGES, WORDS};
use crate::mem::Line;

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
fn range(line: &Line, bits: u32) -> usize {
    use std::arch::x86_64::*;
    const { assert!(RANGES == 8 && WORDS >= RANGES) };
    let [low, high] = [0, 4].map(|word| line[word..word + 4].as_ptr().cast::<__m128i>());
    // SAFETY: these are four words of the line. Where the ranges of a leaf begin is written before
    // anything names the leaf, and not again while readers may hold its name.
    let low = unsafe { _mm_loadu_si128(low) };
    // SAFETY: as for the first four words; the eighth is never written.
    let high = unsafe { _mm_loadu_si128(high) };
    // SAFETY: every x86-64 has SSE2.
    let behind = unsafe { behind(low, high, bits) };
    // The eighth is none: it stands for the end.
    (behind | 1 << (RANGES - 1)).trailing_zeros() as usize
}

/// Bits of those of eight numbers that are above `bits`, the first lowest.
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
