//! Looks for the highest rate that a device forwards with no more loss than allowed.
//!
//! First a trial flat out: what the generator can send, and what the device forwards then. If there is time, a ramp from below
//! to above that, which shows how the device behaves. From there the search
//! goes up or down in growing steps until a rate that passes and one that does not enclose the answer, and halves
//! the gap until it is narrow or time is up. A rate that the generator could not send is a bound of the search, and
//! said to be the generator's.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::{Clock, Nanos};
use crate::device::{Failure, Path};
use crate::report::model::RampPoint;
use crate::trial::{self, Trial};
use crate::units::Pps;

/// Shortest trial of a search.
pub const SHORTEST: Duration = Duration::from_secs(1);

/// Rates of the ramp, as shares of what came back flat out.
const RAMP: [f64; 5] = [0.2, 0.4, 0.6, 0.8, 1.5];
/// Trials that the budget must have room for if there is to be a ramp.
const RAMP_FROM: u32 = 15;

/// What to look for, and how long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// Loss allowed, as a share of what was sent.
    pub loss: f64,
    /// Length of a trial; [`SHORTEST`] at least.
    pub trial: Duration,
    /// Time for all trials. The trial flat out and one more are made in any case.
    pub budget: Duration,
    /// The search ends when passing and failing rate are closer than this share.
    pub width: f64,
    /// Highest rate to offer each way, such as the line rate.
    pub limit: Pps,
}

impl Default for Goal {
    fn default() -> Self {
        Goal {
            loss: 0.001,
            trial: SHORTEST,
            budget: Duration::from_secs(12),
            width: 0.01,
            limit: Pps::UNLIMITED,
        }
    }
}

/// What a search tells while it runs, a JSON object a line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
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
    /// Highest rate sent in a valid trial with no more loss than allowed; 0 if none.
    pub max_pps: f64,
    /// `max_pps` on the wire in bits a second.
    pub l1_bps: f64,
    /// Loss in that trial, 0.0 to 1.0.
    pub loss: f64,
    /// Rate that came back while the generator sent as fast as it could, whatever was lost.
    pub saturation_pps: Option<f64>,
    /// Rate the generator sent then: more it cannot offer to this device.
    pub flat_out_pps: Option<f64>,
    /// What bounds `max_pps` is the generator, or a device that takes the generator's processor; not loss.
    pub limited_by_generator: bool,
    /// All trials in order, the one flat out first.
    pub trials: Vec<RampPoint>,
}

/// One trial as fast as the generator can.
///
/// # Errors
/// If a generator cannot send.
pub fn flat_out(
    paths: &mut [Path],
    goal: &Goal,
    clock: &dyn Clock,
    watch: &mut dyn FnMut(Event),
) -> Result<Trial, Failure> {
    let begin = Event::TrialStart {
        flat_out: true,
        offered_pps: 0.0,
    };
    measure(paths, Pps::UNLIMITED, goal, clock, begin, watch)
}

fn measure(
    paths: &mut [Path],
    rate: Pps,
    goal: &Goal,
    clock: &dyn Clock,
    begin: Event,
    watch: &mut dyn FnMut(Event),
) -> Result<Trial, Failure> {
    watch(begin);
    let trial = trial::run(paths, rate, goal.trial.max(SHORTEST), clock)?;
    let flat_out = !rate.is_limited();
    watch(Event::TrialEnd {
        flat_out,
        offered_pps: if flat_out { 0.0 } else { trial.offered_pps().0 },
        sent: trial.sent(),
        received: trial.received(),
        seconds: trial.seconds,
        valid: trial.valid,
    });
    Ok(trial)
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
    let flat = flat_out(paths, goal, clock, watch)?;
    let ways = paths.len().max(1) as f64;
    let mut bounds = Bounds::new(&flat, goal, ways);
    let mut found = Found {
        saturation_pps: Some(flat.received_pps().0),
        flat_out_pps: Some(flat.sent_pps().0),
        trials: vec![flat.point()],
        ..Found::default()
    };
    if flat.sent() == 0 || flat.received() == 0 {
        found.why = if flat.sent() == 0 {
            "the generator sent nothing"
        } else {
            "nothing came back"
        }
        .to_owned();
        return Ok(found);
    }
    for rate in ramp(&bounds, &flat, goal) {
        let trial = paced(paths, rate, goal, clock, watch)?;
        found.trials.push(trial.point());
    }
    let mut last = None;
    while let Some(rate) = bounds.next(goal) {
        if last.is_some() && !has_time(clock.now(), deadline, goal) {
            break;
        }
        let trial = paced(paths, rate, goal, clock, watch)?;
        found.trials.push(trial.point());
        bounds.note(&trial, goal);
        last = Some(trial);
    }
    bounds.conclude(&mut found, last.as_ref(), goal);
    Ok(found)
}

/// A trial at `rate` each way.
fn paced(
    paths: &mut [Path],
    rate: Pps,
    goal: &Goal,
    clock: &dyn Clock,
    watch: &mut dyn FnMut(Event),
) -> Result<Trial, Failure> {
    let begin = Event::TrialStart {
        flat_out: false,
        offered_pps: rate.0 * paths.len().max(1) as f64,
    };
    measure(paths, rate, goal, clock, begin, watch)
}

/// The rates of the ramp, each way; none if the search would miss the time.
fn ramp(bounds: &Bounds, flat: &Trial, goal: &Goal) -> Vec<Pps> {
    if goal.budget < RAMP_FROM * goal.trial.max(SHORTEST) {
        return Vec::new();
    }
    let back = flat.received_pps().0 / bounds.ways;
    let rates = RAMP.map(|share| share * back);
    let sendable = rates.into_iter().filter(|rate| *rate <= bounds.top);
    sendable.map(Pps).collect()
}

