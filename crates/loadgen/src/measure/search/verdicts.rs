//! The verdicts of a search's trials, and the rate of the next one.

use std::time::Duration;

use super::{Found, Goal};
use crate::measure::point::Point;
use crate::measure::threshold::Threshold;
use crate::measure::trial::Trial;
use crate::model::units::Pps;

/// Rates of the ramp, as shares of the rate that came back flat out.
pub const RAMP: [f64; 5] = [0.2, 0.4, 0.6, 0.8, 1.5];
/// There is a ramp if the budget has room for this many trials.
const RAMP_FROM: u32 = 24;
/// Confirming trials for which time is reserved.
const CONFIRMING: u32 = 2;
/// Time for the late packets of each, at least.
const SETTLING: Duration = Duration::from_millis(100);
/// Searching trials are made in turn at the rates below which the threshold lies with these
/// probabilities: verdicts on both sides of it show how much they scatter.
const SIDES: [f64; 2] = [0.2, 0.8];
/// The same of confirming trials: the first at the median, the next below it.
const CONFIRM_AT: [f64; 2] = [0.5, 0.25];
/// Farthest that the threshold may be from the rates seen flat out, as a factor.
const FAR: f64 = 16.0;
/// A generator that sent this share of the offer may have been held up for a moment; one that sent
/// less cannot send the rate.
const HELD_UP: f64 = 0.9;

/// The verdicts so far. Rates are those of each direction.
pub struct Search<'a> {
    goal: &'a Goal,
    ways: f64,
    /// The highest rate that the device can sustain.
    threshold: Threshold,
    /// Highest rate to offer: the generator's ceiling or the limit.
    top: f64,
    /// True if the ceiling has been measured again and was no higher.
    top_is_sure: bool,
    verdicts: Vec<Verdict>,
    /// A trial to be made again, because the generator did not send what was offered.
    again: Option<(Pps, Duration)>,
}

/// The verdict of a trial.
struct Verdict {
    /// Rate offered in each direction.
    rate: f64,
    passed: bool,
    /// The intended length.
    length: Duration,
    trial: Trial,
}

impl<'a> Search<'a> {
    pub fn new(flat: &Trial, goal: &'a Goal) -> Self {
        let ways = flat.ways.len().max(1) as f64;
        let ceiling = flat.sent_pps().0 / ways;
        // A device without loss up to its capacity forwards that much flat out, too.
        let likely = (flat.forwarded.0 / ways).max(1.0);
        let mut search = Self {
            goal,
            ways,
            threshold: Threshold::near(likely, likely / FAR, likely.max(ceiling) * FAR),
            top: ceiling.min(goal.highest()),
            top_is_sure: false,
            verdicts: Vec::new(),
            again: None,
        };
        search.judge_flat(flat);
        search
    }

    /// The rates of the ramp in each direction; none if the search needs the time.
    pub fn ramp(&self, flat: &Trial) -> Vec<Pps> {
        if self.goal.budget < RAMP_FROM * self.goal.short() {
            return Vec::new();
        }
        let rates = RAMP.map(|share| share * flat.forwarded.0 / self.ways);
        let sendable = |rate: &f64| (self.goal.floor.0..=self.top).contains(rate);
        let sendable = rates.into_iter().filter(sendable);
        sendable.map(Pps).collect()
    }

    /// Rate and length of the next trial; None if enough is known or too little time is left.
    pub fn next(&self, left: Duration) -> Option<(Pps, Duration)> {
        if let Some((rate, length)) = self.again
            && left >= length
        {
            return Some((rate, length));
        }
        let (short, longer) = (self.goal.short(), self.goal.longer());
        let (low, high) = self.threshold.interval();
        let known = high - low <= self.goal.width * high || low >= self.top;
        if known && self.confirmation().is_some() {
            return None;
        }
        let paced = self
            .verdicts
            .iter()
            .filter(|v| v.trial.rate.is_limited())
            .count();
        let has_passed = self.verdicts.iter().any(|v| v.passed);
        let (length, place) = if !has_passed {
            (short, SIDES[0])
        } else if known || left < short + CONFIRMING * (longer + SETTLING) {
            (
                longer.min(left).max(short),
                CONFIRM_AT[self.longer_trials().count().min(1)],
            )
        } else {
            (short, SIDES[paced % SIDES.len()])
        };
        let rate = self
            .threshold
            .quantile(place)
            .min(self.top)
            .max(self.goal.floor.0);
        (paced == 0 || left >= length).then_some((Pps(rate), length))
    }

    /// Learns from a trial. If the generator was held up, it is made once more instead.
    pub fn learn(&mut self, trial: Trial, length: Duration) {
        if trial.interrupted {
            return;
        }
        let held_up = !trial.valid && trial.sent_pps().0 >= HELD_UP * trial.offered_pps().0;
        if held_up && self.again.is_none() {
            self.again = Some((trial.rate, length));
            return;
        }
        self.again = None;
        self.judge(trial, length);
    }

