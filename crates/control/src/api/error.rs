//! Why a server cannot start.

use std::io;
use std::path::PathBuf;

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another one holds the lock.
    #[error(
        "parshall is already running (pid {0}); stop it first, or give this one another control socket"
    )]
    Running(String),
    /// The file that would be the lock is somebody else's.
    #[error("{} is not our lock but a file of somebody else; remove it, or choose another path", .0.display())]
    NotOurs(PathBuf),
    /// Something that is not a socket is in the way.
    #[error("{} is not a socket; remove it, or choose another path", .0.display())]
    NotASocket(PathBuf),
    /// A group that may ask does not exist.
    #[error("there is no group {0}; make it (`groupadd --system {0}`) or correct `control:`")]
    NoGroup(String),
    /// The file system refuses.
    #[error("cannot make the control socket {}: {}", .0.display(), .1)]
    Io(PathBuf, io::Error),
}
