//! Addresses and routes with our mark in a network namespace. A router that died suddenly has left
//! them, or one that is alive has made them.
//!
//! Every router holds a lock of its namespace that others may hold too; whoever gets it alone knows
//! that nobody else's marks are alive. The last one to stop in good order removes the lock's file;
//! a process that had opened it before then opens the one that is in its place.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use kernel::netns::OWN;

use crate::lock::is_there;
use crate::netlink::{Kernel, Requests};

/// Directory of the locks.
pub const LOCKS: &str = "/run/parshall/namespaces";

/// The lock of a namespace. While there are marks, its file says where the namespace is.
#[derive(Debug)]
pub struct NamespaceLock {
    lock: File,
    path: PathBuf,
    /// The namespace; `None`: our own.
    netns: Option<PathBuf>,
}

impl NamespaceLock {
    /// The lock of a namespace (`None`: our own), below `directory`, usually [`LOCKS`]. Nobody
    /// holds it yet.
    ///
    /// # Errors
    /// There is no such namespace; the file system refuses.
    pub fn of(netns: Option<&Path>, directory: &Path) -> io::Result<Self> {
        let namespace = inode(netns)?;
        fs::create_dir_all(directory)?;
        let path = directory.join(format!("{namespace}.lock"));
        NamespaceLock::at(path, netns)
    }

    fn at(path: PathBuf, netns: Option<&Path>) -> io::Result<Self> {
        Ok(NamespaceLock {
            lock: open(&path)?,
            path,
            netns: netns.map(Path::to_owned),
        })
    }

