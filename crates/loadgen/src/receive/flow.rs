//! What the packets of a stream say that carry a sequence number and their time of sending: what is
//! missing, what came late or twice, and how long they took.

use graph::counters::Counter;
use serde::Serialize;

use crate::clock::Nanos;
use crate::source::mark::{FIRST_SEQUENCE, Trailer};

/// Sequence numbers that are remembered, to tell a late packet from one that came twice.
const WINDOW: u32 = 1 << 14;
/// Bits of a latency that a bucket of the histogram keeps: an error below 1 %.
const PRECISION: u32 = 7;
/// Buckets: below 2^PRECISION one a nanosecond, above 2^PRECISION for each power of two.
const BUCKETS: usize = ((64 - PRECISION as usize) + 1) << PRECISION;

/// The counters of a flow; any thread may read them.
#[derive(Debug)]
pub struct FlowCounters {
    missing: Counter,
    late: Counter,
    twice: Counter,
    old: Counter,
    /// Sum, smallest (plus 1, 0: none) and largest latency, and jitter, in nanoseconds.
    sum: Counter,
    min: Counter,
    max: Counter,
    jitter: Counter,
    histogram: Box<[Counter]>,
}

/// The state of a flow at one moment. Latencies are in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Flow {
    /// Packets whose sequence number never came, though a later one did.
    pub missing: u64,
    /// Packets that came after one that was sent later.
    pub out_of_order: u64,
    /// Packets that had come before.
    pub duplicates: u64,
    /// Packets of an earlier run.
    pub old: u64,
    /// Packets whose latency was measured.
    pub measured: u64,
    /// Smallest latency.
    pub min: u64,
    /// Mean latency.
    pub avg: f64,
    /// Half of all packets took no longer.
    pub p50: u64,
    /// 90 % took no longer.
    pub p90: u64,
    /// 99 % took no longer.
    pub p99: u64,
    /// 99.9 % took no longer.
    pub p99_9: u64,
    /// Largest latency.
    pub max: u64,
    /// Mean change from packet to packet, smoothed (RFC 3550 section 6.4.1).
    pub jitter: u64,
}

impl Default for FlowCounters {
    fn default() -> Self {
        Self {
            missing: Counter::default(),
            late: Counter::default(),
            twice: Counter::default(),
            old: Counter::default(),
            sum: Counter::default(),
            min: Counter::default(),
            max: Counter::default(),
            jitter: Counter::default(),
            histogram: (0..BUCKETS).map(|_| Counter::default()).collect(),
        }
    }
}

/// The bucket of a latency.
fn bucket(nanos: u64) -> usize {
    let spare = (64 - nanos.leading_zeros()).saturating_sub(PRECISION + 1);
    let mantissa = usize::try_from(nanos >> spare).unwrap_or(usize::MAX);
    ((spare as usize) << PRECISION) + mantissa
}

/// The largest latency in a bucket.
fn upper(bucket: usize) -> u64 {
    let spare = (bucket >> PRECISION).saturating_sub(1);
    let mantissa = (bucket - (spare << PRECISION)) as u64;
    // The last bucket ends where u64 does, which a shift to the left cannot say.
    (mantissa << spare) | ((1u64 << spare) - 1)
}

impl FlowCounters {
    fn measure(&self, latency: u64, before: Option<u64>) {
        self.sum.add(latency);
        if self.min.get() == 0 || latency < self.min.get() - 1 {
            self.min.set(latency.saturating_add(1));
        }
        self.max.set(self.max.get().max(latency));
        if let Some(bucket) = self.histogram.get(bucket(latency)) {
            bucket.add(1);
        }
        if let Some(before) = before {
            let (change, jitter) = (latency.abs_diff(before), self.jitter.get());
            // Counted in sixteenths, so that small changes are not lost.
            self.jitter.set(jitter - jitter / 16 + change);
        }
    }

