//! The bridges and network namespaces that the host's ends of taps lie in. Those that were made for
//! them go with the last one that needs them.
//!
//! Each of these is written down before it is made, in a file that its router holds locked. So one
//! that can be locked is a dead router's: the next one keeps what it wants, and removes the rest.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Seek, Write};
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

/// A file of the directory.
#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(flatten)]
    home: Home,
    made: Made,
}

/// The places of taps.
pub struct Places {
    namespaces: Namespaces,
    home: Home,
    directory: PathBuf,
    /// By the name of the tap's interface.
    taken: BTreeMap<String, Place>,
    /// Each with its file, locked.
    made: BTreeMap<Made, File>,
}

impl Places {
    /// None is taken yet. What is made is written down in `directory`, usually [`PLACES`].
    pub fn new(namespaces: Namespaces, directory: &Path) -> Self {
        Places {
            namespaces,
            home: Home::of(None),
            directory: directory.to_owned(),
            taken: BTreeMap::new(),
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
                let file = File::open(entry.path()).ok()?;
                file.try_lock().ok()?;
                let written: Written =
                    serde_json::from_slice(&fs::read(entry.path()).ok()?).ok()?;
                (written.home == self.home).then_some((written.made, file))
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

    /// A tap gives up its place.
    ///
    /// # Errors
    /// The kernel's.
    pub fn leave(&mut self, tap: &str) -> io::Result<()> {
        self.taken.remove(tap);
        self.remove_unneeded()
    }

    /// All taps give up their places.
    ///
    /// # Errors
    /// The kernel's.
    pub fn leave_all(&mut self) -> io::Result<()> {
        self.taken.clear();
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
        let is_old = self.made.contains_key(&namespace);
        if !is_old && error.kind() != io::ErrorKind::NotFound {
            return Err(error);
        }
        if !place.make_namespace {
            let what = format!("network namespace {}", path.display());
            return Err(missing(&what, "namespace"));
        }
        if is_old {
            remove(&open, &namespace)?;
        }
        self.write_down(namespace)?;
        open(None)?.add_namespace(path)?;
        open(Some(path))
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
        self.write_down(Made {
            namespace: place.namespace.clone(),
            bridge: place.bridge.clone(),
        })?;
        kernel.add_bridge(name).map_err(|error| {
            let what = format!("cannot make bridge {name}: {error}");
            io::Error::new(error.kind(), what)
        })
    }

    /// Removes what was made and no tap needs.
    fn remove_unneeded(&mut self) -> io::Result<()> {
        let needs = |place: &Place, made: &Made| {
            let whole = made.bridge.is_none() || made.bridge == place.bridge;
            place.namespace == made.namespace && whole
        };
        let is_needed = |made: &&Made| self.taken.values().any(|place| needs(place, made));
        let unneeded = self.made.keys().filter(|made| !is_needed(made));
        // What is in a namespace first.
        let unneeded: Vec<Made> = unneeded.rev().cloned().collect();
        for made in unneeded {
            remove(&self.namespaces, &made)?;
            fs::remove_file(self.file(&made))?;
            self.made.remove(&made);
        }
        Ok(())
    }

    /// Writes down what is about to be made.
    fn write_down(&mut self, made: Made) -> io::Result<()> {
        if self.made.contains_key(&made) {
            return Ok(());
        }
        fs::create_dir_all(&self.directory)?;
        let mut options = File::options();
        let options = options.write(true).create(true).truncate(false);
        let mut file = options.open(self.file(&made))?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::Error::new(
                io::ErrorKind::ResourceBusy,
                "another router is about to make or remove it",
            ),
            TryLockError::Error(error) => error,
        })?;
        let home = self.home.clone();
        let text = serde_json::to_vec(&Written {
            home,
            made: made.clone(),
        })?;
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(&text)?;
        self.made.insert(made, file);
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

/// Removes what was made. What is gone is no error.
fn remove(namespaces: &Namespaces, made: &Made) -> io::Result<()> {
    let done = match (&made.bridge, &made.namespace) {
        (Some(bridge), namespace) => {
            namespaces(namespace.as_deref()).and_then(|kernel| remove_bridge(kernel, bridge))
        }
        (None, Some(path)) => namespaces(None)?.delete_namespace(path),
        (None, None) => Ok(()),
    };
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn remove_bridge(mut kernel: Box<dyn Kernel>, name: &str) -> io::Result<()> {
    let link = kernel.link_named(name)?;
    if link.kind.as_deref() == Some(BRIDGE) {
        kernel.remove_all(&[link.index])?;
    }
    Ok(())
}
