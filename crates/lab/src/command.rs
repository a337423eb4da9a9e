//! Runs a program to its end and takes what it prints.

use std::process::{Command, Stdio};

use crate::Error;

/// Debian package of each program that the laboratory runs.
const PACKAGES: &[(&str, &str)] = &[
    ("ip", "apt-get install iproute2"),
    ("ethtool", "apt-get install ethtool"),
    ("setpriv", "apt-get install util-linux"),
    ("sh", "apt-get install dash"),
    ("iperf3", "apt-get install iperf3"),
    ("bird", "apt-get install bird2"),
    ("dpdk-testpmd", "apt-get install dpdk"),
];

/// Runs `argv` and returns its standard output.
///
/// # Errors
/// [`Error::Missing`] if it cannot be started, [`Error::Failed`] with its first line of error text if it fails.
pub fn run(argv: &[&str]) -> Result<String, Error> {
    run_with(argv, "")
}

/// Runs `argv` with `input` as its standard input and returns its standard output.
///
/// # Errors
/// As [`run`].
pub fn run_with(argv: &[&str], input: &str) -> Result<String, Error> {
    let missing = |source| missing(argv[0], source);
    let mut child = Command::new(argv[0])
        .args(&argv[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(missing)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends without reading its input says why by its exit code.
        let _ = std::io::Write::write_all(&mut stdin, input.as_bytes());
    }
    let output = child.wait_with_output().map_err(missing)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let message = text.lines().find(|line| !line.trim().is_empty());
    let message = message.map_or_else(|| output.status.to_string(), str::to_owned);
    Err(Error::Failed {
        command: argv.join(" "),
        message,
    })
}

/// The error of a program that cannot be started, with the package that has it.
pub(crate) fn missing(program: &str, source: std::io::Error) -> Error {
    let package = PACKAGES
        .iter()
        .find(|(name, _)| *name == program)
        .map_or("no package known", |(_, package)| package);
    Error::Missing {
        program: program.to_owned(),
        package,
        source,
    }
}

/// True if `program` is found in one of the directories of the search path or in the system's own.
pub fn exists(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':')
        .chain(["/usr/sbin", "/usr/lib/frr"])
        .any(|dir| std::path::Path::new(dir).join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_returned() {
        assert_eq!(run_with(&["cat"], "two\nlines").unwrap(), "two\nlines");
    }

    #[test]
    fn failure_names_command_and_first_line() {
        let error = run(&["sh", "-c", "echo; echo wrong >&2; echo more >&2; exit 3"]).unwrap_err();
        assert!(error.to_string().ends_with("failed: wrong"), "{error}");
    }

    #[test]
    fn missing_program_names_package() {
        let error = missing("ethtool", std::io::ErrorKind::NotFound.into());
        assert!(
            error.to_string().contains("apt-get install ethtool"),
            "{error}"
        );
    }

    #[test]
    fn programs_are_found() {
        assert!(exists("sh"));
        assert!(!exists("no-such-program-here"));
    }
}
