//! MLRsearch: several goals in one search (draft-ietf-bmwg-mlrsearch-15, RFC 9971).
//!
//! The controller takes goals from the one that allows most loss to the one that allows least, and
//! comes to each in three rounds: the first with a quarter of the precision, few and short trials,
//! the last with all that the goal asks for. What trials of one goal or round say of another counts
//! there too. A load is chosen near the last bound, in steps that double until they overshoot, and
//! then half way between the bounds.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::classify::{Class, Evidence, Goal, classify, throughput};
use super::trials::Trials;
use super::{Device, Effort, Limits, Sample};
use crate::device::Failure;
use crate::measure::search::Event;
use crate::model::units::Pps;

/// Rounds of a goal.
const ROUNDS: u32 = 3;
/// Largest step, relative to the load.
const FARTHEST: f64 = 0.5;

/// What was found for a goal. Loads are totals of all directions, in packets a second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bounds {
    /// The goal's loss, as a share.
    pub allowed: f64,
    /// Largest load that reaches the goal, below all that do not.
    pub lower_pps: Option<f64>,
    /// Smallest load that does not reach the goal.
    pub upper_pps: Option<f64>,
    /// Conditional throughput: what the device forwards at the lower bound.
    pub throughput_pps: Option<f64>,
    /// True if the bounds are as near to each other as the goal asks for.
    pub finished: bool,
    /// True if the search ended before the goal had bounds, and these are those of its last round
    /// that had some, with less precision.
    pub provisional: bool,
    /// If they are not, what is in the way; else empty.
    pub why: String,
}

/// The result of a search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Found {
    /// For each goal, in the order in which they were given.
    pub goals: Vec<Bounds>,
    /// What it took.
    pub effort: Effort,
}

/// Finds the bounds of each goal.
///
/// # Errors
/// If the generator cannot send. That a goal has no bounds is not an error, its result says why.
pub fn search(device: &mut dyn Device, goals: &[Goal], limits: &Limits) -> Result<Found, Failure> {
    let first = goals.iter().map(|goal| goal.initial).min();
    let first = first.unwrap_or_default();
    let trials = Trials::open(device, limits, first)?;
    let mut controller = Controller {
        trials,
        made: Vec::new(),
    };
    if let Some(why) = controller.trials.nothing() {
        return Ok(controller.conclude(goals, why));
    }
    controller.take_first(first);
    let mut order: Vec<&Goal> = goals.iter().collect();
    order.sort_by(|a, b| b.loss.total_cmp(&a.loss));
    for goal in &order {
        let rounds = rounds(goal);
        for (round, target) in rounds.iter().enumerate() {
            let before = round.checked_sub(1).map(|before| &rounds[before]);
            controller.settle(target, before)?;
        }
    }
    // Trials for one goal may have changed what is known of another.
    let mut known = 0;
    while known < controller.made.len() && !controller.trials.is_over() {
        known = controller.made.len();
        for goal in &order {
            controller.settle(goal, None)?;
        }
    }
    Ok(controller.conclude(goals, ""))
}

/// The goal of each round: lengths and sums grow evenly by factors, widths are halved.
fn rounds(goal: &Goal) -> Vec<Goal> {
    let between = |from: Duration, to: Duration, part: f64| {
        let (from, to) = (from.min(to).as_secs_f64(), to.as_secs_f64());
        Duration::from_secs_f64(from * (to / from).powf(part))
    };
    let mut rounds: Vec<Goal> = (0..ROUNDS - 1)
        .map(|round| {
            let part = f64::from(round) / f64::from(ROUNDS - 1);
            Goal {
                width: goal.width * f64::from(1 << (ROUNDS - 1 - round)),
                length: between(goal.initial, goal.length, part),
                sum: between(goal.initial, goal.sum, part),
                ..*goal
            }
        })
        .collect();
    rounds.push(*goal);
    rounds
}

struct Controller<'a> {
    trials: Trials<'a>,
    /// Every valid trial: the load, the rate that came back, both in packets a second, and what it
    /// says.
    made: Vec<(f64, f64, Evidence)>,
}

