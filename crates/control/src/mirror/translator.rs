//! From facts about the kernel to changes of the router.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use router::change::{
    Address, Change, Interface, InterfaceId, Kind, L2, MTUS, Mac, Spread, Tags, Tunnel,
};

use super::addresses::Addresses;
use super::owned::{Binding, Owned};
use super::routes::{Made, Routes};
use super::topology::LinkState;
use crate::facts::{Batch, Event, Link, Neighbor, Section};
use crate::netlink::PROTOCOL;

/// Changes of devices, for those who wait for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkNews {
    /// A device is there, or has another name now.
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
    },
}

/// Knows everything the kernel has said and yields what it means to the router.
///
/// [`Translator::bind`] and [`Translator::unbind`] say which interfaces are ours, at any time;
/// routes are translated anew then.
#[derive(Debug, Default)]
pub struct Translator {
    /// Each with the dump that was the last when it was seen, as are neighbors and next-hop
    /// objects.
    links: HashMap<u32, (Link, u32)>,
    addresses: Addresses,
    /// The source addresses that were last said.
    sources: (Option<Ipv4Addr>, Option<Ipv6Addr>),
    neighbors: HashMap<(u32, IpAddr), (Option<Mac>, u32)>,
    nexthops: HashMap<u32, u32>,
    routes: Routes,
    owned: Owned,
    /// Number of the last dump that began.
    generation: u32,
    synced: bool,
    caught_up: u64,
    news: Vec<LinkNews>,
}

impl Translator {
    /// Knows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns true if everything has been seen once.
    pub fn synced(&self) -> bool {
        self.synced
    }

    /// The last [`Mirror::catch_up`](super::Mirror::catch_up) that has been answered; 0: none.
    pub fn caught_up(&self) -> u64 {
        self.caught_up
    }

    /// The device of the kernel's index.
    pub fn link(&self, index: u32) -> Option<&Link> {
        self.links.get(&index).map(|(link, _)| link)
    }

    /// All devices.
    pub fn links(&self) -> impl Iterator<Item = &Link> + Clone {
        self.links.values().map(|(link, _)| link)
    }

    /// The addresses of a device, by the kernel's index, in its order.
    pub fn addresses_of(&self, link: u32) -> Vec<Address> {
        self.addresses.of(link)
    }

    /// Our interfaces with the kernel's index of their device.
    pub fn owned(&self) -> impl Iterator<Item = (u32, &Binding)> {
        self.owned.iter()
    }

    /// Takes the changes of devices since the last call.
    pub fn take_news(&mut self) -> Vec<LinkNews> {
        std::mem::take(&mut self.news)
    }

    /// The routes by a link, by who made them (`RTPROT_*`); of each those of no more than `most`
    /// prefixes are listed, however many there are. The kernel's own and ours are not among them.
    pub fn foreign(&self, link: u32, most: usize) -> BTreeMap<u8, Made> {
        let mut all = self.routes.made(link, most);
        for ours in [libc::RTPROT_REDIRECT, libc::RTPROT_KERNEL, PROTOCOL] {
            all.remove(&ours);
        }
        all
    }

    /// Takes in what the kernel says.
    pub fn apply(&mut self, batch: Batch) -> Vec<Change> {
        let mut out = Vec::with_capacity(batch.events.len());
        for event in batch.events {
            self.event(event, &mut out);
        }
        // Once for all: it looks through the addresses of every device.
        let sources = self.addresses.sources();
        if std::mem::replace(&mut self.sources, sources) != sources {
            let (ip4, ip6) = sources;
            out.push(Change::SourceSet { ip4, ip6 });
        }
        out
    }

    /// A device is ours from now on: yields the interface, its addresses and neighbors, and the
    /// routes by it.
    pub fn bind(&mut self, link: u32, owned: Binding) -> Vec<Change> {
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
        self.routes.bind(link, id, &mut out);
        out
    }

    /// A device is ours no longer: its routes are the kernel's business again.
    pub fn unbind(&mut self, link: u32) -> Vec<Change> {
        let mut out = Vec::new();
        let Some(owned) = self.owned.remove(link) else {
            return out;
        };
        self.routes.unbind(link, &mut out);
        delete_interfaces(&owned, &mut out);
        self.subs(owned.id, &mut out);
        self.bond(owned.l2, &mut out);
        out
    }

    /// The port behind one of our devices has gone up or down.
    pub fn set_port_up(&mut self, link: u32, up: bool) -> Vec<Change> {
        let mut out = Vec::new();
        if self.owned.edit(link, |owned| owned.port_up = up) {
            self.interfaces(link, &mut out);
        }
        out
    }

    /// What one of our interfaces has for the host leaves by this host interface from now on; `None`:
    /// by none.
    pub fn set_host(&mut self, link: u32, host: Option<InterfaceId>) -> Vec<Change> {
        let mut out = Vec::new();
        let before = self.owned.get(link).and_then(|owned| owned.host);
        if self.owned.edit(link, |owned| owned.host = host) {
            self.interfaces(link, &mut out);
            out.extend(before.map(Change::InterfaceDelete));
        }
        out
    }

