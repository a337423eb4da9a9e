//! The load test: a warm-up, a staircase up to a target rate, and a hold, sampled at regular
//! intervals.

use std::time::Duration;

use serde::Serialize;

use crate::clock::{Clock, Nanos};
use crate::device::{Failure, Path};
use crate::measure::point::Point;
use crate::measure::steady::Steady;
use crate::measure::trial::{self, RESIDUAL, Trial};
use crate::measure::way::{self, Reading};
use crate::model::units::Pps;

use self::sample::{Asked, Moment};
pub use self::sample::{Sample, WaySample};
pub use self::verdict::Highest;

mod sample;
mod verdict;

/// The plan of a ramp. Rates are those of each direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// Rate of the warm-up.
    pub warmup_rate: Pps,
    /// Length of the warm-up, which is not reported.
    pub warmup: Duration,
    /// Rate at the end of the ramp and during the hold.
    pub target: Pps,
    /// Least rate: that of streams which keep their own.
    pub floor: Pps,
    /// Length of the ramp.
    pub ramp: Duration,
    /// Steps of the staircase from zero to the target, 1 or more; those below `floor` are at it.
    pub steps: u32,
    /// Length of the hold.
    pub hold: Duration,
    /// Time between two samples.
    pub sample: Duration,
}

impl Default for Plan {
    /// The lengths that T-Rex users know: 30 s warm-up at 1 kpps, 600 s in 100 steps, 30 s hold, a
    /// sample a second.
    fn default() -> Self {
        Self {
            warmup_rate: Pps(1000.0),
            warmup: Duration::from_secs(30),
            target: Pps(0.0),
            floor: Pps(0.0),
            ramp: Duration::from_secs(600),
            steps: 100,
            hold: Duration::from_secs(30),
            sample: Duration::from_secs(1),
        }
    }
}

/// The result of a ramp.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ramp {
    /// The samples, in order of time.
    pub samples: Vec<Sample>,
    /// Ramp and hold as one trial, late packets included.
    pub whole: Trial,
    /// Packets of each direction that came back after the last one was sent.
    drained: Vec<u64>,
    /// True if all was sent at one rate.
    pub is_constant: bool,
}

impl Ramp {
    /// Each sample as a point: totals of all directions.
    pub fn points(&self) -> Vec<Point> {
        let mut before = 0.0;
        let point = |sample: &Sample| {
            let (sent, received) = (sample.sent_pps(), sample.received_pps());
            Point {
                offered_pps: sample.sum(|way| way.offered_pps),
                sent_pps: sent,
                forwarded_pps: received,
                loss: if sent > 0.0 {
                    (1.0 - received / sent).max(0.0)
                } else {
                    0.0
                },
                valid: sample.valid,
                seconds: sample.at - std::mem::replace(&mut before, sample.at),
                disturbed: false,
                unfit: match sample.valid {
                    true => String::new(),
                    false => "the generator fell short".to_owned(),
                },
            }
        };
        self.samples.iter().map(point).collect()
    }
}

impl Plan {
    /// Rate of each direction at the time `at` after the start of the ramp.
    pub fn rate(&self, at: Duration) -> Pps {
        let steps = self.steps.max(1);
        if at >= self.ramp {
            return self.target;
        }
        let step = (at.as_secs_f64() / self.ramp.as_secs_f64() * f64::from(steps)) as u32 + 1;
        let rate = self.target.0 * f64::from(step.min(steps)) / f64::from(steps);
        Pps(rate.max(self.floor.0))
    }

    /// All rates of warm-up, ramp and hold.
    pub fn rates(&self) -> impl Iterator<Item = Pps> {
        let steps = if self.is_constant() { 0 } else { self.steps };
        let warmup = (!self.warmup.is_zero()).then_some(self.warmup_rate);
        let steps = (0..steps).map(|step| self.rate(self.step_at(step)));
        warmup.into_iter().chain(steps).chain([self.target])
    }

    /// Time from the start of the ramp to that of step `index`, counted from 0.
    fn step_at(&self, index: u32) -> Duration {
        self.ramp
            .mul_f64(f64::from(index) / f64::from(self.steps.max(1)))
    }

    /// True if there is one rate from the start to the end, after the warm-up.
    fn is_constant(&self) -> bool {
        self.ramp.is_zero() || self.steps <= 1 || self.floor >= self.target
    }

