//! Links, next-hop objects and the interfaces that are ours: what a route of the kernel is resolved
//! against.

use std::collections::{BTreeSet, HashMap};

use router::change::{InterfaceId, Path, Route as Action};

use super::entry::{Entry, Need};
use crate::facts::{Gateway, Hop, Hops, Nexthop, RouteKind};

/// Greatest depth to which groups of groups are followed; the kernel allows no nesting.
const NESTING: u8 = 2;

/// The state of a link as far as routes are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LinkState {
    pub admin_up: bool,
    pub carrier: bool,
}

/// All that the meaning of a route depends on.
#[derive(Debug, Clone, Default)]
pub(super) struct Topology {
    /// By the kernel's index.
    pub links: HashMap<u32, LinkState>,
    nexthops: HashMap<u32, Nexthop>,
    /// The groups that each object is a member of.
    groups: HashMap<u32, BTreeSet<u32>>,
    /// Our interfaces, by the kernel's index of their link.
    pub owned: HashMap<u32, InterfaceId>,
}

impl Topology {
    /// The action of a route; `None` while it cannot be used (all its links are down), so that the
    /// next one counts.
    pub fn action(&self, entry: &Entry) -> Option<Action> {
        match entry.kind {
            RouteKind::Local => Some(Action::Local),
            RouteKind::Broadcast => self.any_alive(&entry.hops).then_some(Action::Broadcast),
            RouteKind::Blackhole => Some(Action::Blackhole),
            RouteKind::Unreachable => Some(Action::Unreachable),
            RouteKind::Prohibit => Some(Action::Prohibit),
            RouteKind::Other => Some(Action::Punt),
            RouteKind::Unicast => self.unicast(entry),
        }
    }

    /// The next-hop object of this number, if it is known.
    pub fn nexthop(&self, id: u32) -> Option<&Nexthop> {
        self.nexthops.get(&id)
    }

    /// A next-hop object is there or has changed.
    pub fn set_nexthop(&mut self, id: u32, nexthop: Nexthop) {
        self.leave_members(id);
        for &(member, _) in members(&nexthop) {
            self.groups.entry(member).or_default().insert(id);
        }
        self.nexthops.insert(id, nexthop);
    }

    /// A next-hop object is gone, and its groups have one member less.
    pub fn remove_nexthop(&mut self, id: u32) {
        self.leave_members(id);
        self.nexthops.remove(&id);
        for group in self.groups.remove(&id).unwrap_or_default() {
            if let Some(Nexthop::Group(members)) = self.nexthops.get_mut(&group) {
                members.retain(|(member, _)| *member != id);
            }
        }
    }

    fn leave_members(&mut self, id: u32) {
        for (member, _) in self.nexthops.get(&id).map_or(&[][..], members) {
            if let Some(groups) = self.groups.get_mut(member) {
                groups.remove(&id);
                if groups.is_empty() {
                    self.groups.remove(member);
                }
            }
        }
    }

    /// The names by which routes through a link refer to it: the link itself, and next-hop objects
    /// that lead to it.
    pub fn leading_to_link(&self, link: u32) -> Vec<Need> {
        let by_link = |id: &&u32| {
            let hops = self.flat(&Hops::Object(**id));
            hops.is_some_and(|hops| hops.iter().any(|hop| hop.link == link))
        };
        self.nexthops
            .keys()
            .filter(by_link)
            .map(|id| Need::Object(*id))
            .chain([Need::Link(link)])
            .collect()
    }

    /// The names by which routes refer to a next-hop object: the object itself, and groups that it
    /// is in.
    pub fn leading_to_object(&self, id: u32) -> Vec<Need> {
        let groups = self.groups.get(&id).into_iter().flatten();
        groups.chain([&id]).map(|id| Need::Object(*id)).collect()
    }

    /// Returns true if any of the links that it goes by is up.
    pub fn any_alive(&self, hops: &Hops) -> bool {
        self.flat(hops)
            .is_none_or(|hops| hops.iter().any(|hop| self.alive(hop)))
    }

    fn alive(&self, hop: &Hop) -> bool {
        hop.link == 0 || self.links.get(&hop.link).is_some_and(|link| link.admin_up)
    }

    fn unicast(&self, entry: &Entry) -> Option<Action> {
        if let Hops::Object(id) = &entry.hops
            && matches!(self.nexthops.get(id), Some(Nexthop::Blackhole))
        {
            return Some(Action::Blackhole);
        }
        let Some(mut hops) = self.flat(&entry.hops) else {
            return Some(Action::Punt);
        };
        hops.retain(|hop| self.alive(hop));
        let carrier = |hop: &Hop| self.links.get(&hop.link).is_none_or(|link| link.carrier);
        if hops.iter().any(carrier) {
            hops.retain(carrier);
        }
        if hops.is_empty() {
            return None;
        }
        let paths: Option<Vec<Path>> = hops.iter().map(|hop| self.path(hop, entry)).collect();
        Some(paths.map_or(Action::Punt, Action::Forward))
    }

    /// Our path for a hop; `None` if only the kernel can take it.
    fn path(&self, hop: &Hop, entry: &Entry) -> Option<Path> {
        let gateway = match hop.gateway {
            Gateway::OnLink => None,
            Gateway::Via(address) => Some(address),
            Gateway::Foreign => return None,
        };
        // The kernel allows members of a next-hop object no more than this.
        let weight = u16::try_from(hop.weight).unwrap_or(u16::MAX).max(1);
        Some(Path {
            interface: *self.owned.get(&hop.link)?,
            gateway,
            weight,
            mtu: entry.mtu,
            source: entry.source,
        })
    }

    /// The hops with next-hop objects followed; `None` if one is not known or not for us.
    pub fn flat(&self, hops: &Hops) -> Option<Vec<Hop>> {
        match hops {
            Hops::One(hop) => Some(vec![*hop]),
            Hops::Many(hops) => Some(hops.to_vec()),
            Hops::Object(id) => {
                let mut flat = Vec::new();
                self.follow(*id, 1, NESTING, &mut flat)?;
                Some(flat)
            }
        }
    }

    fn follow(&self, object: u32, weight: u32, depth: u8, flat: &mut Vec<Hop>) -> Option<()> {
        match self.nexthops.get(&object)? {
            Nexthop::Hop(hop) => flat.push(Hop { weight, ..*hop }),
            Nexthop::Group(members) if depth > 0 => {
                for &(id, weight) in members {
                    self.follow(id, weight, depth - 1, flat)?;
                }
            }
            _ => return None,
        }
        Some(())
    }
}

fn members(nexthop: &Nexthop) -> &[(u32, u32)] {
    match nexthop {
        Nexthop::Group(members) => members,
        _ => &[],
    }
}
