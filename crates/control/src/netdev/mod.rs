//! Preparing network devices for the router, and putting everything back.
//!
//! `lcp: NAME` renames a device to NAME (its old name stays as an alternative name) and moves it
//! into the configured namespace, before anything is attached to it. What a device is like is
//! written down before anything is changed about it, and what it is to be given before that is set,
//! so that an orderly stop, a cleanup or the next start can undo it or go on from it, whatever
//! became of the process.
//!
//! At an orderly stop, a device that stays in its namespace gets its name back and keeps its
//! settings, as if `ip` had made them: the kernel goes on forwarding with them. A note of its own
//! Ethernet address and MTU stays, which the next start goes on from or puts back. A device that
//! was moved comes back as it was; so does any that is given up, and any that a dead router has
//! left and nobody wants. All take VLAN tags out of their frames again if they did before.

mod configure;
mod namespace_lock;
mod note;
mod places;
mod rename;
mod settings;
mod vlan;

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use kernel::netns::OWN;

use crate::config::PortKind;
use crate::config::desired::Interface;
use crate::facts::Link;
use crate::machine::hardware::pci_address;
use crate::netlink::{Kernel, Namespaces, namespaces};
use note::{Home, Identity, Note, Notes, Settings};

pub use configure::{configure, displaced, give_addresses, is_known, take_addresses, takes_ip6};
pub use namespace_lock::{Cleaned, LOCKS, NamespaceLock, clean, sweep};
pub use note::{NOTES, Record, forget_gone};
pub use places::{Astray, PLACES, Place, Places};
pub use settings::Kept;
pub use vlan::VLAN_PARSE;

/// The devices that were changed, each with its note.
pub struct Devices {
    namespaces: Namespaces,
    home: Option<PathBuf>,
    netns: Option<PathBuf>,
    notes: Notes,
    held: Vec<Note>,
}

impl Devices {
    /// For devices that come from the namespace `home` (`None`: our own) and are to live in `netns`
    /// (`None`: they stay). What is changed about them is written down in `directory`, usually
    /// [`NOTES`].
    pub fn new(home: Option<&Path>, netns: Option<&Path>, directory: &Path) -> Self {
        Self::of(namespaces(), home, netns, directory)
    }

    /// The same of other namespaces than the running kernel's.
    pub fn of(
        namespaces: Namespaces,
        home: Option<&Path>,
        netns: Option<&Path>,
        directory: &Path,
    ) -> Self {
        Devices {
            namespaces,
            home: home.map(Path::to_owned),
            netns: netns.map(Path::to_owned),
            notes: Notes {
                directory: directory.to_owned(),
                home: Home::of(home),
            },
            held: Vec::new(),
        }
    }

    /// Takes over what dead routers of this home have changed, but for what is to stay after a stop
    /// in good order. Returns what could not be taken over, and why: living routers hold theirs.
    pub fn take_over(&mut self) -> Vec<(Record, io::Error)> {
        let mut kept = Vec::new();
        let mut records = self.notes.read();
        records.retain(|record| !self.is_settled(record));
        for record in records {
            match self.notes.take(record.clone()) {
                Ok(note) => self.held.extend(note),
                Err(error) => kept.push((record, error)),
            }
        }
        kept
    }

    /// Puts back what dead routers have done to devices that live where ours do, before any of ours
    /// is [prepared](Self::prepare): a name may be wanted by another. What is wanted as it is
    /// stays. Returns what was put back, and how that went; what could not be stays written down.
    pub fn put_back_unwanted(&mut self, wanted: &[Interface]) -> Vec<(Record, io::Result<()>)> {
        let mut records = self.records();
        records.retain(|record| {
            let link = self.prepared(record);
            let stays = |wanted: &Interface| {
                is_for(record, link.as_ref(), wanted)
                    && (record.settled || record.name == *name_of(wanted, &record.original))
            };
            record.netns == self.netns && !wanted.iter().any(stays)
        });
        let taken = records.into_iter().filter_map(|record| {
            // Routers that live keep theirs.
            let note = self.notes.take(record.clone()).ok()??;
            Some((record, self.undo(note, Kept::Nothing)))
        });
        taken.collect()
    }

