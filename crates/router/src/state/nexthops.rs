//! Next hops: path lists shared by routes, the groups and adjacencies made of them.
//!
//! A route names a path list, the list owns a group, the group's buckets name adjacencies. When a
//! neighbor or link changes, the buckets change and not the routes, however many there are.

use std::collections::btree_map::Entry::{Occupied, Vacant};
use std::collections::hash_map::Entry as ListEntry;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::ops::RangeInclusive;

use tables::adjacency::{Adjacency, AdjacencyId, Slab};
use tables::entry::Entry;
use tables::ids::{Full, Retired};
use tables::interface::{Features, Mask};
use tables::nexthop::{GroupId, Groups, Member};
use tables::rib::BuildMix;

use super::Neighbor;
use crate::arc::{BOND, FIREWALL, NAT, VXLAN};
use crate::change::{Feature, Interface, InterfaceId, Kind, L2, Path};
use crate::family::Family;
use crate::source::Sources;
use crate::vlan::header;

/// Parts that adjacencies are made of.
#[derive(Default)]
pub struct Links {
    pub(crate) interfaces: BTreeMap<InterfaceId, Interface>,
    pub(crate) neighbors: BTreeMap<(IpAddr, InterfaceId), Neighbor>,
    pub(crate) sources: Sources,
    /// The arguments of the features that are wanted, whether the interface is there or not.
    pub(crate) features: BTreeMap<(InterfaceId, Feature), u32>,
    /// There are policies of the firewall: all interfaces have it.
    pub(super) firewall: bool,
    /// Addresses are translated: all interfaces look for those that stand for others.
    pub(super) nat: bool,
    /// By interface, how many others are cross-connected to it.
    far_ends: BTreeMap<InterfaceId, u32>,
}

impl Links {
    /// The features of an interface.
    pub(crate) fn features(&self, interface: InterfaceId) -> Features {
        let own = self
            .features
            .range((interface, FIRST_FEATURE)..)
            .take_while(|((of, _), _)| *of == interface);
        let firewall = FIREWALL.into_iter().filter(|_| self.firewall);
        let own = own.map(|((_, feature), _)| *feature);
        let nat = Some(NAT).filter(|_| self.nat);
        own.chain(firewall).chain(nat).collect()
    }

    /// What leaves by an interface passes bond-output or vxlan-encap from now on, if it is a bond or
    /// a tunnel, or has tags on one.
    pub(super) fn follow_kind(&mut self, id: InterfaceId) {
        let kind = |id: InterfaceId| self.interfaces.get(&id).map(|i| i.kind);
        let its = kind(id).and_then(|its| match its {
            Kind::Sub { parent, .. } => kind(parent),
            its => Some(its),
        });
        let is = [
            (BOND, matches!(its, Some(Kind::Bond { .. }))),
            (VXLAN, matches!(its, Some(Kind::Vxlan { .. }))),
        ];
        for (feature, is) in is {
            match is {
                true => self.features.insert((id, feature), 0),
                false => self.features.remove(&(id, feature)),
            };
        }
    }

    /// True if an interface is at layer 2: it says so, or another one is cross-connected to it.
    pub(crate) fn is_l2(&self, interface: InterfaceId) -> bool {
        let own = self.interfaces.get(&interface).and_then(|i| i.l2);
        own.is_some() || self.far_ends.contains_key(&interface)
    }

    /// Takes in what an interface does at layer 2 instead of what it did. Returns the other ends for
    /// which that changes something.
    pub(crate) fn connect(&mut self, old: Option<L2>, new: Option<L2>) -> Vec<InterfaceId> {
        if old == new {
            return Vec::new();
        }
        if let Some(L2::CrossConnect(to)) = new {
            *self.far_ends.entry(to).or_default() += 1;
        }
        if let Some(L2::CrossConnect(to)) = old
            && let Some(count) = self.far_ends.get_mut(&to)
        {
            *count -= 1;
            if *count == 0 {
                self.far_ends.remove(&to);
            }
        }
        let ends = [old, new].into_iter().flatten();
        ends.filter_map(|l2| match l2 {
            L2::CrossConnect(to) => Some(to),
            L2::Bridge(_) | L2::Bond(_) => None,
        })
        .collect()
    }
}

/// The first in their order.
const FIRST_FEATURE: Feature = Feature::new(Mask::Input, 0);

/// A next hop, less its share of the flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Via {
    interface: InterfaceId,
    /// `None`: the destination is on the link.
    gateway: Option<IpAddr>,
    /// Of the packets, whose type the Ethernet header names.
    family: Family,
    /// The route's own.
    mtu: Option<u16>,
    /// The route's own.
    source: Option<IpAddr>,
}

impl Via {
    fn of(family: Family, path: &Path) -> Self {
        Via {
            interface: path.interface,
            gateway: path.gateway,
            family,
            mtu: path.mtu,
            source: path.source,
        }
    }
}

