//! Looks for the highest rate that a device forwards with no more loss than allowed.
//!
//! After a warm-up comes a trial flat out: what the generator can send, and what the device forwards then. If there is
//! time, a ramp from below to above that, which shows how the device behaves. All that passes or fails tells a
//! [`Threshold`](crate::measure::threshold::Threshold); the next trials go to both sides of its median until it is known well enough or the time is nearly up.
//! The last ones are longer and at the median or, if that fails, below it: they confirm it or put it right.
//!
//! A short trial flatters a device with deep queues, which swallow what it cannot forward. What came back only after the
//! sending had ended, beyond what is on its way at a light load, is therefore taken off the rate that the trial stands
//! for. A rate that the generator could not send is a bound of the search, and said to be the generator's.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::runs::Runs;
use self::verdicts::Search;
use crate::clock::Clock;
use crate::device::{Failure, Path};
use crate::measure::point::Point;
use crate::measure::trial::Trial;
use crate::model::units::Pps;

mod runs;
mod verdicts;

/// Shortest trial of a search.
pub const SHORTEST: Duration = Duration::from_secs(1);

/// A trial that confirms is so many times as long as one that looks.
const LONGER: u32 = 3;

/// What to look for, and how long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// Loss allowed, as a share of what was sent.
    pub loss: f64,
    /// Length of a trial, [`SHORTEST`] at least; those that confirm the result take three times as long.
    pub trial: Duration,
    /// Time for all trials. Warm-up, the trial flat out and one more are made in any case.
    pub budget: Duration,
    /// The search ends when the rate is known as well as this: its interval is no wider, as a share.
    pub width: f64,
    /// Highest rate to offer each way, such as the line rate.
    pub limit: Pps,
}

impl Default for Goal {
    fn default() -> Self {
        Goal {
            loss: 0.001,
            trial: SHORTEST,
            budget: Duration::from_secs(20),
            width: 0.01,
            limit: Pps::UNLIMITED,
        }
    }
}

impl Goal {
    /// Length of a trial that looks.
    fn short(&self) -> Duration {
        self.trial.max(SHORTEST)
    }

    /// Length of a trial that confirms.
    fn longer(&self) -> Duration {
        LONGER * self.short()
    }
}

/// What a search tells while it runs, a JSON object a line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The warm-up begins, whose result is thrown away.
    WarmUp,
    /// A trial begins.
    TrialStart {
        /// The generator sends as fast as it can.
        flat_out: bool,
        /// Rate wanted of all ways, packets a second; 0 if flat out.
        offered_pps: f64,
    },
    /// The trial is over; what was on its way is counted.
    TrialEnd {
        /// As in the start.
        flat_out: bool,
        /// As in the start.
        offered_pps: f64,
        /// Packets sent, all ways.
        sent: u64,
        /// Packets that came back, all ways.
        received: u64,
        /// Time of sending in seconds.
        seconds: f64,
        /// The generator did what it was asked.
        valid: bool,
    },
}

/// What a search found. Rates are sums of all ways, in packets a second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// A rate was found.
    pub valid: bool,
    /// Why not, or what bounds the rate.
    pub why: String,
    /// The rate that as many trials pass as fail, no way losing more than allowed: for a device that does the same
    /// in every trial, the highest that passes. 0 if none.
    pub max_pps: f64,
    /// The rate lies between these with a confidence of 95 %.
    #[serde(default)]
    pub interval_pps: Option<(f64, f64)>,
    /// A trial three times as long as the others passed within the interval.
    #[serde(default)]
    pub confirmed: bool,
    /// `max_pps` on the wire in bits a second.
    pub l1_bps: f64,
    /// Loss in the longest trial that passed next to it, 0.0 to 1.0.
    pub loss: f64,
    /// Rate that came back while the generator sent as fast as it could, whatever was lost.
    pub saturation_pps: Option<f64>,
    /// Rate the generator sent then: more it cannot offer to this device.
    pub flat_out_pps: Option<f64>,
    /// What bounds `max_pps` is the generator, or a device that takes the generator's processor; not loss.
    pub limited_by_generator: bool,
    /// All trials in order, one flat out first.
    pub trials: Vec<Point>,
}

/// One trial as fast as the generator can, after a warm-up.
///
/// # Errors
/// If a generator cannot send.
pub fn flat_out(
    paths: &mut [Path],
    goal: &Goal,
    clock: &dyn Clock,
    watch: &mut dyn FnMut(Event),
) -> Result<Trial, Failure> {
    let mut runs = Runs::new(paths, clock, watch);
    runs.warm_up()?;
    runs.trial(Pps::UNLIMITED, goal.short())
}

/// Finds the highest rate with no more loss than `goal` allows; the same rate is offered each way.
///
/// # Errors
/// If a generator cannot send. Finding nothing is no error but [`Found::valid`] false.
pub fn max_rate(
    paths: &mut [Path],
    goal: &Goal,
    clock: &dyn Clock,
    watch: &mut dyn FnMut(Event),
) -> Result<Found, Failure> {
    let deadline = clock.now().after(goal.budget);
    let left = || deadline.since(clock.now());
    let mut runs = Runs::new(paths, clock, watch);
    let in_flight = runs.in_flight(goal.limit)?;
    let mut flat = runs.trial(Pps::UNLIMITED, goal.short())?;
    let mut search = Search::new(&flat, in_flight, goal);
    if flat.received() > 0 {
        for rate in search.ramp(&flat) {
            let trial = runs.trial(rate, goal.short())?;
            search.learn(trial, goal.short());
        }
        while let Some((rate, length)) = search.next(left()) {
            let trial = runs.trial(rate, length)?;
            search.learn(trial, length);
            if search.has_passed_at_the_top() && left() >= 2 * goal.short() {
                flat = runs.trial(Pps::UNLIMITED, goal.short())?;
                search.raise(&flat);
            }
        }
    }
    Ok(search.conclude(&flat, runs.points))
}

#[cfg(test)]
mod tests;
