//! Published methods to find what a device forwards: MLRsearch ([`mlrsearch`]), a plain binary
//! search ([`binary`]), the tests of RFC 2544 ([`rfc2544`]) and a long one for the load at which loss
//! begins ([`soak`]).
//!
//! All make trials of a [`Device`] and know nothing of ports or clocks: a ports' [`Runs`] is one, a
//! formula in a test another. Loads are totals of all directions. A trial in which the generator fell
//! short is invalid: it is made again, and never counts as loss; if that does not help, no higher
//! load is offered, and the result says what bounds it.
//!
//! [`Runs`]: crate::measure::search::runs::Runs

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::device::Failure;
use crate::measure::search::Event;
use crate::model::units::Pps;

pub mod binary;
pub mod classify;
pub mod mlrsearch;
pub mod ports;
pub mod rfc2544;
pub mod soak;
#[cfg(test)]
mod tests;
pub mod trials;

/// What can be measured: trials at a load for a time.
pub trait Device {
    /// Lets caches fill, with no more than `ceiling`. Nothing of it counts.
    ///
    /// # Errors
    /// If the generator cannot send.
    fn warm_up(&mut self, ceiling: Pps) -> Result<(), Failure>;

    /// Offers `load` packets a second, all directions together, for `length`;
    /// [`Pps::UNLIMITED`] is flat out.
    ///
    /// # Errors
    /// If the generator cannot send.
    fn measure(&mut self, load: Pps, length: Duration) -> Result<Sample, Failure>;

    /// As [`measure`](Self::measure), for a burst, which may be shorter than a trial and is none.
    ///
    /// # Errors
    /// As [`measure`](Self::measure).
    fn burst(&mut self, load: Pps, length: Duration) -> Result<Sample, Failure> {
        self.measure(load, length)
    }

    /// The load that is really offered where `load` is asked for.
    fn nearest(&self, load: Pps) -> Pps {
        load
    }

    /// Counts of streams begin anew.
    fn start_over(&mut self) {}

    /// True if the measurement is to end early.
    fn is_interrupted(&self) -> bool {
        false
    }

    /// Hears how far a search is.
    fn tell(&mut self, _event: Event) {}
}

/// The result of a trial, all directions together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sample {
    /// Packets sent.
    pub sent: u64,
    /// Packets that never came back.
    pub lost: u64,
    /// Packets that waited in the device when sending ended and came back later: in a longer trial
    /// they would have been lost.
    pub held: u64,
    /// Largest share lost or held of what a direction sent, from 0.0 to 1.0.
    pub loss: f64,
    /// Packets sent a second.
    pub sent_pps: f64,
    /// Packets that came back a second.
    pub forwarded_pps: f64,
    /// Time of sending in seconds.
    pub seconds: f64,
    /// False if the generator sent less than was offered, so that this says nothing about the
    /// device.
    pub valid: bool,
    /// True if it is not valid because sending was held up.
    pub late: bool,
    /// It ended early, because somebody asked for that.
    pub interrupted: bool,
}

/// What a search may offer, and how long it may take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Highest load that may ever be offered; without a limit a trial flat out shows the most that
    /// the generator can.
    pub ceiling: Pps,
    /// Highest load worth offering: that of the line.
    pub line: Pps,
    /// Least load to offer: that of streams which keep their rate.
    pub floor: Pps,
    /// Time of sending of all trials. When it is used up, the result is what is known by then.
    pub budget: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            ceiling: Pps::UNLIMITED,
            line: Pps::UNLIMITED,
            floor: Pps(0.0),
            budget: Duration::from_secs(1200),
        }
    }
}

/// What bounds the loads of a search from above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The generator can send no more.
    Generator,
    /// The line carries no more.
    Line,
    /// No more may be sent.
    Ceiling,
}

/// The cost of a search, and what ended it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Effort {
    /// Trials and bursts made, without the warm-up and attempts that were made again because they
    /// were disturbed or late.
    pub trials: u32,
    /// Those of them that say nothing about the device: the generator fell short, or was held up.
    pub invalid_trials: u32,
    /// Those of the invalid ones in which it was held up, at each attempt.
    pub late_trials: u32,
    /// Time of sending of all trials in seconds.
    pub seconds: f64,
    /// Highest load that was or would have been offered, packets a second.
    pub top_pps: f64,
    /// What bounds it; none if the first trial was interrupted.
    pub top_is: Option<Bound>,
    /// Rate that came back in the first trial, at the highest load, packets a second.
    pub saturation_pps: f64,
    /// The time was used up.
    pub out_of_time: bool,
    /// Somebody ended it early.
    pub interrupted: bool,
}

impl Effort {
    /// What bounds the highest load, in words.
    pub fn top_is_why(&self) -> &'static str {
        match self.top_is {
            None => "",
            Some(Bound::Generator) => "the generator can send no more",
            Some(Bound::Line) => "the line carries no more",
            Some(Bound::Ceiling) => "no more may be sent",
        }
    }
}
