//! A soak: many trials over a long time near the critical load, the one at which a device loses a
//! given small share of the packets on average. MLRsearch asks whether half of the trials lose
//! more; a soak asks for a mean, which rare losses count in.
//!
//! The estimate is Bayesian, as in PLRsearch (draft-vpolak-bmwg-plrsearch). A device is thought to
//! lose, at load x, the packets s ln(1 + exp((x - m) / s)) a second: none far below its capacity m,
//! all that are above it far beyond, with a bend of width s between. How many packets a trial loses
//! is thought to be geometrically distributed about that, since losses come in clusters. For each m
//! and s of a grid the trials give a probability, and so do they for the critical load that
//! follows from m and s. Each trial is made where that still may lie on either side.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::trials::Trials;
use super::{Device, Effort, Limits, Sample};
use crate::device::Failure;
use crate::measure::search::Event;
use crate::model::units::Pps;

/// Relative distance of neighboring capacities.
const GRAIN: f64 = 0.001;
/// Widths of the bend, relative to the capacity.
const BENDS: [f64; 13] = [
    1e-4, 1.6e-4, 2.5e-4, 4e-4, 6.3e-4, 1e-3, 1.6e-3, 2.5e-3, 4e-3, 6.3e-3, 1e-2, 1.6e-2, 2.5e-2,
];
/// Logarithm of the likelihood, relative to the best, below which a capacity is ruled out for good:
/// rounding alone is as large.
const NEVER: f64 = -34.0;
/// Farthest that the capacity may be below what came back, and above what was sent, in the first
/// trial, as a factor.
const FAR: f64 = 2.0;
/// Share of trials whose loss has nothing to do with the load.
const ODD: f64 = 0.02;
/// The loads of trials, in turn: below them the critical load lies with these probabilities.
const SIDES: [f64; 2] = [0.25, 0.75];
/// Each trial is longer than the one before by this.
const LONGER: Duration = Duration::from_millis(100);

/// What a soak looks for. [`Plan::default`] has the settings of FD.io's CSIT, whose time is 30
/// minutes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// Mean loss at the critical load, as a share above 0.
    pub loss: f64,
    /// Length of the first trial.
    pub trial: Duration,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            loss: 1e-7,
            trial: Duration::from_millis(5100),
        }
    }
}

/// The result of a soak.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Found {
    /// The mean loss asked for, as a share.
    pub allowed: f64,
    /// The critical load, packets a second, all directions: it is as likely higher as lower.
    pub critical_pps: Option<f64>,
    /// It lies between these with a probability of 95 %.
    pub interval_pps: Option<(f64, f64)>,
    /// Trials that lost nothing.
    pub lossless_trials: u32,
    /// What bounds the result besides the device, or why there is none; else empty.
    pub why: String,
    /// What it took.
    pub effort: Effort,
}

/// Makes trials until the time is used up.
///
/// # Errors
/// If the generator cannot send.
pub fn run(device: &mut dyn Device, plan: &Plan, limits: &Limits) -> Result<Found, Failure> {
    let mut trials = Trials::open(device, limits, plan.trial)?;
    let mut found = Found {
        allowed: plan.loss,
        ..Found::default()
    };
    if let Some(why) = trials.nothing() {
        found.why = why.to_owned();
        found.effort = trials.effort;
        return Ok(found);
    }
    let first = trials.first;
    let mut estimate = Estimate::new(&first, trials.top(), plan.loss);
    let (mut made, mut length) = (0, plan.trial);
    while !trials.is_over() {
        let load = estimate.quantile(SIDES[made % SIDES.len()]);
        let load = load.min(trials.top()).max(trials.least);
        let load = trials.device.nearest(Pps(load)).0;
        let Some(sample) = trials.valid(load, length)? else {
            continue;
        };
        estimate.learn(load, &sample);
        made += 1;
        length += LONGER;
        found.lossless_trials += u32::from(sample.lost + sample.held == 0);
        let (lower, upper) = estimate.interval();
        trials.device.tell(Event::Bounds {
            allowed: plan.loss,
            lower_pps: Some(lower.min(trials.top())),
            upper_pps: Some(upper.min(trials.top())),
        });
    }
    let (top, (low, high)) = (trials.top(), estimate.interval());
    let critical = estimate.quantile(0.5);
    found.why = match () {
        () if trials.effort.interrupted => "interrupted",
        () if made == 0 => "there was no time for a trial beside the first, at the highest load",
        () if critical >= top => trials.effort.top_is_why(),
        () => "",
    }
    .to_owned();
    if made > 0 {
        found.critical_pps = Some(critical.min(top));
        found.interval_pps = Some((low.min(top), high.min(top)));
    }
    found.effort = trials.effort;
    Ok(found)
}

