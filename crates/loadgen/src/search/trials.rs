//! The trials of a search: what they may offer, what they cost, and that invalid ones do not count.

use std::time::Duration;

use super::{Bound, Device, Effort, Limits, Sample};
use crate::device::Failure;
use crate::measure::search::SHORTEST;
use crate::model::units::Pps;

/// Attempts at a load before the generator is held to be unable to send it.
const ATTEMPTS: u32 = 3;
/// A generator that sent less than this share of the offer cannot send it; one that sent more was
/// perhaps held up for a moment.
const HELD_UP: f64 = 0.9;
/// Least load offered, as a share of the highest.
const LEAST: f64 = 1e-4;
/// Loads that differ by less are the same.
const SAME: f64 = 1e-3;

/// How a device is measured: by a trial, or a burst.
type Measure<'a> = fn(&mut (dyn Device + 'a), Pps, Duration) -> Result<Sample, Failure>;

/// Makes valid trials.
pub(super) struct Trials<'a> {
    pub device: &'a mut dyn Device,
    pub effort: Effort,
    /// The trial at the highest load, which comes first.
    pub first: Sample,
    /// Least load to offer, packets a second.
    pub least: f64,
    budget: Duration,
    /// Highest load that the generator has sent.
    sendable: f64,
    /// The generator cannot even send the least load.
    stuck: bool,
}

impl<'a> Trials<'a> {
    /// Warms up and makes a trial of `length` at the highest load.
    pub fn open(
        device: &'a mut dyn Device,
        limits: &Limits,
        length: Duration,
    ) -> Result<Self, Failure> {
        device.warm_up(limits.ceiling)?;
        let mut trials = Self {
            device,
            effort: Effort::default(),
            first: Sample::default(),
            least: 0.0,
            budget: limits.budget,
            sendable: 0.0,
            stuck: false,
        };
        // It is made in any case, but takes no more time than there is.
        let length = length.min(limits.budget).max(SHORTEST);
        let mut first = trials.make(Device::measure, limits.ceiling, length)?;
        for attempt in 1..ATTEMPTS {
            if !is_made_again(&first, limits.ceiling.0, attempt) || !trials.has_time(length) {
                break;
            }
            first = trials.make(Device::measure, limits.ceiling, length)?;
        }
        let ceiling = trials.device.nearest(limits.ceiling).0;
        let (mut top, mut bound) = (ceiling, Bound::Ceiling);
        if !limits.ceiling.is_limited() || !first.valid && first.sent_pps < top {
            (top, bound) = (first.sent_pps, Bound::Generator);
        }
        if limits.line.0 < top {
            (top, bound) = (limits.line.0, Bound::Line);
        }
        trials.first = first;
        trials.effort.top_pps = top;
        // One that was interrupted shows no limit.
        trials.effort.top_is = Some(bound).filter(|_| !first.interrupted);
        trials.effort.saturation_pps = first.forwarded_pps;
        trials.least = least(top, limits);
        Ok(trials)
    }

    /// The first trial, if it says something about the highest load.
    pub fn at_top(&self) -> Option<Sample> {
        let is_top = (self.first.sent_pps / self.top() - 1.0).abs() < SAME;
        Some(self.first).filter(|first| first.valid && is_top)
    }

    /// Goes on after a search that took `effort`, without another warm-up.
    pub fn resume(device: &'a mut dyn Device, limits: &Limits, effort: Effort) -> Self {
        Self {
            device,
            least: least(effort.top_pps, limits),
            effort,
            first: Sample::default(),
            budget: limits.budget,
            sendable: 0.0,
            stuck: false,
        }
    }

    /// Reason why there is nothing to search for.
    pub fn nothing(&self) -> Option<&'static str> {
        match (self.first.sent, self.first.forwarded_pps) {
            _ if self.first.interrupted => Some("interrupted"),
            (0, _) => Some("the generator sent nothing"),
            (_, 0.0) => Some("nothing came back"),
            _ => None,
        }
    }

    /// The highest load that may be offered, packets a second.
    pub fn top(&self) -> f64 {
        self.effort.top_pps
    }

    /// True if no further trial is to be made.
    pub fn is_over(&self) -> bool {
        self.effort.out_of_time || self.effort.interrupted || self.stuck
    }

    /// Makes a trial that is valid. None if there is no time for it, if it was interrupted, or if the
    /// generator cannot send the load: then the highest load is lower from now on.
    pub fn valid(&mut self, load: f64, length: Duration) -> Result<Option<Sample>, Failure> {
        self.valid_of(Device::measure, load, length)
    }

    /// As [`valid`](Self::valid), of a burst.
    pub fn burst(&mut self, load: f64, length: Duration) -> Result<Option<Sample>, Failure> {
        self.valid_of(Device::burst, load, length)
    }

    fn valid_of(
        &mut self,
        measure: Measure<'a>,
        load: f64,
        length: Duration,
    ) -> Result<Option<Sample>, Failure> {
        for attempt in 1..=ATTEMPTS {
            self.effort.out_of_time |= !self.has_time(length);
            if self.effort.out_of_time {
                return Ok(None);
            }
            let sample = self.make(measure, Pps(load), length)?;
            if sample.interrupted {
                return Ok(None);
            }
            if sample.valid {
                self.sendable = load.min(self.top()).max(self.sendable);
                return Ok(Some(sample));
            }
            if !is_made_again(&sample, load, attempt) {
                self.effort.top_is = Some(Bound::Generator);
                self.stuck = load <= self.least;
                // Below the load in any case, so that it is not offered again, but not below one that
                // was sent.
                let below = load * (1.0 - SAME);
                let sent = sample.sent_pps.max(self.sendable).min(below);
                self.effort.top_pps = sent.min(self.top()).max(self.least);
                break;
            }
        }
        Ok(None)
    }

    /// True if there is time for a trial.
    fn has_time(&self, length: Duration) -> bool {
        Duration::from_secs_f64(self.effort.seconds) + length <= self.budget
    }

    fn make(
        &mut self,
        measure: Measure<'a>,
        load: Pps,
        length: Duration,
    ) -> Result<Sample, Failure> {
        let sample = measure(self.device, load, length)?;
        self.effort.interrupted |= sample.interrupted || self.device.is_interrupted();
        if sample.seconds > 0.0 {
            self.effort.trials += 1;
            self.effort.seconds += sample.seconds;
        }
        let is_invalid = !sample.valid && !sample.interrupted;
        self.effort.invalid_trials += u32::from(is_invalid);
        self.effort.late_trials += u32::from(is_invalid && sample.late);
        Ok(sample)
    }
}

/// True if a trial at a load is not valid, but perhaps only because the generator was held up for a
/// moment: where it sent much less, a second attempt shows that.
fn is_made_again(sample: &Sample, load: f64, attempt: u32) -> bool {
    let was_held_up = load.is_finite() && (attempt == 1 || sample.sent_pps >= HELD_UP * load);
    !sample.valid && !sample.interrupted && was_held_up && attempt < ATTEMPTS
}

/// The least load of a search whose highest is `top`.
fn least(top: f64, limits: &Limits) -> f64 {
    (LEAST * top).max(limits.floor.0).max(1.0)
}
