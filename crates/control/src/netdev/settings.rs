//! Ethernet address, MTU and state of devices, and how they were before.

use std::io;

use router::change::Mac;

use super::note::{Note, Settings};
use super::{Devices, Record};
use crate::config::desired::Interface;
use crate::facts::Link;
use crate::netlink::Kernel;

/// The part of its settings that a device keeps when it is put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Its settings, if it stays in its namespace.
    Settings,
    /// Nothing: it is as it was.
    Nothing,
}

impl Settings {
    /// Those that are wanted of an interface.
    pub fn of(wanted: &Interface) -> Self {
        Settings {
            mac: wanted.mac,
            mtu: wanted.mtu.map(u32::from),
        }
    }
}

impl Record {
    /// The record of a device that a predecessor has prepared, to be written before it is given
    /// what is wanted. A setting that no router gave it is its own by now.
    pub(super) fn adopted(&self, link: &Link, wanted: &Interface) -> Record {
        let mut record = self.clone();
        record.router = std::process::id();
        if !record.gave_mac(link) {
            record.identity.mac = link.mac;
        }
        if !record.gave_mtu(link) {
            record.mtu = link.mtu;
        }
        record.give(Settings::of(wanted));
        record
    }

    /// The record to keep when the router stops in good order and its device stays as it is;
    /// `None`: none, the device has its own settings.
    pub(super) fn settled(&self, link: &Link) -> Option<Record> {
        let given = Settings {
            mac: link.mac.filter(|_| self.gave_mac(link)),
            mtu: Some(link.mtu).filter(|_| self.gave_mtu(link)),
        };
        let own = (self.identity.mac, self.mtu);
        let is_other =
            given.mac.is_some() && link.mac != own.0 || given.mtu.is_some() && link.mtu != own.1;
        is_other.then(|| Record {
            original: link.name.clone(),
            name: link.name.clone(),
            given: vec![given],
            vlan_parse: Vec::new(),
            settled: true,
            ..self.clone()
        })
    }

    /// Takes over, into the record of a device as it is now, what it was like before a router that
    /// has stopped in good order.
    pub(super) fn inherit(&mut self, settled: &Record, link: &Link) {
        if settled.gave_mac(link) {
            self.identity.mac = settled.identity.mac;
        }
        if settled.gave_mtu(link) {
            self.mtu = settled.mtu;
        }
        settled
            .given
            .iter()
            .for_each(|given| self.give(given.clone()));
    }
}

impl Devices {
    /// Writes down what a device that was [prepared](Self::prepare) is about to be given: Ethernet
    /// address, MTU in bytes. `None`: it keeps what it has.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn note(&mut self, device: &str, mac: Option<Mac>, mtu: Option<u32>) -> io::Result<()> {
        let Some(at) = self.held_of(device) else {
            return Ok(());
        };
        let note = &mut self.held[at];
        let mut record = note.record.clone();
        record.give(Settings { mac, mtu });
        note.replace(record)
    }

    /// A device that was [prepared](Self::prepare) as it was before.
    pub fn before(&self, link: &Link) -> Link {
        let Some(at) = self.held_of(&link.name) else {
            return link.clone();
        };
        let record = &self.held[at].record;
        Link {
            mac: record.identity.mac,
            mtu: record.mtu,
            admin_up: record.up,
            ..link.clone()
        }
    }

    /// The index of the note that we hold about a device of this name.
    pub(super) fn held_of(&self, device: &str) -> Option<usize> {
        let ours = |note: &Note| note.record.netns == self.netns;
        let named = |note: &Note| ours(note) && note.record.name == device;
        // Somebody else may have renamed it.
        let is_it = |note: &Note| {
            let link = self.prepared(&note.record);
            ours(note) && link.is_some_and(|link| link.name == device)
        };
        let by_name = self.held.iter().position(named);
        by_name.or_else(|| self.held.iter().position(is_it))
    }

    /// Gives a device its own Ethernet address and MTU back where a predecessor gave it others and
    /// none is wanted now.
    pub(super) fn unset(
        &self,
        record: &Record,
        link: Link,
        wanted: &Interface,
    ) -> io::Result<Link> {
        let mut there = self.open(self.netns.as_deref())?;
        if wanted.mac.is_none() {
            put_mac_back(&mut *there, &link, record)?;
        }
        if wanted.mtu.is_none() {
            put_mtu_back(&mut *there, &link, record)?;
        }
        there.link_named(&link.name)
    }
}

/// Gives a device its Ethernet address, MTU and state back. What somebody else has given it since
/// stays, and so does its state once its router has stopped in good order.
pub(super) fn put_back(there: &mut dyn Kernel, link: &Link, record: &Record) -> io::Result<()> {
    put_mac_back(there, link, record)?;
    put_mtu_back(there, link, record)?;
    if record.settled || link.admin_up == record.up {
        Ok(())
    } else {
        there.set_up(link.index, record.up)
    }
}

fn put_mac_back(there: &mut dyn Kernel, link: &Link, record: &Record) -> io::Result<()> {
    let before = record.identity.mac.filter(|_| record.gave_mac(link));
    match before.filter(|mac| link.mac != Some(*mac)) {
        Some(mac) => there.set_mac(link.index, mac),
        None => Ok(()),
    }
}

fn put_mtu_back(there: &mut dyn Kernel, link: &Link, record: &Record) -> io::Result<()> {
    if record.gave_mtu(link) && link.mtu != record.mtu {
        there.set_mtu(link.index, record.mtu)
    } else {
        Ok(())
    }
}
