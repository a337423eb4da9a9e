//! What carries our mark in a network namespace: addresses and routes. A router that died suddenly
//! has left it, or one that is alive has made it.
//!
//! Every router holds a lock of its namespace that others may hold too; whoever gets it alone knows
//! that nobody else's marks are alive.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use kernel::netns::OWN;

use crate::netlink::Requests;

/// Where the locks are.
pub const LOCKS: &str = "/run/parshall/namespaces";

/// The lock of a namespace. While there are marks, its file says where the namespace is.
#[derive(Debug)]
pub struct Marks {
    lock: File,
    /// The namespace; `None`: our own.
    netns: Option<PathBuf>,
}

impl Marks {
    /// The lock of a namespace (`None`: our own), below `directory`, usually [`LOCKS`]. Nobody
    /// holds it yet.
    ///
    /// # Errors
    /// There is no such namespace; the file system refuses.
    pub fn of(netns: Option<&Path>, directory: &Path) -> io::Result<Self> {
        let namespace = inode(netns)?;
        fs::create_dir_all(directory)?;
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false);
        Ok(Marks {
            lock: options.open(directory.join(format!("{namespace}.lock")))?,
            netns: netns.map(Path::to_owned),
        })
    }

    /// Whether all marks are of the dead: nobody else holds the lock. If so we hold it alone until
    /// [`share`](Self::share).
    ///
    /// # Errors
    /// The file system's.
    pub fn are_of_the_dead(&self) -> io::Result<bool> {
        match self.lock.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// From now on there are marks of ours, too.
    ///
    /// # Errors
    /// The file system's.
    pub fn share(&mut self) -> io::Result<()> {
        let place = self.netns.as_deref().unwrap_or(Path::new(OWN));
        self.lock.rewind()?;
        self.lock.write_all(place.as_os_str().as_bytes())?;
        self.lock.lock_shared()
    }

    /// An orderly end: what is marked is to stay, unless a router that lives has marks, too.
    ///
    /// # Errors
    /// The file system's.
    pub fn settle(&self) -> io::Result<()> {
        match self.are_of_the_dead()? {
            true => self.lock.set_len(0),
            false => Ok(()),
        }
    }
}

fn inode(netns: Option<&Path>) -> io::Result<u64> {
    Ok(fs::metadata(netns.unwrap_or(Path::new(OWN)))?.ino())
}

/// Removes everything with our mark that routers have left which ended suddenly. Returns what was
/// removed, as text. Namespaces of living routers are left alone, and what is in a namespace that
/// has no name for us.
///
/// # Errors
/// What the kernel or the file system reports.
pub fn clean(directory: &Path) -> io::Result<Vec<String>> {
    let mut removed = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let text = fs::read(entry.path())?;
        let place = Path::new(OsStr::from_bytes(&text));
        let of = entry.path();
        let of = of.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
        if text.is_empty() || of != inode(Some(place)).ok() {
            continue;
        }
        let marks = Marks::of(Some(place), directory)?;
        if !marks.are_of_the_dead()? {
            continue;
        }
        let mut requests = Requests::open_filtering(Some(place))?;
        for route in requests.own_routes()? {
            requests.remove_listed(&route)?;
            let (address, length) = (route.prefix.address(), route.prefix.length());
            removed.push(format!("route {address}/{length}"));
        }
        removed.extend(sweep(&mut requests, &[])?);
        marks.lock.set_len(0)?;
    }
    Ok(removed)
}

/// Removes addresses with our mark from all devices but `links`. Returns them, as text.
///
/// # Errors
/// What the kernel reports.
pub fn sweep(requests: &mut Requests, links: &[u32]) -> io::Result<Vec<String>> {
    let mut removed = Vec::new();
    for given in requests.all_addresses()? {
        if given.ours && !links.contains(&given.link) {
            requests.take_address(given.link, given.address, given.length)?;
            removed.push(format!("address {}/{}", given.address, given.length));
        }
    }
    Ok(removed)
}
