//! Notes of what was changed about devices: a file for each device, which the router that uses the
//! device holds locked.
//!
//! The kernel releases a lock whatever becomes of the process, and shows it to everybody, in
//! whatever process namespace and with whatever rights. So a note that can be locked is a dead
//! router's, and nobody needs to guess from process numbers. A note is replaced as a whole, by one
//! that is locked already; whoever has locked a note then checks that it is still the one in its
//! place.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::mem;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use kernel::netns::{self, OWN};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use router::change::Mac;

use crate::facts::Link;
use crate::lock::is_there;

/// Directory of the notes.
pub const NOTES: &str = "/run/parshall/devices";

/// A new one at every start of the machine.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// A network namespace, known from all others, also those that are gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Home {
    /// Its inode number, which the kernel gives again once the namespace has ended.
    #[serde(rename = "home")]
    inode: u64,
    /// Its cookie, which no other has until the machine restarts; `None`: not known.
    cookie: Option<u64>,
    /// Identifier of the machine's boot; `None`: not known.
    boot: Option<String>,
}

impl Home {
    /// The namespace of a file (`None`: our own).
    pub fn of(path: Option<&Path>) -> Self {
        let metadata = fs::metadata(path.unwrap_or(Path::new(OWN)));
        Home {
            inode: metadata.map_or(0, |metadata| metadata.ino()),
            cookie: netns::cookie(path).ok(),
            boot: fs::read_to_string(BOOT)
                .ok()
                .map(|boot| boot.trim().to_owned()),
        }
    }

    /// Its inode number.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Returns true if this namespace has surely ended, given one that has not.
    fn is_gone(&self, living: &Home) -> bool {
        differ(&self.boot, &living.boot)
            || self.inode == living.inode && differ(&self.cookie, &living.cookie)
    }
}

/// Returns true if two values that are known differ.
fn differ<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
    one.is_some() && other.is_some() && one != other
}

/// A device's state from before it was changed, and the changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Process number of the router in its own process namespace.
    pub router: u32,
    /// The router's namespace: a router looks after the devices of its own.
    #[serde(flatten)]
    pub(super) home: Home,
    /// The namespace it comes from; `None`: the router's own.
    pub from: Option<PathBuf>,
    /// The namespace it was moved to; `None`: the router's own.
    pub netns: Option<PathBuf>,
    /// Its name before.
    pub original: String,
    /// Its name now.
    pub name: String,
    /// The properties by which it is recognized.
    pub(super) identity: Identity,
    /// It was administratively up.
    pub up: bool,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// Its addresses, which a move takes away.
    pub addresses: Vec<(IpAddr, u8)>,
    /// The settings that it was given: each is written down before it is set.
    #[serde(default)]
    pub(super) given: Vec<Settings>,
    /// The features that took VLAN tags out of its frames and were switched off.
    #[serde(default)]
    pub vlan_parse: Vec<String>,
    /// Its router has stopped in good order, and it keeps what it was given.
    #[serde(default)]
    pub(super) settled: bool,
}

/// Settings that a router gives a device; `None`: it keeps its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Settings {
    #[serde(with = "crate::mac")]
    pub mac: Option<Mac>,
    pub mtu: Option<u32>,
}

/// The properties of a device that stay the same, whatever its name and namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub kind: Option<String>,
    pub bus_address: Option<String>,
    #[serde(with = "crate::mac")]
    pub mac: Option<Mac>,
}

impl Identity {
    pub fn of(link: &Link) -> Self {
        Identity {
            kind: link.kind.clone(),
            bus_address: link.bus_address.clone(),
            mac: link.mac,
        }
    }
}

impl Record {
    /// Returns true if a device is the one that this is about: the same piece of hardware or kind
    /// of virtual device, with our mark (its old name as an alternative one) or, if it was not
    /// marked yet, under one of the two names and with its place on the bus or its Ethernet
    /// address. A
    /// name alone proves nothing: the device may be gone, and somebody may have made another.
    pub fn is_about(&self, link: &Link) -> bool {
        let Identity {
            kind,
            bus_address,
            mac,
        } = &self.identity;
        let same = link.kind == *kind && link.bus_address == *bus_address;
        let known = link.mac.is_some() && link.mac == *mac || self.gave_mac(link);
        let proven = bus_address.is_some() || known;
        let named = [&self.name, &self.original].contains(&&link.name);
        let marked = self.name != self.original && link.altnames.contains(&self.original);
        same && (marked || named && proven)
    }

    /// Returns true if a device has an Ethernet address that it was given.
    pub(super) fn gave_mac(&self, link: &Link) -> bool {
        link.mac.is_some() && self.given.iter().any(|given| given.mac == link.mac)
    }

