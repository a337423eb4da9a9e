//! Many configurations, each measured many times in random order.

pub mod command;
pub mod file;
pub mod journal;

use std::path::Path;
use std::time::Instant;

use loadgen::measure::repeat::ATTEMPTS;
use report::Conditions;
use report::matrix::{MatrixResult, MatrixRun};
use report::model::Machine;
use sandbox::Error;

use self::command::Pending;
use self::file::{Configuration, Device, Plan};
use self::journal::Journal;
use crate::compare::topology::Merge;
use crate::compare::{BEYOND_BUDGET, Case, Progress, Step};
use crate::conditions::Watch;
use crate::machine;
use crate::power::{self, Meter};
use crate::random::Random;

/// What a matrix is measured with.
#[derive(Debug)]
pub struct Tools<'a> {
    /// The binary `parshall` that the laboratory runs.
    pub exe: &'a Path,
    /// Meter of the machine's power, if there is one.
    pub meter: Option<&'a Meter>,
    /// Makes one configuration of a router's two.
    pub merge: Merge,
    /// What a signal must put away.
    pub pending: &'a Pending,
}

/// Measures what `journal` does not have yet.
///
/// # Errors
/// The journal cannot be written. A run that fails does not count, and says why.
pub fn run(
    plan: &Plan,
    journal: &mut Journal,
    tools: &Tools<'_>,
    progress: &mut dyn Progress,
) -> Result<MatrixResult, Error> {
    let machine = Machine {
        energy: power::source(tools.meter),
        ..machine::describe()
    };
    put_away(plan, journal);
    let order = order(plan, journal.seed);
    let total = order.len();
    let begin = Instant::now();
    let mut expected = plan.guess() * total as f64;
    let mut done = 0;
    for (number, (round, configuration)) in order.into_iter().enumerate() {
        let mut is_new = false;
        while let Some(attempt) = next_attempt(journal, round, configuration) {
            let at = configuration.at.join(" ");
            progress.step(&Step {
                label: format!("run {} of {total}, {at}", number + 1),
                elapsed: begin.elapsed().as_secs_f64(),
                expected,
            });
            journal.begin(&configuration.at)?;
            let run = measure(configuration, tools)?;
            journal.done(MatrixRun {
                round,
                attempt,
                ..run
            })?;
            is_new = true;
        }
        let elapsed = begin.elapsed().as_secs_f64();
        done += u32::from(is_new);
        if done > 0 {
            let left = (total - number - 1) as f64;
            expected = elapsed + left * elapsed / f64::from(done);
        }
    }
    Ok(result(plan, journal, machine, begin))
}

/// What is to be run, in order: each round has all configurations, in a random order of its own, so
/// that what changes with time strikes all alike.
fn order(plan: &Plan, seed: u32) -> Vec<(u32, &Configuration)> {
    let mut random = Random::new(seed.into());
    let rounds = (1..=plan.rounds).flat_map(|round| {
        let mut all: Vec<&Configuration> = plan.configurations.iter().collect();
        random.shuffle(&mut all);
        all.into_iter()
            .map(move |configuration| (round, configuration))
    });
    rounds.collect()
}

/// The number of the attempt that a run still needs; None if it has counted, or failed too often.
fn next_attempt(journal: &Journal, round: u32, of: &Configuration) -> Option<u32> {
    let runs = journal
        .runs
        .iter()
        .filter(|run| run.round == round && run.at == of.at);
    let (mut attempts, mut counted) = (0, false);
    for run in runs {
        attempts += 1;
        counted |= run.counted().is_some();
    }
    (!counted && attempts < ATTEMPTS).then_some(attempts + 1)
}

/// Puts away the device of a run that ended suddenly.
fn put_away(plan: &Plan, journal: &Journal) {
    let all = plan.configurations.iter();
    for configuration in all.filter(|c| Some(&c.at) == journal.unfinished.as_ref()) {
        if let Device::Command(command) = &configuration.device {
            command.put_away();
        }
    }
}

/// Measures a configuration once.
fn measure(configuration: &Configuration, tools: &Tools<'_>) -> Result<MatrixRun, Error> {
    let (begin, watch) = (Instant::now(), Watch::start()?);
    let found = match &configuration.device {
        Device::Lab(case) => of_lab(case, tools),
        Device::Command(command) => command.run(tools.pending).map(|figure| MatrixRun {
            figure: Some(figure),
            ..MatrixRun::default()
        }),
    };
    let run = found.unwrap_or_else(|error| MatrixRun {
        unfit: error.to_string(),
        ..MatrixRun::default()
    });
    let conditions = Conditions {
        ceiling_pps: run.ceiling_pps,
        unsent: run.conditions.unsent,
        generator_cpus: run.conditions.generator_cpus,
        device_cpus: run.conditions.device_cpus,
        ..watch.end()?
    };
    let unfit = match run.unfit.is_empty() {
        true => conditions.disturbed().unwrap_or_default(),
        false => run.unfit,
    };
    Ok(MatrixRun {
        at: configuration.at.clone(),
        unfit,
        conditions,
        seconds: begin.elapsed().as_secs_f64(),
        ..run
    })
}

/// A run of the laboratory. One that found no rate or whose processors changed their distance does
/// not count.
fn of_lab(case: &Case, tools: &Tools<'_>) -> Result<MatrixRun, Error> {
    let result = case.measure(tools.exe, tools.meter, tools.merge)?;
    let ceiling = result.generator.ceiling_pps;
    let run = result.runs.into_iter().next().unwrap_or_default();
    let unfit = match run.valid {
        false => run.why.clone(),
        true => run.disturbed().unwrap_or_default(),
    };
    Ok(MatrixRun {
        figure: run.valid.then_some(run.max_pps),
        unfit,
        conditions: run.conditions.clone().unwrap_or_default(),
        ceiling_pps: (ceiling > 0.0).then_some(ceiling),
        ports: result.machine.ports,
        run: Some(run),
        ..MatrixRun::default()
    })
}

fn result(plan: &Plan, journal: &Journal, machine: Machine, begin: Instant) -> MatrixResult {
    let mut ports = Vec::new();
    for port in journal.runs.iter().flat_map(|run| &run.ports) {
        if !ports.contains(port) {
            ports.push(port.clone());
        }
    }
    MatrixResult {
        title: plan.title.clone(),
        axes: plan.axes.clone(),
        along: plan.along.clone(),
        unit: plan.unit.clone(),
        rounds: plan.rounds,
        seed: journal.seed,
        machine: Machine {
            ports,
            seconds: begin.elapsed().as_secs_f64(),
            ..machine
        },
        runs: journal.runs.clone(),
    }
}

impl Plan {
    /// True if it needs the laboratory, and so root.
    pub fn needs_lab(&self) -> bool {
        let mut all = self.configurations.iter();
        all.any(|c| matches!(c.device, Device::Lab(_)))
    }

    /// Seconds that a run will take, before one has shown it.
    fn guess(&self) -> f64 {
        let seconds = |configuration: &Configuration| match &configuration.device {
            Device::Lab(case) => (case.budget + BEYOND_BUDGET).as_secs_f64(),
            Device::Command(_) => 1.0,
        };
        let all = self.configurations.iter().map(seconds);
        all.sum::<f64>() / self.configurations.len() as f64
    }
}

#[cfg(test)]
mod tests;
