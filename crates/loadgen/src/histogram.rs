//! Distribution of lengths of time: a histogram in nanoseconds that one thread fills and any may
//! read.

use std::collections::BTreeMap;

use graph::counters::Counter;
use serde::{Deserialize, Serialize};

/// Bits of a time that a bucket keeps: an error below 1 %.
const PRECISION: u32 = 7;
/// Buckets: below 2^PRECISION one a nanosecond, above 2^PRECISION for each power of two.
const BUCKETS: usize = ((64 - PRECISION as usize) + 1) << PRECISION;

/// The histogram.
#[derive(Debug)]
pub struct Histogram {
    sum: Counter,
    /// The smallest time plus 1; 0: none.
    min: Counter,
    max: Counter,
    buckets: Box<[Counter]>,
}

/// Many times at one moment, in nanoseconds. Percentiles are at most 1 % too high, those of gaps
/// between live frames 13 %.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// Number of times measured.
    pub measured: u64,
    /// The smallest.
    pub min: u64,
    /// The mean.
    pub avg: f64,
    /// Half of all are no longer.
    pub p50: u64,
    /// 90 % are no longer.
    pub p90: u64,
    /// 99 % are no longer.
    pub p99: u64,
    /// 99.9 % are no longer.
    pub p99_9: u64,
    /// The largest.
    pub max: u64,
}

/// How many times of each length were measured up to a moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counts {
    buckets: Vec<u64>,
    /// Bits of a time that a bucket keeps.
    precision: u32,
    sum: f64,
}

impl Counts {
    /// Those in the buckets of a histogram that keeps `precision` bits of each time, and their sum.
    pub fn new(buckets: Vec<u64>, precision: u32, sum: f64) -> Self {
        Self {
            buckets,
            precision,
            sum,
        }
    }

    /// These and those of another histogram of the same precision.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        if self.buckets.is_empty() {
            return others;
        }
        for (count, other) in self.buckets.iter_mut().zip(others.buckets) {
            *count += other;
        }
        self.sum += others.sum;
        self
    }

    /// The times since `before`; the smallest and the largest are as exact as percentiles are.
    pub fn since(&self, before: &Self) -> Times {
        let before_all = before.buckets.iter().copied().chain(std::iter::repeat(0));
        let counts = self.buckets.iter().zip(before_all);
        let counts: Vec<u64> = counts.map(|(now, then)| now.saturating_sub(then)).collect();
        let used = |count: &u64| *count > 0;
        let upper = |place: Option<usize>| place.map_or(0, |place| upper(place, self.precision));
        let (first, last) = (counts.iter().position(used), counts.iter().rposition(used));
        let sum = (self.sum - before.sum).max(0.0);
        Times::of(&counts, self.precision, sum, upper(first), upper(last))
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            sum: Counter::default(),
            min: Counter::default(),
            max: Counter::default(),
            buckets: (0..BUCKETS).map(|_| Counter::default()).collect(),
        }
    }
}

/// The bucket of a time.
#[inline(always)]
fn bucket(nanos: u64) -> usize {
    let spare = (64 - nanos.leading_zeros()).saturating_sub(PRECISION + 1);
    let mantissa = usize::try_from(nanos >> spare).unwrap_or(usize::MAX);
    ((spare as usize) << PRECISION) + mantissa
}

/// The largest time in a bucket, where buckets keep so many bits.
fn upper(bucket: usize, precision: u32) -> u64 {
    let spare = (bucket >> precision).saturating_sub(1);
    let mantissa = (bucket - (spare << precision)) as u64;
    // The last bucket ends where u64 does, which a shift to the left cannot say.
    (mantissa << spare) | ((1u64 << spare) - 1)
}

/// A number with all digits but the first set to 0; 0 if that is all there is.
fn one_digit(number: u64) -> u64 {
    match number.checked_ilog10() {
        None | Some(0) => 0,
        Some(digits) => number - number % 10_u64.pow(digits),
    }
}

impl Histogram {
    /// Adds a time in nanoseconds; only the owner calls this.
    #[inline]
    pub fn add(&self, nanos: u64) {
        self.add_equal(nanos, 1);
    }

    /// Adds `count` equal times, 1 or more; only the owner calls this.
    #[inline]
    pub fn add_equal(&self, nanos: u64, count: u64) {
        self.sum.add(nanos * count);
        if self.min.get() == 0 || nanos < self.min.get() - 1 {
            self.min.set(nanos.saturating_add(1));
        }
        self.max.set(self.max.get().max(nanos));
        if let Some(bucket) = self.buckets.get(bucket(nanos)) {
            bucket.add(count);
        }
    }

    /// Forgets everything; only the owner calls this.
    pub fn clear(&self) {
        let counters = [&self.sum, &self.min, &self.max];
        let counters = counters.into_iter().chain(&self.buckets);
        counters.for_each(|counter| counter.set(0));
    }

    /// The state now.
    pub fn read(&self) -> Times {
        Self::together([self])
    }

