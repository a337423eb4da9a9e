//! A plain binary search for the highest load with no more loss than allowed, as T-Rex's `ndr_bench`
//! makes it: a trial at the highest load, then trials half way between the last load that passed
//! and the last that failed. Each load has one trial, so that a single odd one misleads it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::mlrsearch::Bounds;
use super::trials::Trials;
use super::{Device, Effort, Limits};
use crate::device::Failure;
use crate::measure::search::Event;
use crate::model::units::Pps;

/// What a search looks for. [`Plan::default`] has the settings of `ndr_bench`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// Loss allowed, as a share.
    pub loss: f64,
    /// Length of a trial; the first takes twice as long.
    pub trial: Duration,
    /// The search ends when the bounds are no farther apart than this share of the highest load.
    pub width: f64,
    /// Most trials, besides the first.
    pub most: u32,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            loss: 0.001,
            trial: Duration::from_secs(20),
            width: 0.01,
            most: 10,
        }
    }
}

/// The result of a search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Found {
    /// The highest load that passed and the lowest that did not.
    pub bounds: Bounds,
    /// What it took.
    pub effort: Effort,
}

/// Finds the highest load that passes.
///
/// # Errors
/// If the generator cannot send.
pub fn search(device: &mut dyn Device, plan: &Plan, limits: &Limits) -> Result<Found, Failure> {
    let mut trials = Trials::open(device, limits, 2 * plan.trial)?;
    if let Some(why) = trials.nothing() {
        return Ok(conclude(plan, trials, (None, None), why));
    }
    let top = trials.top();
    let (mut lower, mut upper) = match trials.at_top() {
        None => (None, None),
        Some(first) if first.loss <= plan.loss => (Some(top), None),
        Some(_) => (None, Some(top)),
    };
    for _ in 0..plan.most {
        let top = trials.top();
        let (low, high) = (lower.unwrap_or(0.0), upper.unwrap_or(top).min(top));
        if high - low <= plan.width * top || trials.is_over() {
            break;
        }
        let load = match upper {
            None => top,
            Some(_) => trials.device.nearest(Pps(f64::midpoint(low, high))).0,
        };
        let load = load.max(trials.least);
        let Some(sample) = trials.valid(load, plan.trial)? else {
            continue;
        };
        if sample.loss <= plan.loss {
            lower = Some(load);
        } else {
            upper = Some(load);
        }
        trials.device.tell(Event::Bounds {
            allowed: plan.loss,
            lower_pps: lower,
            upper_pps: upper,
        });
    }
    Ok(conclude(plan, trials, (lower, upper), ""))
}

fn conclude(
    plan: &Plan,
    trials: Trials<'_>,
    (lower, upper): (Option<f64>, Option<f64>),
    nothing: &str,
) -> Found {
    let effort = trials.effort;
    let width = plan.width * effort.top_pps * (1.0 + 1e-9);
    let why = match (lower, upper) {
        _ if !nothing.is_empty() => nothing.to_owned(),
        (Some(low), Some(high)) if high - low <= width => String::new(),
        _ if effort.interrupted => "interrupted".to_owned(),
        _ if effort.out_of_time => "the time was used up".to_owned(),
        (Some(low), _) if effort.top_pps - low <= width => effort.top_is_why().to_owned(),
        (None, _) => format!("no load lost {} % or less", 100.0 * plan.loss),
        _ => format!("{} trials were not enough", plan.most),
    };
    Found {
        bounds: Bounds {
            allowed: plan.loss,
            lower_pps: lower,
            upper_pps: upper,
            throughput_pps: lower,
            finished: why.is_empty(),
            provisional: false,
            why,
        },
        effort,
    }
}
