//! Looks for the highest rate that a device forwards with no more loss than allowed.
//!
//! After a warm-up comes a trial flat out: what the generator can send, and what the device forwards then. If there is
//! time, a ramp from below to above that, which shows how the device behaves. All that passes or fails tells a
//! [`Threshold`]; the next trials go to both sides of its median until it is known well enough or the time is nearly up.
//! The last ones are longer and at the median or, if that fails, below it: they confirm it or put it right.
//!
//! A short trial flatters a device with deep queues, which swallow what it cannot forward. What came back only after the
//! sending had ended, beyond what is on its way at a light load, is therefore taken off the rate that the trial stands
//! for. A rate that the generator could not send is a bound of the search, and said to be the generator's.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::device::{Failure, Path};
use crate::point::Point;
use crate::threshold::Threshold;
use crate::trial::{self, Trial};
use crate::units::Pps;

/// Shortest trial of a search.
pub const SHORTEST: Duration = Duration::from_secs(1);

/// Rates of the ramp, as shares of what came back flat out.
const RAMP: [f64; 5] = [0.2, 0.4, 0.6, 0.8, 1.5];
/// Trials that the budget must have room for if there is to be a ramp.
const RAMP_FROM: u32 = 24;
/// A trial that confirms is so many times as long as one that looks.
const LONGER: u32 = 3;
/// Trials that confirm; time is kept for them.
const CONFIRMING: u32 = 2;
/// Where the trials that look are made: the threshold is below with these probabilities, in turn. Verdicts on both
/// sides of it show how much they scatter.
const SIDES: [f64; 2] = [0.2, 0.8];
/// Where those that confirm are made: the first at the median, the next below it.
const CONFIRM_AT: [f64; 2] = [0.5, 0.25];
/// How far from what is known flat out the threshold may be, as a factor.
const FAR: f64 = 16.0;
/// A generator that sent this share of the offer may have been held up for a moment; one that sent less cannot send it.
const HELD_UP: f64 = 0.9;
/// The light load, as a share of what came back in the warm-up, and its time.
const LIGHT: (f64, Duration) = (0.25, Duration::from_millis(250));
/// Packets each way that are on their way in batches and make no queue.
const BATCH: f64 = 64.0;

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

/// Makes trials, tells of them and keeps them.
struct Runs<'a> {
    paths: &'a mut [Path],
    clock: &'a dyn Clock,
    watch: &'a mut dyn FnMut(Event),
    points: Vec<Point>,
}

impl<'a> Runs<'a> {
    fn new(
        paths: &'a mut [Path],
        clock: &'a dyn Clock,
        watch: &'a mut dyn FnMut(Event),
    ) -> Runs<'a> {
        let points = Vec::new();
        Runs {
            paths,
            clock,
            watch,
            points,
        }
    }

    /// Lets caches fill and clocks rise: what comes of that is nobody's result.
    fn warm_up(&mut self) -> Result<Trial, Failure> {
        (self.watch)(Event::WarmUp);
        trial::run(self.paths, Pps::UNLIMITED, SHORTEST, self.clock)
    }

    /// Warms up, and measures how long packets are on their way while none waits, in seconds.
    fn in_flight(&mut self, limit: Pps) -> Result<f64, Failure> {
        let back = self.warm_up()?.forwarded.0 / self.paths.len().max(1) as f64;
        let rate = Pps((LIGHT.0 * back).min(limit.0));
        if rate.0 < 1.0 {
            return Ok(0.0);
        }
        let light = trial::run(self.paths, rate, LIGHT.1, self.clock)?;
        Ok(light.drained as f64 / light.offered_pps().0)
    }

    /// A trial at `rate` each way.
    fn trial(&mut self, rate: Pps, length: Duration) -> Result<Trial, Failure> {
        let flat_out = !rate.is_limited();
        let ways = self.paths.len().max(1) as f64;
        let offered_pps = if flat_out { 0.0 } else { rate.0 * ways };
        (self.watch)(Event::TrialStart {
            flat_out,
            offered_pps,
        });
        let trial = trial::run(self.paths, rate, length, self.clock)?;
        (self.watch)(Event::TrialEnd {
            flat_out,
            offered_pps,
            sent: trial.sent(),
            received: trial.received(),
            seconds: trial.seconds,
            valid: trial.valid,
        });
        self.points.push(trial.point());
        Ok(trial)
    }
}

/// What is known so far. Rates are each way.
struct Search<'a> {
    goal: &'a Goal,
    ways: f64,
    /// The highest rate that the device goes on forwarding.
    threshold: Threshold,
    /// No rate above is offered: the generator's ceiling or the limit.
    top: f64,
    /// The ceiling has been measured again, and was no higher.
    top_is_sure: bool,
    /// Packets are under way for so long while none waits, in seconds.
    in_flight: f64,
    /// Packets each way that waited in the device at the end of the trial flat out.
    queue: f64,
    verdicts: Vec<Verdict>,
    /// A trial that the generator did not keep to, and that is made again.
    again: Option<(Pps, Duration)>,
}

/// What a trial said.
struct Verdict {
    /// Rate that it stands for, each way.
    rate: f64,
    passed: bool,
    /// The length that was asked for.
    length: Duration,
    trial: Trial,
}

