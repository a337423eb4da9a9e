//! Measurements of a stream whose packets carry a sequence number and their time of sending: what
//! is missing, what came late or twice, and how long they took.

use std::collections::BTreeMap;

use graph::counters::Counter;
use serde::Serialize;

use crate::clock::Nanos;
use crate::histogram::{Counts, Histogram, Times};
use crate::source::mark::{FIRST_SEQUENCE, Trailer};

/// Sequence numbers that are remembered, to tell a late packet from one that came twice: 2 KiB for
/// each flow, and 16 ms at a million packets a second.
const WINDOW: u32 = 1 << 14;

/// The counters of a flow; any thread may read them.
#[derive(Debug, Default)]
pub struct FlowCounters {
    missing: Counter,
    late: Counter,
    twice: Counter,
    old: Counter,
    /// Sum of the changes from packet to packet in sixteenths of nanoseconds, smoothed.
    jitter: Counter,
    latency: Histogram,
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
    /// Time that packets took.
    #[serde(flatten)]
    pub latency: Times,
    /// Mean change from packet to packet, smoothed (RFC 3550 section 6.4.1).
    pub jitter: u64,
    /// How many packets took how long, see [`Histogram::by_micros`].
    #[serde(skip)]
    pub by_micros: BTreeMap<u64, u64>,
}

impl Flow {
    /// The state when nothing of `sent` packets is on its way anymore: now those are missing too
    /// after which none came, which alone could tell.
    #[must_use]
    pub fn completed(self, sent: u64) -> Self {
        let came = self.latency.measured + self.old;
        let missing = self.missing.max(sent.saturating_sub(came));
        Self { missing, ..self }
    }
}

impl FlowCounters {
    /// Forgets everything; only the owner calls this.
    pub(super) fn clear(&self) {
        let Self {
            missing,
            late,
            twice,
            old,
            jitter,
            latency,
        } = self;
        for counter in [missing, late, twice, old, jitter] {
            counter.set(0);
        }
        latency.clear();
    }

    fn measure(&self, latency: u64, before: Option<u64>) {
        self.latency.add(latency);
        if let Some(before) = before {
            let (change, jitter) = (latency.abs_diff(before), self.jitter.get());
            // Counted in sixteenths, so that small changes are not lost.
            self.jitter.set(jitter - jitter / 16 + change);
        }
    }

    /// How many packets took how long.
    pub(super) fn times(&self) -> Counts {
        self.latency.counts()
    }

    /// The state now.
    pub fn read(&self) -> Flow {
        Flow {
            missing: self.missing.get(),
            out_of_order: self.late.get(),
            duplicates: self.twice.get(),
            old: self.old.get(),
            latency: self.latency.read(),
            jitter: self.jitter.get() / 16,
            by_micros: self.latency.by_micros(),
        }
    }
}

/// Follows the sequence numbers of a flow.
pub(super) struct Follower {
    run: Option<u8>,
    /// The sequence number after the highest one seen.
    next: u32,
    /// A bit for each of the last sequence numbers: whether it came. Those before the first are
    /// taken to have come.
    came: Box<[u64]>,
    /// Number of older ones that never came.
    never_came: u64,
    /// Latency of the packet before.
    before: Option<u64>,
}

impl Follower {
    pub fn new() -> Self {
        Self {
            run: None,
            next: FIRST_SEQUENCE,
            came: vec![u64::MAX; WINDOW as usize / 64].into(),
            never_came: 0,
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
                self.came.fill(u64::MAX);
                (self.never_came, self.before) = (0, None);
            }
        }
        let sequence = trailer.sequence;
        let ahead = sequence.wrapping_sub(self.next);
        // Numbers wrap: the nearer half is ahead, the other behind (as in RFC 1982).
        if ahead < 1 << 31 {
            counters.missing.add(ahead.into());
            self.forget(ahead);
            self.next = sequence.wrapping_add(1);
            self.mark(sequence);
        } else if self.comes_late(sequence) {
            counters.late.add(1);
            let missing = counters.missing.get();
            counters.missing.set(missing.saturating_sub(1));
        } else {
            return counters.twice.add(1);
        }
        let latency = now.0.saturating_sub(trailer.nanos);
        counters.measure(latency, self.before.replace(latency));
    }

    /// Makes room for the numbers that are passed over, and for the one after them.
    fn forget(&mut self, ahead: u32) {
        if ahead >= WINDOW {
            let gaps = self.came.iter().map(|word| u64::from(word.count_zeros()));
            self.never_came += gaps.sum::<u64>() + u64::from(ahead + 1 - WINDOW);
            return self.came.fill(0);
        }
        for i in 0..=ahead {
            let (word, bit) = place(self.next.wrapping_add(i));
            self.never_came += u64::from(self.came[word] & bit == 0);
            self.came[word] &= !bit;
        }
    }

    /// True if a packet of a number that was passed over comes for the first time. Of the numbers
    /// that are not remembered only so many can as never came.
    fn comes_late(&mut self, sequence: u32) -> bool {
        if self.next.wrapping_sub(sequence) > WINDOW {
            let is_late = self.never_came > 0;
            self.never_came -= u64::from(is_late);
            return is_late;
        }
        let (word, bit) = place(sequence);
        let is_late = self.came[word] & bit == 0;
        self.came[word] |= bit;
        is_late
    }

    fn mark(&mut self, sequence: u32) {
        let (word, bit) = place(sequence);
        self.came[word] |= bit;
    }
}

/// Word and bit of a sequence number.
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

    /// A long way through a device, past more packets than are remembered: what never came before is
    /// no duplicate.
    #[test]
    fn the_very_late_are_not_doubles() {
        let many = |range: std::ops::Range<u32>| range.map(|offset| (1, offset));
        let far = 3 * WINDOW;
        for others in [many(2..far).collect(), vec![(1, far - 1)]] {
            let skipped = u64::from(far) - 1 - others.len() as u64;
            let packets = |more: &[(u8, u32)]| {
                let all: Vec<_> = [&[(1, 0)], &*others, more].concat();
                counts(&all)
            };
            assert_eq!(packets(&[]), (skipped, 0, 0, 0));
            assert_eq!(packets(&[(1, 1)]), (skipped - 1, 1, 0, 0));
        }
        let whole: Vec<_> = many(0..far).chain([(1, 0), (1, 7)]).collect();
        assert_eq!(counts(&whole), (0, 0, 2, 0));
        // One number is missing, so a second packet that is as late has come before.
        let twice: Vec<_> = many(0..1)
            .chain(many(2..far))
            .chain([(1, 1), (1, 1)])
            .collect();
        assert_eq!(counts(&twice), (0, 1, 1, 0));
    }

    #[test]
    fn a_new_run_starts_again() {
        assert_eq!(counts(&[(1, 0), (1, 1), (2, 0), (2, 1)]), (0, 0, 0, 0));
        assert_eq!(counts(&[(255, 0), (0, 1), (255, 1)]), (1, 0, 0, 1));
    }

    #[test]
    fn latencies_and_their_changes_are_measured() {
        let packets: Vec<_> = (0..1000)
            .map(|i| (1, i, 1000 * (u64::from(i) + 1)))
            .collect();
        let flow = follow(&packets);
        let Times {
            measured,
            min,
            max,
            avg,
            ..
        } = flow.latency;
        assert_eq!((measured, min, max), (1000, 1000, 1_000_000));
        assert_eq!((avg, flow.jitter), (500_500.0, 1000));
        assert_eq!(follow(&[]), Flow::default());
    }

    proptest! {
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
