//! Test of whether a device keeps up while packets are sent to it at one rate.
//!
//! One that does gives back as much as it gets from when the first packets are back, however long
//! they take. In one that does not, more and more packets wait. If its buffers are deep nothing is
//! lost, and all of them come back once sending has ended. So what is in the device is compared:
//! early, when the first packets are back, and when sending ends. What it has more at the end, it
//! held.

use std::time::Duration;

use crate::clock::{Clock, Nanos};
use crate::device::Path;
use crate::measure::way::Reading;

/// Seconds to which it is known how much is in a device: a thread is held up for a moment, and
/// counters are not read at the same time.
const RESOLUTION: f64 = 0.003;
/// Packets that travel together, and are not always seen in the same place.
const BATCH: f64 = 16.0;
/// Interval of looking for the first packets.
const LOOK: Duration = Duration::from_millis(10);

/// True if this is more packets than counters may be wrong by at `pps`.
pub(crate) fn is_told(packets: f64, pps: f64) -> bool {
    packets > BATCH + RESOLUTION * pps
}

/// Of `more` packets in a device than there should be at `pps`, those that it held; none if that is
/// no more than can be told.
pub(crate) fn held(more: f64, pps: f64) -> u64 {
    if is_told(more, pps) { more as u64 } else { 0 }
}

/// Work of a direction since its first packets were back.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Way {
    /// Packets a second that were sent.
    pub sent: f64,
    /// Packets a second that came back.
    pub back: f64,
    /// Packets that the device held when sending ended.
    pub held: u64,
}

/// The counters of each direction when its first packets were back, but not before a quarter of the
/// time of sending: a generator may need a moment to get going, and a device to fill its queues.
#[derive(Debug)]
pub(crate) struct Steady {
    before: Vec<Reading>,
    early: Vec<Option<(Nanos, Reading)>>,
    /// Time of the next look.
    next: Nanos,
}

impl Steady {
    /// Of sending that begins with these counters at `begin` and takes `length`.
    pub fn new(before: &[Reading], begin: Nanos, length: Duration) -> Self {
        Self {
            before: before.to_vec(),
            early: vec![None; before.len()],
            next: begin.after(length / 4),
        }
    }

    /// Time of the next look; None if nothing is left to see.
    pub fn next(&self) -> Option<Nanos> {
        self.early.iter().any(Option::is_none).then_some(self.next)
    }

    /// Looks which directions have packets back.
    pub fn look(&mut self, paths: &[Path], clock: &dyn Clock) {
        let now = clock.now();
        self.next = now.after(LOOK);
        let ways = self.early.iter_mut().zip(&self.before).zip(paths);
        for ((early, before), path) in ways.filter(|((early, _), _)| early.is_none()) {
            let reading = Reading::of(path);
            let is_back = reading.since(before).received.packets > 0;
            *early = is_back.then_some((now, reading));
        }
    }

    /// Looks until nothing is left to see, or `end`.
    pub fn watch(&mut self, paths: &[Path], end: Nanos, clock: &dyn Clock) {
        while let Some(next) = self.next().filter(|next| *next < end) {
            clock.wait_until(next);
            if clock.is_interrupted() {
                return;
            }
            self.look(paths, clock);
        }
    }

    /// Work of each direction until sending ended, at `end` with the counters `at_end`; `now` are
    /// those when all packets were back.
    pub fn ways(&self, end: Nanos, at_end: &[Reading], now: &[Reading]) -> Vec<Way> {
        let ways = self
            .before
            .iter()
            .zip(&self.early)
            .zip(at_end.iter().zip(now));
        ways.map(|((before, early), (at_end, now))| {
            let drained = now.drained_since(at_end) as f64;
            let Some((then, early)) = early else {
                // Nothing came back while packets were sent.
                let (back, held) = (0.0, held(drained, 0.0));
                return Way {
                    sent: 0.0,
                    back,
                    held,
                };
            };
            let seconds = end.since(*then).as_secs_f64();
            let per_second = |packets: u64| {
                if seconds > 0.0 {
                    packets as f64 / seconds
                } else {
                    0.0
                }
            };
            let (at_first, steady) = (early.since(before), at_end.since(early));
            let sent = per_second(steady.sent.packets);
            Way {
                sent,
                back: per_second(steady.received.packets),
                held: held(drained - at_first.lost() as f64, sent),
            }
        })
        .collect()
    }
}

#[cfg(test)]
mod tests;
