//! A block: 16 rules, compared with a key in one pass.
#![allow(unsafe_code)]

use super::{Key, Line, NONE};

/// Rules of a block.
pub(super) const LANES: usize = 16;

/// A lane for each rule, in the order of the rules. What is not used matches nothing.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(super) struct Block<const W: usize> {
    value: [[u32; LANES]; W],
    mask: [[u32; LANES]; W],
    low: [u32; LANES],
    span: [u32; LANES],
    /// Their numbers in the list.
    rules: [u32; LANES],
}

impl<const W: usize> Block<W> {
    /// A block of these rules, with their numbers: [`LANES`] at most, the first ones first.
    pub fn new(lines: impl Iterator<Item = (u32, Line<W>)>) -> Self {
        let mut all = [(NONE, Line::NEVER); LANES];
        all.iter_mut().zip(lines).for_each(|(lane, of)| *lane = of);
        Block {
            value: std::array::from_fn(|word| all.map(|(_, line)| line.value[word])),
            mask: std::array::from_fn(|word| all.map(|(_, line)| line.mask[word])),
            low: all.map(|(_, line)| line.low),
            span: all.map(|(_, line)| line.span),
            rules: all.map(|(rule, _)| rule),
        }
    }

    /// The number of the first rule of these lanes; [`NONE`] if there are none.
    #[inline(always)]
    pub fn first(&self, lanes: u16) -> u32 {
        let rule = self.rules[lanes.trailing_zeros() as usize % LANES];
        if lanes == 0 { NONE } else { rule }
    }

    /// The lanes that match, the first one lowest: for any processor.
    #[inline(always)]
    pub fn lanes(&self, key: &Key<W>) -> u16 {
        let mut misses = [0u32; LANES];
        for (lane, miss) in misses.iter_mut().enumerate() {
            for word in 0..W {
                *miss |= (key.words[word] ^ self.value[word][lane]) & self.mask[word][lane];
            }
            let (low, span) = (self.low[lane], self.span[lane]);
            for half in [16, 0] {
                let above = (key.ports >> half) as u16;
                let above = above.wrapping_sub((low >> half) as u16);
                *miss |= u32::from(above.saturating_sub((span >> half) as u16));
            }
        }
        let lanes = misses.iter().enumerate();
        lanes.fold(0, |bits, (lane, miss)| bits | u16::from(*miss == 0) << lane)
    }

    /// As [`Block::lanes`], where the processor has AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    pub fn lanes_avx512(&self, key: &Key<W>) -> u16 {
        use std::arch::x86_64::*;
        let load = |lanes: &[u32; LANES]| {
            // SAFETY: 64 bytes, which may have any address.
            unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) }
        };
        let ports = _mm512_set1_epi32(key.ports as i32);
        let above = _mm512_sub_epi16(ports, load(&self.low));
        let mut miss = _mm512_subs_epu16(above, load(&self.span));
        for word in 0..W {
            let differs = _mm512_xor_si512(
                _mm512_set1_epi32(key.words[word] as i32),
                load(&self.value[word]),
            );
            let counts = _mm512_and_si512(differs, load(&self.mask[word]));
            miss = _mm512_or_si512(miss, counts);
        }
        _mm512_testn_epi32_mask(miss, miss)
    }

    /// As [`Block::lanes`], where the processor has AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    #[inline]
    pub fn lanes_avx2(&self, key: &Key<W>) -> u16 {
        use std::arch::x86_64::*;
        let half = |at: usize| {
            let load = |lanes: &[u32; LANES]| {
                let half = &lanes[at..][..LANES / 2];
                // SAFETY: 32 bytes, which may have any address.
                unsafe { _mm256_loadu_si256(half.as_ptr().cast()) }
            };
            let ports = _mm256_set1_epi32(key.ports as i32);
            let above = _mm256_sub_epi16(ports, load(&self.low));
            let mut miss = _mm256_subs_epu16(above, load(&self.span));
            for word in 0..W {
                let differs = _mm256_xor_si256(
                    _mm256_set1_epi32(key.words[word] as i32),
                    load(&self.value[word]),
                );
                let counts = _mm256_and_si256(differs, load(&self.mask[word]));
                miss = _mm256_or_si256(miss, counts);
            }
            let hits = _mm256_cmpeq_epi32(miss, _mm256_setzero_si256());
            _mm256_movemask_ps(_mm256_castsi256_ps(hits)) as u16
        };
        half(0) | half(LANES / 2) << (LANES / 2)
    }
}
