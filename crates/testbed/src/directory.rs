//! A directory for the files and sockets of a test.

use std::path::Path;

use tempfile::TempDir;

use sandbox::cleanup::{self, Registered};

/// A new directory that goes when dropped. Root's lies below [`cleanup::directory`], so that the
/// next run removes it if the test was killed.
#[derive(Debug)]
pub struct Directory {
    directory: TempDir,
    _registered: Option<Registered>,
}

impl Directory {
    /// Makes one.
    ///
    /// # Panics
    /// If it cannot be made.
    #[expect(clippy::new_without_default, reason = "it makes something")]
    pub fn new() -> Self {
        let registered =
            cleanup::is_root().then(|| cleanup::register().expect("root may write to /run"));
        let directory = match registered {
            Some(_) => tempfile::tempdir_in(cleanup::directory()),
            None => tempfile::tempdir(),
        };
        Self {
            directory: directory.expect("a new directory can be made"),
            _registered: registered,
        }
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lies_where_leftovers_are_found_and_goes() {
        let directory = Directory::new();
        let path = directory.path().to_owned();
        assert!(path.is_dir());
        assert_eq!(path.starts_with(cleanup::directory()), cleanup::is_root());
        drop(directory);
        assert!(!path.exists());
    }
}
