//! When to send, and which stream is next.

use std::time::Duration;

use crate::clock::Nanos;
use crate::model::units::Pps;

/// Fractional bits of a position in the schedule.
const FRACTION: u32 = 32;
/// Highest rate that is paced; above it, packets are always due.
const FASTEST: f64 = 1e12;

/// Computes how many packets are due.
///
/// A position is the number of packets since the start, with a fraction. It is computed from the
/// elapsed time in integers, so it does not drift however often it is read. A sender that was held
/// up catches up, but by no more than the backlog: older packets are given up, and the generator
/// falls short of the offer.
#[derive(Debug, Clone)]
pub struct Pacer {
    /// Packets a second, with [`FRACTION`] bits; None: packets are always due.
    rate: Option<u64>,
    since: Nanos,
    /// Position at `since`, with [`FRACTION`] bits.
    base: u128,
    /// Packets sent or given up.
    taken: u64,
    backlog: Duration,
    /// The backlog in packets at the current rate.
    most: u64,
}

/// Smallest backlog in packets, so that slow rates lose none to a late wake-up.
const LEAST_BACKLOG: u64 = 64;

impl Pacer {
    /// A schedule that starts `now` at `rate` and catches up by at most `backlog` (but always by 64
    /// packets).
    pub fn new(now: Nanos, rate: Pps, backlog: Duration) -> Self {
        let mut pacer = Self {
            rate: None,
            since: now,
            base: 0,
            taken: 0,
            backlog,
            most: 0,
        };
        pacer.set_rate(now, rate);
        pacer
    }

    /// Changes the rate from `now` on and keeps the position, with its fraction.
    pub fn set_rate(&mut self, now: Nanos, rate: Pps) {
        self.base = match self.rate {
            Some(_) => self.position(now),
            None => u128::from(self.taken) << FRACTION,
        };
        self.since = self.since.max(now);
        let pps = if rate.0 > 0.0 { rate.0 } else { 0.0 };
        self.rate =
            (pps <= FASTEST).then(|| (pps * (1u64 << FRACTION) as f64).min(u64::MAX as f64) as u64);
        self.most = ((pps.min(FASTEST) * self.backlog.as_secs_f64()) as u64).max(LEAST_BACKLOG);
    }

    fn position(&self, now: Nanos) -> u128 {
        let rate = self.rate.unwrap_or(0);
        self.base + now.since(self.since).as_nanos() * u128::from(rate) / 1_000_000_000
    }

    /// Packets scheduled from the start until `now`; without a rate limit, packets taken.
    pub fn scheduled(&self, now: Nanos) -> u64 {
        match self.rate {
            Some(_) => (self.position(now) >> FRACTION) as u64,
            None => self.taken,
        }
    }

    /// Packets that are due now.
    pub fn due(&mut self, now: Nanos) -> u64 {
        if self.rate.is_none() {
            return u64::MAX;
        }
        let due = self.scheduled(now).saturating_sub(self.taken);
        let late = due.saturating_sub(self.most);
        self.taken += late;
        due - late
    }

    /// Counts `packets` as sent.
    pub fn take(&mut self, packets: u64) {
        self.taken += packets;
    }

    /// Packets that were sent or given up.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Whether packets are always due.
    pub fn is_unlimited(&self) -> bool {
        self.rate.is_none()
    }
}

/// Interleaves the packets of several streams in proportion to their rates.
///
/// Packet `k` of a stream has the virtual time `isg + k / pps`. The earliest is next; of equals,
/// that of the first stream.
#[derive(Debug, Clone)]
pub struct Interleave {
    /// Virtual time of each stream's next packet, and the time from packet to packet.
    streams: Vec<(u128, u128)>,
}

/// Virtual time between two packets of all streams together.
const UNIT: f64 = (1u64 << 40) as f64;

impl Interleave {
    /// An order for streams of `(rate, isg in microseconds)`. Streams without a rate are never
    /// next.
    pub fn new(streams: &[(Pps, f64)]) -> Self {
        let total: f64 = streams
            .iter()
            .map(|s| s.0.0)
            .filter(|r| r.is_finite() && *r > 0.0)
            .sum();
        let place = |&(rate, isg): &(Pps, f64)| {
            let distance = UNIT * total / rate.0;
            if distance.is_finite() && distance > 0.0 {
                (
                    (UNIT * total * isg.max(0.0) / 1e6) as u128,
                    (distance as u128).max(1),
                )
            } else {
                (u128::MAX, 0)
            }
        };
        Self {
            streams: streams.iter().map(place).collect(),
        }
    }

