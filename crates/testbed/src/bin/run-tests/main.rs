//! Runs test programs one after the other, each under a limit of its own, and ends with one line:
//! `N passed, N failed, N skipped`. docs/testing.md says what else it does and why.
//!
//! Every run goes on and ends, whatever becomes of a program: its output goes to a file that is
//! followed, not through a pipe that an orphan could hold open; its orphans become children of this
//! process, which ends them; what cannot be ended is named and not waited for.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

mod census;
mod command;
mod dump;
mod kernel;
mod list;
mod memory;
mod output;
mod program;
mod report;
mod tasks;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use testbed::dispatcher::{self, Full, PLACES};

use census::Census;
use program::Program;
use report::{Report, say};

const USAGE: &str = "usage: run-tests [--cleanup PROGRAM] [--full-dispatcher] LIST [FILTER...]

Runs the test programs of LIST, those whose name contains a FILTER if there is one. A line of LIST is
a program's name, the directory to run it in, the executable and its arguments, separated by tabs.

  --cleanup PROGRAM   as root, runs `PROGRAM cleanup` first, and after each program that had to be
                      ended
  --full-dispatcher   as root, keeps the kernel's XDP dispatcher full

PARSHALL_TEST_LIMIT    seconds that a program may take (900), times PARSHALL_PATIENCE
PARSHALL_TEST_SETTLE   seconds that the kernel may take to free what was used (10), times
                       PARSHALL_PATIENCE
RUST_TEST_THREADS      threads of a program; if not set, one for each processor, at least 2";

#[derive(Default)]
struct Arguments {
    cleanup: Option<PathBuf>,
    full_dispatcher: bool,
    list: PathBuf,
    filters: Vec<String>,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Option<Self> {
        let mut arguments = Self::default();
        loop {
            let word = words.next()?;
            match word.as_str() {
                "--cleanup" => arguments.cleanup = Some(words.next()?.into()),
                "--full-dispatcher" => arguments.full_dispatcher = true,
                _ if word.starts_with('-') => return None,
                _ => {
                    arguments.list = word.into();
                    arguments.filters = words.collect();
                    return Some(arguments);
                }
            }
        }
    }
}

/// A number of seconds in an environment variable, times the machine's patience.
fn seconds(variable: &str, default: u64) -> Duration {
    let text = std::env::var(variable).unwrap_or_default();
    sandbox::patience(Duration::from_secs(text.parse().unwrap_or(default)))
}

fn main() -> ExitCode {
    let Some(arguments) = Arguments::parse(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let programs = match list::read(&arguments.list, &arguments.filters) {
        Ok(programs) => programs,
        Err(e) => {
            eprintln!("run-tests: {e}");
            return ExitCode::from(2);
        }
    };
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, interrupted.clone()).expect("signals can be caught");
    }
    tasks::adopt_orphans();
    let run = Run {
        root: sandbox::cleanup::is_root(),
        arguments,
        interrupted,
    };
    run.all(&programs)
}

struct Run {
    root: bool,
    arguments: Arguments,
    interrupted: Arc<AtomicBool>,
}

impl Run {
    /// Runs all, and prints what is to be said about the run as a whole, the sum last.
    fn all(&self, programs: &[Program]) -> ExitCode {
        let mut report = Report::default();
        self.clean_up();
        let before = Census::settled(self.root);
        let full = match self.fill_dispatcher() {
            Ok(full) => full,
            Err(e) => {
                // A machine may die of tests that run without it.
                report.fail("dispatcher", &format!("it cannot be kept full: {e}"));
                say(&report.text());
                return ExitCode::FAILURE;
            }
        };
        let memory = memory::Sampler::start();
        let mut kernel = kernel::Log::open();
        for program in programs {
            memory.of(&program.name);
            let stopped = program.run(&mut report, &mut kernel, &self.interrupted);
            if stopped {
                self.clean_up();
            }
            if self.interrupted.load(Ordering::Relaxed) {
                drop(full);
                say("run-tests: interrupted");
                return ExitCode::from(130);
            }
        }
        say(&format!("\n{}", memory.end()));
        let alone = self.empty_dispatcher(full).unwrap_or_else(|e| {
            report.fail("dispatcher", &e);
            false
        });
        report.census(before.and_then(|before| before.compare(self.root, alone)));
        say(&report.text());
        ExitCode::from(u8::from(report.failed()))
    }

    /// Clears away what the dead have left, if there is a program for that.
    fn clean_up(&self) {
        let Some(program) = self.arguments.cleanup.as_ref().filter(|_| self.root) else {
            return;
        };
        let words = [&program.to_string_lossy(), "cleanup"];
        match command::output(&words, sandbox::patience(Duration::from_secs(120))) {
            Ok(text) => say(text.trim_end()),
            Err(e) => say(&format!("run-tests: {e}")),
        }
    }

    /// Keeps the dispatcher full, if that is wanted.
    fn fill_dispatcher(&self) -> Result<Option<Full>, String> {
        if !(self.root && self.arguments.full_dispatcher) {
            return Ok(None);
        }
        let alone = take_lock()?;
        let start = Instant::now();
        let full = dispatcher::fill(&alone)?;
        if let Some(holder) = full.holder() {
            tasks::except(holder);
            let took = start.elapsed().as_secs_f64();
            say(&format!(
                "dispatcher: full, by {PLACES} programs, in {took:.1} s"
            ));
        }
        Ok(Some(full))
    }

    /// Lets go of it. True: no other run goes on.
    fn empty_dispatcher(&self, full: Option<Full>) -> Result<bool, String> {
        let Some(full) = full else {
            return Ok(true);
        };
        let alone = take_lock()?;
        full.end(&alone)
    }
}

/// Nobody attaches or detaches while the dispatcher is filled or emptied.
fn take_lock() -> Result<sandbox::Alone, String> {
    let waits = |holder: &str| say(&format!("dispatcher: waiting for {holder}"));
    sandbox::alone(waits).map_err(|e| e.to_string())
}
