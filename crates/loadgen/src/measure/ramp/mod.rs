//! The load test: a warm-up, a staircase up to a target rate, and a hold, sampled at regular
//! intervals.

use std::time::Duration;

use serde::Serialize;

use crate::clock::{Clock, Nanos};
use crate::device::{Failure, Path};
use crate::measure::point::Point;
use crate::measure::threshold::Threshold;
use crate::measure::trial::{self, Reading, Trial};
use crate::model::units::Pps;

pub use self::sample::{Sample, WaySample};

mod sample;

/// The plan of a ramp. Rates are those of each direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// Rate of the warm-up.
    pub warmup_rate: Pps,
    /// Length of the warm-up, which is not reported.
    pub warmup: Duration,
    /// Rate at the end of the ramp and during the hold.
    pub target: Pps,
    /// Length of the ramp.
    pub ramp: Duration,
    /// Steps of the staircase from zero to the target; 1 or more.
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
}

/// The verdict of a ramp on the highest rate. Rates are totals of all directions, in packets a
/// second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Highest {
    /// The rate at which as many samples pass as fail, but no higher than the highest that passed.
    pub max_pps: f64,
    /// The rate lies between these two with a confidence of 95 %.
    pub interval_pps: (f64, f64),
    /// Loss in the nearest sample that passed, from 0.0 to 1.0.
    pub loss: f64,
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
            }
        };
        self.samples.iter().map(point).collect()
    }

    /// The highest rate at which no direction loses more than the share `allowed`, judged by all
    /// samples together and not by the luckiest. None if no sample passed.
    pub fn max_rate(&self, allowed: f64) -> Option<Highest> {
        let ways = self.whole.ways.len();
        let in_flight: Vec<f64> = (0..ways).map(|way| self.in_flight(way)).collect();
        let (mut verdicts, mut before) = (Vec::new(), None);
        for sample in &self.samples {
            if sample.valid && sample.sent_pps() > 0.0 {
                let losses = (0..ways).map(|way| sample.loses(way, before, in_flight[way]));
                verdicts.push((sample, losses.fold(0.0, f64::max)));
            }
            before = Some(sample);
        }
        let rates = || verdicts.iter().map(|(sample, _)| sample.sent_pps());
        let lowest = rates().fold(f64::INFINITY, f64::min);
        let highest = rates().fold(0.0, f64::max);
        let passed = || verdicts.iter().filter(|v| v.1 <= allowed);
        let most = passed().map(|v| v.0.sent_pps()).reduce(f64::max)?;
        // The ramp says nothing about rates beyond its ends.
        let mut threshold = Threshold::between(lowest * 0.9, highest * 1.1);
        for (sample, lost) in &verdicts {
            threshold.learn(sample.sent_pps(), *lost <= allowed);
        }
        let max_pps = threshold.median().min(most);
        let distance = |v: &&(&Sample, f64)| (v.0.sent_pps() - max_pps).abs();
        let (_, loss) = passed().min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
        let (low, high) = threshold.interval();
        Some(Highest {
            max_pps,
            interval_pps: (low.min(max_pps), high.min(highest)),
            loss: *loss,
        })
    }

    /// Seconds that packets of a direction are in flight while none are lost.
    fn in_flight(&self, way: usize) -> f64 {
        let ways = self.samples.iter().filter_map(|s| s.ways.get(way));
        let sending = ways.filter(|way| way.tx_pps > 0.0);
        let times = sending.map(|way| way.total.lost() as f64 / way.tx_pps);
        times.reduce(f64::min).unwrap_or(0.0)
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
        Pps(self.target.0 * f64::from(step.min(steps)) / f64::from(steps))
    }

    /// Time from the start of the ramp to that of step `index`, counted from 0.
    fn step_at(&self, index: u32) -> Duration {
        self.ramp
            .mul_f64(f64::from(index) / f64::from(self.steps.max(1)))
    }

    /// Warm-up, ramp and hold together.
    pub fn length(&self) -> Duration {
        self.warmup + self.ramp + self.hold
    }
}

/// Carries out `plan`. `watch` sees each sample as it is taken.
///
/// # Errors
/// If a generator cannot send; then all are stopped.
pub fn run(
    plan: &Plan,
    paths: &mut [Path],
    clock: &dyn Clock,
    watch: &mut dyn FnMut(&Sample),
) -> Result<Ramp, Failure> {
    if !plan.warmup.is_zero() {
        trial::run(paths, plan.warmup_rate, plan.warmup, clock)?;
        paths.iter_mut().for_each(Path::start_over);
    }
    let before = Reading::all(paths);
    let begin = clock.now();
    let result = climb(plan, paths, clock, &before, watch);
    let (seconds, _, stopped) = trial::stop(paths, begin, clock);
    let samples = result?;
    stopped?;
    trial::settle(paths, clock);
    let ways = Reading::all(paths)
        .iter()
        .zip(&before)
        .map(|(now, before)| now.since(before))
        .collect();
    Ok(Ramp {
        samples,
        whole: trial::judge(plan.target, seconds, ways),
    })
}

/// Sends ramp and hold. The transmitters are still sending when it returns.
fn climb(
    plan: &Plan,
    paths: &mut [Path],
    clock: &dyn Clock,
    before: &[Reading],
    watch: &mut dyn FnMut(&Sample),
) -> Result<Vec<Sample>, Failure> {
    let begin = clock.now();
    let end = begin.after(plan.ramp + plan.hold);
    let sample = plan.sample.max(Duration::from_millis(1));
    trial::start(paths, plan.rate(Duration::ZERO))?;
    let (mut samples, mut step) = (Vec::new(), 1);
    let (mut last, mut last_at) = (before.to_vec(), begin);
    let mut next_sample = begin.after(sample);
    loop {
        let next_step = if step < plan.steps {
            begin.after(plan.step_at(step))
        } else {
            Nanos(u64::MAX)
        };
        let next = next_step.min(next_sample).min(end);
        clock.sleep_until(next);
        if next == next_step {
            let rate = plan.rate(plan.step_at(step).max(next.since(begin)));
            paths.iter_mut().for_each(|path| path.tx.set_rate(rate));
            step += 1;
        }
        if next == next_sample {
            let (now, readings) = (clock.now(), Reading::all(paths));
            let taken = sample::take(begin, now, now.since(last_at), before, &last, &readings);
            watch(&taken);
            samples.push(taken);
            (last, last_at) = (readings, now);
            next_sample = next_sample.after(sample);
        }
        if next == end {
            return Ok(samples);
        }
    }
}

#[cfg(test)]
mod tests;
