//! Energy that the machine takes while a test sends.

use std::time::Instant;

use lab::power::{self, Meter, Metering};
use serde_json::{Value, json};

use crate::power_meter::PowerMeter;

/// The energy of a test: of the times between [`Energy::start`] and [`Energy::end`].
#[derive(Debug)]
pub struct Energy {
    meter: Option<Meter>,
    running: Option<(Instant, Metering)>,
    spent: Spent,
    /// Why the meter failed.
    failed: Option<String>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    joules: f64,
    seconds: f64,
    packets: u64,
}

/// What a test took.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Taken {
    /// What measured it, or why nothing did.
    pub source: String,
    /// Power while packets were sent.
    pub watts: Option<f64>,
    /// Energy for each packet that came back, in microjoules; `None` also if none did.
    pub microjoules_per_packet: Option<f64>,
}

impl Energy {
    /// By the meter asked for, or by this machine's.
    ///
    /// # Errors
    /// The command fails, or prints something that is no number.
    pub fn by(meter: &PowerMeter) -> Result<Self, sandbox::Error> {
        Ok(Self {
            meter: meter.find()?,
            running: None,
            spent: Spent::default(),
            failed: None,
        })
    }

    /// Packets are sent from now on.
    pub fn start(&mut self) {
        self.running = match self.meter.as_ref().map(Meter::start) {
            Some(Ok(metering)) => Some((Instant::now(), metering)),
            Some(Err(e)) => {
                self.failed = Some(e.to_string());
                None
            }
            None => None,
        };
    }

    /// So many have come back since the start.
    pub fn end(&mut self, packets: u64) {
        let Some((begin, metering)) = self.running.take() else {
            return;
        };
        let seconds = begin.elapsed().as_secs_f64();
        match metering.joules() {
            Ok(joules) => {
                self.spent.joules += joules;
                self.spent.seconds += seconds;
                self.spent.packets += packets;
            }
            Err(e) => self.failed = Some(e.to_string()),
        }
    }

    /// What has been taken in all; nothing is known if the meter failed once.
    pub fn taken(&self) -> Taken {
        let source = match &self.failed {
            Some(why) => format!("not measured: {why}"),
            None => power::source(self.meter.as_ref()),
        };
        let Spent {
            joules,
            seconds,
            packets,
        } = self.spent;
        let known = self.failed.is_none() && seconds > 0.0;
        Taken {
            source,
            watts: known.then(|| joules / seconds),
            microjoules_per_packet: (known && packets > 0).then(|| 1e6 * joules / packets as f64),
        }
    }
}

impl Taken {
    /// For the result.
    pub fn json(&self) -> Value {
        json!({ "watts": self.watts, "microjoules_per_packet": self.microjoules_per_packet })
    }

    /// For people; empty if nothing is known.
    pub fn text(&self) -> String {
        let Some(watts) = self.watts else {
            return String::new();
        };
        let each = self
            .microjoules_per_packet
            .map(|each| format!(", {each:.3} microjoules for each packet that came back"));
        let each = each.unwrap_or_default();
        format!(
            "{watts:.1} W while packets were sent{each}; {}\n",
            self.source
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn energy(command: &str) -> Result<Energy, sandbox::Error> {
        Energy::by(&PowerMeter::of(command))
    }

    #[test]
    fn only_the_time_of_sending_counts() {
        let mut energy = energy("echo 20").unwrap();
        for packets in [1000, 3000] {
            energy.start();
            std::thread::sleep(Duration::from_millis(20));
            energy.end(packets);
            std::thread::sleep(Duration::from_millis(20));
        }
        let (taken, spent) = (energy.taken(), energy.spent);
        // The meter has a clock of its own, which starts a little earlier.
        let about = |got: f64, want: f64| assert!((want..1.5 * want).contains(&got), "{got}");
        about(taken.watts.unwrap(), 20.0);
        let each = 20e6 * spent.seconds / 4000.0;
        about(taken.microjoules_per_packet.unwrap(), each);
        assert!(taken.text().contains(" W while packets were sent, "));
        assert!(taken.text().ends_with("; power meter `echo 20`\n"));
    }

    #[test]
    fn a_meter_that_fails_says_so_and_nothing_is_known() {
        assert!(energy("echo much").is_err());
        let directory = tempfile::tempdir().unwrap();
        let once = directory.path().join("once");
        let once = once.display();
        std::fs::write(once.to_string(), "").unwrap();
        let mut energy = energy(&format!("rm {once} && echo 20")).unwrap();
        energy.start();
        energy.end(5);
        let taken = energy.taken();
        assert!(taken.source.starts_with("not measured: "), "{taken:?}");
        assert_eq!((taken.watts, taken.text()), (None, String::new()));
    }
}
