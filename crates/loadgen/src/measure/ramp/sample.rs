//! One interval of a ramp.

use serde::Serialize;

use crate::clock::{Clock, Nanos};
use crate::device::{Count, Path};
use crate::histogram::{Counts, Times};
use crate::measure::steady::is_told;
use crate::measure::way::{LATE, Reading, SHORTFALL, WayResult};
use crate::model::units::{Bits, Pps, WIRE_OVERHEAD};

/// One direction in one sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct WaySample {
    /// Rate offered in the interval, packets a second.
    pub offered_pps: f64,
    /// Rate sent, packets a second.
    pub tx_pps: f64,
    /// Rate that came back, packets a second.
    pub rx_pps: f64,
    /// Sent on layer 2, bits a second.
    pub tx_bps: f64,
    /// Came back on layer 2, bits a second.
    pub rx_bps: f64,
    /// Sent on layer 1, bits a second.
    pub tx_l1_bps: f64,
    /// Came back on layer 1, bits a second.
    pub rx_l1_bps: f64,
    /// Share of the packets sent in the interval that did not come back in it, from 0.0 to 1.0.
    pub loss: f64,
    /// How long packets took that came back in the interval, of all streams together that measure
    /// it; None if none came.
    pub latency: Option<Times>,
    /// Counts since the ramp began.
    pub total: WayResult,
}

/// All directions at one moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sample {
    /// Seconds since the ramp began.
    pub at: f64,
    /// Each direction.
    pub ways: Vec<WaySample>,
    /// False if a generator fell short of the offer by more than 0.1 % in this interval, or if its
    /// schedule ran late or caught up, by more than 0.5 %.
    pub valid: bool,
}

impl Sample {
    pub(super) fn sum(&self, of: impl Fn(&WaySample) -> f64) -> f64 {
        self.ways.iter().map(of).sum()
    }

    /// Rate sent, all directions, in packets a second.
    pub fn sent_pps(&self) -> f64 {
        self.sum(|way| way.tx_pps)
    }

    /// Rate that came back, all directions, in packets a second.
    pub fn received_pps(&self) -> f64 {
        self.sum(|way| way.rx_pps)
    }
}

/// Packets that may be between schedule and port when a sample is taken; they are not missing.
const UNDERWAY: u64 = 256;

impl WaySample {
    fn new(interval: &WayResult, total: WayResult, seconds: f64) -> Self {
        let per_second = |n: f64| n / seconds.max(1e-9);
        let l1 = |c: Count| (c.bytes as f64 + WIRE_OVERHEAD * c.packets as f64) * 8.0;
        let (sent, received) = (interval.sent, interval.received);
        Self {
            offered_pps: per_second(interval.offered as f64),
            tx_pps: per_second(sent.packets as f64),
            rx_pps: per_second(received.packets as f64),
            tx_bps: per_second(sent.bytes as f64 * 8.0),
            rx_bps: per_second(received.bytes as f64 * 8.0),
            tx_l1_bps: per_second(l1(sent)),
            rx_l1_bps: per_second(l1(received)),
            loss: interval.loss(),
            latency: None,
            total,
        }
    }

    /// Rate sent in percent of a line rate.
    pub fn tx_util(&self, line: Bits) -> f64 {
        self.tx_l1_bps / line.0 * 100.0
    }

    /// Rate that came back in percent of a line rate.
    pub fn rx_util(&self, line: Bits) -> f64 {
        self.rx_l1_bps / line.0 * 100.0
    }
}

fn is_whole(interval: &WayResult) -> bool {
    let missing = interval
        .offered
        .saturating_sub(interval.sent.packets)
        .saturating_sub(UNDERWAY);
    missing as f64 <= SHORTFALL * interval.offered as f64
}

/// True if the schedule asked for the packets that were planned, and not for those of another time.
fn is_in_time(interval: &WayResult, planned: f64, seconds: f64) -> bool {
    let off = (interval.offered as f64 - planned).abs();
    off <= LATE * planned || !is_told(off, planned / seconds.max(1e-9))
}

/// Packets that a direction is to send, by the rates that it was asked for.
pub(super) struct Asked {
    /// The rate at present.
    pub rate: Pps,
    since: Nanos,
    /// Packets until then, since the last sample.
    packets: f64,
}

impl Asked {
    /// At `rate` from `now` on.
    pub fn new(now: Nanos, rate: Pps) -> Self {
        Self {
            rate,
            since: now,
            packets: 0.0,
        }
    }

    /// At `rate` from `now` on.
    pub fn change(&mut self, now: Nanos, rate: Pps) {
        self.packets += self.rate.0 * now.since(self.since).as_secs_f64();
        (self.since, self.rate) = (now, rate);
    }

    /// The packets since the last sample, which is now.
    pub fn take(&mut self, now: Nanos) -> f64 {
        self.change(now, self.rate);
        std::mem::take(&mut self.packets)
    }
}

/// The paths at one moment.
pub(super) struct Moment {
    /// When they had been read.
    pub at: Nanos,
    /// Seconds that this took: the thread may be held up meanwhile.
    took: f64,
    readings: Vec<Reading>,
    /// How long packets took until then, by path.
    times: Vec<Option<Counts>>,
}

impl Moment {
    /// Reads the paths.
    pub fn new(clock: &dyn Clock, paths: &[Path]) -> Self {
        let begin = clock.now();
        let readings = Reading::all(paths);
        let at = clock.now();
        Self {
            at,
            took: at.since(begin).as_secs_f64(),
            readings,
            times: paths.iter().map(|path| path.rx.times()).collect(),
        }
    }

    /// Directions in the interval from `last` to this one, in which each was to send `planned`
    /// packets, of a ramp that began at `first`.
    pub fn sample(&self, first: &Self, last: &Self, planned: f64) -> Sample {
        let seconds = self.at.since(last.at).as_secs_f64();
        let mut valid = self.took.max(last.took) <= LATE * seconds;
        let ways = self.readings.iter().zip(&self.times).enumerate();
        let ways = ways.map(|(way, (reading, times))| {
            let interval = reading.since(&last.readings[way]);
            valid &= is_whole(&interval) && is_in_time(&interval, planned, seconds);
            let latency = times.as_ref().zip(last.times[way].as_ref());
            let latency = latency.map(|(now, before)| now.since(before));
            WaySample {
                latency: latency.filter(|times| times.measured > 0),
                ..WaySample::new(&interval, reading.since(&first.readings[way]), seconds)
            }
        });
        let ways = ways.collect();
        Sample {
            at: self.at.since(first.at).as_secs_f64(),
            ways,
            valid,
        }
    }
}