    /// Returns the index of the stream whose packet is next, and goes on to the one after it.
    #[inline]
    pub fn turn(&mut self) -> usize {
        if self.streams.len() < 2 {
            return 0;
        }
        let mut first = 0;
        for (i, stream) in self.streams.iter().enumerate().skip(1) {
            if stream.0 < self.streams[first].0 {
                first = i;
            }
        }
        let stream = &mut self.streams[first];
        stream.0 = stream.0.saturating_add(stream.1);
        first
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const BACKLOG: Duration = Duration::from_millis(10);

    #[test]
    fn nothing_is_due_at_the_start_and_the_rate_after_a_second() {
        let mut pacer = Pacer::new(Nanos(5), Pps(1000.0), BACKLOG);
        assert_eq!(pacer.due(Nanos(5)), 0);
        assert_eq!(pacer.scheduled(Nanos(5 + SECOND)), 1000);
        assert_eq!(pacer.due(Nanos(5 + SECOND / 1000)), 1);
        pacer.take(1);
        assert_eq!(pacer.due(Nanos(5 + SECOND / 1000)), 0);
        assert_eq!(pacer.due(Nanos(4)), 0, "time that runs backwards");
    }

    #[test]
    fn a_year_does_not_drift() {
        let mut pacer = Pacer::new(Nanos(0), Pps(1_488_095.0), BACKLOG);
        let year = 365 * 24 * 3600;
        assert_eq!(pacer.scheduled(Nanos(year * SECOND)), 1_488_095 * year);
        pacer.set_rate(Nanos(year * SECOND), Pps(1.0));
        assert_eq!(
            pacer.scheduled(Nanos((year + 3) * SECOND)),
            1_488_095 * year + 3
        );
    }

    #[test]
    fn what_is_too_late_is_given_up() {
        let mut pacer = Pacer::new(Nanos(0), Pps(1e6), BACKLOG);
        assert_eq!(pacer.due(Nanos(SECOND)), 10_000);
        assert_eq!(pacer.taken(), 990_000);
        pacer.take(10_000);
        assert_eq!(pacer.due(Nanos(SECOND + 5_000)), 5);
        let mut slow = Pacer::new(Nanos(0), Pps(10.0), BACKLOG);
        assert_eq!((slow.due(Nanos(SECOND)), slow.taken()), (10, 0));
    }

    #[test]
    fn unlimited_is_always_due() {
        let mut pacer = Pacer::new(Nanos(0), Pps::UNLIMITED, BACKLOG);
        assert_eq!(pacer.due(Nanos(0)), u64::MAX);
        pacer.take(500);
        assert_eq!((pacer.scheduled(Nanos(9)), pacer.taken()), (500, 500));
        pacer.set_rate(Nanos(SECOND), Pps(50.0));
        assert_eq!(pacer.due(Nanos(SECOND)), 0);
        assert_eq!(pacer.due(Nanos(2 * SECOND)), 50);
        for rate in [0.0, -1.0, f64::NAN] {
            let mut stopped = Pacer::new(Nanos(0), Pps(rate), BACKLOG);
            assert_eq!(stopped.due(Nanos(SECOND)), 0);
        }
    }

    #[test]
    fn streams_get_their_share_evenly() {
        let mut order = Interleave::new(&[(Pps(28.0), 0.0), (Pps(16.0), 0.1), (Pps(4.0), 0.2)]);
        for _ in 0..100 {
            let mut counts = [0; 3];
            for _ in 0..48 {
                counts[order.turn()] += 1;
            }
            assert_eq!(counts, [28, 16, 4]);
        }
        assert_eq!(Interleave::new(&[(Pps(1.0), 0.0)]).turn(), 0);
        assert_eq!(Interleave::new(&[]).turn(), 0);
        let mut order = Interleave::new(&[(Pps(0.0), 0.0), (Pps(f64::NAN), 0.0), (Pps(2.0), 0.0)]);
        assert_eq!((order.turn(), order.turn()), (2, 2));
    }

    proptest! {
        /// However a schedule is polled and its rate changed, the sum is right to within a packet.
        #[test]
        fn positions_are_exact(steps in proptest::collection::vec((1u64..50_000_000, 0.0..2e7f64, any::<bool>()), 1..60)) {
            let mut pacer = Pacer::new(Nanos(0), Pps(1000.0), Duration::from_secs(3600));
            let (mut now, mut rate, mut exact, mut sent) = (0u64, 1000.0, 0.0f64, 0u64);
            for (wait, next, change) in steps {
                now += wait;
                exact += wait as f64 * rate / 1e9;
                let due = pacer.due(Nanos(now));
                sent += due;
                pacer.take(due);
                prop_assert!((sent as f64 - exact).abs() <= 1.0 + exact * 1e-9, "{sent} {exact}");
                if change {
                    rate = next;
                    pacer.set_rate(Nanos(now), Pps(rate));
                }
            }
        }

        #[test]
        fn shares_are_proportional(rates in proptest::collection::vec(1u32..1000, 1..8)) {
            let streams: Vec<_> = rates.iter().map(|&r| (Pps(f64::from(r)), 0.0)).collect();
            let mut order = Interleave::new(&streams);
            let total: u32 = rates.iter().sum();
            let mut counts = vec![0u32; rates.len()];
            for _ in 0..3 * total {
                counts[order.turn()] += 1;
            }
            for (count, rate) in counts.iter().zip(&rates) {
                prop_assert!(count.abs_diff(3 * rate) <= 1, "{counts:?} {rates:?}");
            }
        }
    }
}