    /// Returns true if all marks are of the dead: nobody else holds the lock. If so we hold it
    /// alone until [`share`](Self::share).
    ///
    /// # Errors
    /// The file system's.
    pub fn are_of_the_dead(&mut self) -> io::Result<bool> {
        loop {
            match self.lock.try_lock() {
                Ok(()) if is_there(&self.lock)? => return Ok(true),
                Ok(()) => self.lock = open(&self.path)?,
                Err(TryLockError::WouldBlock) => return Ok(false),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// From now on there are marks of ours, too.
    ///
    /// # Errors
    /// The file system's.
    pub fn share(&mut self) -> io::Result<()> {
        loop {
            let place = self.netns.as_deref().unwrap_or(Path::new(OWN));
            self.lock.rewind()?;
            self.lock.write_all(place.as_os_str().as_bytes())?;
            self.lock.lock_shared()?;
            if is_there(&self.lock)? {
                return Ok(());
            }
            self.lock = open(&self.path)?;
        }
    }

    /// An orderly end: what is marked is to stay, unless a router that lives has marks, too.
    ///
    /// # Errors
    /// The file system's.
    pub fn settle(&mut self) -> io::Result<()> {
        if self.are_of_the_dead()? {
            fs::remove_file(&self.path)
        } else {
            Ok(())
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
}

fn inode(netns: Option<&Path>) -> io::Result<u64> {
    Ok(fs::metadata(netns.unwrap_or(Path::new(OWN)))?.ino())
}

/// The marks and locks that were removed.
#[derive(Debug, Default)]
pub struct Cleaned {
    /// Addresses and routes, as text.
    pub marks: Vec<String>,
    /// Locks of namespaces that have ended, or in which there is nothing of ours.
    pub locks: usize,
}

/// Removes everything with our mark that routers have left which ended suddenly, and locks that are
/// of no use any more. Namespaces of living routers are left alone, and what is in a namespace that
/// has no name for us. `living`: all namespaces, by inode number; `None`: not known.
///
/// # Errors
/// The error of the kernel or of the file system.
pub fn clean(directory: &Path, living: Option<&BTreeMap<u64, PathBuf>>) -> io::Result<Cleaned> {
    let mut cleaned = Cleaned::default();
    for path in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = path.path();
        let of = path
            .file_stem()
            .and_then(|stem| stem.to_str()?.parse().ok());
        let Some(of) = of else { continue };
        let text = fs::read(&path)?;
        let place = Path::new(OsStr::from_bytes(&text));
        let leads_there = !text.is_empty() && inode(Some(place)).ok() == Some(of);
        let is_gone = living.is_some_and(|living| !living.contains_key(&of));
        if !leads_there && !text.is_empty() && !is_gone {
            continue;
        }
        let mut marks = NamespaceLock::at(path, leads_there.then_some(place))?;
        if !marks.are_of_the_dead()? {
            continue;
        }
        if leads_there {
            cleaned.marks.extend(unmark(place)?);
        } else {
            cleaned.locks += 1;
        }
        fs::remove_file(&marks.path)?;
    }
    Ok(cleaned)
}

/// Removes all routes and addresses with our mark from a namespace. Returns them, as text.
fn unmark(place: &Path) -> io::Result<Vec<String>> {
    let mut requests = Requests::open_filtering(Some(place))?;
    let mut removed = Vec::new();
    for route in requests.own_routes()? {
        requests.remove_listed(&route)?;
        let (address, length) = (route.prefix.address(), route.prefix.length());
        removed.push(format!("route {address}/{length}"));
    }
    removed.extend(sweep(&mut requests, &[])?);
    Ok(removed)
}

/// Removes addresses with our mark from all devices but `links`. Returns them, as text.
///
/// # Errors
/// The kernel's error.
pub fn sweep(requests: &mut dyn Kernel, links: &[u32]) -> io::Result<Vec<String>> {
    let mut removed = Vec::new();
    for given in requests.all_addresses()? {
        if given.ours && !links.contains(&given.link) {
            requests.take_address(given.link, given.address, given.length)?;
            removed.push(format!("address {}/{}", given.address, given.length));
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locks(directory: &Path) -> usize {
        fs::read_dir(directory).expect("there").count()
    }

    #[test]
    fn the_last_to_stop_removes_the_lock() {
        let directory = tempfile::tempdir().expect("a directory");
        let marks = || NamespaceLock::of(None, directory.path()).expect("our own namespace");
        let (mut first, mut second, mut late) = (marks(), marks(), marks());
        assert!(first.are_of_the_dead().expect("locked"));
        first.share().expect("shared");
        assert!(!second.are_of_the_dead().expect("seen"));
        second.share().expect("shared");
        second.settle().expect("the first one lives");
        drop(second);
        assert_eq!(locks(directory.path()), 1);
        first.settle().expect("the last one");
        assert_eq!(locks(directory.path()), 0);
        drop(first);
        // Whoever has opened the old file holds the new one.
        assert!(late.are_of_the_dead().expect("locked"));
        late.share().expect("shared");
        assert!(!marks().are_of_the_dead().expect("seen"));
    }

    #[test]
    fn locks_of_no_use_go_and_others_stay() {
        let directory = tempfile::tempdir().expect("a directory");
        let put = |number: u64, text: &str| {
            let path = directory.path().join(format!("{number}.lock"));
            fs::write(&path, text).expect("there is room");
            open(&path).expect("there")
        };
        // A namespace that has ended, one without marks, one without a name, and a router's.
        put(1, "/run/netns/gone");
        put(2, "");
        put(3, OWN);
        put(4, OWN).lock_shared().expect("nobody has it");
        let router = put(5, "/run/netns/gone");
        router.lock_shared().expect("nobody has it");
        let living = BTreeMap::from([2, 3].map(|inode| (inode, PathBuf::new())));
        let clean = |living| clean(directory.path(), living).expect("cleaned");
        assert_eq!(clean(None).locks, 1, "the one without marks");
        assert_eq!(clean(Some(&living)).locks, 2);
        assert!(clean(Some(&living)).marks.is_empty());
        let left = [1, 2, 3, 4, 5].map(|n| directory.path().join(format!("{n}.lock")).exists());
        assert_eq!(left, [false, false, true, false, true]);
    }
}