    /// Returns true if a device has an MTU that it was given.
    pub(super) fn gave_mtu(&self, link: &Link) -> bool {
        self.given.iter().any(|given| given.mtu == Some(link.mtu))
    }

    /// It is about to be given settings.
    pub(super) fn give(&mut self, settings: Settings) {
        if !self.given.contains(&settings) {
            self.given.push(settings);
        }
    }

    /// It lives in another namespace than it comes from.
    pub fn is_moved(&self) -> bool {
        self.from != self.netns
    }
}

/// The notes of one directory about the devices of one home.
#[derive(Debug)]
pub(super) struct Notes {
    pub directory: PathBuf,
    pub home: Home,
}

impl Notes {
    /// All that can be read, whoever holds them. Those of namespaces that are gone are removed.
    pub fn read(&self) -> Vec<Record> {
        records(&self.directory)
            .filter(|record| {
                if record.home.is_gone(&self.home) {
                    self.drop_gone(record);
                    false
                } else {
                    record.home.inode == self.home.inode
                }
            })
            .collect()
    }

    /// Removes the note of a namespace that is gone. If it cannot be, the next to read it does.
    fn drop_gone(&self, record: &Record) {
        // By now another may be in its place.
        if let Ok(Some(note)) = self.take(record.clone())
            && note.record.home.is_gone(&self.home)
        {
            let _ = note.forget();
        }
    }

    /// Takes over a note that was [`read`](Self::read); `None` if it is no longer there.
    ///
    /// # Errors
    /// ResourceBusy: the router that wrote it is alive.
    pub fn take(&self, record: Record) -> io::Result<Option<Note>> {
        let path = self.path(&record);
        while let Some(file) = there(File::open(&path))? {
            if let Some(lock) = Lock::take(file, &path)? {
                // Its router may have written it anew meanwhile.
                let record = read(&path).unwrap_or(record);
                return Ok(Some(Note { record, path, lock }));
            }
        }
        Ok(None)
    }

    /// Writes a new note.
    ///
    /// # Errors
    /// ResourceBusy: there is a note about this device already; the file system refuses.
    pub fn write(&self, record: Record) -> io::Result<Note> {
        fs::create_dir_all(&self.directory)?;
        let path = self.path(&record);
        remove_unreadable(&path)?;
        let lock = put(&path, &record, RenameFlags::NOREPLACE)?;
        Ok(Note { record, path, lock })
    }

    fn path(&self, record: &Record) -> PathBuf {
        // A device that stays as it is may have a namesake in another namespace. Names of devices
        // have no colons.
        let place = match &record.from {
            Some(place) if !record.is_moved() && record.name == record.original => {
                place.to_string_lossy().replace('/', ":") + ":"
            }
            _ => "-".to_owned(),
        };
        let name = format!("{}{place}{}.json", record.home.inode, record.original);
        self.directory.join(name)
    }
}

/// Removes the notes of devices whose home namespace is none of the `living`, by inode number with
/// a path to each, unless a router holds them. Returns how many.
///
/// # Errors
/// The file system refuses.
pub fn forget_gone(directory: &Path, living: &BTreeMap<u64, PathBuf>) -> io::Result<usize> {
    let mut forgotten = 0;
    for record in records(directory) {
        let is_gone = |home: &Home| {
            let same = living.get(&home.inode);
            same.is_none_or(|path| home.is_gone(&Home::of(Some(path))))
        };
        let notes = Notes {
            directory: directory.to_owned(),
            home: record.home.clone(),
        };
        if !is_gone(&record.home) {
            continue;
        }
        match notes.take(record) {
            // By now another may be in its place.
            Ok(Some(note)) if is_gone(&note.record.home) => {
                note.forget()?;
                forgotten += 1;
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
            Err(error) => return Err(error),
        }
    }
    Ok(forgotten)
}

/// All notes of a directory that can be read.
fn records(directory: &Path) -> impl Iterator<Item = Record> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let paths = entries.flatten().map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .filter_map(|path| read(&path))
}

/// A note that this process holds.
#[derive(Debug)]
pub(super) struct Note {
    pub record: Record,
    path: PathBuf,
    lock: Lock,
}

impl Note {
    /// Writes it anew.
    ///
    /// # Errors
    /// The file system refuses; the old one then stays.
    pub fn replace(&mut self, record: Record) -> io::Result<()> {
        self.lock = put(&self.path, &record, RenameFlags::empty())?;
        self.record = record;
        Ok(())
    }

    /// Writes it anew for a device that has another name or place by now.
    ///
    /// # Errors
    /// As [`Notes::write`]; the old one then stays.
    pub fn follow(&mut self, notes: &Notes, record: Record) -> io::Result<()> {
        if notes.path(&record) == self.path {
            return self.replace(record);
        }
        let fresh = notes.write(record)?;
        mem::replace(self, fresh).forget()
    }

