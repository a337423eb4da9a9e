//! The state: interfaces, addresses, neighbors and routes as they are wanted, and the tables made
//! of them. One thread owns it.

mod nexthops;
mod routes;

pub use nexthops::{Links, NextHops};
pub use routes::{Routes, Shared};

use std::net::IpAddr;

use tables::adjacency::Slab;
use tables::ids::{Full, Retired};
use tables::interface::{self, Interfaces, Mode};
use tables::mac::Station;
use tables::nexthop::Groups;
use tables::{Fib, Memory, ip4, ip6};

use crate::acl::{Acls, Direction};
use crate::arc::BVI;
use crate::bond::Bonds;
use crate::change::{
    BridgeDomain, Change, Feature, Interface, InterfaceId, Kind, L2, MTUS, Mac, Prefix, Route,
};
use crate::family::{Family, Ip};
use crate::firewall::Policies;
use crate::l2::Bridges;
use crate::nat::Nat;
use crate::snapshot::Snapshot;
use crate::vxlan::Vxlans;

/// Reason why a batch of changes was refused; nothing of it was applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// An interface number out of range.
    #[error("change {index}: interface {interface} is out of range (1 to {most})")]
    Interface {
        /// Position in the batch.
        index: usize,
        /// The number.
        interface: InterfaceId,
        /// The highest that there is room for.
        most: usize,
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
    /// Time when it was last set.
    pub since: std::time::Instant,
}

/// Events that an operator wants to know of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Alarms {
    /// Routes that were not installed because the second-level groups of the IPv4 FIB are used up.
    pub ip4_full: u64,
    /// Routes that were not installed because pages or leaves of the IPv6 FIB are used up.
    pub ip6_full: u64,
    /// Routes that were not installed because next-hop groups or adjacencies are used up.
    pub next_hops_full: u64,
}

impl Alarms {
    /// Routes of a family that its FIB had no room for.
    fn full(&mut self, family: Family) -> &mut u64 {
        match family {
            Family::V4 => &mut self.ip4_full,
            Family::V6 => &mut self.ip6_full,
        }
    }
}

/// Retired parts that wait for the end of a grace period.
pub struct Garbage {
    ip4: Option<<ip4::Fib as Fib>::Retired>,
    ip6: Option<<ip6::Fib as Fib>::Retired>,
    nexthops: Option<nexthops::Garbage>,
    interfaces: Retired<interface::Interface>,
    stations: Retired<Station>,
}

/// A family, and what the state holds of it.
pub trait HasRoutes: Ip {
    /// The routes of the family.
    fn routes(state: &State) -> &Routes<Self>;
}

impl HasRoutes for u32 {
    fn routes(state: &State) -> &Routes<Self> {
        &state.ip4
    }
}

impl HasRoutes for u128 {
    fn routes(state: &State) -> &Routes<Self> {
        &state.ip6
    }
}

/// All that the router knows.
pub struct State {
    pub(crate) links: Links,
    pub(crate) interfaces: Interfaces,
    pub(crate) ip4: Routes<u32>,
    pub(crate) ip6: Routes<u128>,
    pub(crate) nexthops: NextHops,
    pub(crate) bridges: Bridges,
    pub(crate) bonds: Bonds,
    pub(crate) vxlans: Vxlans,
    pub(crate) acls: Acls,
    pub(crate) policies: Policies,
    pub(crate) nat: Nat,
    pub(crate) alarms: Alarms,
}