    /// How many times there are, by their length in microseconds to one digit, rounded down: 20 is
    /// from 20 to below 30, and 300 from 300 to below 400. Those below 10 are 0. A time within 1 %
    /// of an end may be on either side.
    pub fn by_micros(&self) -> BTreeMap<u64, u64> {
        let mut found = BTreeMap::new();
        let counts = self.buckets.iter().map(Counter::get).enumerate();
        for (bucket, count) in counts.filter(|(_, count)| *count > 0) {
            *found
                .entry(one_digit(upper(bucket, PRECISION) / 1000))
                .or_default() += count;
        }
        found
    }

    /// How many times of each length there are now.
    pub fn counts(&self) -> Counts {
        let buckets = self.buckets.iter().map(Counter::get).collect();
        Counts::new(buckets, PRECISION, self.sum.get() as f64)
    }

    /// The state now of several as if they were one.
    pub fn together<'a>(histograms: impl IntoIterator<Item = &'a Self>) -> Times {
        let (mut counts, mut sum) = (vec![0; BUCKETS], 0.0);
        let (mut min, mut max) = (u64::MAX, 0);
        for histogram in histograms {
            for (count, bucket) in counts.iter_mut().zip(&histogram.buckets) {
                *count += bucket.get();
            }
            sum += histogram.sum.get() as f64;
            min = min.min(histogram.min.get().wrapping_sub(1));
            max = max.max(histogram.max.get());
        }
        Times::of(&counts, PRECISION, sum, min, max)
    }
}

impl Times {
    /// The times that fell into the buckets of a histogram that keeps `precision` bits of each:
    /// how many in each bucket, their sum, the smallest and the largest.
    pub fn of(counts: &[u64], precision: u32, sum: f64, min: u64, max: u64) -> Self {
        let measured: u64 = counts.iter().sum();
        if measured == 0 {
            return Self::default();
        }
        let below = |share: f64| {
            let wanted = (measured as f64 * share).ceil().max(1.0);
            let mut seen = 0;
            let place = counts.iter().position(|count| {
                seen += count;
                seen as f64 >= wanted
            });
            place.map_or(max, |bucket| upper(bucket, precision).min(max))
        };
        Self {
            measured,
            min,
            avg: sum / measured as f64,
            p50: below(0.5),
            p90: below(0.9),
            p99: below(0.99),
            p99_9: below(0.999),
            max,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_while_is_told_apart_from_what_was_before() {
        let histogram = Histogram::default();
        histogram.add_equal(1_000_000, 5000);
        let before = histogram.counts();
        assert_eq!(before.since(&before), Times::default());
        for nanos in [1000, 2000, 2000, 3000] {
            histogram.add(nanos);
        }
        let now = histogram.counts();
        let times = now.since(&before);
        assert_eq!((times.measured, times.avg), (4, 2000.0));
        let near = |found: u64, nanos: u64| (nanos..=nanos + nanos / 100).contains(&found);
        assert!(near(times.min, 1000) && near(times.p50, 2000), "{times:?}");
        assert!(near(times.max, 3000), "{times:?}");
        // Two queues are one.
        let twice = now.clone().and(now).since(&Counts::default());
        assert_eq!(twice.measured, 2 * 5004);
    }

    #[test]
    fn times_are_spread_out() {
        let (even, odd) = (Histogram::default(), Histogram::default());
        assert_eq!(even.read(), Times::default());
        for i in 1..=1000 {
            [&even, &odd][i as usize % 2].add(1000 * i);
        }
        let all = Histogram::together([&even, &odd]);
        assert_eq!((all.measured, all.min, all.max), (1000, 1000, 1_000_000));
        assert_eq!((all.avg, even.read().min), (500_500.0, 2000));
        odd.clear();
        assert_eq!(odd.read(), Times::default());
        for (found, exact) in [
            (all.p50, 500_000),
            (all.p90, 900_000),
            (all.p99, 990_000),
            (all.p99_9, 999_000),
        ] {
            assert!(
                found >= exact && found as f64 <= exact as f64 * 1.01,
                "{found} {exact}"
            );
        }
    }

    #[test]
    fn times_are_counted_by_one_digit() {
        let times = Histogram::default();
        for micros in [0, 1, 9, 10, 19, 20, 27, 98, 100, 250, 290, 1900, 2_000_000] {
            times.add(1000 * micros);
        }
        let expected = [
            (0, 3),
            (10, 2),
            (20, 2),
            (90, 1),
            (100, 1),
            (200, 2),
            (1000, 1),
        ];
        let expected = expected.into_iter().chain([(2_000_000, 1)]);
        assert_eq!(times.by_micros(), expected.collect());
        assert_eq!(one_digit(u64::MAX), 10_u64.pow(19));
        assert!(Histogram::default().by_micros().is_empty());
    }

    proptest! {
        #[test]
        fn buckets_are_close(nanos: u64) {
            let top = upper(bucket(nanos), PRECISION);
            prop_assert!(bucket(nanos) < BUCKETS);
            prop_assert!(top >= nanos && (top - nanos) as f64 <= nanos as f64 / 100.0, "{top}");
        }
    }
}
