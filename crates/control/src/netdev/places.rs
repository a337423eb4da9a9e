//! The bridges and network namespaces that the host's ends of taps lie in. Those that were made for
//! them go with the last one that needs them.
//!
//! Each of these is written down in a file that its router holds locked: its name before it is made,
//! and then what tells it from another one of that name, which somebody may put in its place. So one
//! that can be locked is a dead router's: the next one keeps what it wants, and removes the rest.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::note::Home;
use crate::facts::BRIDGE;
use crate::netlink::{Kernel, Namespaces};

/// Directory of what is written down.
pub const PLACES: &str = "/run/parshall/places";

/// The place that the host's end of a tap is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// File of the network namespace; `None`: our own.
    pub namespace: Option<PathBuf>,
    /// It is made if it is not there.
    pub make_namespace: bool,
    /// The bridge that it is a port of.
    pub bridge: Option<String>,
    /// It is made if it is not there.
    pub make_bridge: bool,
}

/// What was made: a bridge, or the namespace itself. In this order a namespace comes before what is
/// in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Made {
    namespace: Option<PathBuf>,
    bridge: Option<String>,
}

/// What tells something that was made from all else of its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    /// The namespace, or the one that the bridge is in.
    namespace: Home,
    /// The kernel's index of the bridge; the inode number of the file that has the namespace's name,
    /// as it is seen where the namespace is not mounted.
    number: u64,
}

/// A file of the directory.
#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(flatten)]
    home: Home,
    made: Made,
    /// `None`: it was about to be made, and nobody knows whether it was.
    #[serde(default)]
    identity: Option<Identity>,
}

/// What is written down, and its file, locked.
struct Note {
    file: File,
    identity: Option<Identity>,
}

/// The host's end of a tap.
struct End {
    /// The kernel's index.
    link: u32,
    /// The namespace that it was made in.
    namespace: Home,
}

/// The place of a host's end that is not where it was put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Astray {
    /// It is in another namespace, or the namespace of that name is another by now.
    Namespace,
    /// It is a port of this bridge; `None`: of none.
    Bridge(Option<String>),
}

/// The places of taps.
pub struct Places {
    namespaces: Namespaces,
    home: Home,
    directory: PathBuf,
    /// By the name of the tap's interface.
    taken: BTreeMap<String, Place>,
    /// The host's ends, by the name of the tap's interface.
    ends: BTreeMap<String, End>,
    made: BTreeMap<Made, Note>,
}

impl Places {
    /// None is taken yet. What is made is written down in `directory`, usually [`PLACES`].
    pub fn new(namespaces: Namespaces, directory: &Path) -> Self {
        Places {
            namespaces,
            home: Home::of(None),
            directory: directory.to_owned(),
            taken: BTreeMap::new(),
            ends: BTreeMap::new(),
            made: BTreeMap::new(),
        }
    }

    /// Takes over what dead routers have made, and removes what none of these taps needs: returns
    /// how many.
    ///
    /// # Errors
    /// The first that the kernel does not remove.
    pub fn take_over(&mut self, taps: impl Iterator<Item = (String, Place)>) -> io::Result<usize> {
        self.taken.extend(taps);
        for entry in fs::read_dir(&self.directory)
            .into_iter()
            .flatten()
            .flatten()
        {
            let read = || {
                // Also to be written, if it is made again.
                let mut options = File::options();
                let file = options.read(true).write(true).open(entry.path()).ok()?;
                file.try_lock().ok()?;
                let written: Written =
                    serde_json::from_slice(&fs::read(entry.path()).ok()?).ok()?;
                let Written {
                    home,
                    made,
                    identity,
                } = written;
                (home == self.home).then_some((made, Note { file, identity }))
            };
            self.made.extend(read());
        }
        let found = self.made.len();
        self.remove_unneeded()?;
        Ok(found - self.made.len())
    }

    /// A tap takes this place, and gives up the one that it had. What is missing and may be made is
    /// there then.
    ///
    /// # Errors
    /// Something is missing and must not be made; the kernel's. The tap has the place that it had.
    pub fn take(&mut self, tap: &str, place: Place) -> io::Result<()> {
        let before = self.taken.insert(tap.to_owned(), place.clone());
        let done = self.make(&place).and_then(|()| self.remove_unneeded());
        done.inspect_err(|_| {
            match before {
                Some(before) => self.taken.insert(tap.to_owned(), before),
                None => self.taken.remove(tap),
            };
            // The first error counts.
            let _ = self.remove_unneeded();
        })
    }

    /// Puts the host's end of a tap, of this name, into the place that the tap has taken: it is a
    /// port of the bridge, and up.
    ///
    /// # Errors
    /// The kernel's; the namespace or the bridge is gone.
    pub fn put(&mut self, tap: &str, name: &str) -> io::Result<()> {
        let Some(place) = self.taken.get(tap) else {
            return Ok(());
        };
        let namespace = Home::of(place.namespace.as_deref());
        let mut kernel = (self.namespaces)(place.namespace.as_deref())?;
        let link = kernel.link_named(name)?.index;
        if let Some(bridge) = &place.bridge {
            let bridge = kernel.link_named(bridge)?.index;
            kernel.join(link, bridge)?;
        }
        kernel.set_up(link, true)?;
        self.ends.insert(tap.to_owned(), End { link, namespace });
        Ok(())
    }

