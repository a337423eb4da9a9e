//! The lock that only one user of a socket or directory can hold: a file with the process number of
//! its holder.
//!
//! It is made once and never removed. So everyone who opens it, in whatever order processes start
//! and end, has the same file, and the kernel lets one of them hold it. (Removing it would take it
//! from a process that has opened it and is about to lock it; the next one to start would make a
//! second file and lock that.)

use std::fs::{File, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::process::{geteuid, getpid};

/// Whoever may open it can hold it, and nobody but us should.
const MODE: u32 = 0o600;

/// The lock, held until this is dropped; the kernel lets go of it whatever becomes of the process.
#[derive(Debug)]
pub struct Lock(File);

/// Why a lock could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The process with this number holds it.
    #[error("the process with number {0} holds it")]
    Held(String),
    /// The file in its place belongs to somebody else.
    #[error("{} is somebody else's file, not our lock; remove it", .0.display())]
    NotOurs(PathBuf),
    /// The file system refuses.
    #[error("{}: {}", .0.display(), .1)]
    Io(PathBuf, io::Error),
}

impl Lock {
    /// Takes the lock of what is at `path`: a file beside it, with `.lock` behind its name.
    ///
    /// # Errors
    /// Somebody holds it; what is in its place is not ours; the file system refuses.
    pub fn take(path: &Path) -> Result<Lock, LockError> {
        let path = path.with_added_extension("lock");
        let failed = |error| LockError::Io(path.clone(), error);
        let not_ours = || LockError::NotOurs(path.clone());
        let opened = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(MODE)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path);
        let mut file = opened.map_err(|error| match error.raw_os_error() {
            Some(libc::ELOOP) => not_ours(),
            _ => failed(error),
        })?;
        let found = file.metadata().map_err(failed)?;
        if !found.is_file() || found.uid() != geteuid().as_raw() || found.nlink() != 1 {
            return Err(not_ours());
        }
        // An old one may have another mode.
        file.set_permissions(Permissions::from_mode(MODE))
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Lock(file)),
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                let _ = Read::by_ref(&mut file).take(20).read_to_string(&mut pid);
                Err(LockError::Held(pid.trim().to_owned()))
            }
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Leaves our process number in it, for those who find it held.
    ///
    /// # Errors
    /// What the file system says.
    pub fn sign(&mut self) -> io::Result<()> {
        self.0.set_len(0)?;
        writeln!(self.0, "{}", getpid())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A child between fork and exec has the file open too: closing it would not be enough.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nobody_else_may_open_it_and_nobody_elses_is_taken() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cli.sock");
        let file = directory.path().join("cli.sock.lock");
        // An old one with the usual mode.
        fs::write(&file, "123").expect("written");
        fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("set");
        for _ in 0..2 {
            drop(Lock::take(&path).expect("it is free"));
            assert_eq!(fs::metadata(&file).expect("there").mode() & 0o777, MODE);
            fs::remove_file(&file).expect("there");
        }
        let precious = directory.path().join("precious");
        fs::write(&precious, "precious").expect("written");
        let refused = || matches!(Lock::take(&path), Err(LockError::NotOurs(_)));
        symlink(&precious, &file).expect("linked");
        assert!(refused());
        fs::remove_file(&file).expect("there");
        fs::hard_link(&precious, &file).expect("linked");
        assert!(refused());
        fs::remove_file(&file).expect("there");
        if geteuid().is_root() {
            fs::write(&file, "").expect("written");
            std::os::unix::fs::chown(&file, Some(65534), None).expect("given away");
            assert!(refused());
        }
        assert_eq!(fs::read_to_string(&precious).expect("there"), "precious");
    }
}