    /// One of our interfaces does this at layer 2 from now on.
    pub fn set_l2(&mut self, link: u32, l2: Option<L2>) -> Vec<Change> {
        let mut out = Vec::new();
        let before = self.owned.get(link).and_then(|owned| owned.l2);
        if self.owned.edit(link, |owned| owned.l2 = l2) {
            self.interfaces(link, &mut out);
            self.bond(before, &mut out);
        }
        out
    }

    /// One of our bonds spreads what leaves this way from now on.
    pub fn set_bond(&mut self, link: u32, spread: Spread) -> Vec<Change> {
        let mut out = Vec::new();
        if self.owned.edit(link, |owned| owned.bond = Some(spread)) {
            self.interfaces(link, &mut out);
        }
        out
    }

    /// One of our interfaces is this tunnel from now on.
    pub fn set_tunnel(&mut self, link: u32, tunnel: Tunnel) -> Vec<Change> {
        let mut out = Vec::new();
        if self.owned.edit(link, |owned| owned.tunnel = Some(tunnel)) {
            self.interfaces(link, &mut out);
        }
        out
    }

    /// One of our sub-interfaces is on top of this interface, with these tags, from now on.
    pub fn set_on(&mut self, link: u32, on: (InterfaceId, Tags)) -> Vec<Change> {
        let mut out = Vec::new();
        if self.owned.edit(link, |owned| owned.on = Some(on)) {
            self.interfaces(link, &mut out);
        }
        out
    }

    /// All our interfaces take packets in from now on. What it yields is to be applied as one.
    pub fn serve_all(&mut self) -> Vec<Change> {
        let mut out = Vec::new();
        let idle = self.owned().filter(|(_, owned)| !owned.serving);
        let idle: Vec<u32> = idle.map(|(link, _)| link).collect();
        for link in idle {
            self.owned.edit(link, |owned| owned.serving = true);
            self.interfaces(link, &mut out);
        }
        out
    }