    /// The state now.
    pub fn read(&self) -> Flow {
        let histogram: Vec<u64> = self.histogram.iter().map(Counter::get).collect();
        let measured: u64 = histogram.iter().sum();
        let max = self.max.get();
        let below = |share: f64| {
            let wanted = (measured as f64 * share).ceil().max(1.0);
            let mut seen = 0;
            let place = histogram.iter().position(|count| {
                seen += count;
                seen as f64 >= wanted
            });
            place.map_or(0, |bucket| upper(bucket).min(max))
        };
        Flow {
            missing: self.missing.get(),
            out_of_order: self.late.get(),
            duplicates: self.twice.get(),
            old: self.old.get(),
            measured,
            min: self.min.get().saturating_sub(1),
            avg: if measured == 0 {
                0.0
            } else {
                self.sum.get() as f64 / measured as f64
            },
            p50: below(0.5),
            p90: below(0.9),
            p99: below(0.99),
            p99_9: below(0.999),
            max,
            jitter: self.jitter.get() / 16,
        }
    }
}

/// Follows the sequence numbers of a flow.
pub(super) struct Follower {
    run: Option<u8>,
    /// The sequence number after the highest one seen.
    next: u32,
    /// A bit for each of the last sequence numbers: whether it came.
    came: Box<[u64]>,
    /// Latency of the packet before.
    before: Option<u64>,
}

impl Follower {
    pub fn new() -> Self {
        Self {
            run: None,
            next: FIRST_SEQUENCE,
            came: vec![0; WINDOW as usize / 64].into(),
            before: None,
        }
    }

    /// Takes note of a packet that came `now`.
    pub fn packet(&mut self, trailer: &Trailer, now: Nanos, counters: &FlowCounters) {
        match self.run {
            Some(run) if run == trailer.run => {}
            // A run's number is that of the run before plus 1.
            Some(run) if trailer.run.wrapping_sub(run) > 128 => return counters.old.add(1),
            _ => {
                (self.run, self.next) = (Some(trailer.run), FIRST_SEQUENCE);
                self.came.fill(0);
                self.before = None;
            }
        }
        let sequence = trailer.sequence;
        let ahead = sequence.wrapping_sub(self.next);
        if ahead < 1 << 31 {
            counters.missing.add(ahead.into());
            self.forget(ahead);
            self.next = sequence.wrapping_add(1);
        } else if self.next.wrapping_sub(sequence) > WINDOW || self.has(sequence) {
            return counters.twice.add(1);
        } else {
            counters.late.add(1);
            counters
                .missing
                .set(counters.missing.get().saturating_sub(1));
        }
        self.mark(sequence);
        let latency = now.0.saturating_sub(trailer.nanos);
        counters.measure(latency, self.before.replace(latency));
    }

    /// Clears the bits of the numbers that are passed over, and of the one after them.
    fn forget(&mut self, ahead: u32) {
        if ahead >= WINDOW {
            return self.came.fill(0);
        }
        for i in 0..=ahead {
            let (word, bit) = place(self.next.wrapping_add(i));
            self.came[word] &= !bit;
        }
    }

    fn has(&self, sequence: u32) -> bool {
        let (word, bit) = place(sequence);
        self.came[word] & bit != 0
    }

    fn mark(&mut self, sequence: u32) {
        let (word, bit) = place(sequence);
        self.came[word] |= bit;
    }
}

