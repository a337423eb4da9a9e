//! Programs of the machine that the comparison needs, checked before it begins.

use sandbox::{Error, command, programs};

/// Commands, one of each program that the comparison cannot do without; the success of a command
/// shows that its program is there.
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
            programs::package(argv[0])
        )),
        error => error,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

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
        let missing = ["ip", "ethtool", "taskset"]
            .map(programs::exists)
            .contains(&false);
        if missing {
            println!("SKIP what_is_installed_here_can: needs ip, ethtool and taskset");
            return;
        }
        check().unwrap();
    }
}
