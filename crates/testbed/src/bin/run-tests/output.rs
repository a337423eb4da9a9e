//! Output of a test program, and its meaning.

use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::{self, Read, Write};

/// Lines that are shown again when a program had to be ended.
const LAST: usize = 40;

/// Follows the file that a program prints to: shows what comes and takes note of what it means.
pub struct Follower {
    file: File,
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    pub results: Results,
    pub last: VecDeque<String>,
}

impl Follower {
    pub fn new(file: File) -> Self {
        Self {
            file,
            line: Vec::new(),
            results: Results::default(),
            last: VecDeque::new(),
        }
    }

    /// Shows what has come since the last time.
    pub fn follow(&mut self) {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(length @ 1..) = self.file.read(&mut bytes) {
            // Whether anybody reads it or not, the run goes on.
            let _ = io::stdout().write_all(&bytes[..length]);
            for &byte in &bytes[..length] {
                match byte {
                    b'\n' => self.end_of_line(),
                    _ => self.line.push(byte),
                }
            }
        }
        let _ = io::stdout().flush();
    }

    /// Shows the rest; a last line without an end gets one.
    pub fn end(&mut self) {
        self.follow();
        if !self.line.is_empty() {
            let _ = io::stdout().write_all(b"\n");
            self.end_of_line();
        }
    }

    /// True if something else may be printed now.
    pub fn is_at_line_start(&self) -> bool {
        self.line.is_empty()
    }

    fn end_of_line(&mut self) {
        let line = String::from_utf8_lossy(&self.line).into_owned();
        self.line.clear();
        self.results.line(&line);
        if self.last.len() == LAST {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }
}

/// The results of a program's tests, as its lines say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// The program has said what came of all its tests.
    pub complete: bool,
    pub passed: usize,
    pub failed: usize,
    pub ignored: usize,
    /// Tests that said `SKIP name: why`.
    pub skipped: BTreeSet<String>,
    /// Names of failed tests.
    pub failures: BTreeSet<String>,
    /// Lines of single tests, which count if the program says no more.
    single: (usize, usize),
}

impl Results {
    /// Takes note of a line. Another thread's output may stand before what we look for.
    fn line(&mut self, line: &str) {
        if let Some(rest) = after(line, "test result: ") {
            let number = |word: &str| {
                let (before, _) = rest.split_once(&format!(" {word}"))?;
                before.rsplit(' ').next()?.parse::<usize>().ok()
            };
            self.complete = true;
            self.passed += number("passed").unwrap_or(0);
            self.failed += number("failed").unwrap_or(0);
            self.ignored += number("ignored").unwrap_or(0);
        } else if let Some(skipped) = after(line, "SKIP ").filter(|rest| rest.contains(": ")) {
            self.skipped.insert(skipped.to_owned());
        } else if let Some(test) = after(line, "test ") {
            if let Some(name) = test.strip_suffix(" ... FAILED") {
                self.failures.insert(name.to_owned());
                self.single.1 += 1;
            } else if test.ends_with(" ... ok") {
                self.single.0 += 1;
            }
        }
    }

    /// Counts for a program that did not come to say the sum.
    pub fn settle(&mut self) {
        if !self.complete {
            (self.passed, self.failed) = self.single;
        }
    }
}

/// The rest behind `word`, if that begins the line or a part of it after a blank.
fn after<'l>(line: &'l str, word: &str) -> Option<&'l str> {
    match line.strip_prefix(word) {
        Some(rest) => Some(rest),
        None => line.split_once(&format!(" {word}")).map(|(_, rest)| rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(text: &str) -> Results {
        let mut results = Results::default();
        text.lines().for_each(|line| results.line(line));
        results.settle();
        results
    }

    #[test]
    fn a_program_says_what_came_of_its_tests() {
        let results = results(
            "running 4 tests\ntest a ... ok\ntest b ... SKIP c: needs root\ntest b ... FAILED\n\
             test result: FAILED. 2 passed; 1 failed; 3 ignored; 0 measured; 0 filtered out; finished in 0.01s",
        );
        let sums = (results.passed, results.failed, results.ignored);
        assert_eq!((results.complete, sums), (true, (2, 1, 3)));
        assert_eq!(results.skipped.first().unwrap(), "c: needs root");
        assert_eq!(results.failures.first().unwrap(), "b");
    }

    #[test]
    fn without_a_sum_the_tests_are_counted() {
        let results = results("test a ... ok\ntest b ... ok\ntest c ... FAILED\ntest d ... ");
        assert_eq!(
            (results.complete, results.passed, results.failed),
            (false, 2, 1)
        );
    }
}