struct List {
    /// Of the routes.
    family: Family,
    paths: Box<[Path]>,
    /// Routes that name it.
    routes: usize,
}

struct Hop {
    adjacency: AdjacencyId,
    /// The groups with a path by it.
    groups: Vec<GroupId>,
}

/// Groups and adjacencies that wait for the end of a grace period.
pub struct Garbage(Retired<Groups>, Retired<Slab>);

/// All path lists and what they are made of.
pub struct NextHops {
    pub(crate) groups: Groups,
    pub(crate) slab: Slab,
    /// The path lists, by the group that is made of each.
    lists: HashMap<GroupId, List, BuildMix>,
    ip4_lists: HashMap<Box<[Path]>, GroupId>,
    ip6_lists: HashMap<Box<[Path]>, GroupId>,
    hops: BTreeMap<Via, Hop>,
}

impl NextHops {
    /// None yet, over tables.
    pub fn new(groups: Groups, slab: Slab) -> Self {
        NextHops {
            groups,
            slab,
            lists: HashMap::default(),
            ip4_lists: HashMap::new(),
            ip6_lists: HashMap::new(),
            hops: BTreeMap::new(),
        }
    }

    /// The FIB entry that leads packets of a family along these paths, for one more route.
    ///
    /// # Errors
    /// [`Full`]: no group or adjacency is left; nothing was changed.
    pub fn acquire(
        &mut self,
        links: &Links,
        family: Family,
        paths: &[Path],
    ) -> Result<Entry, Full> {
        let group = match self.by_paths(family).get(paths) {
            Some(group) => *group,
            None => self.add(links, family, paths)?,
        };
        if let Some(list) = self.lists.get_mut(&group) {
            list.routes += 1;
        }
        // Along one path workers need not hash the flow.
        Ok(Entry::new(group, paths.len() > 1))
    }

    /// The path lists of a family's routes, by their paths.
    fn by_paths(&mut self, family: Family) -> &mut HashMap<Box<[Path]>, GroupId> {
        match family {
            Family::V4 => &mut self.ip4_lists,
            Family::V6 => &mut self.ip6_lists,
        }
    }

    /// Makes a list that no route names yet.
    fn add(&mut self, links: &Links, family: Family, paths: &[Path]) -> Result<GroupId, Full> {
        let group = self.add_hops(links, family, paths).and_then(|()| {
            let members = self.members(links, family, paths);
            self.groups.alloc(&members)
        });
        let Ok(group) = group else {
            self.remove_hops(family, paths);
            return group;
        };
        for path in paths {
            if let Some(hop) = self.hops.get_mut(&Via::of(family, path))
                && !hop.groups.contains(&group)
            {
                hop.groups.push(group);
            }
        }
        let list = List {
            family,
            paths: paths.into(),
            routes: 0,
        };
        self.lists.insert(group, list);
        self.by_paths(family).insert(paths.into(), group);
        Ok(group)
    }

    fn add_hops(&mut self, links: &Links, family: Family, paths: &[Path]) -> Result<(), Full> {
        for path in paths {
            if let Vacant(place) = self.hops.entry(Via::of(family, path)) {
                let adjacency = self.slab.alloc(&adjacency(links, *place.key()))?;
                place.insert(Hop {
                    adjacency,
                    groups: Vec::new(),
                });
            }
        }
        Ok(())
    }

    /// Removes those of the paths' hops that no group uses.
    fn remove_hops(&mut self, family: Family, paths: &[Path]) {
        for path in paths {
            if let Occupied(hop) = self.hops.entry(Via::of(family, path))
                && hop.get().groups.is_empty()
            {
                self.slab.retire(hop.remove().adjacency);
            }
        }
    }

    /// One route fewer has this entry; its list goes with the last one. Decisions are not counted.
    pub fn release(&mut self, entry: Entry) {
        let ListEntry::Occupied(mut list) = self.lists.entry(entry.group()) else {
            return;
        };
        list.get_mut().routes -= 1;
        if list.get().routes > 0 {
            return;
        }
        let (group, list) = list.remove_entry();
        self.by_paths(list.family).remove(&list.paths);
        self.groups.retire(group);
        for path in &list.paths {
            if let Some(hop) = self.hops.get_mut(&Via::of(list.family, path)) {
                hop.groups.retain(|g| *g != group);
            }
        }
        self.remove_hops(list.family, &list.paths);
    }

    /// The paths that a group is made of; none of a special one.
    pub fn paths(&self, group: GroupId) -> &[Path] {
        self.lists.get(&group).map_or(&[], |list| &list.paths)
    }

    /// Routes that share a group.
    pub fn routes(&self, group: GroupId) -> usize {
        self.lists.get(&group).map_or(0, |list| list.routes)
    }