    fn event(&mut self, event: Event, out: &mut Vec<Change>) {
        match event {
            Event::Link(link) => self.take_link(link, out),
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
            Event::Nexthop(id, nexthop) => {
                self.nexthops.insert(id, self.generation);
                self.routes.set_nexthop(id, nexthop, out);
            }
            Event::NexthopGone(id) => self.nexthop_gone(id, out),
            Event::Route(route, place) => self.routes.insert(route, place, out),
            Event::RouteGone(route) => self.routes.remove(route, out),
            Event::DumpBegin(section) => {
                self.generation = self.generation.wrapping_add(1);
                match section {
                    Section::Addresses => self.addresses.begin(),
                    Section::Routes => self.routes.begin(),
                    _ => {}
                }
            }
            Event::DumpEnd { section, complete } => {
                match section {
                    Section::Addresses => self.addresses.end(),
                    Section::Routes => self.routes.end(),
                    _ => {}
                }
                if complete {
                    self.sweep(section, out);
                }
                self.synced |= section == Section::Routes;
            }
            Event::CaughtUp(number) => self.caught_up = number,
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
                let gone = keys_where(&self.nexthops, |mark| *mark != now);
                gone.into_iter().for_each(|id| self.nexthop_gone(id, out));
            }
            Section::Neighbors => {
                let gone = keys_where(&self.neighbors, |(_, mark)| *mark != now);
                gone.into_iter()
                    .for_each(|key| self.neighbor_gone(key, out));
            }
            Section::Routes => self.routes.sweep(out),
        }
    }

    fn take_link(&mut self, link: Link, out: &mut Vec<Change>) {
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
        self.routes.set_link(index, state, out);
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
        self.routes.remove_link(index, out);
        if let Some(owned) = self.owned.remove(index) {
            delete_interfaces(&owned, out);
            self.subs(owned.id, out);
            self.bond(owned.l2, out);
        }
        self.edit_addresses(index, out, |all| all.remove_link(index));
        self.news.push(LinkNews::Vanished { index });
    }

    /// Says what our interface on a device, its host interface and its sub-interfaces are like now.
    fn interfaces(&self, link: u32, out: &mut Vec<Change>) {
        let (Some(owned), Some((link, _))) = (self.owned.get(link), self.links.get(&link)) else {
            return;
        };
        let interface = |id, name: &str, kind, up| Interface {
            id,
            name: name.to_owned(),
            kind,
            mac: link.mac.unwrap_or_default(),
            mtu: u16::try_from(link.mtu)
                .unwrap_or(u16::MAX)
                .clamp(*MTUS.start(), *MTUS.end()),
            up,
            l2: None,
            serving: owned.serving,
        };
        let host = owned.host;
        let kind = match owned.on {
            Some((parent, tags)) => Kind::Sub { parent, tags, host },
            None => match (owned.bond, owned.tunnel) {
                (Some(spread), _) => Kind::Bond {
                    spread,
                    enabled: link.admin_up,
                    host,
                },
                (_, Some(tunnel)) => Kind::Vxlan { tunnel, host },
                (None, None) => Kind::Routed { host },
            },
        };
        // What the host sends by a port that is down is lost there.
        let up = link.admin_up && link.carrier && self.is_below_up(owned);
        out.push(Change::InterfaceSet(Interface {
            l2: owned.l2,
            ..interface(owned.id, &owned.name, kind, self.is_up(owned, link))
        }));
        if let Some(host) = host {
            out.push(Change::InterfaceSet(interface(
                host,
                &Kind::host_name(&owned.name),
                Kind::Host { of: owned.id },
                up && owned.l2.is_none(),
            )));
        }
        self.subs(owned.id, out);
        self.bond(owned.l2, out);
    }

    /// Says what the bond is like now that an interface is or was a member of.
    fn bond(&self, of: Option<L2>, out: &mut Vec<Change>) {
        let Some(L2::Bond(bond)) = of else { return };
        if let Some(link) = self.owned.link(bond) {
            self.interfaces(link, out);
        }
    }

    /// Says what the sub-interfaces on one of our interfaces are like now.
    fn subs(&self, parent: InterfaceId, out: &mut Vec<Change>) {
        for link in self.owned.subs(parent) {
            self.interfaces(link, out);
        }
    }

    /// Returns true if packets pass by one of our interfaces: its device, its port and the interface
    /// below it are up.
    fn is_up(&self, owned: &Binding, link: &Link) -> bool {
        self.is_below_up(owned)
            && owned.port_up
            && link.admin_up
            && link.carrier
            && (owned.bond.is_none() || self.is_a_member_up(owned.id))
    }

    /// Returns true if packets pass by a member of a bond.
    fn is_a_member_up(&self, bond: InterfaceId) -> bool {
        let members = self.owned.members(bond);
        let known = members.filter_map(|link| Some((self.owned.get(link)?, self.link(link)?)));
        known
            .into_iter()
            .any(|(owned, link)| owned.bond.is_none() && self.is_up(owned, link))
    }

    /// Returns true if packets pass by the interface below one of ours, or if there is none.
    fn is_below_up(&self, owned: &Binding) -> bool {
        let Some((parent, _)) = owned.on else {
            return true;
        };
        let parent = self.owned.link(parent);
        let parent = parent.and_then(|link| Some((self.owned.get(link)?, self.link(link)?)));
        parent.is_some_and(|(owned, link)| self.is_up(owned, link))
    }

    /// Changes the addresses of a device and says what that changes.
    fn edit_addresses(
        &mut self,
        link: u32,
        out: &mut Vec<Change>,
        change: impl FnOnce(&mut Addresses),
    ) {
        let before = self.addresses.of(link);
        change(&mut self.addresses);
        let addresses = self.addresses.of(link);
        if let Some(owned) = self.owned.get(link).filter(|_| addresses != before) {
            out.push(Change::AddressesSet {
                interface: owned.id,
                addresses,
            });
        }
    }

    fn nexthop_gone(&mut self, id: u32, out: &mut Vec<Change>) {
        self.nexthops.remove(&id);
        self.routes.remove_nexthop(id, out);
    }

    fn neighbor(&mut self, neighbor: Neighbor, out: &mut Vec<Change>) {
        let Neighbor { link, address, mac } = neighbor;
        let broadcast = IpAddr::V4(Ipv4Addr::BROADCAST);
        if address.is_multicast() || address == broadcast {
            return;
        }
        let before = self
            .neighbors
            .insert((link, address), (mac, self.generation))
            .and_then(|(mac, _)| mac);
        let Some(owned) = self.owned.get(link).filter(|_| before != mac) else {
            return;
        };
        let interface = owned.id;
        out.push(match mac {
            Some(mac) => Change::NeighborSet {
                interface,
                address,
                mac,
            },
            None => Change::NeighborDelete { interface, address },
        });
    }

    fn neighbor_gone(&mut self, key: (u32, IpAddr), out: &mut Vec<Change>) {
        let resolved = self
            .neighbors
            .remove(&key)
            .is_some_and(|(mac, _)| mac.is_some());
        if let (true, Some(owned)) = (resolved, self.owned.get(key.0)) {
            out.push(Change::NeighborDelete {
                interface: owned.id,
                address: key.1,
            });
        }
    }
}

fn differs(a: &Link, b: &Link) -> bool {
    (a.mac, a.mtu, a.admin_up, a.carrier, &a.name) != (b.mac, b.mtu, b.admin_up, b.carrier, &b.name)
}

fn delete_interfaces(owned: &Binding, out: &mut Vec<Change>) {
    out.extend(owned.host.map(Change::InterfaceDelete));
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
