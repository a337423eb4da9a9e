//! From facts about the kernel to changes of the router.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use router::change::{Change, Interface, InterfaceId, Kind, MTUS, Mac, Prefix, Route as Action};

use super::addresses::Addresses;
use super::entry::Entry;
use super::resolve::{LinkState, World};
use super::rib::Rib;
use crate::facts::{Batch, Event, Link, Neighbor, Nexthop, Place, Route, RouteKind, Section};

/// An interface of the router that stands for a device of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    /// The router's index.
    pub id: InterfaceId,
    /// Name as configured.
    pub name: String,
    /// The router's index of the tap, where the device is a tap that stands for a port without one
    /// of its own.
    pub twin: Option<InterfaceId>,
    /// Whether the port itself is up, where the device cannot tell (a tap always has carrier).
    pub port_up: bool,
}

/// What becomes of devices, for whoever waits for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkNews {
    /// A device is there, or has got another name.
    Appeared {
        /// The kernel's index.
        index: u32,
        /// Its name now.
        name: String,
    },
    /// A device is gone; if it was ours, our interface went with it.
    Vanished {
        /// The kernel's index.
        index: u32,
        /// Our interface on it.
        owned: Option<InterfaceId>,
    },
}

/// Knows everything the kernel has said and yields what it means to the router.
///
/// The interfaces that are ours are told to it by [`Translator::own`] and [`Translator::disown`] at
/// any time; routes are translated anew then.
#[derive(Debug, Default)]
pub struct Translator {
    links: HashMap<u32, (Link, u32)>,
    addresses: Addresses,
    neighbors: HashMap<(u32, Ipv4Addr), (Option<Mac>, u32)>,
    nexthop_marks: HashMap<u32, u32>,
    rib: Rib,
    world: World,
    owned: HashMap<u32, Owned>,
    generation: u32,
    synced: bool,
    news: Vec<LinkNews>,
}

impl Translator {
    /// Knows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether everything has been seen once.
    pub fn synced(&self) -> bool {
        self.synced
    }

    /// The devices that there are.
    pub fn links(&self) -> impl Iterator<Item = &Link> {
        self.links.values().map(|(link, _)| link)
    }

    /// The device of a name or alternative name.
    pub fn link_named(&self, name: &str) -> Option<&Link> {
        self.links().find(|link| link.name == name).or_else(|| {
            self.links()
                .find(|link| link.altnames.iter().any(|a| a == name))
        })
    }

    /// Our interfaces with the kernel's index of their device.
    pub fn owned(&self) -> impl Iterator<Item = (u32, &Owned)> {
        self.owned.iter().map(|(&link, owned)| (link, owned))
    }

    /// What has become of devices since this was last asked.
    pub fn take_news(&mut self) -> Vec<LinkNews> {
        std::mem::take(&mut self.news)
    }

    /// Takes in what the kernel says.
    pub fn apply(&mut self, batch: Batch) -> Vec<Change> {
        let mut out = Vec::with_capacity(batch.events.len());
        for event in batch.events {
            self.event(event, &mut out);
        }
        out
    }

    /// A device is ours from now on: the interface, its addresses and neighbors, and the routes by
    /// it.
    pub fn own(&mut self, link: u32, owned: Owned) -> Vec<Change> {
        let mut out = Vec::new();
        let id = owned.id;
        self.owned.insert(link, owned);
        self.interfaces(link, &mut out);
        let addresses = self.addresses.of(link);
        if !addresses.is_empty() {
            out.push(Change::AddressesSet {
                interface: id,
                addresses,
            });
        }
        for (&(on, address), &(mac, _)) in &self.neighbors {
            if let (true, Some(mac)) = (on == link, mac) {
                out.push(Change::NeighborSet {
                    interface: id,
                    address,
                    mac,
                });
            }
        }
        let prefixes = self.prefixes_by(link);
        self.edit(prefixes, &mut out, |_, world| {
            world.owned.insert(link, id);
        });
        out
    }

