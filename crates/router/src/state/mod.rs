//! The state: interfaces, addresses, neighbors and routes as they are wanted, and the tables made
//! of them. One thread owns it.

mod nexthops;
mod source;

pub use nexthops::{Garbage, Links, NextHops};

use std::collections::HashMap;

use tables::Memory;
use tables::adjacency::Slab;
use tables::entry::Entry;
use tables::ids::Full;
use tables::interface::{self, INTERFACES, Interfaces, Lane, Mode};
use tables::ip4::Fib;
use tables::nexthop::Groups;
use tables::rib::BuildMix;
use tables::special::Special;

use crate::change::{Change, Interface, InterfaceId, Kind, MTUS, Mac, Path, Prefix, Route};
use crate::snapshot::Snapshot;

/// Why a batch of changes was refused; nothing of it was applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// An interface number out of range.
    #[error("change {index}: interface {interface} is out of range (1 to {})", INTERFACES - 1)]
    Interface {
        /// Position in the batch.
        index: usize,
        /// The number.
        interface: InterfaceId,
    },
    /// An MTU that IPv4 does not allow.
    #[error("change {index}: mtu {mtu} of interface {name} is out of range ({} to {})", MTUS.start(), MTUS.end())]
    Mtu {
        /// Position in the batch.
        index: usize,
        /// The interface.
        name: String,
        /// The MTU.
        mtu: u16,
    },
    /// A route without any path.
    #[error("change {index}: route {prefix} has no path")]
    NoPath {
        /// Position in the batch.
        index: usize,
        /// The route's prefix.
        prefix: Prefix,
    },
}

/// A resolved neighbor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbor {
    /// Its Ethernet address.
    pub mac: Mac,
    /// When it was last set.
    pub since: std::time::Instant,
}

/// Events that an operator wants to know of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Alarms {
    /// Routes that were not installed because the second-level groups of the FIB are used up.
    pub fib_full: u64,
    /// Routes that were not installed because next-hop groups or adjacencies are used up.
    pub next_hops_full: u64,
}

/// The route of a neighbor on a connected network.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Host {
    entry: Entry,
    /// The entry of the kernel's own route of this prefix, in whose place it stands.
    beneath: Option<Entry>,
}

/// All that the router knows.
pub struct State {
    pub(crate) links: Links,
    /// Neighbors that have a host route of their own in the FIB. All its other routes are the
    /// kernel's.
    pub(crate) hosts: HashMap<Prefix, Host, BuildMix>,
    pub(crate) interfaces: Interfaces,
    pub(crate) fib: Fib,
    pub(crate) nexthops: NextHops,
    pub(crate) alarms: Alarms,
}

impl State {
    /// An empty state over tables in zeroed memory.
    ///
    /// # Panics
    /// If there is less memory than the tables need.
    pub fn new(memory: Memory) -> Self {
        State {
            links: Links::default(),
            hosts: HashMap::default(),
            interfaces: Interfaces::new(memory.interfaces),
            fib: Fib::new(memory.ip4_first, memory.ip4_second),
            nexthops: NextHops::new(
                Groups::new(memory.nexthop_groups),
                Slab::new(memory.adjacencies),
            ),
            alarms: Alarms::default(),
        }
    }

    /// Checks a batch without changing anything.
    ///
    /// # Errors
    /// [`Rejected`], naming the first change that cannot be applied.
    pub fn validate(&self, changes: &[Change]) -> Result<(), Rejected> {
        for (index, change) in changes.iter().enumerate() {
            let interface = match change {
                Change::InterfaceSet(i) => i.id,
                Change::InterfaceDelete(i) => *i,
                Change::AddressesSet { interface, .. }
                | Change::FeaturesSet { interface, .. }
                | Change::NeighborSet { interface, .. }
                | Change::NeighborDelete { interface, .. } => *interface,
                Change::RouteSet {
                    prefix,
                    route: Route::Forward(paths),
                } => {
                    let Some(first) = paths.first() else {
                        return Err(Rejected::NoPath {
                            index,
                            prefix: *prefix,
                        });
                    };
                    paths
                        .iter()
                        .map(|p| p.interface)
                        .find(|i| !known(*i))
                        .unwrap_or(first.interface)
                }
                Change::RouteSet { .. } | Change::RouteDelete { .. } | Change::SourceSet(_) => {
                    continue;
                }
            };
            if !known(interface) {
                return Err(Rejected::Interface { index, interface });
            }
            if let Change::InterfaceSet(i) = change
                && !MTUS.contains(&i.mtu)
            {
                return Err(Rejected::Mtu {
                    index,
                    name: i.name.clone(),
                    mtu: i.mtu,
                });
            }
        }
        Ok(())
    }

