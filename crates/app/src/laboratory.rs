//! `parshall lab`: compares router and kernel under the same loads on this machine.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use indicatif::ProgressBar;

use lab::compare::plan::{self, Depth};
use lab::compare::{self, Options, Progress, Step};
use lab::{invocation, needs, unprivileged};
use report::model::{LabResult, Run};
use report::{html, text};
use sandbox::cleanup;

use crate::load::progress;
use crate::output;
use crate::power_meter::PowerMeter;

/// Compare router and kernel in a laboratory of network namespaces: the highest rate with next to no
/// loss, and its cost.
///
/// Takes about five minutes. Without root it only measures the router within one process.
#[derive(Args, Debug)]
pub struct Lab {
    /// Devices under test, in this order: kernel, parshall
    #[arg(long, value_name = "LIST", default_value = "kernel,parshall")]
    dut: String,
    /// Kinds of ports between generator and device: veth, memif
    #[arg(long, value_name = "LIST", default_value = "veth,memif")]
    io: String,
    /// Only 64 B many flows, one way; under 40 s
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// All sizes, also one flow, both ways, IPv6 with 250,000 routes, five rounds, both placements
    /// on processors; up to 35 minutes a round
    #[arg(long)]
    full: bool,
    /// Repetitions of everything, with devices interleaved; the table shows medians [default: 1,
    /// with --full 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: Option<u32>,
    /// Measure latency under load, too: at 10, 50 and 90 % of each highest rate [with --full: always]
    #[arg(long)]
    latency: bool,
    #[command(flatten)]
    meter: PowerMeter,
    /// Write all results as JSON; with -, to standard output, and the table to standard error
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// Write a report with graphs as one HTML page
    #[arg(short = 'o', long = "output", value_name = "report.html")]
    output: Option<PathBuf>,
}

/// Length of a trial of the latency under load.
const LATENCY_TRIAL: Duration = Duration::from_secs(2);

impl Lab {
    /// Runs the comparison and prints its table.
    ///
    /// # Errors
    /// Unknown devices or ports, a laboratory that cannot be set up, or a device without any
    /// result.
    pub fn run(self) -> crate::Outcome {
        let depth = match (self.quick, self.full) {
            (true, _) => Depth::Quick,
            (_, true) => Depth::Full,
            _ => Depth::Default,
        };
        let options = Options {
            duts: plan::duts(&self.dut)?,
            ios: plan::ios(&self.io)?,
            depth,
            rounds: self.rounds.unwrap_or(depth.rounds()),
            exe: invocation::parshall()?,
            meter: self.meter.find()?,
            latency: (self.latency || self.full).then_some(LATENCY_TRIAL),
        };
        for file in self.json.iter().chain(&self.output) {
            output::check(file)?;
        }
        output::all_apart([
            ("--json", self.json.as_deref()),
            ("-o", self.output.as_deref()),
        ])?;
        if !cleanup::is_root() {
            return self.unprivileged(&options);
        }
        needs::check()?;
        cleanup::on_signal()?;
        let _alone = alone()?;
        let result = compare::run(&options, &mut Shown::new())?;
        self.say(&text::comparison(&result));
        self.say(&text::published());
        if let Some(file) = &self.json {
            output::write_json(file, &result)?;
        }
        if let Some(file) = &self.output {
            output::write(file, &html::page(&result))?;
            self.say(&format!("Report: {}\n", file.display()));
        }
        complete(&result)
    }

    /// The part that needs no root.
    fn unprivileged(&self, options: &Options) -> crate::Outcome {
        let (json, table) = unprivileged::bench(&options.exe)?;
        self.say(&table);
        self.say(&format!("\n{}\n", unprivileged::WITH_ROOT));
        if let Some(file) = &self.json {
            output::write(file, &json)?;
        }
        if self.output.is_some() {
            self.say("No report was written: it would show the comparison, which needs root.\n");
        }
        Ok(())
    }

    fn say(&self, text: &str) {
        // If nobody reads it anymore, the files are written all the same.
        let _ = output::say(self.json.as_deref(), text);
    }
}

/// Waits until nobody else on this machine sends live frames, and says so.
///
/// # Errors
/// As [`sandbox::alone()`].
pub(crate) fn alone() -> Result<sandbox::Alone, sandbox::Error> {
    sandbox::alone(|holder| {
        output::tell(&format!(
            "parshall: waiting for {holder}, which must run alone\n"
        ));
    })
}

/// An error if a device has no result at all, with the reason.
fn complete(result: &LabResult) -> crate::Outcome {
    let same = |a: &Run, b: &Run| (&a.dut, &a.io) == (&b.dut, &b.io);
    let without = |run: &&Run| {
        !result
            .runs
            .iter()
            .any(|other| other.valid && same(run, other))
    };
    match result.runs.iter().find(without) {
        Some(run) => Err(format!("{} over {} gave no result: {}", run.dut, run.io, run.why).into()),
        None => Ok(()),
    }
}

/// Shows the progress: a bar on a terminal, otherwise a line for each device and load.
pub(crate) struct Shown {
    bar: Option<ProgressBar>,
    said: String,
}

impl Shown {
    pub(crate) fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| progress::bar(1.0));
        Shown {
            bar,
            said: String::new(),
        }
    }
}

impl Progress for Shown {
    fn step(&mut self, step: &Step) {
        if let Some(bar) = &self.bar {
            bar.set_length((step.expected * 1000.0) as u64);
            bar.set_position((step.elapsed.min(step.expected) * 1000.0) as u64);
            bar.set_message(step.label.clone());
            return;
        }
        // The rates of trials are left to the bar.
        let what = step
            .label
            .rsplit_once(": ")
            .map_or(&*step.label, |(what, _)| what);
        if what != self.said {
            what.clone_into(&mut self.said);
            output::tell(&format!(
                "{:>5.0} s of about {:.0} s  {what}\n",
                step.elapsed, step.expected
            ));
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use report::setup::{Dut, Io};

    use super::*;

    #[test]
    fn a_device_without_a_result_is_an_error() {
        let run = |dut: Dut, valid| Run {
            dut: dut.into(),
            io: Io::Veth.into(),
            valid,
            why: "it ended".into(),
            ..Run::default()
        };
        let result = |runs| LabResult {
            runs,
            ..LabResult::default()
        };
        let good = result(vec![run(Dut::Kernel, true), run(Dut::Kernel, false)]);
        assert!(complete(&good).is_ok());
        let bad = result(vec![run(Dut::Kernel, true), run(Dut::Parshall, false)]);
        let error = complete(&bad).unwrap_err().to_string();
        assert_eq!(error, "parshall over veth gave no result: it ended");
    }
}