    /// Prepares the device of an interface: moves it to where it is to live, under the name that
    /// `lcp` gives it (`None`: its own), and writes down what it is like. A device that a
    /// predecessor has prepared is taken as it is, but for settings that are not wanted any more.
    ///
    /// # Errors
    /// NotFound: there is no such device (yet); AlreadyExists: its new name is taken; ResourceBusy:
    /// another router uses it; PermissionDenied; it cannot be written down.
    pub fn prepare(&mut self, wanted: &Interface) -> io::Result<Link> {
        if let Some(link) = self.adopt(wanted)? {
            return Ok(link);
        }
        let (from, link) = self.find(wanted)?;
        let name = name_of(wanted, &link.name);
        self.clear(&link.name)?;
        let settled = self.settled(&from, &link)?;
        let before = settled.as_ref().map(|note| note.record.clone());
        let mut there = self.open(from.as_deref())?;
        let own = there.addresses_of(link.index)?.into_iter();
        let addresses = own.map(|its| (its.address, its.length)).collect();
        let mut record = self.record(from, &link, addresses, wanted);
        let note = match settled {
            Some(note) => {
                record.inherit(&note.record, &link);
                note.renew(&self.notes, record.clone())?
            }
            None => self.notes.write(record.clone())?,
        };
        let done = match (note.record.is_moved(), &self.netns) {
            (true, Some(netns)) => {
                File::open(netns).and_then(|netns| there.move_to(link.index, &netns, name))
            }
            _ if link.name == *name => Ok(()),
            _ => there.rename(link.index, name),
        };
        if let Err(error) = done {
            match before {
                Some(before) => drop(note.renew(&self.notes, before)?),
                None => note.forget()?,
            }
            let what = format!("cannot rename {} to {name}: {error}", link.name);
            return Err(io::Error::new(error.kind(), what));
        }
        let held = self.hold(note, name);
        let held = held.and_then(|link| self.unset(&record, link, wanted));
        if held.is_err() {
            self.release(name)?;
        }
        held
    }

    /// The record of a device as it is now, before it is changed.
    fn record(
        &self,
        from: Option<PathBuf>,
        link: &Link,
        addresses: Vec<(IpAddr, u8)>,
        wanted: &Interface,
    ) -> Record {
        Record {
            router: std::process::id(),
            home: self.notes.home.clone(),
            from,
            netns: self.netns.clone(),
            original: link.name.clone(),
            name: name_of(wanted, &link.name).clone(),
            identity: Identity::of(link),
            up: link.admin_up,
            mtu: link.mtu,
            addresses,
            given: vec![Settings::of(wanted)],
            vlan_parse: Vec::new(),
            settled: false,
        }
    }

    /// Keeps the note of a device that is in its place, and gives it its old name as an alternative
    /// one.
    fn hold(&mut self, note: Note, name: &str) -> io::Result<Link> {
        let original = note.record.original.clone();
        self.held.push(note);
        let mut there = self.open(self.netns.as_deref())?;
        let link = there.link_named(name)?;
        if name == original || link.altnames.contains(&original) {
            return Ok(link);
        }
        match there.altname(link.index, &original, true) {
            // By now another device has its old name: it goes without.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(link),
            given => given.and_then(|()| there.link_named(name)),
        }
    }

    /// A device that was prepared before, by us or by a router that is dead. One that was prepared
    /// in another way than is wanted now is put back.
    fn adopt(&mut self, wanted: &Interface) -> io::Result<Option<Link>> {
        let mut there = HashMap::new();
        for record in self.records() {
            let there = there.entry(record.netns.clone());
            let there = there.or_insert_with_key(|netns| self.device_of(netns.as_deref(), wanted));
            let about = there.clone().filter(|link| record.is_about(link));
            let is_it = is_for(&record, about.as_ref(), wanted);
            // It may have another name by now.
            let link = about.or_else(|| is_it.then(|| self.prepared(&record))?);
            let name = name_of(wanted, &record.original);
            // Its router may have died before it came to the renaming.
            let is_done = |link: &Link| link.name == *name || link.name != record.original;
            let same = record.name == *name && record.netns == self.netns;
            match link {
                _ if !is_it => {}
                // It has its name and place again.
                Some(_) if record.settled => {}
                Some(link) if same && is_done(&link) => {
                    let Some(mut note) = self.take(record)? else {
                        continue;
                    };
                    note.replace(note.record.adopted(&link, wanted))?;
                    let record = note.record.clone();
                    let link = self.hold(note, &link.name)?;
                    return self.unset(&record, link, wanted).map(Some);
                }
                _ => self.clear(&record.original)?,
            }
        }
        Ok(None)
    }

