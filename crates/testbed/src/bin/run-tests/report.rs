//! The results of the programs, and the end of the log.

use std::collections::BTreeSet;
use std::io::{self, Write};

use crate::output::Results;

/// Prints a line, or several. Whether anybody reads it or not, the run goes on.
pub fn say(text: &str) {
    let mut output = io::stdout().lock();
    let _ = writeln!(output, "{text}").and_then(|()| output.flush());
}

/// Sums over all programs.
#[derive(Default)]
pub struct Report {
    passed: usize,
    failed: usize,
    ignored: usize,
    skipped: BTreeSet<String>,
    failures: BTreeSet<String>,
}

impl Report {
    /// Adds what came of a program's tests.
    pub fn add(&mut self, program: &str, results: Results) {
        // One that skipped has passed as far as its program knows.
        self.passed += results.passed.saturating_sub(results.skipped.len());
        self.failed += results.failed;
        self.ignored += results.ignored;
        self.skipped.extend(results.skipped);
        let named = |name| format!("{program}: {name}");
        self.failures
            .extend(results.failures.into_iter().map(named));
    }

    /// Adds a failed test, or something that counts as one.
    pub fn fail(&mut self, name: &str, why: &str) {
        say(&format!("FAILED {name}: {why}"));
        self.failed += 1;
        self.failures.insert(format!("{name}: {why}"));
    }

    /// Adds what came of comparing the machine before and after: a test like others.
    pub fn census(&mut self, differences: Result<Vec<String>, String>) {
        match differences {
            Ok(differences) if differences.is_empty() => {
                say("census: as much as before");
                self.passed += 1;
            }
            Ok(differences) => self.fail("census", &differences.join("; ")),
            Err(e) => self.fail("census", &e),
        }
    }

    pub fn failed(&self) -> bool {
        self.failed > 0
    }

    /// The end of the log: what was skipped, what failed, the sum.
    pub fn text(&self) -> String {
        let lines = |word: &str, what: &BTreeSet<String>| -> String {
            what.iter().map(|line| format!("{word} {line}\n")).collect()
        };
        format!(
            "\n{}{}{} passed, {} failed, {} skipped",
            lines("SKIP", &self.skipped),
            lines("FAILED", &self.failures),
            self.passed,
            self.failed,
            self.skipped.len() + self.ignored
        )
    }
}