impl<'a> Search<'a> {
    fn new(flat: &Trial, in_flight: f64, goal: &'a Goal) -> Search<'a> {
        let ways = flat.ways.len().max(1) as f64;
        let ceiling = flat.sent_pps().0 / ways;
        // A device that loses nothing up to its capacity forwards that flat out too.
        let likely = (flat.forwarded.0 / ways).max(1.0);
        let mut search = Search {
            goal,
            ways,
            threshold: Threshold::near(likely, likely / FAR, likely.max(ceiling) * FAR),
            top: ceiling.min(goal.limit.0),
            top_is_sure: false,
            in_flight,
            queue: 0.0,
            verdicts: Vec::new(),
            again: None,
        };
        search.judge_flat(flat);
        search
    }

    /// The rates of the ramp, each way; none if the search would miss the time.
    fn ramp(&self, flat: &Trial) -> Vec<Pps> {
        if self.goal.budget < RAMP_FROM * self.goal.short() {
            return Vec::new();
        }
        let rates = RAMP.map(|share| share * flat.forwarded.0 / self.ways);
        let sendable = rates.into_iter().filter(|rate| *rate <= self.top);
        sendable.map(Pps).collect()
    }

    /// Rate and length of the next trial; None if enough is known or the time that is left is too short.
    fn next(&self, left: Duration) -> Option<(Pps, Duration)> {
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
        } else if known || left < short + CONFIRMING * longer {
            (
                longer.min(left).max(short),
                CONFIRM_AT[self.longer_trials().count().min(1)],
            )
        } else {
            (short, SIDES[paced % SIDES.len()])
        };
        // A device whose queues take this much more fails only beyond.
        let swallowed = self.queue / length.as_secs_f64();
        let rate = (self.threshold.quantile(place) + swallowed).min(self.top);
        (paced == 0 || left >= length).then_some((Pps(rate), length))
    }

    /// Learns from a trial, unless it was the generator's bad moment: then it is made once more.
    fn learn(&mut self, trial: Trial, length: Duration) {
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
        let offered = offered / self.ways;
        let swallowed = self.waiting(&trial) / trial.seconds.max(f64::MIN_POSITIVE);
        let rate = (offered - swallowed).max(offered / 2.0);
        let passed = trial.passes(self.goal.loss);
        self.threshold.learn(rate, passed);
        self.verdicts.push(Verdict {
            rate,
            passed,
            length,
            trial,
        });
    }

    /// The device forwarded all that the generator is known to be able to send.
    fn has_passed_at_the_top(&self) -> bool {
        let last = self.verdicts.last().filter(|v| v.passed);
        let at_the_top = last.is_some_and(|v| v.trial.rate.0 >= self.top * (1.0 - self.goal.width));
        at_the_top && self.top < self.goal.limit.0 && !self.top_is_sure
    }

    /// Learns from another trial flat out.
    fn raise(&mut self, flat: &Trial) {
        let ceiling = flat.sent_pps().0 / self.ways;
        self.top_is_sure = ceiling <= self.top * (1.0 + self.goal.width);
        self.top = self.top.max(ceiling.min(self.goal.limit.0));
        self.judge_flat(flat);
    }

    fn judge_flat(&mut self, flat: &Trial) {
        self.queue = self.waiting(flat);
        self.judge(flat.clone(), self.goal.short());
    }

    /// Packets each way that waited in the device when the sending ended.
    fn waiting(&self, trial: &Trial) -> f64 {
        let on_their_way = self.in_flight * trial.forwarded.0;
        ((trial.drained as f64 - on_their_way) / self.ways - BATCH).max(0.0)
    }

    /// The longer trial that passed within the interval.
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

    fn conclude(&self, flat: &Trial, trials: Vec<Point>) -> Found {
        let found = Found {
            saturation_pps: Some(flat.forwarded.0),
            flat_out_pps: Some(flat.sent_pps().0),
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
        let rate = self.threshold.median().min(self.top);
        let near = |v: &&Verdict| (v.rate / rate).ln().abs();
        let passed = || self.verdicts.iter().filter(|v| v.passed);
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
            interval_pps: Some((sum(low), sum(high))),
            confirmed: confirmation.is_some(),
            l1_bps: best.trial.l1().0 * sum(rate) / best.trial.sent_pps().0,
            loss: best.trial.loss(),
            limited_by_generator,
            why: match limited_by_generator {
                true => {
                    "the generator, or a device that shares its processor, sent no more".to_owned()
                }
                false => String::new(),
            },
            ..found
        }
    }

    fn nothing(&self, found: Found) -> Found {
        let last = self.verdicts.last().map(|v| &v.trial);
        let mut why = format!("no valid trial lost {} % or less", self.goal.loss * 100.0);
        if let Some(said) = last.map(|t| t.why.as_str()).filter(|why| !why.is_empty()) {
            why += &format!(" ({said})");
        }
        Found {
            limited_by_generator: last.is_some_and(|t| !t.valid),
            why,
            ..found
        }
    }

    /// Whether the device was never asked for more than `rate`: the generator could not send it.
    fn generator_bounds(&self, rate: f64) -> bool {
        let near = 1.0 + 3.0 * self.goal.width;
        if rate * near >= self.top && self.threshold.median() >= self.top {
            return self.top < self.goal.limit.0;
        }
        let failed = self
            .verdicts
            .iter()
            .filter(|v| !v.passed && v.rate <= rate * near);
        let (short, lossy): (Vec<_>, Vec<_>) = failed.partition(|v| !v.trial.valid);
        short.len() > lossy.len()
    }
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