fn has_time(now: Nanos, deadline: Nanos, goal: &Goal) -> bool {
    now.after(goal.trial.max(SHORTEST)) <= deadline
}

/// A rate that did not pass, each way.
#[derive(Debug, Clone, Copy)]
struct Upper {
    rate: f64,
    /// The generator could not send it.
    by_generator: bool,
    /// It is being tried, or has been tried, a second time.
    again: bool,
}

/// What is known so far. Rates are each way.
struct Bounds {
    ways: f64,
    /// The trial at the highest rate that passed.
    low: Option<Trial>,
    /// The lowest rate that did not.
    high: Option<Upper>,
    /// No rate above is offered: the generator's ceiling or the limit.
    top: f64,
    top_by_generator: bool,
    next: f64,
    steps: usize,
    /// Rate of a trial that the generator did not keep to, and that is made again.
    doubtful: Option<f64>,
}

/// A generator that sent this share of the offer may have been held up for a moment; one that sent less cannot send it.
const HELD_UP: f64 = 0.9;

/// How far the search goes up and down with each step as long as it knows one bound only.
const UP: [f64; 5] = [1.03, 1.1, 1.25, 1.6, 2.0];
const DOWN: [f64; 5] = [0.97, 0.9, 0.75, 0.5, 0.25];

impl Bounds {
    fn new(flat: &Trial, goal: &Goal, ways: f64) -> Bounds {
        let ceiling = flat.sent_pps().0 / ways;
        let top = ceiling.min(goal.limit.0);
        // A device that loses nothing up to its capacity forwards that flat out too: begin just below.
        let next = (flat.received_pps().0 / ways * DOWN[0]).min(top);
        Bounds {
            ways,
            low: None,
            high: None,
            top,
            top_by_generator: ceiling <= goal.limit.0,
            next,
            steps: 0,
            doubtful: None,
        }
    }

    fn low_rate(&self) -> f64 {
        self.low.as_ref().map_or(0.0, |t| t.rate.0)
    }

    /// The lowest rate that cannot pass as far as is known, and whether that is the generator's doing.
    fn bound(&self) -> (f64, bool) {
        self.high.map_or((self.top, self.top_by_generator), |h| {
            (h.rate, h.by_generator)
        })
    }

    /// The rate to try; None when the bounds are close enough.
    fn next(&mut self, goal: &Goal) -> Option<Pps> {
        let (bound, _) = self.bound();
        if bound - self.low_rate() > goal.width * bound {
            return Some(Pps(self.next));
        }
        // A neighbour of this machine may have spoilt the failing trial: time that is left is spent on a second one.
        let high = self.high.as_mut().filter(|h| !h.again)?;
        high.again = true;
        Some(Pps(high.rate))
    }

    fn note(&mut self, trial: &Trial, goal: &Goal) {
        if trial.valid && trial.loss() <= goal.loss {
            self.passed(trial);
        } else {
            self.failed(trial);
        }
    }

    fn passed(&mut self, trial: &Trial) {
        let rate = trial.rate.0;
        self.low = Some(trial.clone());
        if self.high.is_some_and(|h| h.rate <= rate) {
            self.high = None;
            self.steps = 0;
        }
        self.next = match self.high {
            Some(high) => f64::midpoint(rate, high.rate),
            None => (rate * self.step(&UP)).min(self.top),
        };
    }

    fn failed(&mut self, trial: &Trial) {
        let rate = trial.rate.0;
        let held_up = !trial.valid && trial.sent_pps().0 >= HELD_UP * trial.offered_pps().0;
        if held_up && self.doubtful.replace(rate) != Some(rate) {
            self.next = rate;
            return;
        }
        let again = self.high.is_some_and(|h| h.again);
        self.high = Some(Upper {
            rate,
            by_generator: !trial.valid,
            again,
        });
        self.next = if self.low.is_some() {
            f64::midpoint(self.low_rate(), rate)
        } else {
            let forwarded = trial.received_pps().0 / self.ways;
            (forwarded * DOWN[0])
                .min(rate * self.step(&DOWN))
                .max(rate / 16.0)
        };
    }

    /// The next of growing steps.
    fn step(&mut self, steps: &[f64; 5]) -> f64 {
        let step = steps[self.steps.min(steps.len() - 1)];
        self.steps += 1;
        step
    }

    fn conclude(&self, found: &mut Found, last: Option<&Trial>, goal: &Goal) {
        let Some(best) = &self.low else {
            found.limited_by_generator = last.is_some_and(|t| !t.valid);
            found.why = format!("no valid trial lost {} % or less", goal.loss * 100.0);
            if let Some(said) = last.map(|t| t.why.as_str()).filter(|why| !why.is_empty()) {
                found.why += &format!(" ({said})");
            }
            return;
        };
        found.valid = true;
        found.max_pps = best.sent_pps().0;
        found.l1_bps = best.l1().0;
        found.loss = best.loss();
        let (bound, by_generator) = self.bound();
        let near = bound - best.rate.0 <= 3.0 * goal.width * bound;
        found.limited_by_generator = by_generator && near;
        if found.limited_by_generator {
            found.why =
                "the generator, or a device that shares its processor, sent no more".to_owned();
        } else if !near {
            found.why =
                "the time was up before the search was: the device may be faster".to_owned();
        }
    }
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
