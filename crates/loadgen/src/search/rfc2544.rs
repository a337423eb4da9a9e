//! The tests of RFC 2544: throughput (section 26.1), frame loss rate (26.3), back-to-back frames
//! (26.4), and at last a trial at the throughput for the latency (26.2).
//!
//! Throughput is the highest load without loss in a trial of full length. It is found by
//! [MLRsearch](super::mlrsearch), whose short trials only narrow it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::classify::Goal;
use super::mlrsearch::{self, Bounds};
use super::trials::Trials;
use super::{Bound, Device, Effort, Limits, Sample};
use crate::device::Failure;
use crate::model::units::Pps;

/// The loads of the frame loss rate, as shares of the highest.
const SHARES: [f64; 10] = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1];
/// Trials without loss in a row that end it.
const WITHOUT: usize = 2;
/// Lengths of bursts are known to this share, or to so many seconds: clocks are not as exact.
const BURST_WIDTH: f64 = 1.0 / 64.0;
const BURST_SECONDS: f64 = 1e-4;

/// Lengths of the tests. [`Plan::default`] has those of the RFC.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// Length of a full trial.
    pub trial: Duration,
    /// Width of the throughput's bounds, relative to the upper one.
    pub width: f64,
    /// Longest burst.
    pub burst: Duration,
    /// Searches for the longest burst without loss, whose mean is the result.
    pub bursts: u32,
    /// Length of the trial for the latency.
    pub latency: Duration,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            trial: Goal::RFC2544.length,
            width: Goal::RFC2544.width,
            burst: Duration::from_secs(2),
            bursts: 50,
            latency: Duration::from_secs(120),
        }
    }
}

/// A trial of the frame loss rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LossRate {
    /// Load as a share of the highest.
    pub share: f64,
    /// Load in packets a second, all directions.
    pub offered_pps: f64,
    /// Share that was lost; null if the generator could not send the load.
    pub loss: Option<f64>,
}

/// The longest burst at the highest load that nothing is lost of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BackToBack {
    /// Mean of the longest bursts, packets of all directions.
    pub packets: f64,
    /// Their standard deviation.
    pub deviation: f64,
    /// Searches made.
    pub bursts: u32,
    /// True if bursts of the longest length passed: the device takes more than that.
    pub is_longest: bool,
}

/// The results of the tests.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Found {
    /// The throughput and its bounds.
    pub throughput: Bounds,
    /// The frame loss rate at each load, from the highest.
    pub loss_rates: Vec<LossRate>,
    /// Back-to-back frames.
    pub back_to_back: Option<BackToBack>,
    /// Length in seconds of the trial for the latency; the counts of streams are of this one. 0 if
    /// there was none.
    pub latency_seconds: f64,
    /// What it took, without the warm-ups.
    pub effort: Effort,
}

/// Makes the tests, one after the other.
///
/// # Errors
/// If the generator cannot send.
pub fn run(device: &mut dyn Device, plan: &Plan, limits: &Limits) -> Result<Found, Failure> {
    let goal = Goal {
        width: plan.width,
        initial: Goal::RFC2544.initial.min(plan.trial),
        length: plan.trial,
        sum: plan.trial,
        ..Goal::RFC2544
    };
    let mut found = mlrsearch::search(device, &[goal], limits)?;
    let throughput = found.goals.pop().unwrap_or_default();
    let mut found = Found {
        throughput,
        effort: found.effort,
        ..Found::default()
    };
    if found.effort.interrupted || found.effort.saturation_pps <= 0.0 {
        return Ok(found);
    }
    let mut trials = Trials::resume(device, limits, found.effort.clone());
    found.loss_rates = loss_rates(&mut trials, plan)?;
    found.back_to_back = back_to_back(&mut trials, plan, limits)?;
    if let Some(load) = found.throughput.lower_pps.filter(|_| !trials.is_over()) {
        trials.device.start_over();
        let sample = trials.valid(load, plan.latency)?;
        found.latency_seconds = sample.map_or(0.0, |sample| sample.seconds);
    }
    found.effort = trials.effort;
    Ok(found)
}

/// From the highest load downwards until two trials in a row lose nothing.
fn loss_rates(trials: &mut Trials<'_>, plan: &Plan) -> Result<Vec<LossRate>, Failure> {
    let (top, mut rates, mut without) = (trials.top(), Vec::new(), 0);
    for share in SHARES {
        let load = trials.device.nearest(Pps(share * top)).0;
        if trials.is_over() || without >= WITHOUT || load < trials.least {
            break;
        }
        let loss = trials.valid(load, plan.trial)?.map(|sample| sample.loss);
        if loss.is_none() && trials.is_over() {
            break;
        }
        without = if loss == Some(0.0) { without + 1 } else { 0 };
        rates.push(LossRate {
            share,
            offered_pps: load,
            loss,
        });
    }
    Ok(rates)
}

/// Searches for the longest burst, again and again.
fn back_to_back(
    trials: &mut Trials<'_>,
    plan: &Plan,
    limits: &Limits,
) -> Result<Option<BackToBack>, Failure> {
    let mut longest = Vec::new();
    let mut is_longest = plan.bursts > 0;
    for _ in 0..plan.bursts {
        let Some((packets, all)) = burst(trials, plan, limits)? else {
            break;
        };
        longest.push(packets);
        is_longest &= all;
        if all {
            // The next ones would say the same.
            break;
        }
    }
    let count = longest.len() as f64;
    let mean = longest.iter().sum::<f64>() / count;
    let squares: f64 = longest.iter().map(|x| (x - mean).powi(2)).sum();
    Ok((!longest.is_empty()).then(|| BackToBack {
        packets: mean,
        deviation: (squares / (count - 1.0).max(1.0)).sqrt(),
        bursts: longest.len() as u32,
        is_longest,
    }))
}

/// Packets of the longest burst that all came back, and whether that was the longest there may be.
/// None if there was no time left, or the generator did not send.
fn burst(
    trials: &mut Trials<'_>,
    plan: &Plan,
    limits: &Limits,
) -> Result<Option<(f64, bool)>, Failure> {
    // What waits in the device comes back, and counts: that is what bursts are for.
    let packets = |sample: Sample| (sample.lost == 0).then_some(sample.sent as f64);
    let load = match trials.effort.top_is {
        // At just the rate that it can, it might fall short of the schedule.
        Some(Bound::Generator) => limits.ceiling.0,
        _ => trials.top(),
    };
    let (mut low, mut high, mut best) = (0.0, plan.burst.as_secs_f64(), 0.0);
    let mut length = high;
    while high - low > (BURST_WIDTH * high).max(BURST_SECONDS) {
        let Some(sample) = trials.burst(load, Duration::from_secs_f64(length))? else {
            return Ok(None);
        };
        match packets(sample) {
            Some(sent) if length >= plan.burst.as_secs_f64() => return Ok(Some((sent, true))),
            Some(sent) => (low, best) = (length, sent),
            None => high = length,
        }
        length = f64::midpoint(low, high);
    }
    Ok(Some((best, false)))
}