    /// A device is ours no longer: its routes are the kernel's business again.
    pub fn disown(&mut self, link: u32) -> Vec<Change> {
        let mut out = Vec::new();
        let Some(owned) = self.owned.remove(&link) else {
            return out;
        };
        let prefixes = self.prefixes_by(link);
        self.edit(prefixes, &mut out, |_, world| {
            world.owned.remove(&link);
        });
        delete_interfaces(&owned, &mut out);
        out
    }

    /// The port behind one of our devices has gone up or down.
    pub fn set_port_up(&mut self, link: u32, up: bool) -> Vec<Change> {
        let mut out = Vec::new();
        if let Some(owned) = self
            .owned
            .get_mut(&link)
            .filter(|owned| owned.port_up != up)
        {
            owned.port_up = up;
            self.interfaces(link, &mut out);
        }
        out
    }

    fn event(&mut self, event: Event, out: &mut Vec<Change>) {
        match event {
            Event::Link(link) => self.link(link, out),
            Event::LinkGone(index) => self.link_gone(index, out),
            Event::Address(link, address) => {
                self.edit_addresses(link, out, |all| all.insert(link, address))
            }
            Event::AddressGone(link, address) => {
                self.edit_addresses(link, out, |all| all.remove(link, &address))
            }
            Event::Neighbor(neighbor) => self.neighbor(neighbor, out),
            Event::NeighborGone(neighbor) => {
                self.neighbor_gone((neighbor.link, neighbor.address), out)
            }
            Event::Nexthop(id, nexthop) => self.nexthop(id, nexthop, out),
            Event::NexthopGone(id) => self.nexthop_gone(id, out),
            Event::Route(route, place) => self.route(route, place, out),
            Event::RouteGone(route) => {
                let (prefix, entry) = Entry::split(route);
                self.edit_one(prefix, out, |rib| rib.remove(prefix, &entry));
            }
            Event::DumpBegin(section) => {
                self.generation = self.generation.wrapping_add(1);
                match section {
                    Section::Addresses => self.addresses.begin(),
                    Section::Routes => self.rib.begin(),
                    _ => {}
                }
            }
            Event::DumpEnd { section, complete } => {
                match section {
                    Section::Addresses => self.addresses.end(),
                    Section::Routes => self.rib.end(),
                    _ => {}
                }
                if complete {
                    self.sweep(section, out);
                }
                self.synced |= section == Section::Routes;
            }
        }
    }

    /// Removes what a dump that has ended did not show.
    fn sweep(&mut self, section: Section, out: &mut Vec<Change>) {
        let now = self.generation;
        match section {
            Section::Links => {
                let gone = keys_where(&self.links, |(_, mark)| *mark != now);
                gone.into_iter()
                    .for_each(|index| self.link_gone(index, out));
            }
            Section::Addresses => {
                for link in self.addresses.unseen() {
                    self.edit_addresses(link, out, |all| all.sweep(link));
                }
            }
            Section::Nexthops => {
                let gone = keys_where(&self.nexthop_marks, |mark| *mark != now);
                gone.into_iter().for_each(|id| self.nexthop_gone(id, out));
            }
            Section::Neighbors => {
                let gone = keys_where(&self.neighbors, |(_, mark)| *mark != now);
                gone.into_iter()
                    .for_each(|key| self.neighbor_gone(key, out));
            }
            Section::Routes => {
                let prefixes = self.rib.unseen();
                let sweep = prefixes.clone();
                self.edit(prefixes, out, |rib, _| {
                    sweep.into_iter().for_each(|prefix| rib.sweep(prefix))
                });
            }
        }
    }

