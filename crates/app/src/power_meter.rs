//! `--power-meter`.

use clap::Args;
use lab::power::Meter;

/// The source of the energy.
#[derive(Args, Debug, Default)]
pub struct PowerMeter {
    /// Shell command that prints the watts that the machine takes at the moment [default: the
    /// processors' own counters, if they have some]
    #[arg(long, value_name = "COMMAND")]
    power_meter: Option<String>,
}

impl PowerMeter {
    /// True if a command was given.
    pub fn is_given(&self) -> bool {
        self.power_meter.is_some()
    }

    /// The meter; `None`: there is none.
    ///
    /// # Errors
    /// The command fails, or prints something that is no number.
    pub fn find(&self) -> Result<Option<Meter>, sandbox::Error> {
        Meter::find(self.power_meter.clone())
    }

    /// A command.
    #[cfg(test)]
    pub fn of(command: &str) -> Self {
        PowerMeter {
            power_meter: Some(command.to_owned()),
        }
    }
}
