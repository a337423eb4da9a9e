//! The one binary, `parshall`: each subcommand is a module.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

mod ask;
mod bench;
mod cleanup;
mod configuration;
mod laboratory;
mod load;
mod output;
mod run;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// How a subcommand ends: done, or an error that says what, where and what to do.
pub type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Routes at line rate on affordable hardware, and proves it.
#[derive(Parser)]
#[command(
    name = "parshall",
    version,
    max_term_width = 120,
    infer_subcommands = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Be the router: forward packets until told to stop
    Run(run::Run),
    /// Ask the running router: runtime, errors, interface, hardware, ip fib, neighbors, trace ...
    Show(ask::Ask),
    /// Trace packets in the running router: trace add NODE N
    Trace(ask::Ask),
    /// Start counters of the running router anew: runtime, errors, interface, trace
    Clear(ask::Ask),
    /// Check a configuration file: exit code 0 if it is valid, 1 if not, 2 if it cannot be read
    Check(configuration::Check),
    /// Show what a configuration file would change in the running router, or in another file, and in
    /// which steps
    Plan(configuration::Plan),
    /// Change the running router to a configuration file, wholly or not at all
    Apply(configuration::Apply),
    /// Keep the configuration that waits for confirmation
    Confirm(ask::Ask),
    /// Take the running router back to an earlier configuration
    Rollback(configuration::Rollback),
    /// List the configurations so far, or show what one of them changed: history N
    History(ask::Ask),
    /// Print the configuration in force as YAML
    Dump(ask::Ask),
    /// Print the JSON schema of the configuration language, for editors
    Schema,
    /// Send through a device under test and count what comes back: a ramp, or a search for its
    /// highest rate
    Loadtest(Box<load::Loadtest>),
    /// Send a traffic profile through a port
    Send(Box<load::Send>),
    /// Compare router and kernel in a laboratory of network namespaces
    Lab(laboratory::Lab),
    /// Remove what killed predecessors left: namespaces, names of devices, sockets
    Cleanup,
    /// Measure the router itself on in-process ports, without root
    #[command(subcommand)]
    Bench(bench::Bench),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Run(run) => run.run(),
        Command::Show(ask) => ask.run("show"),
        Command::Trace(ask) => ask.run("trace"),
        Command::Clear(ask) => ask.run("clear"),
        Command::Check(check) => check.run(),
        Command::Plan(plan) => plan.run(),
        Command::Apply(apply) => apply.run(),
        Command::Confirm(ask) => ask.run("confirm"),
        Command::Rollback(rollback) => rollback.run(),
        Command::History(ask) => ask.run("history"),
        Command::Dump(ask) => ask.run("dump"),
        Command::Schema => configuration::schema(),
        Command::Loadtest(test) => test.run(),
        Command::Send(send) => send.run(),
        Command::Lab(lab) => lab.run(),
        Command::Cleanup => cleanup::run(),
        Command::Bench(bench) => bench.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => match e.downcast_ref::<output::Told>() {
            Some(told) => ExitCode::from(told.0),
            None => {
                output::tell(&format!("parshall: {e}\n"));
                ExitCode::FAILURE
            }
        },
    }
}
