//! Reasons why a server cannot start.

use std::io;
use std::path::PathBuf;

use crate::lock::LockError;

/// A reason why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another one holds the lock.
    #[error(
        "parshall is already running (pid {0}); stop it first, or give this one another control socket"
    )]
    Running(String),
    /// The file in the lock's place belongs to somebody else.
    #[error("{} is somebody else's file, not our lock; remove it, or choose another control socket", .0.display())]
    NotOurs(PathBuf),
    /// The socket's directory is not there.
    #[error(
        "there is no directory {} for the control socket; make it, or choose another control socket", .0.display()
    )]
    NoDirectory(PathBuf),
    /// Something that is not a socket is in the way.
    #[error("{} is not a socket; remove it, or choose another control socket", .0.display())]
    NotASocket(PathBuf),
    /// A group that the configuration names does not exist.
    #[error("there is no group {0}; make it (`groupadd --system {0}`) or correct `control:`")]
    NoGroup(String),
    /// The file system refuses.
    #[error("cannot make the control socket {}: {}", .0.display(), .1)]
    Io(PathBuf, io::Error),
}

impl From<LockError> for StartError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held(pid) => StartError::Running(pid),
            LockError::NotOurs(path) => StartError::NotOurs(path),
            LockError::Io(path, error) => StartError::Io(path, error),
        }
    }
}