    fn link(&mut self, link: Link, out: &mut Vec<Change>) {
        let index = link.index;
        let state = LinkState {
            admin_up: link.admin_up,
            carrier: link.carrier,
        };
        let name = link.name.clone();
        let before = self
            .links
            .insert(index, (link, self.generation))
            .map(|(link, _)| link);
        if before.as_ref().is_none_or(|before| before.name != name) {
            self.news.push(LinkNews::Appeared { index, name });
        }
        let was = self.world.links.get(&index).copied();
        if was != Some(state) {
            let prefixes = self.prefixes_by(index);
            let purged = if state.admin_up {
                Vec::new()
            } else {
                prefixes.clone()
            };
            self.edit(prefixes, out, |rib, world| {
                world.links.insert(index, state);
                // The kernel drops the routes of a link that goes down, all but the host's own
                // addresses.
                for prefix in purged {
                    rib.retain(prefix, |entry| {
                        entry.kind == RouteKind::Local || world.any_alive(&entry.hops)
                    });
                }
            });
        }
        let changed = before.is_none_or(|before| differs(&before, &self.links[&index].0));
        if changed {
            self.interfaces(index, out);
        }
    }

    fn link_gone(&mut self, index: u32, out: &mut Vec<Change>) {
        if self.links.remove(&index).is_none() {
            return;
        }
        self.neighbors.retain(|(link, _), _| *link != index);
        let prefixes = self.prefixes_by(index);
        let purged = prefixes.clone();
        self.edit(prefixes, out, |rib, world| {
            world.links.remove(&index);
            world.owned.remove(&index);
            for prefix in purged {
                rib.retain(prefix, |entry| world.any_alive(&entry.hops));
            }
        });
        let owned = self.owned.remove(&index);
        if let Some(owned) = &owned {
            delete_interfaces(owned, out);
        }
        self.edit_addresses(index, out, |all| all.remove_link(index));
        self.news.push(LinkNews::Vanished {
            index,
            owned: owned.map(|owned| owned.id),
        });
    }

    /// Says what our interface (and its twin) on a device are like now.
    fn interfaces(&self, link: u32, out: &mut Vec<Change>) {
        let (Some(owned), Some((link, _))) = (self.owned.get(&link), self.links.get(&link)) else {
            return;
        };
        let interface = |id, name: &str, kind, up| Interface {
            id,
            name: name.to_owned(),
            kind,
            mac: link.mac.unwrap_or_default(),
            mtu: (link.mtu.min(u32::from(u16::MAX)) as u16).clamp(*MTUS.start(), *MTUS.end()),
            up,
        };
        let up = link.admin_up && link.carrier;
        let routed = Kind::Routed { twin: owned.twin };
        out.push(Change::InterfaceSet(interface(
            owned.id,
            &owned.name,
            routed,
            up && owned.port_up,
        )));
        if let Some(twin) = owned.twin {
            out.push(Change::InterfaceSet(interface(
                twin,
                &Kind::twin_name(&owned.name),
                Kind::Twin { of: owned.id },
                up,
            )));
        }
    }

    /// Changes the addresses of a device and says what that changes.
    fn edit_addresses(
        &mut self,
        link: u32,
        out: &mut Vec<Change>,
        change: impl FnOnce(&mut Addresses),
    ) {
        let (before, source) = (self.addresses.of(link), self.addresses.source());
        change(&mut self.addresses);
        let addresses = self.addresses.of(link);
        if let Some(owned) = self.owned.get(&link).filter(|_| addresses != before) {
            out.push(Change::AddressesSet {
                interface: owned.id,
                addresses,
            });
        }
        if self.addresses.source() != source {
            out.push(Change::SourceSet(self.addresses.source()));
        }
    }

    fn neighbor(&mut self, neighbor: Neighbor, out: &mut Vec<Change>) {
        let Neighbor { link, address, mac } = neighbor;
        if address.is_multicast() || address.is_broadcast() {
            return;
        }
        let before = self
            .neighbors
            .insert((link, address), (mac, self.generation))
            .and_then(|(mac, _)| mac);
        let Some(interface) = self
            .owned
            .get(&link)
            .map(|owned| owned.id)
            .filter(|_| before != mac)
        else {
            return;
        };
        out.push(match mac {
            Some(mac) => Change::NeighborSet {
                interface,
                address,
                mac,
            },
            None => Change::NeighborDelete { interface, address },
        });
    }

    fn neighbor_gone(&mut self, key: (u32, Ipv4Addr), out: &mut Vec<Change>) {
        let resolved = self
            .neighbors
            .remove(&key)
            .is_some_and(|(mac, _)| mac.is_some());
        if let (true, Some(owned)) = (resolved, self.owned.get(&key.0)) {
            out.push(Change::NeighborDelete {
                interface: owned.id,
                address: key.1,
            });
        }
    }