    /// The device that the port of an interface names, if it is in the namespace `place`.
    fn device_of(&self, place: Option<&Path>, wanted: &Interface) -> Option<Link> {
        device_of(&mut *self.open(place).ok()?, wanted).ok()?
    }

    /// The device that a record is about, where it was put.
    fn prepared(&self, record: &Record) -> Option<Link> {
        let links = self.open(record.netns.as_deref()).ok()?.links().ok()?;
        of(record, links)
    }

    /// The records of devices that come from where ours do: home, or where they are to live.
    fn records(&self) -> Vec<Record> {
        let mut records = self.notes.read();
        records.retain(|record| [&None, &self.netns].contains(&&record.from));
        records
    }

    /// The note of this record, ours or a dead router's.
    fn take(&mut self, record: Record) -> io::Result<Option<Note>> {
        let ours = |note: &Note| note.record.original == record.original;
        match self.held.iter().position(ours) {
            Some(index) => Ok(Some(self.held.swap_remove(index))),
            None => self.notes.take(record),
        }
    }

    /// The note about a device in the namespace `place` from a router that has stopped in good
    /// order.
    fn settled(&self, place: &Option<PathBuf>, link: &Link) -> io::Result<Option<Note>> {
        let mut records = self.records().into_iter();
        let is_it =
            |record: &Record| record.settled && record.netns == *place && record.is_about(link);
        records
            .find(is_it)
            .map_or(Ok(None), |record| self.notes.take(record))
    }

    /// Returns true if a router that has stopped in good order has left a device as it is, and that
    /// is still there.
    fn is_settled(&self, record: &Record) -> bool {
        record.settled && self.prepared(record).is_some()
    }

    /// Puts back what was done to a device of this name before.
    fn clear(&mut self, original: &str) -> io::Result<()> {
        for record in self.records() {
            if record.original == original
                && !self.is_settled(&record)
                && let Some(note) = self.take(record)?
            {
                self.undo(note, Kept::Nothing)?;
            }
        }
        Ok(())
    }

    /// The device that is the port of an interface, at home or where it is to live, and where that
    /// is (`None`: at home).
    ///
    /// # Errors
    /// NotFound: there is none.
    pub fn find(&self, wanted: &Interface) -> io::Result<(Option<PathBuf>, Link)> {
        let kind = wanted.port_kind();
        for place in [&None, &self.netns] {
            if let Some(link) = device_of(&mut *self.open(place.as_deref())?, wanted)? {
                return Ok((place.clone(), link));
            }
        }
        let what = match kind {
            Some(PortKind::Pci(address)) => format!(
                "no network device is at PCI address {address}; `parshall show pci` lists them"
            ),
            Some(PortKind::Netdev(name)) => format!("there is no network device {name}"),
            _ => "the port is not a network device".to_owned(),
        };
        Err(io::Error::new(io::ErrorKind::NotFound, what))
    }

    /// Puts back what was done to the device of an interface, which the router gives up.
    ///
    /// # Errors
    /// The kernel's error; the change then stays written down.
    pub fn release(&mut self, device: &str) -> io::Result<()> {
        let Some(at) = self.held_of(device) else {
            return Ok(());
        };
        let note = self.held.swap_remove(at);
        let done = self.put_back(&note.record, Kept::Nothing);
        match done {
            Ok(()) => note.forget(),
            Err(error) => {
                self.held.push(note);
                Err(error)
            }
        }
    }

    /// Puts back everything that we hold, and says how that went. A device that is gone is
    /// forgotten. What could not be put back stays written down.
    pub fn restore(&mut self, kept: Kept) -> Vec<(Record, io::Result<()>)> {
        let held = std::mem::take(&mut self.held).into_iter();
        held.map(|note| {
            let record = note.record.clone();
            (record, self.undo(note, kept))
        })
        .collect()
    }

    /// Puts back what a note says, and forgets it but for what is kept. What cannot be put back
    /// stays written down.
    fn undo(&self, note: Note, kept: Kept) -> io::Result<()> {
        self.put_back(&note.record, kept)?;
        let stays = kept == Kept::Settings && !note.record.is_moved();
        let link = stays.then(|| self.prepared(&note.record)).flatten();
        match link.and_then(|link| note.record.settled(&link)) {
            Some(settled) => note.renew(&self.notes, settled).map(drop),
            None => note.forget(),
        }
    }

