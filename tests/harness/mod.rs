//! The ground of all tests: two hosts with a router between them, raw packets, and the router's
//! process.

pub mod craft;
pub mod frr;
pub mod packet;
pub mod pseudo_terminal;
pub mod random;
pub mod router;
pub mod topology;

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

pub use packet::Raw;
pub use pseudo_terminal::PseudoTerminal;
pub use router::Router;
pub use testbed::{Directory, Netns, Process, SetOnDrop, Spawn, alone, cleanup, command, until};
pub use topology::Hosts;

/// The binary under test.
pub const PARSHALL: &str = env!("CARGO_BIN_EXE_parshall");

/// Nothing takes this long unless something is wrong. Not a claim about speed.
pub fn patience() -> Duration {
    testbed::patience(Duration::from_secs(30))
}

/// Whether the test is skipped, because it does not run as root. Then the line that the summary
/// counts is printed.
///
/// # Panics
/// As root, if one of the programs is not installed.
pub fn skipped(name: &str, programs: &[&str]) -> bool {
    !testbed::root_with(name, programs)
}

/// Whether AF_XDP sockets take no packets of several buffers: before Linux 6.6. Then the line that
/// the summary counts is printed.
pub fn lacks_multi_buffer(name: &str) -> bool {
    testbed::lacks(name, (6, 6), "has no AF_XDP with several buffers")
}

/// A copy of the binary under test that every user may run, and its directory, which is removed
/// when dropped.
pub fn for_everyone() -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).expect("it is ours");
    let program = directory.path().join("parshall");
    std::fs::copy(PARSHALL, &program).expect("there is room");
    (directory, program.display().to_string())
}
