//! The programs that the laboratory runs: whether one is there, can do what is asked of it, and
//! which package has it.

use crate::{Error, command};

/// Debian package of each program that the laboratory runs.
const PACKAGES: &[(&str, &str)] = &[
    ("ip", "apt-get install iproute2"),
    ("ethtool", "apt-get install ethtool"),
    ("taskset", "apt-get install util-linux"),
    ("sh", "apt-get install dash"),
    ("iperf3", "apt-get install iperf3"),
    ("bird", "apt-get install bird2"),
    ("dpdk-testpmd", "apt-get install dpdk"),
];

/// What the comparison asks of the programs that it cannot do without: a command of each, whose
/// success shows it.
const NEEDS: &[&[&str]] = &[
    &["ip", "netns", "list"],
    &["ethtool", "--version"],
    &["sh", "-e", "-c", ":"],
];

/// Checks that the programs of the comparison are there, and that they are the ones meant: those of
/// BusyBox have the same names and can do less.
///
/// # Errors
/// [`Error::Missing`] if one is not installed, [`Error::Asked`] if it cannot do what it is there
/// for. Both name the package.
pub fn check() -> Result<(), Error> {
    // Processor 0 may be forbidden to us.
    let processor = kernel::cpu::usable().first().map_or(0, |cpu| *cpu);
    let taskset = ["taskset", "-c", &processor.to_string(), "true"];
    let mut needs = NEEDS.iter().copied().chain([&taskset[..]]);
    needs.try_for_each(can)
}

fn can(argv: &[&str]) -> Result<(), Error> {
    command::run(argv).map(drop).map_err(|error| match error {
        Error::Failed { command, message } => Error::Asked(format!(
            "`{command}` does not work here ({message}); BusyBox's {} cannot do it: install the full program ({})",
            argv[0],
            package(argv[0])
        )),
        error => error,
    })
}

fn package(program: &str) -> &'static str {
    let name = program.rsplit('/').next().unwrap_or_default();
    let found = PACKAGES.iter().find(|(known, _)| *known == name);
    found.map_or("no package known", |(_, package)| package)
}

/// The error of a program that cannot be started, with the package that has it.
pub(crate) fn missing(program: &str, source: std::io::Error) -> Error {
    Error::Missing {
        program: program.to_owned(),
        package: package(program),
        source,
    }
}

/// True if `program`, a name or a path, is found: a name in one of the directories of the search
/// path or in the system's own.
pub fn exists(program: &str) -> bool {
    if program.contains('/') {
        return std::path::Path::new(program).is_file();
    }
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':')
        .chain(["/usr/sbin", "/usr/lib/frr"])
        .any(|dir| std::path::Path::new(dir).join(program).is_file())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn missing_program_names_package() {
        let error = missing("ethtool", std::io::ErrorKind::NotFound.into());
        assert!(
            error.to_string().contains("apt-get install ethtool"),
            "{error}"
        );
    }

    /// BusyBox's `ip`, as it answers `ip netns list`.
    #[test]
    fn a_program_that_cannot_is_named_with_its_package() {
        let directory = tempfile::tempdir().unwrap();
        let ip = directory.path().join("ip");
        let says = "#!/bin/sh\necho 'BusyBox v1.35.0 multi-call binary.' >&2\nexit 1\n";
        fs::write(&ip, says).unwrap();
        fs::set_permissions(&ip, fs::Permissions::from_mode(0o755)).unwrap();
        let ip = ip.display().to_string();
        let error = can(&[&ip, "netns", "list"]).unwrap_err().to_string();
        for part in ["netns list` does not work", "BusyBox v1.35.0", "iproute2"] {
            assert!(error.contains(part), "{error}");
        }
        assert!(!error.contains('\n'), "{error}");
        let none = can(&["/no/such/taskset", "-c", "0", "true"]).unwrap_err();
        assert!(none.to_string().contains("util-linux"), "{none}");
    }

    #[test]
    fn what_is_installed_here_can() {
        let missing = ["ip", "ethtool", "taskset"].map(exists).contains(&false);
        if missing {
            println!("SKIP what_is_installed_here_can: needs ip, ethtool and taskset");
            return;
        }
        check().unwrap();
    }

    #[test]
    fn programs_are_found() {
        assert!(exists("sh"));
        assert!(!exists("no-such-program-here"));
    }
}