/// What is known of the critical load.
struct Estimate {
    /// The capacities of the grid, packets a second.
    capacities: Vec<f64>,
    /// Logarithm of the likelihood of each capacity and bend.
    likelihood: Vec<[f64; BENDS.len()]>,
    /// The critical load of each bend, relative to the capacity.
    critical: [f64; BENDS.len()],
    /// Critical loads with their probabilities, in ascending order.
    known: Vec<(f64, f64)>,
}

impl Estimate {
    /// Knows the trial at the highest load, `top`.
    fn new(first: &Sample, top: f64, loss: f64) -> Self {
        let (lowest, highest) = (
            first.forwarded_pps / FAR,
            first.forwarded_pps.max(top) * FAR,
        );
        let count = ((highest / lowest).ln() / GRAIN) as usize + 1;
        let capacities: Vec<f64> = (0..count)
            .map(|i| lowest * (GRAIN * i as f64).exp())
            .collect();
        let mut estimate = Self {
            likelihood: vec![[0.0; BENDS.len()]; count],
            critical: BENDS.map(|bend| critical(bend, loss)),
            capacities,
            known: Vec::new(),
        };
        if first.valid {
            estimate.learn(first.sent_pps, first);
        }
        estimate.weigh();
        estimate
    }

    fn learn(&mut self, load: f64, sample: &Sample) {
        let (sent, lost) = (sample.sent as f64, (sample.lost + sample.held) as f64);
        for (capacity, shares) in self.capacities.iter().zip(&mut self.likelihood) {
            for (share, bend) in shares.iter_mut().zip(BENDS) {
                if share.is_finite() {
                    *share += likelihood(sent, lost, loss(load / capacity, bend)).ln();
                }
            }
        }
        self.weigh();
    }

    /// Turns likelihoods into probabilities of critical loads.
    fn weigh(&mut self) {
        let best = self.likelihood.iter().flatten().copied();
        let best = best.fold(f64::NEG_INFINITY, f64::max);
        self.known.clear();
        for (capacity, shares) in self.capacities.iter().zip(&mut self.likelihood) {
            for (share, at) in shares.iter_mut().zip(self.critical) {
                *share -= best;
                if *share > NEVER {
                    self.known.push((capacity * at, share.exp()));
                } else {
                    *share = f64::NEG_INFINITY;
                }
            }
        }
        let sum: f64 = self.known.iter().map(|(_, share)| share).sum();
        self.known.iter_mut().for_each(|(_, share)| *share /= sum);
        self.known.sort_by(|a, b| a.0.total_cmp(&b.0));
    }

    /// The load that the critical one is below with this probability.
    fn quantile(&self, probability: f64) -> f64 {
        let mut below = 0.0;
        let reached = |(_, share): &&(f64, f64)| {
            below += share;
            below >= probability
        };
        let found = self.known.iter().find(reached).or(self.known.last());
        found.map_or(0.0, |(load, _)| *load)
    }

    fn interval(&self) -> (f64, f64) {
        // Neither a load between those of the grid nor a bend sharper than all is known better.
        (
            self.quantile(0.025) * (1.0 - GRAIN),
            self.quantile(0.975) * (1.0 + GRAIN),
        )
    }
}

/// Share that is lost at `load`, relative to the capacity, by the model.
fn loss(load: f64, bend: f64) -> f64 {
    let x = (load - 1.0) / bend;
    // From here on both forms are the same to the last bit, and `exp` would overflow.
    let excess = if x > 40.0 { x } else { x.exp().ln_1p() };
    (bend * excess / load).min(1.0)
}

/// The load, relative to the capacity, at which the share `allowed` is lost.
fn critical(bend: f64, allowed: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0 / (1.0 - allowed) + bend);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if loss(middle, bend) > allowed {
            high = middle;
        } else {
            low = middle;
        }
    }
    low
}

/// Probability that `lost` of `sent` packets are lost where `loss` of them are on average.
fn likelihood(sent: f64, lost: f64, loss: f64) -> f64 {
    let mean = (loss * sent).max(f64::MIN_POSITIVE);
    let geometric = (lost * (mean / (1.0 + mean)).ln()).exp() / (1.0 + mean);
    let odd = 1.0 / ((1.0 + lost) * (2.0 + sent).ln());
    (1.0 - ODD) * geometric + ODD * odd
}
