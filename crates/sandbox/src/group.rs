//! Ending a child and the process group that it leads.

use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::{patience, until};

/// A process that was killed is gone within this time, or the kernel holds it.
const DYING: Duration = Duration::from_secs(10);

/// Manner in which a process that was killed has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// As it should.
    Killed,
    /// Not at all: the kernel holds it.
    Left,
}

/// Kills the process group of a child that leads it and has not been reaped.
pub(crate) fn kill_group(child: &Child) {
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
}

/// Kills a child with its process group, which it leads, and waits for its end.
pub(crate) fn end(child: &mut Child) -> Ended {
    // The number of a reaped child may be somebody else's.
    if child.try_wait().is_ok_and(|status| status.is_none()) {
        kill_group(child);
    }
    // An error says that there is no such child.
    let ended = || !child.try_wait().is_ok_and(|status| status.is_none());
    if until(patience(DYING), ended) {
        Ended::Killed
    } else {
        Ended::Left
    }
}
