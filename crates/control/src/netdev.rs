//! Preparing network devices for the router, and putting everything back.
//!
//! `lcp: NAME` renames a device to NAME (its old name stays as an alternative name) and moves it into the configured
//! namespace, before anything is attached to it. What was changed is written down first, so that an orderly stop, a
//! cleanup or the next start can undo it or go on from it, whatever became of the process.

use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::config::Interface;
use crate::kernel::Link;
use crate::netlink::{Requests, ethtool};

/// Where it is written down.
pub const STATE: &str = "/run/parshall/state.json";

/// The calling thread's own namespace.
const OWN: &str = "/proc/thread-self/ns/net";

/// What was changed about a device, and how it was before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The namespace that it comes from, by its inode: a router looks after the devices of its own.
    home: u64,
    /// Its name before.
    pub original: String,
    /// Its name now.
    pub name: String,
    /// The namespace it was moved to; `None`: it was not.
    pub netns: Option<PathBuf>,
    /// It was administratively up.
    pub up: bool,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// Its IPv4 addresses, which a move takes away.
    pub addresses: Vec<(Ipv4Addr, u8)>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    devices: Vec<Record>,
}

impl State {
    /// What is written down; nothing if it cannot be read.
    fn read(path: &Path) -> Self {
        fs::read(path)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
    }
}

/// The devices that were prepared.
#[derive(Debug)]
pub struct Devices {
    home: Option<PathBuf>,
    id: u64,
    netns: Option<PathBuf>,
    path: PathBuf,
    state: State,
}

impl Devices {
    /// Devices come from the namespace `home` (`None`: our own) and live in `netns` (`None`: they stay). What a
    /// predecessor wrote down at `path` about devices from there is taken over.
    pub fn new(home: Option<&Path>, netns: Option<&Path>, path: &Path) -> Self {
        let id = fs::metadata(home.unwrap_or(Path::new(OWN))).map_or(0, |metadata| metadata.ino());
        let mut state = State::read(path);
        state.devices.retain(|record| record.home == id);
        Devices {
            home: home.map(Path::to_owned),
            id,
            netns: netns.map(Path::to_owned),
            path: path.to_owned(),
            state,
        }
    }

    /// What has been changed and not yet put back.
    pub fn records(&self) -> &[Record] {
        &self.state.devices
    }

    /// Readies the device `netdev` under the name `lcp` (`None`: its own) where it is to live. One that a predecessor has
    /// readied is taken as it is.
    ///
    /// # Errors
    /// NotFound: there is no such device (yet); AlreadyExists: its new name is taken; PermissionDenied.
    pub fn prepare(&mut self, netdev: &str, lcp: Option<&str>) -> io::Result<Link> {
        let name = lcp.unwrap_or(netdev);
        let mut target = Requests::open(self.target())?;
        let adopted = target.link_named(name).ok().filter(|link| {
            let recorded = self
                .state
                .devices
                .iter()
                .any(|record| record.name == name && record.original == netdev);
            name == netdev || recorded || link.altnames.iter().any(|other| other == netdev)
        });
        if let Some(link) = adopted {
            return Ok(link);
        }
        let mut home = Requests::open(self.home.as_deref())?;
        let link = home.link_named(netdev)?;
        let addresses = home.addresses(link.index)?;
        self.state
            .devices
            .retain(|record| record.original != link.name);
        self.state.devices.push(Record {
            home: self.id,
            original: link.name.clone(),
            name: name.to_owned(),
            netns: self.netns.clone(),
            up: link.admin_up,
            mtu: link.mtu,
            addresses: addresses
                .iter()
                .map(|address| (address.address, address.length))
                .collect(),
        });
        self.save()?;
        let done = match &self.netns {
            Some(netns) => home.move_to(link.index, &File::open(netns)?, name),
            None => home.rename(link.index, name),
        };
        if let Err(error) = done {
            self.state.devices.pop();
            self.save()?;
            return Err(io::Error::new(
                error.kind(),
                format!("cannot make {netdev} into {name}: {error}"),
            ));
        }
        let link = target.link_named(name)?;
        if name != netdev {
            target.altname(link.index, netdev, true)?;
        }
        target.link_named(name)
    }