impl State {
    /// An empty state over tables in zeroed memory, for so many workers.
    ///
    /// # Panics
    /// If there is less memory than the tables need.
    pub fn new(memory: Memory, workers: usize) -> Self {
        State {
            links: Links::default(),
            interfaces: Interfaces::new(memory.interfaces, memory.outer_tags),
            ip4: Routes::new(ip4::Fib::new(memory.ip4_first, memory.ip4_second)),
            ip6: Routes::with_reserved(ip6::Fib::new(
                memory.ip6_first,
                memory.ip6_pages,
                memory.ip6_leaves,
            )),
            nexthops: NextHops::new(
                Groups::new(memory.nexthop_groups),
                Slab::new(memory.adjacencies),
            ),
            bridges: Bridges::default(),
            bonds: Bonds::default(),
            vxlans: Vxlans::new(memory.tunnels),
            acls: Acls::new(workers),
            policies: Policies::new(workers),
            nat: Nat::new(workers, memory.translated),
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
                Change::InterfaceSet(i) => match i.kind {
                    Kind::Sub { parent, .. } if !self.has(parent) => parent,
                    _ => match i.l2 {
                        Some(L2::CrossConnect(to) | L2::Bond(to)) if !self.has(to) => to,
                        _ => i.id,
                    },
                },
                Change::InterfaceDelete(i) | Change::FeaturesDelete(i) => *i,
                Change::AddressesSet { interface, .. }
                | Change::FeatureSet { interface, .. }
                | Change::AclsAttach { interface, .. }
                | Change::PolicyAttach { interface, .. }
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
                        .find(|i| !self.has(*i))
                        .unwrap_or(first.interface)
                }
                Change::BridgeSet(BridgeDomain { bvi: Some(bvi), .. }) => *bvi,
                Change::BridgeSet(_)
                | Change::BridgeDelete(_)
                | Change::AclSet { .. }
                | Change::AclDelete(_)
                | Change::PolicySet { .. }
                | Change::PolicyDelete(_)
                | Change::NatSet(_)
                | Change::RouteSet { .. }
                | Change::RouteDelete { .. }
                | Change::SourceSet { .. } => continue,
            };
            if !self.has(interface) {
                return Err(Rejected::Interface {
                    index,
                    interface,
                    most: self.interfaces.capacity() - 1,
                });
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
            Change::InterfaceSet(interface) => return self.interface_set(interface),
            &Change::InterfaceDelete(id) => return self.interface_delete(id),
            Change::BridgeSet(domain) => {
                let old = self.bridges.set(domain.clone());
                self.own_interfaces([old, domain.bvi])?;
                return Ok(true);
            }
            &Change::BridgeDelete(id) => {
                let old = self.bridges.delete(id);
                self.own_interfaces([old, None])?;
                return Ok(true);
            }
            Change::AddressesSet {
                interface,
                addresses,
            } => {
                let all = &mut self.links.sources.addresses;
                all.insert(*interface, addresses.clone());
                self.nat.links_changed();
                self.interface_line(*interface);
                self.refresh_adjacencies(*interface)?;
                return Ok(true);
            }
            &Change::FeatureSet {
                interface,
                feature,
                argument,
            } => self.feature_set(interface, feature, argument)?,
            &Change::FeaturesDelete(interface) => {
                self.features_delete(interface)?;
                return Ok(true);
            }
            Change::AclSet { name, rules } => {
                self.acls.set(name, rules);
                return Ok(true);
            }
            Change::AclDelete(name) => {
                self.acls.delete(name);
                return Ok(true);
            }
            Change::AclsAttach {
                interface,
                direction,
                acls,
            } => {
                self.acls_attach(*interface, *direction, acls)?;
                return Ok(true);
            }
            Change::PolicySet { name, policy } => {
                self.policies.set(name, policy);
                return Ok(true);
            }
            Change::PolicyDelete(name) => {
                self.policies.delete(name);
                return Ok(true);
            }
            Change::PolicyAttach {
                interface,
                direction,
                policy,
            } => {
                self.policy_attach(*interface, *direction, policy.as_deref())?;
                return Ok(true);
            }
            Change::NatSet(rules) => {
                self.nat.set(rules);
                self.follow_policies()?;
                return Ok(true);
            }
            &Change::SourceSet { ip4, ip6 } => {
                self.links.sources.ip4 = ip4;
                self.links.sources.ip6 = ip6;
                self.nat.links_changed();
                let all: Vec<_> = self.links.interfaces.keys().copied().collect();
                all.into_iter()
                    .try_for_each(|interface| self.refresh_adjacencies(interface))?;
                return Ok(true);
            }
            &Change::NeighborSet {
                interface,
                address,
                mac,
            } => self.neighbor_set(interface, address, mac)?,
            &Change::NeighborDelete { interface, address } => {
                self.neighbor_delete(interface, address)?
            }
            Change::RouteSet { prefix, route } => self.route_set(*prefix, route)?,
            &Change::RouteDelete { prefix } => self.route_delete(prefix)?,
        }
        Ok(false)
    }

    /// An interface is there, or is another. True if that changes a bridge domain, a bond, or a
    /// tunnel.
    fn interface_set(&mut self, interface: &Interface) -> Result<bool, Full> {
        self.nat.links_changed();
        let id = interface.id;
        let old = self.links.interfaces.insert(id, interface.clone());
        self.links.follow_kind(id);
        self.interface_line(id);
        let old = old.and_then(|i| i.l2);
        let bridged = self.connect(id, old, interface.l2);
        let bonded = self.bonds.follow(&self.links, id, [old, interface.l2]);
        let tunneled = self.vxlans.follow(&self.links, id);
        self.bridges.own(id, Some(interface))?;
        self.refresh_adjacencies(id)?;
        Ok(bridged || bonded || tunneled)
    }

    /// An interface is no more. True if it was in a bridge domain, of a bond, or a
    /// tunnel.
    fn interface_delete(&mut self, id: InterfaceId) -> Result<bool, Full> {
        self.nat.links_changed();
        let old = self.links.interfaces.remove(&id);
        self.links.sources.addresses.remove(&id);
        self.interface_line(id);
        let old = old.and_then(|i| i.l2);
        let bridged = self.connect(id, old, None);
        let bonded = self.bonds.follow(&self.links, id, [old, None]);
        let tunneled = self.vxlans.follow(&self.links, id);
        let neighbors = self.links.neighbors.keys();
        let gone: Vec<_> = neighbors.filter(|(_, i)| *i == id).copied().collect();
        for (address, interface) in gone {
            self.neighbor_delete(interface, address)?;
        }
        self.refresh_adjacencies(id)?;
        Ok(bridged || bonded || tunneled)
    }

    /// A feature of an interface is on with this argument, or off.
    fn feature_set(
        &mut self,
        interface: InterfaceId,
        feature: Feature,
        argument: Option<u32>,
    ) -> Result<(), Full> {
        let all = &mut self.links.features;
        if let Some(argument) = argument {
            all.insert((interface, feature), argument);
            self.interfaces.set_argument(interface, feature, argument);
        } else {
            all.remove(&(interface, feature));
        }
        self.interface_line(interface);
        self.refresh_adjacencies(interface)
    }

    /// An interface has no features any more.
    fn features_delete(&mut self, interface: InterfaceId) -> Result<(), Full> {
        self.links.features.retain(|(of, _), _| *of != interface);
        for direction in Direction::ALL {
            self.acls.attach(interface, direction, &[]);
            self.policies.attach(interface, direction, None);
        }
        self.interface_line(interface);
        self.refresh_adjacencies(interface)?;
        self.follow_policies()
    }

    /// An interface has these access lists in a direction from now on.
    fn acls_attach(
        &mut self,
        interface: InterfaceId,
        direction: Direction,
        acls: &[String],
    ) -> Result<(), Full> {
        self.acls.attach(interface, direction, acls);
        for feature in direction.features() {
            let of = (interface, feature);
            match acls {
                [] => self.links.features.remove(&of),
                _ => self.links.features.insert(of, 0),
            };
        }
        self.interface_line(interface);
        self.refresh_adjacencies(interface)
    }

    /// An interface has this policy in a direction from now on.
    fn policy_attach(
        &mut self,
        interface: InterfaceId,
        direction: Direction,
        policy: Option<&str>,
    ) -> Result<(), Full> {
        self.policies.attach(interface, direction, policy);
        self.follow_policies()
    }

    /// All interfaces have the firewall once one of them has a policy, or something is translated,
    /// and none after that.
    fn follow_policies(&mut self) -> Result<(), Full> {
        let nat = self.nat.is_on();
        let any = nat || self.policies.are_attached();
        if (self.links.firewall, self.links.nat) == (any, nat) && self.policies.settled {
            return Ok(());
        }
        (self.links.firewall, self.links.nat) = (any, nat);
        self.policies.settled = false;
        let all: Vec<_> = self.links.interfaces.keys().copied().collect();
        for interface in &all {
            self.interface_line(*interface);
        }
        all.into_iter()
            .try_for_each(|interface| self.refresh_adjacencies(interface))?;
        self.policies.settled = true;
        Ok(())
    }

    /// The snapshot for the workers.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(
            self.links.sources.clone(),
            self.bridges.domains(),
            (self.bonds.groups(), self.bonds.lacpdus()),
            self.vxlans.tunnels(),
            (
                self.acls.lists(),
                self.policies.attached(),
                self.nat.published(),
            ),
        )
    }

    /// Takes what is to be reclaimed after a grace period; `None` if there is nothing.
    pub fn retired(&mut self) -> Option<Garbage> {
        let garbage = Garbage {
            ip4: Fib::retired(&mut self.ip4.fib),
            ip6: Fib::retired(&mut self.ip6.fib),
            nexthops: self.nexthops.retired(),
            interfaces: self.interfaces.retired(),
            stations: self.bridges.stations.retired(),
        };
        let any = garbage.ip4.is_some()
            || garbage.ip6.is_some()
            || garbage.nexthops.is_some()
            || !garbage.interfaces.is_empty()
            || !garbage.stations.is_empty();
        any.then_some(garbage)
    }

    /// The grace period is over.
    pub fn reclaim(&mut self, garbage: Garbage) {
        if let Some(retired) = garbage.ip4 {
            self.ip4.fib.reclaim(retired);
        }
        if let Some(retired) = garbage.ip6 {
            self.ip6.fib.reclaim(retired);
        }
        if let Some(retired) = garbage.nexthops {
            self.nexthops.reclaim(retired);
        }
        self.interfaces.reclaim(garbage.interfaces);
        self.bridges.stations.reclaim(garbage.stations);
    }

    /// True if an interface may have this number.
    fn has(&self, interface: InterfaceId) -> bool {
        (1..self.interfaces.capacity()).contains(&usize::from(interface))
    }

    /// Writes what the packet path is to know of an interface.
    fn interface_line(&mut self, id: InterfaceId) {
        let addresses = self.links.sources.addresses.get(&id);
        let addressed = addresses.is_some_and(|all| all.iter().any(|a| a.address.is_ipv4()));
        let features = self.links.features(id);
        let is_l2 = self.links.is_l2(id);
        let bvi = self.bridges.of_bvi(id);
        let line = |i: &Interface| {
            let (mode, peer) = match i.kind {
                _ if !(i.up && i.serving) => (Mode::Down, 0),
                Kind::Host { of } => (Mode::Host, of),
                _ if is_l2 => (Mode::L2, 0),
                Kind::Sub { tags, .. } if tags.further => (Mode::Down, 0),
                Kind::Routed { host: Some(host) }
                | Kind::Bond {
                    host: Some(host), ..
                }
                | Kind::Vxlan {
                    host: Some(host), ..
                } if !addressed => (Mode::Unaddressed, host),
                Kind::Sub { host, .. } if !addressed => (Mode::Unaddressed, host.unwrap_or(0)),
                Kind::Routed { host }
                | Kind::Bond { host, .. }
                | Kind::Vxlan { host, .. }
                | Kind::Sub { host, .. } => (Mode::Routed, host.unwrap_or(0)),
            };
            interface::Interface {
                mac: i.mac.0,
                mode,
                mtu: i.mtu,
                peer,
                features,
                parent: i.kind.parent(),
                tags: i.kind.tags(),
                l2: i.l2.or(bvi.map(L2::Bridge)),
                ..interface::Interface::default()
            }
        };
        let interface = self.links.interfaces.get(&id);
        self.interfaces
            .set(id, &interface.map(line).unwrap_or_default());
    }

    /// Takes in what an interface does at layer 2 instead of what it did, and writes the lines of
    /// the other ends. True if it concerns a bridge domain.
    fn connect(&mut self, id: InterfaceId, old: Option<L2>, new: Option<L2>) -> bool {
        for end in self.links.connect(old, new) {
            self.interface_line(end);
        }
        self.bridges.join(id, old, new)
    }

    /// Writes the lines of own interfaces of bridge domains, or of those that were.
    fn own_interfaces(&mut self, all: [Option<InterfaceId>; 2]) -> Result<(), Full> {
        for id in all.into_iter().flatten() {
            let feature = (id, BVI);
            match self.bridges.of_bvi(id) {
                Some(_) => self.links.features.insert(feature, 0),
                None => self.links.features.remove(&feature),
            };
            self.interface_line(id);
            self.bridges.own(id, self.links.interfaces.get(&id))?;
            self.refresh_adjacencies(id)?;
        }
        Ok(())
    }

    // See the note in `Routes`.
    fn neighbor_set(
        &mut self,
        interface: InterfaceId,
        address: IpAddr,
        mac: Mac,
    ) -> Result<(), Full> {
        let since = std::time::Instant::now();
        self.links
            .neighbors
            .insert((address, interface), Neighbor { mac, since });
        self.nexthops
            .refresh(&self.links, interface, Some(address))?;
        self.host_route(address)
    }

    fn neighbor_delete(&mut self, interface: InterfaceId, address: IpAddr) -> Result<(), Full> {
        self.links.neighbors.remove(&(address, interface));
        // The route first, so that no packet is led along a way that is gone.
        self.host_route(address)?;
        self.nexthops.refresh(&self.links, interface, Some(address))
    }

    fn refresh_adjacencies(&mut self, interface: InterfaceId) -> Result<(), Full> {
        self.nexthops.refresh_interface(&self.links, interface)
    }

    fn host_route(&mut self, address: IpAddr) -> Result<(), Full> {
        let (ip4, ip6, mut shared) = self.parts();
        match address {
            IpAddr::V4(address) => ip4.host_route(&mut shared, address.to_bits()),
            IpAddr::V6(address) => ip6.host_route(&mut shared, address.to_bits()),
        }
    }

    fn route_set(&mut self, prefix: Prefix, route: &Route) -> Result<(), Full> {
        let (ip4, ip6, mut shared) = self.parts();
        match prefix {
            Prefix::V4(prefix) => ip4.set(&mut shared, prefix, route),
            Prefix::V6(prefix) => ip6.set(&mut shared, prefix, route),
        }
    }

    fn route_delete(&mut self, prefix: Prefix) -> Result<(), Full> {
        let (ip4, ip6, mut shared) = self.parts();
        match prefix {
            Prefix::V4(prefix) => ip4.delete(&mut shared, prefix),
            Prefix::V6(prefix) => ip6.delete(&mut shared, prefix),
        }
    }

    /// The routes of each family, and what they share.
    fn parts(&mut self) -> (&mut Routes<u32>, &mut Routes<u128>, Shared<'_>) {
        let shared = Shared {
            links: &self.links,
            nexthops: &mut self.nexthops,
            alarms: &mut self.alarms,
        };
        (&mut self.ip4, &mut self.ip6, shared)
    }
}