    /// Applies one validated change. True if the snapshot has to be published anew.
    ///
    /// # Errors
    /// [`Full`] when a table is used up: the old route stays.
    pub fn apply(&mut self, change: &Change) -> Result<bool, Full> {
        match change {
            Change::InterfaceSet(interface) => {
                let id = interface.id;
                self.links.interfaces.insert(id, interface.clone());
                self.interface_line(id);
                self.refresh_adjacencies(id)?;
            }
            &Change::InterfaceDelete(id) => {
                self.links.interfaces.remove(&id);
                self.links.sources.addresses.remove(&id);
                self.links.features.remove(&id);
                self.interface_line(id);
                let gone: Vec<_> = self
                    .links
                    .neighbors
                    .keys()
                    .filter(|(_, i)| *i == id)
                    .copied()
                    .collect();
                for (address, interface) in gone {
                    self.neighbor_delete(interface, address)?;
                }
                self.refresh_adjacencies(id)?;
            }
            Change::AddressesSet {
                interface,
                addresses,
            } => {
                let all = &mut self.links.sources.addresses;
                all.insert(*interface, addresses.clone());
                self.interface_line(*interface);
                self.refresh_adjacencies(*interface)?;
            }
            &Change::FeaturesSet {
                interface,
                features,
            } => {
                self.links.features.insert(interface, features);
                self.interface_line(interface);
                self.refresh_adjacencies(interface)?;
            }
            &Change::SourceSet(address) => {
                self.links.sources.fallback = address;
                let all: Vec<_> = self.links.interfaces.keys().copied().collect();
                all.into_iter()
                    .try_for_each(|interface| self.refresh_adjacencies(interface))?;
                return Ok(true);
            }
            &Change::NeighborSet {
                interface,
                address,
                mac,
            } => self.neighbor_set(interface, address.into(), mac)?,
            &Change::NeighborDelete { interface, address } => {
                self.neighbor_delete(interface, address.into())?
            }
            Change::RouteSet { prefix, route } => self.route_set(*prefix, route)?,
            &Change::RouteDelete { prefix } => self.route_delete(prefix)?,
        }
        Ok(false)
    }

