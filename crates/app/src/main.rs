//! The one binary, `parshall`: each subcommand is a module.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

mod ask;
mod bench;
mod cleanup;
mod compare;
mod configuration;
mod console;
mod laboratory;
mod load;
mod matrix;
mod output;
mod power_meter;
mod report;
mod run;
mod top;
mod trex;
mod ui;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The end of a subcommand: done, or an error that says what, where and what to do.
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
    #[command(after_help = commands("show"))]
    Show(ask::Ask),
    /// Say what the running router would do with a packet, and why; nothing is sent, and nothing
    /// changes
    Explain(ask::Explain),
    /// Trace packets in the running router: trace add NODE N
    #[command(after_help = commands("trace"))]
    Trace(ask::Ask),
    /// Start counters of the running router anew, or forget traced packets or flows: runtime, errors,
    /// interface, trace, flows
    #[command(after_help = commands("clear"))]
    Clear(ask::Ask),
    /// Check a configuration file: exit code 0 if it is valid, 1 if not, 2 if it cannot be read
    Check(configuration::Check),
    /// Show what a configuration file would change in the running router, or in another file, and in
    /// which steps
    Plan(configuration::Plan),
    /// Change the running router to a configuration file, wholly or not at all
    Apply(configuration::Apply),
    /// Keep the configuration that waits for confirmation
    Confirm(ask::Alone),
    /// Take the running router back to an earlier configuration
    Rollback(configuration::Rollback),
    /// List the configurations so far, or show what one of them changed
    History(ask::History),
    /// Print the configuration in force as YAML
    Dump(ask::Alone),
    /// Print the JSON schema of the configuration language, for editors
    Schema,
    Loadtest(Box<load::Loadtest>),
    Search(Box<load::Search>),
    Send(Box<load::Send>),
    Rss(Box<load::Rss>),
    TrexServer(trex::TrexServer),
    Console(console::Console),
    Top(top::Top),
    Ui(ui::Ui),
    Lab(laboratory::Lab),
    Matrix(matrix::Matrix),
    Compare(compare::Compare),
    Report(report::Report),
    /// Remove what killed predecessors left: processes, namespaces, settings of devices, addresses,
    /// routes, sockets
    Cleanup,
    /// Measure the router itself, or the load tester's generator, on in-process ports, without root
    #[command(subcommand)]
    Bench(bench::Bench),
}

/// The commands that begin with a word, for its help.
fn commands(word: &str) -> String {
    format!("Commands:\n{}", control::cli::help(word))
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Run(run) => run.run(),
        Command::Show(ask) => ask.run("show"),
        Command::Explain(explain) => explain.run(),
        Command::Trace(ask) => ask.run("trace"),
        Command::Clear(ask) => ask.run("clear"),
        Command::Check(check) => check.run(),
        Command::Plan(plan) => plan.run(),
        Command::Apply(apply) => apply.run(),
        Command::Confirm(ask) => ask.run("confirm"),
        Command::Rollback(rollback) => rollback.run(),
        Command::History(history) => history.run(),
        Command::Dump(ask) => ask.run("dump"),
        Command::Schema => configuration::schema(),
        Command::Loadtest(test) => test.run(),
        Command::Search(search) => search.run(),
        Command::Send(send) => send.run(),
        Command::Rss(rss) => rss.run(),
        Command::TrexServer(server) => server.run(),
        Command::Console(console) => console.run(),
        Command::Top(top) => top.run(),
        Command::Ui(ui) => ui.run(),
        Command::Lab(lab) => lab.run(),
        Command::Matrix(matrix) => matrix.run(),
        Command::Compare(compare) => compare.run(),
        Command::Report(report) => report.run(),
        Command::Cleanup => cleanup::run(),
        Command::Bench(bench) => bench.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => match e.downcast_ref::<output::AlreadyReported>() {
            Some(told) => ExitCode::from(told.0),
            None => {
                output::tell(&format!("parshall: {e}\n"));
                ExitCode::FAILURE
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// The output of `parshall WORDS --help`, on one line.
    fn help(words: &[&str]) -> String {
        let mut command = Cli::command();
        for word in words {
            let found = command.find_subcommand(word);
            command = found.expect("it is there").clone();
        }
        let help = command.render_long_help().to_string();
        help.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn help_says_what_there_is() {
        for (words, said) in [
            (&["bench", "dataplane"][..], "IPv4 and IPv6 forwarding"),
            (&["bench"], "the load tester's generator"),
            (&["cleanup"], "addresses, routes"),
            (&["loadtest"], "sink:IF"),
            (&["loadtest"], "pcap:FILE"),
            (&["loadtest"], "Ctrl-C"),
            (&["search"], "RFC 2544"),
            (&["search"], "Ctrl-C"),
            (&["send"], "for each port to send by"),
            (&["lab"], "Without root"),
            (&["matrix"], "goes on where it ended"),
            (&["report"], "graph.rb"),
            (&["rss"], "nothing is sent"),
            (&["show"], "show warnings"),
            (&["clear"], "clear trace discard traced packets"),
            (&["history"], "[N]"),
            (&["explain"], "pcap FILE"),
            (&["console"], "exit code 1"),
            (&["top"], "`q` leaves"),
            (&["ui"], "only this user reads"),
        ] {
            let help = help(words);
            assert!(help.contains(said), "{words:?}: {help}");
        }
        for alone in ["confirm", "dump"] {
            assert!(!help(&[alone]).contains("WORDS"), "{alone}");
        }
    }
}
