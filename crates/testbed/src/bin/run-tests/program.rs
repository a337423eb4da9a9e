//! Runs one test program under its limit.

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{available_parallelism, sleep};
use std::time::{Duration, Instant};

use rustix::process::WaitStatus;

use crate::kernel::Log;
use crate::output::{Follower, Results};
use crate::report::{Report, say};
use crate::tasks::{self, TICK};
use crate::{command, dump, seconds};

/// Time for what a program leaves behind to end by itself.
const GRACE: Duration = Duration::from_secs(3);
/// Exit code of a test program with failed tests.
const FAILED: i32 = 101;

/// A line of the list.
pub struct Program {
    pub name: String,
    pub directory: PathBuf,
    pub executable: String,
    pub arguments: Vec<String>,
}

impl Program {
    /// Runs it, shows what it prints and what errors the kernel has meanwhile, and adds what came
    /// of it to the report. True if it had to be ended.
    pub fn run(&self, report: &mut Report, kernel: &mut Log, interrupted: &AtomicBool) -> bool {
        say(&format!("\n== {}", self.name));
        let start = Instant::now();
        let (pid, file) = match self.start() {
            Ok(started) => started,
            Err(e) => {
                report.fail(&self.name, &e);
                return false;
            }
        };
        let mut output = Follower::new(file);
        let limit = seconds("PARSHALL_TEST_LIMIT", 900);
        let status = watch(pid, &mut output, kernel, start + limit, interrupted);
        output.end();
        let interrupted = interrupted.load(Ordering::Relaxed);
        match status {
            _ if interrupted => {}
            Some(status) => self.judge(&output.results, status, report),
            None => {
                say(&format!("== {}: {}", self.name, late(limit)));
                dump::print(&output.last);
                report.fail(&self.name, &late(limit));
            }
        }
        self.end_rest(status.is_none(), report);
        output.end();
        kernel.follow();
        let mut results = output.results;
        results.settle();
        say(&self.summary(&results, start.elapsed()));
        report.add(&self.name, results);
        status.is_none()
    }

    fn summary(&self, results: &Results, took: Duration) -> String {
        let Self { name, .. } = self;
        let Results { passed, failed, .. } = results;
        let seconds = took.as_secs_f64();
        format!("== {name}: {passed} passed, {failed} failed, {seconds:.1} s")
    }

    /// Starts it. Its output goes to a file: a process that keeps that open cannot make us wait.
    fn start(&self) -> Result<(u32, File), String> {
        let directory = tempfile::tempdir().map_err(|e| format!("no place for its output: {e}"))?;
        let path = directory.path().join("output");
        let file = |file: std::io::Result<File>| file.map_err(|e| format!("its output: {e}"));
        let written = file(File::options().append(true).create(true).open(&path))?;
        let errors = file(written.try_clone())?;
        let read = file(File::open(&path))?;
        let mut words = vec![self.executable.as_str(), "--nocapture"];
        words.extend(self.arguments.iter().map(String::as_str));
        let pid = command::start(&words, |command| {
            // As cargo does. With two threads and more libtest prints a test's line at once, when
            // it is over.
            command
                .current_dir(&self.directory)
                .env("CARGO_MANIFEST_DIR", &self.directory)
                .stdout(written)
                .stderr(errors);
            if std::env::var_os("RUST_TEST_THREADS").is_none() {
                let threads = available_parallelism().map_or(2, |n| n.get().max(2));
                command.env("RUST_TEST_THREADS", threads.to_string());
            }
        })?;
        Ok((pid, read))
    }

    /// Checks that its end fits what it has said.
    fn judge(&self, results: &Results, status: WaitStatus, report: &mut Report) {
        let how = command::how(status);
        let fits = match status.exit_status() {
            Some(0) => results.failed == 0,
            Some(FAILED) => results.failed > 0,
            _ => false,
        };
        if !results.complete {
            report.fail(&self.name, &format!("it ended without a result, {how}"));
        } else if !fits {
            report.fail(&self.name, &format!("it ended with {how}"));
        }
    }

    /// Ends all that comes from it and is still there. After a program that ended by itself that is
    /// a failure.
    fn end_rest(&self, stopped: bool, report: &mut Report) {
        let left = if stopped {
            Vec::new()
        } else {
            tasks::wait_for_all(sandbox::patience(GRACE))
        };
        if !left.is_empty() {
            let why = format!("it left processes behind: {}", names(&left));
            report.fail(&self.name, &why);
        }
        let left = tasks::end_all();
        if !left.is_empty() {
            // They are in a system call that does not end (state D) or not ours to end.
            left.iter().for_each(|process| tasks::except(process.pid));
            let why = format!("processes that cannot be ended: {}", names(&left));
            report.fail(&self.name, &why);
        }
    }
}

fn names(processes: &[tasks::Process]) -> String {
    let names: Vec<String> = processes.iter().map(ToString::to_string).collect();
    names.join(", ")
}

fn late(limit: Duration) -> String {
    format!("not done after {} s, ended", limit.as_secs())
}

/// Shows what the program prints until it ends; None: the time is over, or the run is interrupted.
fn watch(
    pid: u32,
    output: &mut Follower,
    kernel: &mut Log,
    end: Instant,
    by: &AtomicBool,
) -> Option<WaitStatus> {
    loop {
        let status = tasks::ended(pid);
        output.follow();
        if output.is_at_line_start() {
            kernel.follow();
        }
        if status.is_some() || Instant::now() >= end || by.load(Ordering::Relaxed) {
            return status;
        }
        sleep(TICK);
    }
}
