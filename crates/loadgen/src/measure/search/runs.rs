//! The trials of a search, one after the other.

use std::time::Duration;

use super::{Event, Goal, SHORTEST};
use crate::clock::Clock;
use crate::device::{Failure, Path};
use crate::measure::point::Point;
use crate::measure::trial::{self, Trial};
use crate::model::units::Pps;

/// Makes trials, reports them and keeps their results.
pub struct Runs<'a> {
    paths: &'a mut [Path],
    clock: &'a dyn Clock,
    watch: &'a mut dyn FnMut(Event),
    /// The results of the trials, in order.
    pub points: Vec<Point>,
}

impl<'a> Runs<'a> {
    pub fn new(
        paths: &'a mut [Path],
        clock: &'a dyn Clock,
        watch: &'a mut dyn FnMut(Event),
    ) -> Self {
        let points = Vec::new();
        Self {
            paths,
            clock,
            watch,
            points,
        }
    }

    /// Lets caches fill and clock frequencies rise. The result is not reported.
    pub fn warm_up(&mut self, goal: &Goal) -> Result<Trial, Failure> {
        (self.watch)(Event::WarmUp);
        trial::run(self.paths, goal.ceiling, SHORTEST, self.clock)
    }

    /// Ends the warm-up: nothing of it is in the results.
    pub fn start_over(&mut self) {
        self.paths.iter_mut().for_each(Path::start_over);
    }

    /// Makes a trial at `rate` in each direction, or the nearest that there is.
    pub fn trial(&mut self, rate: Pps, length: Duration) -> Result<Trial, Failure> {
        if self.clock.is_interrupted() {
            // It sends nothing, and is not reported.
            return trial::run(self.paths, rate, length, self.clock);
        }
        let flat_out = !rate.is_limited();
        let rate = trial::nearest(self.paths, rate);
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
            forwarded_pps: trial.forwarded.0,
            seconds: trial.seconds,
            valid: trial.valid,
        });
        self.points.push(trial.point());
        Ok(trial)
    }
}