    /// The snapshot for the workers.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            source: self.links.sources.fallback.map_or(0, u32::from),
        }
    }

    /// Writes what the packet path is to know of an interface.
    fn interface_line(&mut self, id: InterfaceId) {
        let addresses = self.links.sources.addresses.get(&id);
        let addressed = addresses.is_some_and(|a| !a.is_empty());
        let features = self.links.features(id);
        let line = |i: &Interface| {
            let (mode, peer) = match i.kind {
                _ if !i.up => (Mode::Down, 0),
                Kind::Routed { host: Some(host) } if !addressed => (Mode::Unaddressed, host),
                Kind::Routed { host } => (Mode::Routed, host.unwrap_or(0)),
                Kind::Host { of } => (Mode::Host, of),
            };
            interface::Interface {
                mac: i.mac.0,
                mode,
                mtu: i.mtu,
                peer,
                lane: Lane::default(),
                features,
            }
        };
        let interface = self.links.interfaces.get(&id);
        self.interfaces
            .set(id, &interface.map(line).unwrap_or_default());
    }

    // If a step fails for want of room, the same change is applied again once tables have room. So
    // nothing below asks whether the first step was done before.
    fn neighbor_set(&mut self, interface: InterfaceId, address: u32, mac: Mac) -> Result<(), Full> {
        let since = std::time::Instant::now();
        self.links
            .neighbors
            .insert((address, interface), Neighbor { mac, since });
        self.nexthops
            .refresh(&self.links, interface, Some(address))?;
        self.host_route(address)
    }

    fn neighbor_delete(&mut self, interface: InterfaceId, address: u32) -> Result<(), Full> {
        self.links.neighbors.remove(&(address, interface));
        self.host_route(address)?;
        self.nexthops.refresh(&self.links, interface, Some(address))
    }

    fn refresh_adjacencies(&mut self, interface: InterfaceId) -> Result<(), Full> {
        self.nexthops.refresh_interface(&self.links, interface)
    }

    fn route_set(&mut self, prefix: Prefix, route: &Route) -> Result<(), Full> {
        let entry = match route {
            Route::Forward(paths) => {
                let entry = self.nexthops.acquire(&self.links, paths);
                entry.inspect_err(|_| self.alarms.next_hops_full += 1)?
            }
            Route::Local => Entry::special(Special::Local),
            Route::Broadcast => Entry::special(Special::Broadcast),
            Route::Punt => Entry::special(Special::Punt),
            Route::Blackhole => Entry::special(Special::Blackhole),
            Route::Unreachable => Entry::special(Special::Unreachable),
            Route::Prohibit => Entry::special(Special::Prohibit),
        };
        let old = self.install(prefix, entry)?;
        self.release_both(prefix, old);
        self.host_routes_in(prefix)
    }

    fn route_delete(&mut self, prefix: Prefix) -> Result<(), Full> {
        if self.route(prefix).is_some() {
            let old = self.fib.remove(prefix);
            self.release_both(prefix, old);
        }
        self.host_routes_in(prefix)
    }

    /// The entry of the kernel's route of exactly this prefix.
    fn route(&self, prefix: Prefix) -> Option<Entry> {
        match self.hosts.get(&prefix) {
            Some(host) => host.beneath,
            None => self.fib.routes().get(prefix).copied(),
        }
    }

    /// Puts an acquired entry into the FIB and returns the one that was there; without room it is
    /// released.
    fn install(&mut self, prefix: Prefix, entry: Entry) -> Result<Option<Entry>, Full> {
        self.fib.insert(prefix, entry).inspect_err(|_| {
            self.alarms.fib_full += 1;
            self.nexthops.release(entry);
        })
    }

    /// Releases what the FIB had for a prefix; if that was a neighbor's, what was beneath it too.
    fn release_both(&mut self, prefix: Prefix, old: Option<Entry>) {
        let beneath = self.hosts.remove(&prefix).and_then(|host| host.beneath);
        let both = old.into_iter().chain(beneath);
        both.for_each(|entry| self.nexthops.release(entry));
    }

    /// Looks at the host routes of all neighbors in `prefix` again, after its route changed.
    fn host_routes_in(&mut self, prefix: Prefix) -> Result<(), Full> {
        let mut from = (prefix.addr(), 0);
        while let Some((&(address, _), _)) = self
            .links
            .neighbors
            .range(from..=(prefix.last(), InterfaceId::MAX))
            .next()
        {
            self.host_route(address)?;
            if address >= prefix.last() {
                break;
            }
            from = (address + 1, 0);
        }
        Ok(())
    }

    /// Gives a resolved neighbor on a connected network its own route, or takes it away.
    ///
    /// The kernel resolves destinations of a connected route one by one; so does the FIB, by a /32
    /// under the connected prefix.
    fn host_route(&mut self, address: u32) -> Result<(), Full> {
        let prefix = Prefix::host(address);
        let wanted = self.connected(prefix);
        let have = self.hosts.get(&prefix).copied();
        if have.map(|host| self.nexthops.paths(host.entry.group())) == wanted.as_deref() {
            return Ok(());
        }
        let beneath = self.route(prefix);
        match wanted {
            Some(paths) => {
                let entry = self.nexthops.acquire(&self.links, &paths)?;
                self.install(prefix, entry)?;
                self.hosts.insert(prefix, Host { entry, beneath });
            }
            None => {
                match beneath {
                    Some(entry) => _ = self.fib.insert(prefix, entry)?,
                    None => _ = self.fib.remove(prefix),
                }
                self.hosts.remove(&prefix);
            }
        }
        if let Some(host) = have {
            self.nexthops.release(host.entry);
        }
        Ok(())
    }

    /// The paths of the kernel's route that has `host` on its links, with the host itself as the
    /// next hop there; `None` if it is on no link, or a neighbor on none of them.
    fn connected(&self, host: Prefix) -> Option<Vec<Path>> {
        let address = host.addr();
        let cover = || Some(*self.fib.routes().covers(host).next()?.1);
        let longest = self.route(host).or_else(cover)?;
        let paths = self.nexthops.paths(longest.group());
        let is_neighbor = |path: &Path| {
            path.gateway.is_none()
                && self
                    .links
                    .neighbors
                    .contains_key(&(address, path.interface))
        };
        let itself = |path: &Path| Path {
            gateway: path.gateway.or(Some(address.into())),
            ..*path
        };
        let known = paths.iter().any(is_neighbor);
        known.then(|| paths.iter().map(itself).collect())
    }
}

fn known(interface: InterfaceId) -> bool {
    (1..INTERFACES).contains(&(interface as usize))
}
