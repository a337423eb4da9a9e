//! The one binary, `parshall`: each subcommand is a module.

mod bench;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// How a subcommand ends: done, or an error that says what, where and what to do.
pub type Outcome = Result<(), Box<dyn std::error::Error>>;

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
    Bench(bench::Bench),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Bench(bench) => bench.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("parshall: {e}");
            ExitCode::FAILURE
        }
    }
}
