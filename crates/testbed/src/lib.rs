//! Shared by the tests of several crates: whether a test can run here, network namespaces and
//! processes that end with it ([`sandbox`]'s), patience, and a lock that keeps what disturbs the whole
//! machine to one test at a time.
//!
//! Only tests use it.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

mod alone;
pub mod bpf;
mod directory;
pub mod dispatcher;
mod release;

use std::time::Duration;

pub use alone::{Alone, alone};
pub use directory::Directory;
pub use release::SetOnDrop;
pub use sandbox::{Netns, Process, Spawn, cleanup, command, patience, until, veth};

/// Says that a test cannot run here, and why, as the runner counts it.
pub fn skip(test: &str, why: &str) {
    println!("SKIP {test}: {why}");
}

/// True if the test runs as root, as one that makes namespaces must; says `SKIP test: why` if not.
/// As root nothing is skipped that the machine can have: what cannot be set up is a failed test.
pub fn root(test: &str) -> bool {
    let root = cleanup::is_root();
    if !root {
        skip(test, "needs root for network namespaces");
    }
    root
}

/// This test program, to be started again with one of its tests alone, ignored or not: for a test
/// that needs a process of its own, perhaps one that dies.
///
/// # Panics
/// If the program has no path.
pub fn only(test: &str) -> Spawn {
    let program = std::env::current_exe().expect("a program has a path");
    Spawn::new(program.display().to_string()).args([
        "--exact",
        test,
        "--include-ignored",
        "--nocapture",
    ])
}

/// As [`root`], for a test that needs these programs too.
///
/// # Panics
/// As root, if one of them is not installed.
pub fn root_with(test: &str, programs: &[&str]) -> bool {
    let root = root(test);
    if root {
        installed(programs);
    }
    root
}

/// The system's own Python, for which it has scapy as a package.
pub const PYTHON: &str = "/usr/bin/python3";

/// True if the system's Python has scapy; says `SKIP test: why` if not.
pub fn has_scapy(test: &str) -> bool {
    let has = Spawn::new(PYTHON)
        .args(["-c", "import scapy.all"])
        .output(Duration::from_secs(30));
    let has = has.is_ok_and(|output| output.status.success());
    if !has {
        skip(test, "needs python3 with scapy");
    }
    has
}

/// True if this kernel is older than `since` and so lacks something (`what`); says `SKIP test: why`
/// then.
pub fn lacks(test: &str, since: (u32, u32), what: &str) -> bool {
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    let lacks = is_before(&release, since);
    if lacks {
        skip(test, &format!("Linux {release} {what}"));
    }
    lacks
}

/// True if a kernel of this name, as in `6.12.117+deb13-amd64`, is older than a version.
fn is_before(release: &str, (major, minor): (u32, u32)) -> bool {
    let mut numbers = release
        .split(['.', '-', '+'])
        .map_while(|n| n.parse::<u32>().ok());
    (numbers.next(), numbers.next()) < (Some(major), Some(minor))
}

/// # Panics
/// If one of the programs is not installed.
fn installed(programs: &[&str]) {
    let missing = |program: &&&str| !sandbox::programs::exists(program);
    let missing: Vec<&str> = programs.iter().filter(missing).copied().collect();
    let names = missing.join(", ");
    assert!(
        missing.is_empty(),
        "not installed: {names}; `scripts/setup.sh test` installs it"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_number_by_number() {
        for (release, before) in [
            ("6.1.0-50-amd64", true),
            ("5.15.0", true),
            ("6.5-rc1", true),
            ("6.6.0", false),
            ("6.12.117+deb13-amd64", false),
            ("7.2.13", false),
        ] {
            assert_eq!(is_before(release, (6, 6)), before, "{release}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        installed(&["sh", "cat"]);
        let panic = std::panic::catch_unwind(|| installed(&["sh", "no-such-program"]));
        let message = *panic.unwrap_err().downcast::<String>().unwrap();
        assert_eq!(
            message,
            "not installed: no-such-program; `scripts/setup.sh test` installs it"
        );
    }
}
