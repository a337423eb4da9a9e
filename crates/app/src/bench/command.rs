//! The command line of `parshall bench`.

use std::fmt::Display;

use clap::Subcommand;
use serde::Serialize;

use crate::output;

/// Measurements that need no root.
#[derive(Subcommand)]
pub enum Bench {
    /// TSC cycles a packet of IPv4 and IPv6 forwarding, per node and in all
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
    /// Packets a second that the load tester's generator makes on one core
    Generator {
        /// Rounds of each scenario; medians are over these
        #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=1000))]
        rounds: u32,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

impl Bench {
    /// Runs it and prints the result.
    pub fn run(self) -> crate::Outcome {
        match self {
            Bench::Dataplane { rounds, only, json } => {
                print(&super::dataplane(rounds as usize, only.as_deref())?, json)
            }
            Bench::Generator { rounds, json } => {
                print(&super::generator::generator(rounds as usize)?, json)
            }
        }
    }
}

fn print(report: &(impl Serialize + Display), json: bool) -> crate::Outcome {
    if json {
        output::print(&output::json(report)?)
    } else {
        output::print(&report.to_string())
    }
}
