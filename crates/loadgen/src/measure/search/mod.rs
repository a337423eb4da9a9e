//! Searches for the highest rate that a device forwards with no more loss than allowed.
//!
//! After a warm-up comes a trial flat out, which shows what the generator can send and what the
//! device then forwards. If there is time, a ramp from below to above that rate follows, which
//! shows how the device behaves. Each trial that passes or fails updates a
//! [`Threshold`](crate::measure::threshold::Threshold). The next trials are made on both sides of
//! its median until it is known well enough or time is nearly up. The last ones are longer, at the
//! median or, if that fails, below it; they confirm the result or correct it.
//!
//! A trial fails, too, if the device's queues absorb what it cannot forward: they drain when sending
//! has ended, but a longer trial would fill them. A rate that the generator could not send bounds
//! the search, and the result says so.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::runs::Runs;
use self::verdicts::Search;
use crate::clock::Clock;
use crate::device::{Failure, Path};
use crate::measure::point::Point;
use crate::measure::trial::Trial;
use crate::model::units::Pps;

pub mod runs;
mod verdicts;

/// Shortest trial of a search.
pub const SHORTEST: Duration = Duration::from_secs(1);

/// Length of a confirming trial, in lengths of a searching one.
const LONGER: u32 = 3;

/// The goal of a search, and its limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// Loss allowed, as a share of what was sent.
    pub loss: f64,
    /// Length of a trial, at least [`SHORTEST`]; those that confirm the result take three times as
    /// long.
    pub trial: Duration,
    /// Time for all trials. The warm-up, the trial flat out and one more are made in any case.
    pub budget: Duration,
    /// The search ends when the interval of the rate is no wider than this, relative to the rate.
    pub width: f64,
    /// Highest rate worth offering in each direction, such as the line rate.
    pub limit: Pps,
    /// Highest rate that may be sent in each direction, in place of flat out too.
    pub ceiling: Pps,
    /// Least rate to offer in each direction: that of streams which keep their own.
    pub floor: Pps,
}

impl Default for Goal {
    fn default() -> Self {
        Self {
            loss: 0.001,
            trial: SHORTEST,
            budget: Duration::from_secs(20),
            width: 0.01,
            limit: Pps::UNLIMITED,
            ceiling: Pps::UNLIMITED,
            floor: Pps(0.0),
        }
    }
}

impl Goal {
    /// Length of a searching trial.
    fn short(&self) -> Duration {
        self.trial.max(SHORTEST)
    }

    /// Highest rate to offer in each direction, packets a second.
    fn highest(&self) -> f64 {
        self.limit.0.min(self.ceiling.0)
    }

    /// Length of a confirming trial.
    fn longer(&self) -> Duration {
        LONGER * self.short()
    }
}

/// A report of a running search, as one JSON object a line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The warm-up begins. Its result is discarded.
    WarmUp,
    /// A trial begins.
    TrialStart {
        /// The generator sends as fast as it can.
        flat_out: bool,
        /// Rate offered, all directions, packets a second; 0 if flat out.
        offered_pps: f64,
    },
    /// The trial has ended, and late packets are counted.
    TrialEnd {
        /// As in the start.
        flat_out: bool,
        /// As in the start.
        offered_pps: f64,
        /// Packets sent, all directions.
        sent: u64,
        /// Packets that came back, all directions.
        received: u64,
        /// Rate that came back, all directions, packets a second; of a device that does not keep
        /// up, while packets were sent.
        #[serde(default)]
        forwarded_pps: f64,
        /// Time of sending in seconds.
        seconds: f64,
        /// True if the generator sent what was offered.
        valid: bool,
        /// True if sending was held up: it took longer than the packets have time, and the trial is
        /// not valid.
        #[serde(default)]
        late: bool,
    },
    /// What trials have shown by now of the highest rate.
    Bounds {
        /// Loss that it may have, as a share.
        allowed: f64,
        /// The device forwards this, all directions, packets a second.
        lower_pps: Option<f64>,
        /// It does not forward this.
        upper_pps: Option<f64>,
    },
}

/// Hears of a running search.
pub trait Observer {
    /// Something begins or has ended.
    fn event(&mut self, event: Event);

    /// Why the trial that has just ended is not to be compared with others, if the machine did not
    /// keep still.
    fn disturbance(&mut self) -> Option<String> {
        None
    }
}

impl<F: FnMut(Event)> Observer for F {
    fn event(&mut self, event: Event) {
        self(event);
    }
}

