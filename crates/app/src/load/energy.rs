//! Energy that the machine takes while a test sends.

use lab::power::{self, Meter, Metering};
use serde_json::{Value, json};

use crate::power_meter::PowerMeter;

/// The energy of a test: of the times between [`Energy::start`] and [`Energy::end`].
#[derive(Debug)]
pub struct Energy {
    meter: Option<Meter>,
    running: Option<Metering>,
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
            Some(Ok(metering)) => Some(metering),
            Some(Err(e)) => {
                self.failed = Some(e.to_string());
                None
            }
            None => None,
        };
    }

    /// `packets` have come back of what was sent for `seconds` since the start.
    pub fn end(&mut self, packets: u64, seconds: f64) {
        let Some(metering) = self.running.take() else {
            return;
        };
        match metering.watts() {
            Ok(watts) => {
                self.spent.joules += watts * seconds;
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
        let watts = known.then(|| joules / seconds);
        let each = |watts| power::microjoules_per_packet(watts, seconds, packets);
        Taken {
            source,
            watts,
            microjoules_per_packet: watts.and_then(each),
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
    use super::*;

    fn energy(command: &str) -> Result<Energy, sandbox::Error> {
        Energy::by(&PowerMeter::of(command))
    }

    /// A meter that always says the same is right for any trial, however long its readings take.
    #[test]
    fn only_the_time_of_sending_counts() {
        let mut energy = energy("echo 20").unwrap();
        for (packets, seconds) in [(1000, 0.5), (3000, 1.5)] {
            energy.start();
            energy.end(packets, seconds);
        }
        let taken = energy.taken();
        assert_eq!(taken.watts, Some(20.0));
        assert_eq!(taken.microjoules_per_packet, Some(10_000.0));
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
        energy.end(5, 1.0);
        let taken = energy.taken();
        assert!(taken.source.starts_with("not measured: "), "{taken:?}");
        assert_eq!((taken.watts, taken.text()), (None, String::new()));
    }
}