    /// A next hop's interface or neighbor changed: gives it a new adjacency, if that differs.
    ///
    /// # Errors
    /// [`Full`]: no adjacency is left; the old one stays.
    pub fn refresh(
        &mut self,
        links: &Links,
        interface: InterfaceId,
        gateway: Option<IpAddr>,
    ) -> Result<(), Full> {
        self.refresh_all(links, vias(interface, gateway..=gateway))
    }

    fn refresh_all(&mut self, links: &Links, which: RangeInclusive<Via>) -> Result<(), Full> {
        let vias: Vec<Via> = self.hops.range(which).map(|(via, _)| *via).collect();
        vias.into_iter()
            .try_for_each(|via| self.refresh_hop(links, via))
    }

    fn refresh_hop(&mut self, links: &Links, via: Via) -> Result<(), Full> {
        let Some(hop) = self.hops.get_mut(&via) else {
            return Ok(());
        };
        let wanted = adjacency(links, via);
        if self.slab.get(hop.adjacency) == Some(wanted) {
            return Ok(());
        }
        let new = self.slab.alloc(&wanted)?;
        let old = std::mem::replace(&mut hop.adjacency, new);
        for group in hop.groups.clone() {
            // In place first, so that flows stay where they are; then the shares, if a link went or
            // came.
            self.groups.replace(group, old, new);
            let members = self.members(links, via.family, self.paths(group));
            self.groups.update(group, &members);
        }
        self.slab.retire(old);
        Ok(())
    }

    /// An interface changed: looks at all next hops on it again.
    ///
    /// # Errors
    /// As [`NextHops::refresh`].
    pub fn refresh_interface(&mut self, links: &Links, interface: InterfaceId) -> Result<(), Full> {
        self.refresh_all(links, vias(interface, None..=Some(LAST)))
    }

    /// The members of a group: paths over links that are up; all of them if none is.
    fn members(&self, links: &Links, family: Family, paths: &[Path]) -> Vec<Member> {
        let up = |p: &&Path| links.interfaces.get(&p.interface).is_some_and(|i| i.up);
        let any = paths.iter().any(|p| up(&p));
        let used = paths.iter().filter(|p| !any || up(p));
        used.filter_map(|p| {
            Some(Member {
                adjacency: self.hops.get(&Via::of(family, p))?.adjacency,
                weight: p.weight.max(1),
            })
        })
        .collect()
    }

    /// Takes what is to be reclaimed after a grace period; `None` if there is nothing.
    pub fn retired(&mut self) -> Option<Garbage> {
        let garbage = Garbage(self.groups.retired(), self.slab.retired());
        (!garbage.0.is_empty() || !garbage.1.is_empty()).then_some(garbage)
    }

    /// The grace period is over.
    pub fn reclaim(&mut self, garbage: Garbage) {
        self.groups.reclaim(garbage.0);
        self.slab.reclaim(garbage.1);
    }
}

/// The last of all addresses in their order.
const LAST: IpAddr = IpAddr::V6(Ipv6Addr::from_bits(u128::MAX));

/// All next hops by an interface and one of these gateways.
fn vias(interface: InterfaceId, gateways: RangeInclusive<Option<IpAddr>>) -> RangeInclusive<Via> {
    let (first, last) = gateways.into_inner();
    let lowest = Via {
        interface,
        gateway: first,
        family: Family::V4,
        mtu: None,
        source: None,
    };
    let highest = Via {
        interface,
        gateway: last,
        family: Family::V6,
        mtu: Some(u16::MAX),
        source: Some(LAST),
    };
    lowest..=highest
}

/// Adjacency that a next hop is to have.
fn adjacency(links: &Links, via: Via) -> Adjacency {
    let Via {
        interface,
        gateway,
        family,
        ..
    } = via;
    let Some(i) = links.interfaces.get(&interface).filter(|i| i.up) else {
        let down = Adjacency {
            tx_if: interface,
            next_hop: gateway,
            ..Adjacency::DROP
        };
        return down.with_type(family.ethertype());
    };
    let mtu = via
        .mtu
        .map_or(i.mtu, |mtu| mtu.max(family.least_mtu()).min(i.mtu));
    let reached = match gateway.map(|address| (address, links.neighbors.get(&(address, interface))))
    {
        None => Adjacency::glean(interface, mtu),
        Some((address, None)) => Adjacency::incomplete(interface, mtu, address),
        Some((address, Some(neighbor))) => {
            let header = header::tagged(neighbor.mac, i.mac, i.kind.tags(), family.ethertype());
            let fast = Adjacency::rewrite(interface, mtu, &header, address);
            match links.features(interface).output {
                0 => fast,
                _ => Adjacency {
                    fast_mtu: 0,
                    ..fast
                },
            }
        }
    };
    let chosen = || match family {
        Family::V4 => links.sources.ip4(interface, gateway).map(IpAddr::V4),
        // It depends on the destination: the snapshot has them all.
        Family::V6 => None,
    };
    reached
        .with_type(family.ethertype())
        .with_source(via.source.or_else(chosen))
}
