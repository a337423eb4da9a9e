//! The lock that only one user of a socket or directory can hold: a file with the process number of
//! its holder.
//!
//! Its holder removes it in the end. A process that had opened it before then holds a file that is
//! nowhere any more: it sees so, and opens the one that is in its place. So in whatever order
//! processes start and end, one at most holds the file that is there.

use std::fs::{File, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::process::{geteuid, getpid};

/// Mode of a lock file: a user who may open it can hold it, and nobody but us should.
const MODE: u32 = 0o600;

/// The lock, held until this is dropped; the kernel lets go of it whatever becomes of the process.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

/// A reason why a lock could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The process with this number holds it.
    #[error("process {0} holds it")]
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
        loop {
            if let Some(lock) = Self::hold(Self::open(&path)?, &path)? {
                return Ok(lock);
            }
        }
    }

    fn open(path: &Path) -> Result<File, LockError> {
        let opened = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(MODE)
            .custom_flags(libc::O_NOFOLLOW)
            .open(path);
        opened.map_err(|error| match error.raw_os_error() {
            Some(libc::ELOOP) => LockError::NotOurs(path.to_owned()),
            _ => LockError::Io(path.to_owned(), error),
        })
    }

    /// `None`: by now the file is gone.
    fn hold(mut file: File, path: &Path) -> Result<Option<Lock>, LockError> {
        let failed = |error| LockError::Io(path.to_owned(), error);
        let found = file.metadata().map_err(failed)?;
        if !found.is_file() || found.uid() != geteuid().as_raw() || found.nlink() > 1 {
            return Err(LockError::NotOurs(path.to_owned()));
        }
        // An old one may have another mode.
        file.set_permissions(Permissions::from_mode(MODE))
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {
                let lock = Lock {
                    file,
                    path: path.to_owned(),
                };
                let is_there = is_there(&lock.file).map_err(failed)?;
                Ok(is_there.then_some(lock))
            }
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                // The digits of any process number: another program may have written the file.
                let _ = Read::by_ref(&mut file).take(20).read_to_string(&mut pid);
                Err(LockError::Held(pid.trim().to_owned()))
            }
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Leaves our process number in it, for those who find it held.
    ///
    /// # Errors
    /// The file system's error.
    pub fn sign(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        writeln!(self.file, "{}", getpid())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if is_there(&self.file).is_ok_and(|is_there| is_there) {
            // Where it cannot be removed, the next one takes it as it is.
            let _ = std::fs::remove_file(&self.path);
        }
        // A child between fork and exec has the file open too: closing it would not be enough.
        let _ = self.file.unlock();
    }
}

/// Returns true if a file that we have open still has its name: a caller that locks a file that
/// others remove or replace asks this once it has the lock.
///
/// # Errors
/// The file system's error.
pub fn is_there(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.nlink() > 0)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// A process that has opened the file before it went takes the one that is in its place.
    #[test]
    fn whoever_waits_for_it_takes_the_one_that_is_there() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cli.sock");
        let file = directory.path().join("cli.sock.lock");
        let first = Lock::take(&path).expect("it is free");
        let second = Lock::open(&file).expect("there");
        drop(first);
        let third = Lock::take(&path).expect("it is free");
        let gone = Lock::hold(second, &file).expect("nobody holds it");
        assert!(gone.is_none() && file.exists());
        assert!(matches!(Lock::take(&path), Err(LockError::Held(_))));
        drop(third);
        assert!(!file.exists());
    }

    #[test]
    fn one_at_a_time_holds_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cli.sock");
        let (holders, turns) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while turns.load(Ordering::Relaxed) < 2000 {
                        let Ok(lock) = Lock::take(&path) else {
                            std::thread::yield_now();
                            continue;
                        };
                        assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                        turns.fetch_add(1, Ordering::Relaxed);
                        holders.fetch_sub(1, Ordering::SeqCst);
                        drop(lock);
                    }
                });
            }
        });
    }

    #[test]
    fn nobody_else_may_open_it_and_nobody_elses_is_taken() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cli.sock");
        let file = directory.path().join("cli.sock.lock");
        // An old one with the usual mode.
        fs::write(&file, "123").expect("written");
        fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("set");
        for _ in 0..2 {
            let lock = Lock::take(&path).expect("it is free");
            assert_eq!(fs::metadata(&file).expect("there").mode() & 0o777, MODE);
            drop(lock);
            assert!(!file.exists());
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