    fn judge(&mut self, trial: Trial, length: Duration) {
        let offered = trial.offered_pps().0;
        if offered <= 0.0 {
            return;
        }
        let rate = offered / self.ways;
        let passed = trial.passes(self.goal.loss);
        self.threshold.learn(rate, passed);
        self.verdicts.push(Verdict {
            rate,
            passed,
            length,
            trial,
        });
    }

    /// True if the device has forwarded the most that the generator is known to send.
    pub fn has_passed_at_the_top(&self) -> bool {
        let last = self.verdicts.last().filter(|v| v.passed);
        let at_the_top = last.is_some_and(|v| v.trial.rate.0 >= self.top * (1.0 - self.goal.width));
        at_the_top && self.top < self.goal.highest() && !self.top_is_sure
    }

    /// Learns from another trial flat out.
    pub fn raise(&mut self, flat: &Trial) {
        let ceiling = flat.sent_pps().0 / self.ways;
        self.top_is_sure = ceiling <= self.top * (1.0 + self.goal.width);
        self.top = self.top.max(ceiling.min(self.goal.highest()));
        self.judge_flat(flat);
    }

    fn judge_flat(&mut self, flat: &Trial) {
        if flat.interrupted {
            return;
        }
        self.judge(flat.clone(), self.goal.short());
    }

    /// The last confirming trial that passed within the interval.
    fn confirmation(&self) -> Option<&Verdict> {
        let (low, _) = self.threshold.interval();
        let least = low.min(self.top * (1.0 - self.goal.width));
        let mut passed = self.longer_trials().filter(|v| v.passed);
        passed.rfind(|v| v.rate >= least)
    }

    fn longer_trials(&self) -> impl DoubleEndedIterator<Item = &Verdict> {
        let longer = self.goal.longer();
        self.verdicts.iter().filter(move |v| v.length >= longer)
    }

    pub fn conclude(&self, flat: &Trial, trials: Vec<Point>) -> Found {
        let is_flat_out = !flat.rate.is_limited();
        let found = Found {
            saturation_pps: is_flat_out.then_some(flat.forwarded.0),
            flat_out_pps: is_flat_out.then_some(flat.sent_pps().0),
            trials,
            ..Found::default()
        };
        let why = |why: &str| Found {
            why: why.to_owned(),
            ..found.clone()
        };
        if flat.sent() == 0 {
            return why("the generator sent nothing");
        }
        if flat.received() == 0 {
            return why("nothing came back");
        }
        let passed = || self.verdicts.iter().filter(|v| v.passed);
        let most = passed().map(|v| v.rate).fold(0.0, f64::max);
        // No rate is named that no trial passed.
        let rate = self.threshold.median().min(self.top).min(most);
        let near = |v: &&Verdict| (v.rate / rate).ln().abs();
        let nearest = passed().min_by(|a, b| near(a).total_cmp(&near(b)));
        let confirmation = self.confirmation();
        let Some(best) = confirmation.or(nearest) else {
            return self.nothing(found);
        };
        let (low, high) = self.threshold.interval();
        let sum = |rate: f64| rate.min(self.top) * self.ways;
        let limited_by_generator = self.generator_bounds(rate);
        Found {
            valid: true,
            max_pps: sum(rate),
            interval_pps: Some((sum(low.min(rate)), sum(high))),
            confirmed: confirmation.is_some(),
            l1_bps: best.trial.l1().0 * sum(rate) / best.trial.sent_pps().0,
            loss: best.trial.loss(),
            limited_by_generator,
            why: if limited_by_generator {
                "the generator, or a device that shares its processor, sent no more"
            } else if self.is_at_the_top(rate) && self.top >= self.goal.ceiling.0 {
                "no more may be sent"
            } else {
                ""
            }
            .to_owned(),
            ..found
        }
    }

    fn nothing(&self, found: Found) -> Found {
        let last = self.verdicts.last().map(|v| &v.trial);
        let mut why = format!("no valid trial lost {} % or less", self.goal.loss * 100.0);
        if let Some(trial) = last {
            why += &format!(" ({})", trial.failure());
        }
        Found {
            limited_by_generator: last.is_some_and(|t| !t.valid),
            why,
            ..found
        }
    }

    /// True if the device forwards all that can be sent, and `rate` is about that.
    fn is_at_the_top(&self, rate: f64) -> bool {
        rate * (1.0 + 3.0 * self.goal.width) >= self.top && self.threshold.median() >= self.top
    }

    /// True if the generator bounds the result: it could not offer the device more than `rate`.
    fn generator_bounds(&self, rate: f64) -> bool {
        let near = 1.0 + 3.0 * self.goal.width;
        if self.is_at_the_top(rate) {
            return self.top < self.goal.highest();
        }
        let failed = self
            .verdicts
            .iter()
            .filter(|v| !v.passed && v.rate <= rate * near);
        let (short, lossy): (Vec<_>, Vec<_>) = failed.partition(|v| !v.trial.valid);
        short.len() > lossy.len()
    }
}