    /// Puts the host's end of a tap back where it belongs; false: it is in another namespace, from
    /// where nobody takes it back. What is missing and may be made is there then.
    ///
    /// # Errors
    /// As [`take`](Self::take) and [`put`](Self::put).
    pub fn put_back(&mut self, tap: &str, name: &str) -> io::Result<bool> {
        let Some(place) = self.taken.get(tap).cloned() else {
            return Ok(false);
        };
        self.take(tap, place)?;
        let is_there = self.astray([tap]).get(tap) != Some(&Astray::Namespace);
        if is_there {
            self.put(tap, name)?;
        }
        Ok(is_there)
    }

    /// The host's end of a tap: the file of its namespace (`None`: our own), and the kernel's index
    /// there; `None`: it is in no such place.
    pub fn end(&self, tap: &str) -> Option<(Option<PathBuf>, u32)> {
        let (place, end) = (self.taken.get(tap)?, self.ends.get(tap)?);
        let is_there = Home::of(place.namespace.as_deref()) == end.namespace;
        is_there.then(|| (place.namespace.clone(), end.link))
    }

    /// Those of some taps whose host's ends are not where they were put, by name.
    pub fn astray<'t>(&self, taps: impl IntoIterator<Item = &'t str>) -> BTreeMap<String, Astray> {
        let mut seen = BTreeMap::new();
        let mut astray = BTreeMap::new();
        for tap in taps {
            let (Some(place), Some(end)) = (self.taken.get(tap), self.ends.get(tap)) else {
                continue;
            };
            let namespace = seen.entry(&place.namespace).or_insert_with(|| {
                let links =
                    (self.namespaces)(place.namespace.as_deref()).and_then(|mut k| k.links());
                (
                    Home::of(place.namespace.as_deref()),
                    links.unwrap_or_default(),
                )
            });
            let (home, links) = namespace;
            let link = |index: u32| links.iter().find(|link| link.index == index);
            let Some(found) = link(end.link).filter(|_| *home == end.namespace) else {
                astray.insert(tap.to_owned(), Astray::Namespace);
                continue;
            };
            let bridge = found
                .master
                .and_then(link)
                .map(|master| master.name.clone());
            if place.bridge.is_some() && bridge != place.bridge {
                astray.insert(tap.to_owned(), Astray::Bridge(bridge));
            }
        }
        astray
    }

    /// A tap gives up its place. What was made for it is there until
    /// [`remove_unneeded`](Self::remove_unneeded).
    pub fn leave(&mut self, tap: &str) {
        self.taken.remove(tap);
        self.ends.remove(tap);
    }

    /// All taps give up their places.
    ///
    /// # Errors
    /// The kernel's.
    pub fn leave_all(&mut self) -> io::Result<()> {
        self.taken.clear();
        self.ends.clear();
        self.remove_unneeded()
    }

    /// Makes what is missing.
    fn make(&mut self, place: &Place) -> io::Result<()> {
        let kernel = self.namespace(place)?;
        match &place.bridge {
            Some(bridge) => self.make_bridge(kernel, place, bridge),
            None => Ok(()),
        }
    }

    /// The namespace of a place.
    fn namespace(&mut self, place: &Place) -> io::Result<Box<dyn Kernel>> {
        let open = self.namespaces.clone();
        let (error, path) = match (open(place.namespace.as_deref()), &place.namespace) {
            (Err(error), Some(path)) => (error, path),
            (opened, _) => return opened,
        };
        let namespace = Made {
            namespace: place.namespace.clone(),
            bridge: None,
        };
        // That of a dead router that saw mounts of its own is but a file by now.
        let is_old = self.is_left(&namespace);
        if !is_old && error.kind() != io::ErrorKind::NotFound {
            return Err(error);
        }
        if !place.make_namespace {
            let what = format!("network namespace {}", path.display());
            return Err(missing(&what, "namespace"));
        }
        if is_old {
            self.remove(&namespace)?;
        }
        self.write_down(namespace.clone())?;
        let number = open(None)?.add_namespace(path)?;
        let home = Home::of(Some(path));
        let known = self.identify(&namespace, home, number);
        known.and_then(|()| open(Some(path))).inspect_err(|_| {
            // The first error counts.
            let _ = open(None).and_then(|mut kernel| kernel.delete_namespace(path));
        })
    }

    fn make_bridge(
        &mut self,
        mut kernel: Box<dyn Kernel>,
        place: &Place,
        name: &str,
    ) -> io::Result<()> {
        match kernel.link_named(name) {
            Ok(link) if link.kind.as_deref() == Some(BRIDGE) => return Ok(()),
            Ok(_) => return Err(io::Error::other(format!("{name} is no bridge"))),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) if !place.make_bridge => {
                return Err(missing(&format!("bridge {name}"), "bridge"));
            }
            Err(_) => {}
        }
        let made = Made {
            namespace: place.namespace.clone(),
            bridge: place.bridge.clone(),
        };
        self.write_down(made.clone())?;
        kernel.add_bridge(name).map_err(|error| {
            let what = format!("cannot make bridge {name}: {error}");
            io::Error::new(error.kind(), what)
        })?;
        let link = kernel.link_named(name)?.index;
        let home = Home::of(place.namespace.as_deref());
        self.identify(&made, home, link.into()).inspect_err(|_| {
            // The first error counts.
            let _ = kernel.remove_all(&[link]);
        })
    }

    /// Removes what was made and no tap needs. What somebody has put in its place stays.
    ///
    /// # Errors
    /// The kernel's; what is left is removed the next time.
    pub fn remove_unneeded(&mut self) -> io::Result<()> {
        let needs = |place: &Place, made: &Made| {
            let whole = made.bridge.is_none() || made.bridge == place.bridge;
            place.namespace == made.namespace && whole
        };
        let is_needed = |made: &&Made| self.taken.values().any(|place| needs(place, made));
        let unneeded = self.made.keys().filter(|made| !is_needed(made));
        // What is in a namespace first.
        let unneeded: Vec<Made> = unneeded.rev().cloned().collect();
        for made in unneeded {
            self.remove(&made)?;
            fs::remove_file(self.file(&made))?;
            self.made.remove(&made);
        }
        Ok(())
    }

    /// Removes what was made, if that is what has its name. What is gone is no error.
    fn remove(&self, made: &Made) -> io::Result<()> {
        if !self.is_left(made) {
            return Ok(());
        }
        let mut kernel = match &made.bridge {
            Some(_) => (self.namespaces)(made.namespace.as_deref())?,
            None => (self.namespaces)(None)?,
        };
        let done = match (&made.bridge, &made.namespace) {
            (Some(bridge), _) => {
                let link = kernel.link_named(bridge).map(|link| link.index);
                link.and_then(|link| kernel.remove_all(&[link]))
            }
            (None, Some(path)) => kernel.delete_namespace(path),
            (None, None) => Ok(()),
        };
        match done {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// Returns true if what has a name is what was made.
    fn is_left(&self, made: &Made) -> bool {
        let Some(identity) = self.made.get(made).and_then(|note| note.identity.as_ref()) else {
            return false;
        };
        let path = made.namespace.as_deref();
        let same = || Home::of(path) == identity.namespace;
        let Some(bridge) = &made.bridge else {
            let inode = path.and_then(|path| fs::metadata(path).ok());
            return inode.is_some_and(|file| file.ino() == identity.number) || same();
        };
        let link = (self.namespaces)(path).and_then(|mut kernel| kernel.link_named(bridge));
        let is_it = link.is_ok_and(|link| {
            link.kind.as_deref() == Some(BRIDGE) && u64::from(link.index) == identity.number
        });
        is_it && same()
    }

    /// Writes down what is about to be made.
    fn write_down(&mut self, made: Made) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        let file = match self.made.remove(&made) {
            Some(note) => note.file,
            None => self.lock(&made)?,
        };
        self.write(made, file, None)
    }

    /// Writes down what it is, once it is made.
    fn identify(&mut self, made: &Made, namespace: Home, number: u64) -> io::Result<()> {
        let Some((made, note)) = self.made.remove_entry(made) else {
            return Ok(());
        };
        let identity = Some(Identity { namespace, number });
        self.write(made, note.file, identity)
    }

    fn lock(&self, made: &Made) -> io::Result<File> {
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.open(self.file(made))?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::Error::new(
                io::ErrorKind::ResourceBusy,
                "another router is about to make or remove it",
            ),
            TryLockError::Error(error) => error,
        })?;
        Ok(file)
    }

    fn write(&mut self, made: Made, mut file: File, identity: Option<Identity>) -> io::Result<()> {
        let written = Written {
            home: self.home.clone(),
            made: made.clone(),
            identity: identity.clone(),
        };
        let text = serde_json::to_vec(&written)?;
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(&text)?;
        self.made.insert(made, Note { file, identity });
        Ok(())
    }

    fn file(&self, made: &Made) -> PathBuf {
        let namespace = made.namespace.as_deref().unwrap_or(Path::new("-"));
        // Names of devices have no colons.
        let namespace = namespace.to_string_lossy().replace('/', ":");
        let bridge = made.bridge.as_deref().unwrap_or_default();
        let name = format!("{}{namespace}:{bridge}.json", self.home.inode());
        self.directory.join(name)
    }
}

fn missing(what: &str, field: &str) -> io::Error {
    let what = format!("there is no {what}: make it, or write `{field}-create: true`");
    io::Error::other(what)
}