    /// Puts everything back as it was. A device that is gone is forgotten. What could not be put back stays written down;
    /// each failure is told.
    pub fn restore(&mut self) -> Vec<(Record, io::Error)> {
        if self.state.devices.is_empty() {
            return Vec::new();
        }
        let mut failures = Vec::new();
        for record in std::mem::take(&mut self.state.devices) {
            if let Err(error) = self.put_back(&record) {
                self.state.devices.push(record.clone());
                failures.push((record, error));
            }
        }
        if let Err(error) = self.save()
            && let Some(record) = self.state.devices.first()
        {
            failures.push((record.clone(), error));
        }
        failures
    }

    fn put_back(&self, record: &Record) -> io::Result<()> {
        // A namespace that is gone has given its devices back.
        let there = Requests::open(record.netns.as_deref().or(self.home.as_deref()));
        if let Ok(mut there) = there
            && let Ok(link) = there.link_named(&record.name)
        {
            if link.altnames.contains(&record.original) {
                there.altname(link.index, &record.original, false)?;
            }
            if record.netns.is_some() {
                let home = self.home.as_deref().unwrap_or(Path::new(OWN));
                there.move_to(link.index, &File::open(home)?, &record.original)?;
            } else if link.name != record.original {
                there.rename(link.index, &record.original)?;
            }
        }
        let mut home = Requests::open(self.home.as_deref())?;
        let Ok(link) = home.link_named(&record.original) else {
            return Ok(());
        };
        if link.mtu != record.mtu {
            home.set_mtu(link.index, record.mtu)?;
        }
        home.set_up(link.index, record.up)?;
        for &(address, length) in &record.addresses {
            home.add_address(link.index, IpAddr::V4(address), length)?;
        }
        Ok(())
    }

    fn target(&self) -> Option<&Path> {
        self.netns.as_deref().or(self.home.as_deref())
    }

    /// Writes everything down, or removes the file if there is nothing. What other routers wrote stays.
    fn save(&self) -> io::Result<()> {
        let mut state = State::read(&self.path);
        state.devices.retain(|record| record.home != self.id);
        state.devices.extend_from_slice(&self.state.devices);
        if state.devices.is_empty() {
            return match fs::remove_file(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory)?;
        }
        let fresh = self.path.with_added_extension("new");
        fs::write(&fresh, serde_json::to_vec_pretty(&state)?)?;
        fs::rename(&fresh, &self.path)
    }
}

/// The network device of a PCI function, as in `0000:03:00.0`.
///
/// # Errors
/// NotFound: no device of this namespace is on that function (its driver may be one that takes it from the kernel).
pub fn of_pci(requests: &mut Requests, address: &str) -> io::Result<Link> {
    let missing = || {
        let what = format!(
            "no network device is at PCI address {address}; `parshall show pci` lists them"
        );
        io::Error::new(io::ErrorKind::NotFound, what)
    };
    let links = requests.links()?;
    links
        .into_iter()
        .find(|link| ethtool::pci_address(link).as_deref() == Some(address))
        .ok_or_else(missing)
}

/// Gives a device what the configuration wants: Ethernet address, MTU, addresses, up or down. What the configuration does
/// not name is left as it is.
///
/// # Errors
/// What the kernel refuses, with what it was.
pub fn configure(requests: &mut Requests, link: &Link, wanted: &Interface) -> io::Result<()> {
    let told = |what: String| {
        let name = link.name.clone();
        move |error: io::Error| {
            io::Error::new(error.kind(), format!("{name}: cannot set {what}: {error}"))
        }
    };
    if let Some(mac) = wanted.mac.filter(|mac| link.mac.as_ref() != Some(mac)) {
        requests
            .set_mac(link.index, mac)
            .map_err(told("the Ethernet address".into()))?;
    }
    if let Some(mtu) = wanted.mtu.map(u32::from).filter(|&mtu| link.mtu != mtu) {
        requests
            .set_mtu(link.index, mtu)
            .map_err(told(format!("MTU {mtu}")))?;
    }
    for address in &wanted.addresses {
        let added = requests.add_address(link.index, address.address, address.length);
        added.map_err(told(format!("address {address}")))?;
    }
    requests.set_up(link.index, wanted.up).map_err(told(format!(
        "state {}",
        if wanted.up { "up" } else { "down" }
    )))
}
