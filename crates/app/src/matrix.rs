//! `parshall matrix`: many configurations, each measured many times in random order.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use control::config::{Config, merged};
use lab::compare::topology::router_configuration;
use lab::matrix::command::Pending;
use lab::matrix::file::{Device, Plan};
use lab::matrix::journal::Journal;
use lab::matrix::{self, Tools};
use lab::{invocation, needs};
use report::compare::Confidence;
use report::html;
use report::matrix::{MatrixResult, text};
use report::setup::Dut;
use sandbox::cleanup;

use crate::laboratory::{Shown, alone};
use crate::output;
use crate::power_meter::PowerMeter;

/// Measure many configurations of a device many times, in random order: what a route, a rule or a
/// byte costs
///
/// The file names axes, such as sizes of tables, and what to measure at each combination of their
/// values: the kernel, Parshall, or a device of your own commands. Each run is kept in a journal
/// beside the result. After a sudden end the same command goes on where it ended.
#[derive(Args)]
pub struct Matrix {
    /// The matrix, as YAML
    #[arg(value_name = "FILE.yaml")]
    file: PathBuf,
    /// File for the result as JSON [default: FILE.json in the present directory]; the journal is
    /// beside it
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a report with the curves as one HTML page
    #[arg(short = 'o', long = "output", value_name = "report.html")]
    output: Option<PathBuf>,
    /// Start of the random order, to have the same order again [default: a new one]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u32>,
    /// Level of confidence: 80, 90, 95, 98, 99 or 99.5 percent
    #[arg(short = 'c', value_name = "PERCENT", default_value = "95")]
    confidence: Confidence,
    #[command(flatten)]
    meter: PowerMeter,
    /// Only say what would be run
    #[arg(long)]
    dry_run: bool,
}

impl Matrix {
    /// Measures, and prints the table.
    ///
    /// # Errors
    /// The file is wrong, the journal is that of another one, there is no root for the laboratory,
    /// or a configuration has no run that counts.
    pub fn run(self) -> crate::Outcome {
        let name = self.file.display().to_string();
        let text = fs::read_to_string(&self.file).map_err(|e| format!("{name}: {e}"))?;
        let exe = invocation::parshall()?;
        let plan = Plan::read(&name, &text, &exe.display().to_string())?;
        check_routers(&name, &plan)?;
        if self.meter.is_given() && !plan.needs_lab() {
            return Err(format!(
                "--power-meter: {name} has `device: command`, whose runs are not metered; leave it \
                 out, or let `measure` print the watts"
            )
            .into());
        }
        for axis in &plan.unused {
            output::tell(&format!(
                "parshall: {name}: nothing refers to axis `{axis}`, so its values measure the same\n"
            ));
        }
        for file in self.json.iter().chain(&self.output) {
            output::check(file)?;
        }
        if self.dry_run {
            return output::print(&dry(&plan));
        }
        let json = self.json();
        if output::is_stdout(&json) {
            return Err("--json: the journal is beside the file; name one".into());
        }
        output::check(&json)?;
        output::all_apart([
            ("the matrix", Some(&*self.file)),
            ("--json", Some(&*json)),
            ("the journal", Some(&*journal(&json))),
            ("-o", self.output.as_deref()),
        ])?;
        let _alone = match plan.needs_lab() {
            true if !cleanup::is_root() => {
                return Err(format!("{name}: this device needs root; run it with sudo").into());
            }
            true => {
                needs::check()?;
                Some(alone()?)
            }
            false => None,
        };
        let mut journal = Journal::open(&journal(&json), &text, self.seed)?;
        say_begin(&journal);
        let (pending, meter) = (Pending::default(), self.meter.find()?);
        pending.on_signal()?;
        let tools = Tools {
            exe: &exe,
            meter: meter.as_ref(),
            merge,
            pending: &pending,
        };
        let result = matrix::run(&plan, &mut journal, &tools, &mut Shown::new())?;
        output::print(&text::table(&result, self.confidence))?;
        output::write_json(&json, &result)?;
        if let Some(file) = &self.output {
            output::write(file, &html::matrix(&result, self.confidence))?;
        }
        journal.remove()?;
        complete(&result)
    }

    /// The file of the result.
    fn json(&self) -> PathBuf {
        let of_file = || {
            let name = self.file.file_name().unwrap_or_default();
            Path::new(name).with_extension("json")
        };
        self.json.clone().unwrap_or_else(of_file)
    }
}