/// Where the bit of a sequence number is.
fn place(sequence: u32) -> (usize, u64) {
    let at = sequence % WINDOW;
    ((at / 64) as usize, 1 << (at % 64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn follow(packets: &[(u8, u32, u64)]) -> Flow {
        let (mut follower, counters) = (Follower::new(), FlowCounters::default());
        for &(run, offset, latency) in packets {
            let trailer = Trailer {
                run,
                counter: 0,
                sequence: FIRST_SEQUENCE.wrapping_add(offset),
                nanos: 1000,
            };
            follower.packet(&trailer, Nanos(1000 + latency), &counters);
        }
        counters.read()
    }

    fn counts(packets: &[(u8, u32)]) -> (u64, u64, u64, u64) {
        let packets: Vec<_> = packets
            .iter()
            .map(|&(run, offset)| (run, offset, 5))
            .collect();
        let flow = follow(&packets);
        (flow.missing, flow.out_of_order, flow.duplicates, flow.old)
    }

    #[test]
    fn gaps_late_ones_and_doubles() {
        assert_eq!(counts(&[(1, 0), (1, 1), (1, 2), (1, 3)]), (0, 0, 0, 0));
        assert_eq!(counts(&[(1, 2), (1, 5)]), (4, 0, 0, 0));
        assert_eq!(counts(&[(1, 0), (1, 3), (1, 1)]), (1, 1, 0, 0));
        assert_eq!(counts(&[(1, 0), (1, 1), (1, 1), (1, 0)]), (0, 0, 2, 0));
        assert_eq!(counts(&[(1, 0), (1, 3), (1, 1), (1, 1)]), (1, 1, 1, 0));
        assert_eq!(
            counts(&[(1, 0), (1, 20_000), (1, 19_999)]),
            (19_998, 1, 0, 0)
        );
    }

    #[test]
    fn a_new_run_starts_again() {
        assert_eq!(counts(&[(1, 0), (1, 1), (2, 0), (2, 1)]), (0, 0, 0, 0));
        assert_eq!(counts(&[(255, 0), (0, 1), (255, 1)]), (1, 0, 0, 1));
    }

    #[test]
    fn latencies_are_spread_out() {
        let packets: Vec<_> = (0..1000)
            .map(|i| (1, i, 1000 * (u64::from(i) + 1)))
            .collect();
        let flow = follow(&packets);
        assert_eq!((flow.measured, flow.min, flow.max), (1000, 1000, 1_000_000));
        assert_eq!((flow.avg, flow.jitter), (500_500.0, 1000));
        for (found, exact) in [
            (flow.p50, 500_000),
            (flow.p90, 900_000),
            (flow.p99, 990_000),
            (flow.p99_9, 999_000),
        ] {
            assert!(
                found >= exact && found as f64 <= exact as f64 * 1.01,
                "{found} {exact}"
            );
        }
        assert_eq!(follow(&[]), Flow::default());
    }

    proptest! {
        #[test]
        fn buckets_are_close(nanos: u64) {
            let top = upper(bucket(nanos));
            prop_assert!(bucket(nanos) < BUCKETS);
            prop_assert!(top >= nanos && (top - nanos) as f64 <= nanos as f64 / 100.0, "{top}");
        }

        /// However packets are lost, doubled and shuffled nearby, every one is accounted for.
        #[test]
        fn everything_is_accounted_for(fates in proptest::collection::vec((0u8..4, 0usize..20), 1..300)) {
            let (mut order, mut lost, mut doubled) = (Vec::new(), 0u64, 0u64);
            for (i, &(fate, delay)) in fates.iter().enumerate() {
                match fate {
                    0 => lost += 1,
                    1 => {
                        doubled += 1;
                        order.extend([(i + delay, i), (i + delay, i)]);
                    }
                    2 => order.push((i + delay, i)),
                    _ => order.push((i, i)),
                }
            }
            order.sort_by_key(|(at, _)| *at);
            let last = order.iter().map(|(_, i)| *i).max();
            // Nobody can miss those after the last one.
            lost -= fates.len() as u64 - last.map_or(0, |l| l as u64 + 1);
            let late = {
                let mut seen = std::collections::HashSet::new();
                let mut highest = None;
                order.iter().filter(|(_, i)| {
                    let is_late = seen.insert(*i) && highest.is_some_and(|h| *i < h);
                    highest = highest.max(Some(*i));
                    is_late
                }).count() as u64
            };
            let packets: Vec<_> = order.iter().map(|&(_, i)| (1, i as u32)).collect();
            let lost = if order.is_empty() { 0 } else { lost };
            prop_assert_eq!(counts(&packets), (lost, late, doubled, 0));
        }
    }
}