    fn nexthop(&mut self, id: u32, nexthop: Nexthop, out: &mut Vec<Change>) {
        self.nexthop_marks.insert(id, self.generation);
        if self.world.nexthop(id) != Some(&nexthop) {
            let prefixes = self.rib.users(&self.world.leading_to_object(id));
            self.edit(prefixes, out, |_, world| world.set_nexthop(id, nexthop));
        }
    }

    /// The kernel drops the routes that use the object itself; groups lose a member, and an empty
    /// group is gone too.
    fn nexthop_gone(&mut self, id: u32, out: &mut Vec<Change>) {
        self.nexthop_marks.remove(&id);
        let prefixes = self.rib.users(&self.world.leading_to_object(id));
        let purged = prefixes.clone();
        self.edit(prefixes, out, |rib, world| {
            world.remove_nexthop(id);
            for prefix in purged {
                rib.retain(prefix, |entry| entry.hops != crate::facts::Hops::Object(id));
            }
        });
    }

    fn route(&mut self, route: Route, place: Place, out: &mut Vec<Change>) {
        let (prefix, entry) = Entry::split(route);
        self.edit_one(prefix, out, |rib| rib.insert(prefix, entry, place));
    }

    fn prefixes_by(&self, link: u32) -> Vec<Prefix> {
        self.rib.users(&self.world.leading_to_link(link))
    }

    /// Changes one prefix and says what that changes.
    fn edit_one(&mut self, prefix: Prefix, out: &mut Vec<Change>, change: impl FnOnce(&mut Rib)) {
        if self.rib.has_last_resort() {
            return self.edit(vec![prefix], out, |rib, _| change(rib));
        }
        let before = self.rib.effective(&self.world, prefix);
        change(&mut self.rib);
        difference(prefix, before, self.rib.effective(&self.world, prefix), out);
    }

    /// Changes prefixes, or what their routes depend on, and says what that changes.
    fn edit(
        &mut self,
        mut prefixes: Vec<Prefix>,
        out: &mut Vec<Change>,
        change: impl FnOnce(&mut Rib, &mut World),
    ) {
        if self.rib.has_last_resort() {
            let more: Vec<Prefix> = prefixes
                .iter()
                .flat_map(|&prefix| self.rib.dependents(prefix))
                .collect();
            prefixes.extend(more);
            prefixes.sort_unstable();
            prefixes.dedup();
        }
        let before: Vec<_> = prefixes
            .iter()
            .map(|&prefix| self.rib.effective(&self.world, prefix))
            .collect();
        change(&mut self.rib, &mut self.world);
        for (prefix, before) in prefixes.into_iter().zip(before) {
            difference(prefix, before, self.rib.effective(&self.world, prefix), out);
        }
    }
}

fn difference(
    prefix: Prefix,
    before: Option<Action>,
    after: Option<Action>,
    out: &mut Vec<Change>,
) {
    match after {
        Some(route) if before.as_ref() != Some(&route) => {
            out.push(Change::RouteSet { prefix, route })
        }
        None if before.is_some() => out.push(Change::RouteDelete { prefix }),
        _ => {}
    }
}

fn differs(a: &Link, b: &Link) -> bool {
    (a.mac, a.mtu, a.admin_up, a.carrier, &a.name) != (b.mac, b.mtu, b.admin_up, b.carrier, &b.name)
}

fn delete_interfaces(owned: &Owned, out: &mut Vec<Change>) {
    out.extend(owned.twin.map(Change::InterfaceDelete));
    out.push(Change::InterfaceDelete(owned.id));
}

fn keys_where<K: Clone, V>(map: &HashMap<K, V>, which: impl Fn(&V) -> bool) -> Vec<K> {
    map.iter()
        .filter(|(_, value)| which(value))
        .map(|(key, _)| key.clone())
        .collect()
}

#[cfg(test)]
#[path = "translator_tests.rs"]
mod tests;