    /// Warm-up, ramp and hold together.
    pub fn length(&self) -> Duration {
        self.warmup + self.ramp + self.hold
    }
}

/// Carries out the warm-up of `plan`, or its beginning if the clock is interrupted. Nothing of it is
/// in a result.
///
/// # Errors
/// As [`run`].
pub fn warm_up(plan: &Plan, paths: &mut [Path], clock: &dyn Clock) -> Result<(), Failure> {
    if !plan.warmup.is_zero() {
        trial::run(paths, plan.warmup_rate, plan.warmup, clock)?;
        paths.iter_mut().for_each(Path::start_over);
    }
    Ok(())
}

/// Carries out ramp and hold of `plan`, after its [`warm_up`], or their beginning if the clock is
/// interrupted. `watch` sees each sample as it is taken.
///
/// # Errors
/// If a generator cannot send; then all are stopped.
pub fn run(
    plan: &Plan,
    paths: &mut [Path],
    clock: &dyn Clock,
    watch: &mut dyn FnMut(&Sample),
) -> Result<Ramp, Failure> {
    let before = Reading::all(paths);
    let begin = clock.now();
    let mut steady = Steady::new(&before, begin, plan.ramp + plan.hold);
    let result = climb(plan, paths, clock, &mut steady, watch);
    let took = clock.now().since(begin).as_secs_f64();
    let (seconds, at_end, stopped) = trial::stop(paths, begin, clock);
    let end = begin.after(Duration::from_secs_f64(seconds));
    let samples = result?;
    stopped?;
    let interrupted = clock.is_interrupted();
    trial::settle(paths, RESIDUAL, clock);
    let now = Reading::all(paths);
    let drained = now.iter().zip(&at_end);
    let mut ramp = Ramp {
        samples,
        whole: trial::judge(plan.target, seconds, way::between(&before, &now)),
        drained: drained.map(|(now, end)| now.drained_since(end)).collect(),
        is_constant: plan.is_constant(),
    };
    ramp.whole.interrupted = interrupted;
    if !ramp.is_constant {
        ramp.subtract_held();
    } else if !interrupted || steady.next().is_none() {
        ramp.whole.keep_to(&steady.ways(end, &at_end, &now));
    }
    if ramp.is_constant {
        ramp.whole.keep_time(took);
    }
    Ok(ramp)
}

/// Sends ramp and hold, until the clock is interrupted. The transmitters may still be sending when
/// it returns.
fn climb(
    plan: &Plan,
    paths: &mut [Path],
    clock: &dyn Clock,
    steady: &mut Steady,
    watch: &mut dyn FnMut(&Sample),
) -> Result<Vec<Sample>, Failure> {
    if clock.is_interrupted() {
        return Ok(Vec::new());
    }
    let begin = clock.now();
    let end = begin.after(plan.ramp + plan.hold);
    let sample = plan.sample.max(Duration::from_millis(1));
    let first = Moment::new(clock, paths);
    let mut asked = Asked::new(begin, plan.rate(Duration::ZERO));
    trial::start(paths, asked.rate)?;
    let (mut samples, mut step) = (Vec::new(), 1);
    let mut last = None;
    let mut next_sample = begin.after(sample);
    loop {
        let next_step = if step < plan.steps {
            begin.after(plan.step_at(step))
        } else {
            Nanos(u64::MAX)
        };
        let look = steady.next().unwrap_or(Nanos(u64::MAX));
        let next = next_step.min(next_sample).min(look).min(end);
        clock.wait_until(next);
        if clock.is_interrupted() {
            return Ok(samples);
        }
        if next == next_step {
            let rate = plan.rate(plan.step_at(step).max(next.since(begin)));
            paths.iter_mut().for_each(|path| path.tx.set_rate(rate));
            asked.change(clock.now(), rate);
            step += 1;
        }
        if next == look {
            steady.look(paths, clock);
        }
        if next == next_sample {
            let now = Moment::new(clock, paths);
            let planned = asked.take(now.at);
            let taken = now.sample(&first, last.as_ref().unwrap_or(&first), planned);
            watch(&taken);
            samples.push(taken);
            // One that came late stands for those that it missed.
            while next_sample <= now.at {
                next_sample = next_sample.after(sample);
            }
            last = Some(now);
        }
        if next == end {
            return Ok(samples);
        }
    }
}

#[cfg(test)]
mod tests;
