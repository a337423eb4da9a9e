//! The one binary, `parshall`.

mod bench;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Routes at line rate on affordable hardware, and proves it.
#[derive(Parser)]
#[command(name = "parshall", version, max_term_width = 120)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure the router itself on in-process ports, without root
    #[command(subcommand)]
    Bench(Bench),
}

#[derive(Subcommand)]
enum Bench {
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

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("parshall: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Box<dyn std::error::Error>> {
    match command {
        Command::Bench(Bench::Dataplane { rounds, only, json }) => {
            let report = bench::dataplane(rounds as usize, only.as_deref())?;
            if json {
                println!("{}", serde_json::to_string_pretty(&report)?);
            } else {
                print!("{report}");
            }
            Ok(())
        }
    }
}
