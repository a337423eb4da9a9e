//! Files that are on the disk whole or not at all, whenever the machine stops.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::config::LARGEST;
use crate::text_file;

/// Bytes of a file at most: one has the text of a configuration in it as a JSON string, and a few
/// words for each of the others.
const MOST: usize = 4 * LARGEST;

/// A directory of such files. Only its owner may read them: they have secrets in them.
#[derive(Debug)]
pub(super) struct Disk {
    directory: PathBuf,
    /// Moments until the machine stops.
    #[cfg(test)]
    pub moments: std::cell::Cell<usize>,
}

impl Disk {
    /// The directory is made when something is written.
    pub fn new(directory: &Path) -> Disk {
        Disk {
            directory: directory.to_owned(),
            #[cfg(test)]
            moments: usize::MAX.into(),
        }
    }

    /// Makes the directory if it is not there.
    ///
    /// # Errors
    /// The system's error.
    pub fn make(&self) -> io::Result<()> {
        if self.directory.is_dir() {
            return Ok(());
        }
        let mut builder = DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)?;
        match self.directory.parent() {
            Some(parent) => File::open(parent)?.sync_all(),
            None => Ok(()),
        }
    }

    /// The place of a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Reads a file, if it is there.
    ///
    /// # Errors
    /// The system's error, with the path.
    pub fn read(&self, name: &str) -> Result<Option<String>, String> {
        match text_file::read(&self.path(name), MOST) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{}: {error}", self.path(name).display())),
        }
    }

    /// Makes or replaces a file.
    ///
    /// # Errors
    /// The system's error, with the path. The file is as it was, or, if only the last wait for the
    /// disk failed, may be the new one.
    pub fn write(&self, name: &str, text: &str) -> Result<(), String> {
        self.try_to_write(&self.path(name), text)
            .map_err(|error| format!("{}: {error}", self.path(name).display()))
    }

    fn try_to_write(&self, path: &Path, text: &str) -> io::Result<()> {
        self.make()?;
        let fresh = path.with_added_extension("new");
        let mut file = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&fresh)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        self.moment()?;
        fs::rename(&fresh, path)?;
        File::open(&self.directory)?.sync_all()?;
        self.moment()
    }

    /// Removes a file that nothing refers to any more; if it stays, it does no harm.
    pub fn remove(&self, name: &str) {
        let _ = fs::remove_file(self.path(name));
    }

    /// A moment at which a test may stop the machine.
    #[cfg(test)]
    fn moment(&self) -> io::Result<()> {
        let left = self.moments.get().checked_sub(1);
        self.moments.set(left.unwrap_or(0));
        left.map(|_| ()).ok_or_else(|| io::Error::other("stopped"))
    }

    #[cfg(not(test))]
    #[allow(clippy::unused_self, clippy::unnecessary_wraps, reason = "as in tests")]
    fn moment(&self) -> io::Result<()> {
        Ok(())
    }
}