/// The result of a search. Rates are totals of all directions, in packets a second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Found {
    /// True if a rate was found.
    pub valid: bool,
    /// Reason why none was found, or what bounds the rate.
    pub why: String,
    /// The rate at which as many trials pass as fail, but no higher than the highest that passed; to
    /// pass, no direction may lose or hold more than allowed. For a device that behaves the same in
    /// every trial, it is the highest that passes. 0 if none was found.
    pub max_pps: f64,
    /// The rate lies between these two with a confidence of 95 %.
    pub interval_pps: Option<(f64, f64)>,
    /// True if a trial three times as long as the others passed within the interval.
    pub confirmed: bool,
    /// `max_pps` on the wire, in bits a second.
    pub l1_bps: f64,
    /// Loss in the nearest long trial that passed, from 0.0 to 1.0.
    pub loss: f64,
    /// Rate that came back while the generator sent as fast as it could, whatever the loss. None
    /// where it might not.
    pub saturation_pps: Option<f64>,
    /// Rate that the generator sent then: the most it can offer to this device.
    pub flat_out_pps: Option<f64>,
    /// `max_pps` is bounded not by loss but by the generator, or by a device that takes the
    /// generator's processor.
    pub limited_by_generator: bool,
    /// True if the search was ended early.
    pub interrupted: bool,
    /// All trials in order; the first is flat out, or as fast as allowed.
    pub trials: Vec<Point>,
}

impl Found {
    /// The result, where `interrupted` as one of a search that was ended early.
    #[must_use]
    pub fn ended_early(self, interrupted: bool) -> Self {
        if !interrupted {
            return self;
        }
        let why = match self.why.as_str() {
            "" => "interrupted".to_owned(),
            why => format!("interrupted; {why}"),
        };
        Self {
            interrupted,
            why,
            ..self
        }
    }
}

/// Makes one trial as fast as the generator can send, after a warm-up. If the clock is interrupted,
/// it ends early.
///
/// # Errors
/// If a generator cannot send.
pub fn flat_out(
    paths: &mut [Path],
    goal: &Goal,
    clock: &dyn Clock,
    watch: &mut dyn Observer,
) -> Result<Trial, Failure> {
    let mut runs = Runs::new(paths, clock, watch);
    runs.warm_up(goal.ceiling)?;
    runs.start_over();
    runs.trial(goal.ceiling, goal.short())
}

/// Finds the highest rate with no more loss than `goal` allows. Each direction is offered the same
/// rate. If the clock is interrupted, the result is that of the trials that were complete.
///
/// # Errors
/// If a generator cannot send. To find no rate is not an error; then [`Found::valid`] is false.
pub fn max_rate(
    paths: &mut [Path],
    goal: &Goal,
    clock: &dyn Clock,
    watch: &mut dyn Observer,
) -> Result<Found, Failure> {
    max_rate_of(&mut Runs::new(paths, clock, watch), goal)
}

/// As [`max_rate`], with the trials of `runs`, which has made none yet.
///
/// # Errors
/// As [`max_rate`].
pub fn max_rate_of(runs: &mut Runs<'_>, goal: &Goal) -> Result<Found, Failure> {
    let deadline = runs.now().after(goal.budget);
    let left = |runs: &Runs<'_>| deadline.since(runs.now());
    runs.warm_up(goal.ceiling)?;
    runs.start_over();
    let mut flat = runs.trial(goal.ceiling, goal.short())?;
    if !flat.valid && flat.rate.is_limited() && left(runs) >= goal.short() {
        // The generator may have been held up for a moment.
        flat = runs.trial(goal.ceiling, goal.short())?;
    }
    let mut search = Search::new(&flat, goal);
    if flat.received() > 0 {
        for rate in search.ramp(&flat) {
            let trial = runs.trial(rate, goal.short())?;
            search.learn(trial, goal.short());
        }
        while !runs.is_interrupted()
            && let Some((rate, length)) = search.next(left(runs))
        {
            let trial = runs.trial(rate, length)?;
            search.learn(trial, length);
            if search.has_passed_at_the_top() && left(runs) >= 2 * goal.short() {
                flat = runs.trial(goal.ceiling, goal.short())?;
                search.raise(&flat);
            }
        }
    }
    let found = search.conclude(&flat, runs.points.clone());
    Ok(found.ended_early(runs.is_interrupted()))
}

#[cfg(test)]
mod tests;