    fn put_back(&self, record: &Record, kept: Kept) -> io::Result<()> {
        // A namespace that is gone has given its devices back.
        let places = [&record.netns, &record.from, &None];
        let found = places.into_iter().find_map(|place| {
            let mut there = self.open(place.as_deref()).ok()?;
            let link = of(record, there.links().ok()?)?;
            Some((place, there, link))
        });
        let Some((place, there, link)) = found else {
            return Ok(());
        };
        // Its name and place matter more: it gets them back whether this works or not.
        let parsing = self.parse_vlan_again(record, place.as_deref(), &link);
        self.put_home(record, place, there, link, kept)?;
        parsing
    }

    /// Gives a device that was found somewhere its name and place back, and everything else that it
    /// had but what is kept.
    fn put_home(
        &self,
        record: &Record,
        place: &Option<PathBuf>,
        mut there: Box<dyn Kernel>,
        link: Link,
        kept: Kept,
    ) -> io::Result<()> {
        if record.name != record.original && link.altnames.contains(&record.original) {
            there.altname(link.index, &record.original, false)?;
        }
        // A name that somebody else has given it since stays.
        let name = if link.name == record.name {
            &record.original
        } else {
            &link.name
        };
        if record.is_moved() && *place != record.from {
            let from = record.from.as_deref().or(self.home.as_deref());
            let from = File::open(from.unwrap_or(Path::new(OWN)))?;
            there.move_to(link.index, &from, name)?;
        } else if link.name != *name {
            there.rename(link.index, name)?;
        }
        if !record.is_moved() {
            return match kept {
                Kept::Settings => Ok(()),
                Kept::Nothing => settings::put_back(&mut *there, &link, record),
            };
        }
        let mut home = self.open(record.from.as_deref())?;
        let link = home.link_named(name)?;
        settings::put_back(&mut *home, &link, record)?;
        for &(address, length) in &record.addresses {
            home.add_address(link.index, address, length)?;
        }
        Ok(())
    }

    fn open(&self, place: Option<&Path>) -> io::Result<Box<dyn Kernel>> {
        (self.namespaces)(place.or(self.home.as_deref()))
    }
}

/// The device that a record is about.
fn of(record: &Record, links: Vec<Link>) -> Option<Link> {
    links.into_iter().find(|link| record.is_about(link))
}

/// Returns true if a record is about the device of an interface; `link`: the device, if it is there.
fn is_for(record: &Record, link: Option<&Link>, wanted: &Interface) -> bool {
    let kind = wanted.port_kind();
    let named = matches!(kind, Some(PortKind::Netdev(name)) if *name == record.original);
    named || link.is_some_and(|link| stands_for(wanted, link))
}

/// The name that an interface wants for its device, whose own is `original`.
fn name_of<'n>(wanted: &'n Interface, original: &'n String) -> &'n String {
    wanted.lcp.as_ref().unwrap_or(original)
}

/// Checks that a device can have the settings that are wanted of it.
///
/// # Errors
/// It has no Ethernet address, or cannot have that MTU.
pub fn possible(link: &Link, wanted: &Interface) -> io::Result<()> {
    let Link { name, max_mtu, .. } = link;
    if link.mac.is_none() {
        return Err(io::Error::other(format!(
            "{name} is not an Ethernet device"
        )));
    }
    let new = wanted.mtu.map(u32::from).filter(|mtu| *mtu != link.mtu);
    match new.zip(*max_mtu) {
        Some((mtu, most)) if mtu > most => Err(io::Error::other(format!(
            "{name} cannot have an MTU of {mtu}: its maximum is {most}"
        ))),
        _ => Ok(()),
    }
}

/// The device that the port of an interface names.
fn device_of(there: &mut dyn Kernel, wanted: &Interface) -> io::Result<Option<Link>> {
    match wanted.port_kind() {
        Some(PortKind::Netdev(name)) => match there.link_named(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            found => found.map(Some),
        },
        Some(PortKind::Pci(_)) => {
            let mut links = there.links()?.into_iter();
            Ok(links.find(|link| stands_for(wanted, link)))
        }
        _ => Ok(None),
    }
}

/// Returns true if the port of an interface names a device.
fn stands_for(wanted: &Interface, link: &Link) -> bool {
    match wanted.port_kind() {
        Some(PortKind::Netdev(name)) => link.name == *name || link.altnames.contains(name),
        Some(PortKind::Pci(address)) => pci_address(link).as_ref() == Some(address),
        _ => false,
    }
}