/// The last step of a round: loads that are far from a bound are neared in growing steps.
#[derive(Default)]
struct Stride {
    last: Option<Class>,
    doublings: i32,
}

impl Stride {
    fn note(&mut self, class: Class) {
        let goes_on = self.last == Some(class);
        self.doublings = if goes_on { self.doublings + 1 } else { 0 };
        self.last = Some(class);
    }

    /// Length of the next step, relative to the load.
    fn reach(&self, width: f64) -> f64 {
        (width * 2f64.powi(self.doublings)).min(FARTHEST)
    }
}

impl Controller<'_> {
    /// Counts the first trial, if it was at the highest load that may be offered again.
    fn take_first(&mut self, length: Duration) {
        if let Some(first) = self.trials.at_top() {
            self.count(self.trials.top(), length, &first);
        }
    }

    fn count(&mut self, load: f64, length: Duration, sample: &Sample) {
        let evidence = Evidence {
            seconds: length.as_secs_f64(),
            loss: sample.loss,
        };
        self.made.push((load, sample.forwarded_pps, evidence));
    }

    fn evidence(&self, load: f64) -> Vec<Evidence> {
        let here = self.made.iter().filter(|(at, ..)| *at == load);
        here.map(|(.., evidence)| *evidence).collect()
    }

    fn class(&self, goal: &Goal, load: f64) -> Class {
        classify(goal, &self.evidence(load))
    }

    /// Loads of trials with this class, in ascending order.
    fn loads(&self, goal: &Goal, class: Class) -> Vec<f64> {
        let mut loads: Vec<f64> = self.made.iter().map(|(load, ..)| *load).collect();
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        loads.retain(|load| self.class(goal, *load) == class);
        loads
    }

    /// The relevant bounds: the smallest load that is one from above, and the largest below it that
    /// is one from below.
    fn bounds(&self, goal: &Goal) -> (Option<f64>, Option<f64>) {
        let upper = self.loads(goal, Class::Upper).first().copied();
        let below = |load: &f64| upper.is_none_or(|upper| *load < upper);
        let lower = self.loads(goal, Class::Lower).into_iter().rfind(below);
        (lower, upper)
    }

    /// Makes trials until the bounds of `goal` are near enough, or nothing more can be known. The
    /// bounds of the round before are what to begin with.
    fn settle(&mut self, goal: &Goal, before: Option<&Goal>) -> Result<(), Failure> {
        let mut stride = Stride::default();
        while !self.trials.is_over()
            && let Some(load) = self.next(goal, before, &stride)
        {
            while self.class(goal, load) == Class::Undecided
                && let Some(sample) = self.trials.valid(load, goal.length)?
            {
                self.count(load, goal.length, &sample);
            }
            stride.note(self.class(goal, load));
            let (lower_pps, upper_pps) = self.bounds(goal);
            self.trials.device.tell(Event::Bounds {
                allowed: goal.loss,
                lower_pps,
                upper_pps,
            });
        }
        Ok(())
    }

    /// The load to decide next; None if the goal's bounds are near enough, or cannot be.
    fn next(&self, goal: &Goal, before: Option<&Goal>, stride: &Stride) -> Option<f64> {
        let (lower, upper) = self.bounds(goal);
        // What is not known by this goal's trials is taken from the round before.
        let guessed_lower = lower.or_else(|| {
            let mut loads = self.loads(before?, Class::Lower).into_iter();
            loads.rfind(|load| upper.is_none_or(|upper| *load < upper))
        });
        let guessed_upper = upper.or_else(|| {
            let mut loads = self.loads(before?, Class::Upper).into_iter();
            loads.find(|load| guessed_lower.is_none_or(|lower| *load > lower))
        });
        let (top, least) = (self.trials.top(), self.trials.least);
        let reach = stride.reach(goal.width);
        let guessed_upper = guessed_upper.filter(|upper| *upper <= top);
        match (guessed_lower, guessed_upper) {
            (Some(low), Some(high)) => self.between(goal, (low, high), stride).or_else(|| {
                let unproven = [low, high].into_iter();
                unproven
                    .filter(|load| *load <= top)
                    .find(|load| self.class(goal, *load) == Class::Undecided)
            }),
            (Some(low), None) if low >= top => lower.is_none().then_some(low),
            (Some(low), None) => Some(self.nearest(low / (1.0 - reach)).min(top)),
            (None, Some(high)) if high <= least => None,
            (None, Some(high)) => {
                let load = self.forwarded(high).min(high * (1.0 - reach));
                let load = self.nearest(load).max(least);
                (load < high || reach < FARTHEST).then_some(load)
            }
            (None, None) => Some(self.nearest(self.trials.first.forwarded_pps).min(top)),
        }
    }

    /// The load to try between two bounds; None if they are near enough, or if there is none.
    fn between(&self, goal: &Goal, (low, high): (f64, f64), stride: &Stride) -> Option<f64> {
        if is_near(goal, low, high) {
            return None;
        }
        let (middle, reach) = ((low * high).sqrt(), stride.reach(goal.width));
        let load = match stride.last {
            Some(Class::Lower) => middle.min(low / (1.0 - reach)),
            Some(Class::Upper) => middle.max(high * (1.0 - reach)),
            _ => middle,
        };
        let load = self.nearest(load).min(self.trials.top());
        (low < load && load < high).then_some(load)
    }

    fn nearest(&self, load: f64) -> f64 {
        self.trials.device.nearest(Pps(load)).0
    }

    /// Mean rate that came back in the trials at `load`.
    fn forwarded(&self, load: f64) -> f64 {
        let here = || self.made.iter().filter(|(at, ..)| *at == load);
        let sum: f64 = here().map(|(_, forwarded, _)| forwarded).sum();
        sum / here().count().max(1) as f64
    }

    fn conclude(self, goals: &[Goal], nothing: &str) -> Found {
        let goals = goals.iter().map(|goal| {
            let (lower, upper) = self.bounds(goal);
            let why = match nothing {
                "" => self.objection(goal, lower, upper),
                why => why.to_owned(),
            };
            let effort = &self.trials.effort;
            let ended = effort.interrupted || effort.out_of_time;
            // The precise round comes last.
            let round = (ended && (lower, upper) == (None, None))
                .then(|| rounds(goal).into_iter().rev())
                .and_then(|mut rounds| rounds.find(|round| self.bounds(round) != (None, None)));
            let provisional = round.is_some();
            let known = round.unwrap_or(*goal);
            let (lower, upper) = self.bounds(&known);
            Bounds {
                allowed: goal.loss,
                lower_pps: lower,
                upper_pps: upper,
                throughput_pps: lower.map(|load| throughput(&known, load, &self.evidence(load))),
                finished: why.is_empty(),
                provisional,
                why,
            }
        });
        Found {
            goals: goals.collect(),
            effort: self.trials.effort,
        }
    }

    /// What keeps the bounds apart; empty if they are near enough.
    fn objection(&self, goal: &Goal, lower: Option<f64>, upper: Option<f64>) -> String {
        let effort = &self.trials.effort;
        match (lower, upper) {
            (Some(low), Some(high)) if is_near(goal, low, high) => String::new(),
            _ if effort.interrupted => "interrupted".to_owned(),
            _ if effort.out_of_time => "the time was used up".to_owned(),
            (Some(low), _) if low >= self.trials.top() => effort.top_is_why().to_owned(),
            (None, _) => format!("no load lost {} % or less", 100.0 * goal.loss),
            _ => "the generator has no load between the bounds".to_owned(),
        }
    }
}

/// True if the bounds are no farther from each other than the goal's width.
fn is_near(goal: &Goal, low: f64, high: f64) -> bool {
    // Their quotient is not exactly what it was calculated from.
    high - low <= goal.width * high * (1.0 + 1e-9)
}