    /// As [`follow`](Self::follow), where it is not held on failure.
    ///
    /// # Errors
    /// As [`follow`](Self::follow).
    pub fn renew(mut self, notes: &Notes, record: Record) -> io::Result<Note> {
        self.follow(notes, record)?;
        Ok(self)
    }

    /// Removes it: the device is as it was, or gone.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn forget(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// Removes a note that says nothing, of another version or of a disk that was full, unless somebody
/// holds it.
fn remove_unreadable(path: &Path) -> io::Result<()> {
    if let Some(file) = there(File::open(path))?
        && read(path).is_none()
        && let Some(_lock) = Lock::take(file, path)?
    {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// Puts a note in its place, locked from the beginning.
fn put(path: &Path, record: &Record, flags: RenameFlags) -> io::Result<Lock> {
    let fresh = path.with_added_extension("new");
    let mut lock = loop {
        let mut options = File::options();
        let options = options.write(true).create(true).truncate(false);
        if let Some(lock) = Lock::take(options.open(&fresh)?, &fresh)? {
            break lock;
        }
    };
    lock.0.set_len(0)?;
    lock.0.write_all(&serde_json::to_vec_pretty(record)?)?;
    renameat_with(CWD, &fresh, CWD, path, flags).map_err(|error| match error {
        Errno::EXIST => in_use(path),
        error => error.into(),
    })?;
    Ok(lock)
}

/// A file that only one process can hold.
#[derive(Debug)]
struct Lock(File);

impl Lock {
    /// `None`: by now another file, or none, is at the path.
    fn take(file: File, path: &Path) -> io::Result<Option<Lock>> {
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => in_use(path),
            TryLockError::Error(error) => error,
        })?;
        let lock = Lock(file);
        Ok(is_there(&lock.0)?.then_some(lock))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A child between fork and exec has the file open too: closing it would not be enough.
        let _ = self.0.unlock();
    }
}

fn in_use(path: &Path) -> io::Error {
    let what = match read(path) {
        Some(record) => format!(
            "device {} is in use by another router (pid {})",
            record.original, record.router
        ),
        None => format!("another router is writing {}; try again", path.display()),
    };
    io::Error::new(io::ErrorKind::ResourceBusy, what)
}

fn read(path: &Path) -> Option<Record> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(mac: Option<Mac>, given_mac: Option<Mac>) -> Record {
        Record {
            router: 1,
            home: Home::of(None),
            from: None,
            netns: None,
            original: "eth1".into(),
            name: "lan0".into(),
            identity: Identity {
                kind: Some("tun".into()),
                bus_address: None,
                mac,
            },
            up: true,
            mtu: 1500,
            addresses: Vec::new(),
            given: vec![Settings {
                mac: given_mac,
                mtu: None,
            }],
            vlan_parse: Vec::new(),
            settled: false,
        }
    }

    #[test]
    fn notes_of_namespaces_that_are_gone_go() {
        let directory = tempfile::tempdir().expect("a directory");
        let write = |inode: u64| {
            let home = Home {
                inode,
                cookie: None,
                boot: None,
            };
            let notes = Notes {
                directory: directory.path().to_owned(),
                home: home.clone(),
            };
            let record = Record {
                home,
                ..record(None, None)
            };
            notes.write(record).expect("there is room")
        };
        let own = Home::of(None).inode;
        drop([1, 2, own].map(write));
        let held = write(3);
        let living = BTreeMap::from([(own, PathBuf::from(OWN))]);
        let forget = || forget_gone(directory.path(), &living).expect("it can be seen");
        assert_eq!(forget(), 2);
        let mut left: Vec<u64> = records(directory.path()).map(|r| r.home.inode).collect();
        left.sort_unstable();
        assert_eq!(
            left,
            [3, own],
            "a router holds one, the other's namespace lives"
        );
        drop(held);
        assert_eq!((forget(), forget()), (1, 0));
    }

    fn named(name: &str, mac: Option<Mac>) -> Link {
        Link {
            name: name.into(),
            kind: Some("tun".into()),
            mac,
            ..Link::default()
        }
    }

    #[test]
    fn a_name_without_an_ethernet_address_proves_nothing() {
        let (own, given) = (Some(Mac([2, 0, 0, 0, 0, 1])), Some(Mac([2, 0, 0, 0, 0, 2])));
        for (mac, given_mac) in [(None, None), (own, None), (None, given), (own, given)] {
            let record = record(mac, given_mac);
            assert!(!record.is_about(&named("lan0", None)), "{record:?}");
            assert_eq!(record.is_about(&named("lan0", own)), mac == own);
            assert_eq!(record.is_about(&named("eth1", given)), given_mac == given);
            let marked = Link {
                altnames: vec!["eth1".into()],
                ..named("lan0", None)
            };
            assert!(record.is_about(&marked));
        }
    }
}