/// The journal beside the file of the result.
fn journal(json: &Path) -> PathBuf {
    let mut name = json.as_os_str().to_owned();
    name.push(".journal");
    name.into()
}

fn say_begin(journal: &Journal) {
    let seed = journal.seed;
    let said = match journal.runs.len() {
        0 => format!("parshall: random order from seed {seed}\n"),
        runs => format!("parshall: going on after {runs} runs, seed {seed}\n"),
    };
    output::tell(&said);
}

/// Refuses text for the router that makes no configuration with that of its ports.
fn check_routers(name: &str, plan: &Plan) -> crate::Outcome {
    for of in &plan.configurations {
        let Device::Lab(case) = &of.device else {
            continue;
        };
        if case.dut != Dut::Parshall || case.router.is_empty() {
            continue;
        }
        let at = of.at.join(", ");
        let ports = router_configuration(case.io, case.load.forwarding, 0);
        let text = merged(&ports, "router", &case.router)
            .map_err(|e| format!("{name}: configuration {at}: {e}"))?;
        Config::parse("router", &text).map_err(|e| {
            format!("{name}: `router` of configuration {at}, with that of its ports: {e}")
        })?;
    }
    Ok(())
}

/// The configuration of a router's ports with what the matrix has beyond it.
fn merge(ports: &str, beyond: &str) -> Result<String, sandbox::Error> {
    merged(ports, "router", beyond).map_err(|e| sandbox::Error::Asked(e.to_string()))
}

/// What would be run.
fn dry(plan: &Plan) -> String {
    let names: Vec<&str> = plan.axes.iter().map(|axis| axis.name.as_str()).collect();
    let lines = plan
        .configurations
        .iter()
        .map(|c| format!("{}\n", c.at.join(", ")));
    let (count, rounds) = (plan.configurations.len(), plan.rounds);
    let lines: String = lines.collect();
    format!(
        "{}:\n{lines}{count} configurations; runs of each: {rounds}\n",
        names.join(", ")
    )
}

/// An error if a configuration has no run that counts, with the reason of its last one.
fn complete(result: &MatrixResult) -> crate::Outcome {
    let counts = |at: &[String]| {
        let mut runs = result.runs.iter();
        runs.any(|run| run.at == at && run.counted().is_some())
    };
    match result.runs.iter().rev().find(|run| !counts(&run.at)) {
        Some(run) => Err(format!(
            "configuration {} gave no result: {}",
            run.at.join(", "),
            run.unfit
        )
        .into()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use report::setup::{Forwarding, Io};

    use super::*;

    fn check(io: &str, router: &str) -> Result<(), String> {
        let text = format!(
            "axes: {{ n: [1, 2] }}\ndevice: parshall\nio: {io}\nrouter: |\n  {}\n",
            router.replace('\n', "\n  ")
        );
        let plan = Plan::read("m.yaml", &text, "parshall").map_err(|e| e.to_string())?;
        check_routers("m.yaml", &plan).map_err(|e| e.to_string())
    }

    /// What the laboratory writes has these keys, too.
    #[test]
    fn workers_queues_and_interfaces_of_a_router_vary() {
        for (io, router) in [
            ("memif", "workers: { count: ${n} }"),
            (
                "memif",
                "workers: { cpus: [ ${n} ] }\ninterfaces: { dut0: { mtu: 900${n} } }",
            ),
            ("memif", "ports: { dut0: { queues: ${n} } }"),
            (
                "veth",
                "ports: { dut0: { netdev: dut0, queues: ${n} } }\nworkers: { count: ${n} }",
            ),
        ] {
            assert_eq!(check(io, router), Ok(()), "{router}");
        }
        let ports = router_configuration(Io::Memif, Forwarding::Routed, 7);
        let merged = merge(&ports, "workers: { count: 2 }").unwrap();
        assert!(
            merged.contains("count: 2") && !merged.contains("cpus"),
            "{merged}"
        );
        assert!(merged.contains("role: server"), "{merged}");
        for (router, said) in [
            (
                "workers: { count: 0 }",
                "configuration 1, with that of its ports",
            ),
            ("workers: 1\nworkers: 2", "configuration 1: "),
            ("ports: [", "m.yaml"),
        ] {
            let error = check("memif", router).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
