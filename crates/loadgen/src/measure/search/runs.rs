//! The trials of a search, one after the other.

use std::time::Duration;

use super::{Event, Observer, SHORTEST};
use crate::clock::{Clock, Nanos};
use crate::device::{Failure, Path};
use crate::measure::point::Point;
use crate::measure::repeat;
use crate::measure::trial::{self, Trial};
use crate::model::units::Pps;

/// Makes trials, reports them and keeps their results.
pub struct Runs<'a> {
    paths: &'a mut [Path],
    clock: &'a dyn Clock,
    watch: &'a mut dyn Observer,
    /// The results of the trials, in order.
    pub points: Vec<Point>,
    /// Those of bursts, which say nothing about a rate.
    pub bursts: Vec<Point>,
}

impl<'a> Runs<'a> {
    /// Trials through `paths`; `watch` hears of each.
    pub fn new(paths: &'a mut [Path], clock: &'a dyn Clock, watch: &'a mut dyn Observer) -> Self {
        Self {
            paths,
            clock,
            watch,
            points: Vec::new(),
            bursts: Vec::new(),
        }
    }

    /// The number of directions.
    pub fn ways(&self) -> f64 {
        self.paths.len().max(1) as f64
    }

    /// The rate nearest to `rate` that all directions have.
    pub fn nearest(&self, rate: Pps) -> Pps {
        trial::nearest(self.paths, rate)
    }

    /// The time.
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// True if no trial is to be made any more.
    pub fn is_interrupted(&self) -> bool {
        self.clock.is_interrupted()
    }

    /// Reports how far a search is.
    pub fn tell(&mut self, event: Event) {
        self.watch.event(event);
    }

    /// Lets caches fill and clock frequencies rise. The result is not reported.
    ///
    /// # Errors
    /// If a generator cannot send.
    pub fn warm_up(&mut self, ceiling: Pps) -> Result<Trial, Failure> {
        self.watch.event(Event::WarmUp);
        trial::run(self.paths, ceiling, SHORTEST, self.clock)
    }

    /// Ends the warm-up: nothing of it is in the results.
    pub fn start_over(&mut self) {
        self.paths.iter_mut().for_each(Path::start_over);
    }

    /// Makes a trial at `rate` in each direction, or the nearest that there is. One that was
    /// disturbed, or whose sending ran late, is repeated. If all attempts were disturbed, the last one
    /// counts; if it ran late, none does.
    ///
    /// # Errors
    /// If a generator cannot send.
    pub fn trial(&mut self, rate: Pps, length: Duration) -> Result<Trial, Failure> {
        if self.clock.is_interrupted() {
            // It sends nothing, and is not reported.
            return trial::run(self.paths, rate, length, self.clock);
        }
        let flat_out = !rate.is_limited();
        let rate = self.nearest(rate);
        let ways = self.ways();
        let offered_pps = if flat_out { 0.0 } else { rate.0 * ways };
        let last = repeat::until_it_counts(|| {
            self.watch.event(Event::TrialStart {
                flat_out,
                offered_pps,
            });
            let trial = trial::run(self.paths, rate, length, self.clock)?;
            self.watch.event(Event::TrialEnd {
                flat_out,
                offered_pps,
                sent: trial.sent(),
                received: trial.received(),
                forwarded_pps: trial.forwarded.0,
                seconds: trial.seconds,
                valid: trial.valid,
                late: trial.late,
            });
            let disturbance = self.watch.disturbance();
            let disturbed = disturbance.is_some();
            let mut point = Point {
                disturbed,
                ..trial.point()
            };
            if point.unfit.is_empty() {
                point.unfit = disturbance.unwrap_or_default();
            }
            self.points.push(point);
            let counts = !(disturbed || trial.late) || trial.interrupted;
            Ok::<_, Failure>((trial, counts))
        })?;
        if let Some(point) = self.points.last_mut().filter(|_| last.counts()) {
            point.unfit.clear();
        }
        Ok(last)
    }

    /// As [`trial`](Self::trial), of a burst: its result is among the [`bursts`](Self::bursts).
    ///
    /// # Errors
    /// As [`trial`](Self::trial).
    pub fn burst(&mut self, rate: Pps, length: Duration) -> Result<Trial, Failure> {
        let before = self.points.len();
        let burst = self.trial(rate, length);
        self.bursts.extend(self.points.drain(before..));
        burst
    }
}
