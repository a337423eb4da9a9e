//! Runs a program to its end and returns what it prints.

use std::time::Duration;

use crate::{Error, Spawn};

/// No program takes this long unless something is wrong. [`patience`](crate::patience) lengthens
/// it.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs `argv` and returns its standard output.
///
/// # Errors
/// [`Error::Missing`] if it cannot be started, [`Error::Failed`] with the first line of its error
/// text if it fails, [`Error::Timeout`] if it does not end within 2 minutes.
pub fn run(argv: &[&str]) -> Result<String, Error> {
    run_with(argv, "")
}

/// Runs `argv` with `input` as its standard input and returns its standard output.
///
/// # Errors
/// As [`run`].
pub fn run_with(argv: &[&str], input: &str) -> Result<String, Error> {
    run_within(LIMIT, argv, input)
}

/// As [`run_with`], with another limit, which [`patience`](crate::patience) lengthens.
///
/// # Errors
/// As [`run`].
pub fn run_within(limit: Duration, argv: &[&str], input: &str) -> Result<String, Error> {
    let spawn = Spawn::new(argv[0]).args(&argv[1..]).input(input);
    let output = spawn.output(limit)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let message = text
        .lines()
        .find(|line| !line.trim().is_empty())
        .map_or_else(|| output.status.to_string(), str::to_owned);
    Err(Error::Failed {
        command: argv.join(" "),
        message,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_returned() {
        assert_eq!(run_with(&["cat"], "two\nlines").unwrap(), "two\nlines");
    }

    /// True if within 10 s the process is gone, or only waits to be reaped by the process that
    /// inherited it.
    fn gone(pid: &str) -> bool {
        let stat = format!("/proc/{pid}/stat");
        let lives = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
        crate::until(crate::patience(Duration::from_secs(10)), || !lives())
    }

    /// More than a pipe holds, in both directions at once.
    #[test]
    fn much_is_written_while_much_is_read() {
        let text = "a line of a batch\n".repeat(100_000);
        let script = "yes before | head -c 2000000; yes aside | head -c 2000000 >&2; cat";
        let output = Spawn::new("sh").args(["-c", script]).input(&*text);
        let output = output.output(LIMIT).unwrap();
        assert_eq!(output.stdout.len(), 2_000_000 + text.len());
        assert!(output.stdout.ends_with(text.as_bytes()));
        assert_eq!(output.stderr.len(), 2_000_000);
    }

    /// The error names it, with what it printed, and its children are killed with it.
    #[test]
    fn what_does_not_end_is_killed_and_named() {
        let script = "echo so far; sleep 1000 & echo child $!; wait";
        let limit = Duration::from_millis(500);
        let error = run_within(limit, &["sh", "-c", script], "").unwrap_err();
        let Error::Timeout { what, log, .. } = error else {
            panic!("{error}");
        };
        assert!(
            what.contains("sleep 1000") && log.starts_with("so far"),
            "{what}: {log}"
        );
        let child = log.rsplit(' ').next().unwrap();
        assert!(gone(child), "its child lives");
    }

    /// Nor does a program that prints forever keep us waiting.
    #[test]
    fn what_never_stops_printing_is_killed() {
        let error = run_within(Duration::from_millis(100), &["yes"], "").unwrap_err();
        assert!(matches!(error, Error::Timeout { .. }), "{error}");
    }

    /// A process that stays behind and holds the pipe is not waited for, but killed.
    #[test]
    fn the_end_of_the_program_counts() {
        let said = run(&["sh", "-c", "sleep 1000 & echo $!"]).unwrap();
        assert!(gone(said.trim()), "its child lives");
    }

    #[test]
    fn input_that_nobody_reads_is_no_error() {
        assert_eq!(run_with(&["true"], &"x".repeat(1 << 20)).unwrap(), "");
    }

    #[test]
    fn failure_names_command_and_first_line() {
        let error = run(&["sh", "-c", "echo; echo wrong >&2; echo more >&2; exit 3"]).unwrap_err();
        assert!(error.to_string().ends_with("failed: wrong"), "{error}");
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let error = run(&["no-such-program-here"]).unwrap_err();
        assert!(matches!(error, Error::Missing { .. }), "{error}");
    }
}
