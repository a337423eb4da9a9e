//! Histograms of times that programs fill: `struct times` in times.bpf.h.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bits of a time that its bucket keeps behind the leading one: an error of at most 1 in 8.
pub const TIME_BITS: u32 = 3;
/// Buckets that times fall into: 496 for all numbers of 64 bits, rounded up to a power of two, as
/// programs mask the index for the verifier.
const BUCKETS: usize = 512;

/// The histogram in a program's memory.
#[repr(C)]
pub(crate) struct TimesState {
    pub(crate) sum: AtomicU64,
    pub(crate) min: AtomicU64,
    pub(crate) max: AtomicU64,
    pub(crate) bucket: [AtomicU64; BUCKETS],
}

/// Times in nanoseconds that a program has noted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Times {
    /// Number of times in each bucket: below 2^([`TIME_BITS`] + 1) nanoseconds one each, above
    /// 2^[`TIME_BITS`] for each power of two.
    pub buckets: Vec<u64>,
    /// All together, nanoseconds.
    pub sum: u64,
    /// The smallest.
    pub min: u64,
    /// The largest.
    pub max: u64,
}

impl TimesState {
    /// Those noted so far.
    pub(crate) fn read(&self) -> Times {
        Times {
            buckets: self.bucket.iter().map(|n| n.load(Relaxed)).collect(),
            sum: self.sum.load(Relaxed),
            min: self.min.load(Relaxed).saturating_sub(1),
            max: self.max.load(Relaxed),
        }
    }

    /// Forgets everything. Only while the program notes nothing.
    pub(crate) fn clear(&self) {
        let cells = [&self.sum, &self.min, &self.max].into_iter();
        cells
            .chain(&self.bucket)
            .for_each(|cell| cell.store(0, Relaxed));
    }
}
