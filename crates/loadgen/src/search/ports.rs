//! Ports as a device that searches measure.

use std::time::Duration;

use super::{Device, Sample};
use crate::device::Failure;
use crate::measure::search::Event;
use crate::measure::search::runs::Runs;
use crate::measure::trial::Trial;
use crate::model::units::Pps;

impl Device for Runs<'_> {
    fn warm_up(&mut self, ceiling: Pps) -> Result<(), Failure> {
        let each = Pps(ceiling.0 / self.ways());
        Runs::warm_up(self, each)?;
        Runs::start_over(self);
        Ok(())
    }

    fn measure(&mut self, load: Pps, length: Duration) -> Result<Sample, Failure> {
        let each = Pps(load.0 / self.ways());
        Ok(sample(&self.trial(each, length)?))
    }

    fn burst(&mut self, load: Pps, length: Duration) -> Result<Sample, Failure> {
        let each = Pps(load.0 / self.ways());
        Ok(sample(&Runs::burst(self, each, length)?))
    }

    fn nearest(&self, load: Pps) -> Pps {
        let ways = self.ways();
        Pps(Runs::nearest(self, Pps(load.0 / ways)).0 * ways)
    }

    fn start_over(&mut self) {
        Runs::start_over(self);
    }

    fn is_interrupted(&self) -> bool {
        Runs::is_interrupted(self)
    }

    fn tell(&mut self, event: Event) {
        Runs::tell(self, event);
    }
}

fn sample(trial: &Trial) -> Sample {
    let ways = trial.missing();
    let shares = ways.map(|(missing, sent)| missing as f64 / sent.max(1) as f64);
    Sample {
        sent: trial.sent(),
        lost: trial.ways.iter().map(|way| way.lost()).sum(),
        held: trial.held.iter().sum(),
        loss: shares.fold(0.0, f64::max).min(1.0),
        sent_pps: trial.sent_pps().0,
        forwarded_pps: trial.forwarded.0,
        seconds: trial.seconds,
        valid: trial.valid,
        late: trial.late,
        interrupted: trial.interrupted,
    }
}
