//! The packets of one direction, and its counters.

use serde::Serialize;

use crate::device::{Count, Path};

/// Share of the offer that may stay unsent. If it is more, the trial says nothing about the device.
pub const SHORTFALL: f64 = 0.001;
/// Share of its time by which sending may be late. If it is more, less was offered than the rate
/// says, though all of it was sent. As narrow as the bounds of a search.
pub const LATE: f64 = 0.005;

/// The packets of one direction in a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct WayResult {
    /// Packets that were due.
    pub offered: u64,
    /// Packets that the port took.
    pub sent: Count,
    /// Packets that came back.
    pub received: Count,
    /// Received packets that are not of this test.
    pub other: Count,
}

impl WayResult {
    /// Packets sent that did not come back.
    pub fn lost(&self) -> u64 {
        self.sent.packets.saturating_sub(self.received.packets)
    }

    /// Share of the packets sent that was lost, from 0.0 to 1.0.
    pub fn loss(&self) -> f64 {
        loss(self.sent.packets, self.received.packets)
    }

    /// Reason why this says nothing about the device, if so.
    pub(crate) fn objection(&self) -> Option<String> {
        let (offered, sent, received) = (self.offered, self.sent.packets, self.received.packets);
        let missing = offered.saturating_sub(sent);
        if sent == 0 {
            Some("nothing was sent".to_owned())
        } else if missing > 1 && missing as f64 > SHORTFALL * offered as f64 {
            let percent = 100.0 * missing as f64 / offered as f64;
            Some(format!(
                "the generator sent {sent} of {offered} packets, {percent:.2} % short"
            ))
        } else if received > sent {
            Some(format!("{received} packets came back of {sent} sent"))
        } else {
            None
        }
    }
}

/// Share of `sent` packets that was lost, from 0.0 to 1.0.
pub(crate) fn loss(sent: u64, received: u64) -> f64 {
    if sent == 0 {
        0.0
    } else {
        sent.saturating_sub(received) as f64 / sent as f64
    }
}

/// The counters of a path at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reading {
    pub due: u64,
    pub sent: Count,
    pub received: Count,
    pub other: Count,
}

impl Reading {
    /// Reads the receiver first, so that it never shows more packets than were sent.
    pub fn of(path: &Path) -> Self {
        let (received, other) = (path.rx.counts().into_iter().sum(), path.rx.other());
        Self {
            due: path.tx.due(),
            sent: path.tx.sent().into_iter().sum(),
            received,
            other,
        }
    }

    pub fn all(paths: &[Path]) -> Vec<Self> {
        paths.iter().map(Self::of).collect()
    }

    pub fn since(&self, before: &Self) -> WayResult {
        WayResult {
            offered: self.due.saturating_sub(before.due),
            sent: self.sent.since(before.sent),
            received: self.received.since(before.received),
            other: self.other.since(before.other),
        }
    }

    /// Packets that the device had at the end of sending, `at_end`, and that are back now. Those
    /// that a late generator sent after the end were not in the device then.
    pub fn drained_since(&self, at_end: &Self) -> u64 {
        let after = self.since(at_end);
        after.received.packets.saturating_sub(after.sent.packets)
    }
}

/// Each direction from `then` to `now`.
pub(crate) fn between(then: &[Reading], now: &[Reading]) -> Vec<WayResult> {
    let both = now.iter().zip(then);
    both.map(|(now, then)| now.since(then)).collect()
}
