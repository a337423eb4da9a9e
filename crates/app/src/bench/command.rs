//! The command line of `parshall bench`.

use clap::Subcommand;

use crate::output;

/// What can be measured without root.
#[derive(Subcommand)]
pub enum Bench {
    /// TSC cycles a packet of IPv4 forwarding, per node and in all
    Dataplane {
        /// Rounds of each scenario; medians are over these
        #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=1000))]
        rounds: u32,
        /// Only scenarios whose name contains this
        #[arg(long)]
        only: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

impl Bench {
    /// Runs it and prints the result.
    pub fn run(self) -> crate::Outcome {
        let Bench::Dataplane { rounds, only, json } = self;
        let report = super::dataplane(rounds as usize, only.as_deref())?;
        match json {
            true => output::print(&output::json(&report)?),
            false => output::print(&report.to_string()),
        }
    }
}
