//! What a route of the kernel means to the router, given the links that are up, the next-hop objects and the interfaces
//! that are ours.

use std::collections::HashMap;

use router::change::{InterfaceId, Path, Route as Action};

use super::rib::Entry;
use crate::kernel::{Gateway, Hop, Hops, Nexthop, RouteKind};

/// Groups of groups are not allowed by the kernel; deeper nesting than this is not followed.
const NESTING: u8 = 2;

/// The state of a link as far as routes are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LinkState {
    pub admin_up: bool,
    pub carrier: bool,
}

/// All that the meaning of a route depends on.
#[derive(Debug, Clone, Default)]
pub(super) struct World {
    pub links: HashMap<u32, LinkState>,
    pub nexthops: HashMap<u32, Nexthop>,
    pub owned: HashMap<u32, InterfaceId>,
}

impl World {
    /// What a route does; `None` while it cannot be used (all its links are down), so that the next one counts.
    pub fn action(&self, entry: &Entry) -> Option<Action> {
        match entry.kind {
            RouteKind::Local => Some(Action::Local),
            RouteKind::Broadcast => self.any_alive(&entry.hops).then_some(Action::Broadcast),
            RouteKind::Blackhole => Some(Action::Blackhole),
            RouteKind::Unreachable => Some(Action::Unreachable),
            RouteKind::Prohibit => Some(Action::Prohibit),
            RouteKind::Other => Some(Action::Punt),
            RouteKind::Unicast => self.unicast(&entry.hops, entry.mtu),
        }
    }

    /// Whether the route goes by this link, directly or by a next-hop object.
    pub fn uses_link(&self, hops: &Hops, link: u32) -> bool {
        match hops {
            Hops::One(hop) => hop.link == link,
            Hops::Many(hops) => hops.iter().any(|hop| hop.link == link),
            Hops::Object(_) => self
                .flat(hops)
                .is_some_and(|hops| hops.iter().any(|hop| hop.link == link)),
        }
    }

    /// Whether the route goes by this next-hop object, directly or by a group.
    pub fn uses_object(&self, hops: &Hops, object: u32) -> bool {
        let Hops::Object(id) = hops else { return false };
        let member = |group: &Nexthop| matches!(group, Nexthop::Group(m) if m.iter().any(|(id, _)| *id == object));
        *id == object || self.nexthops.get(id).is_some_and(member)
    }

    /// Whether any of the links that it goes by is up.
    pub fn any_alive(&self, hops: &Hops) -> bool {
        self.flat(hops)
            .is_none_or(|hops| hops.iter().any(|hop| self.alive(hop)))
    }

    fn alive(&self, hop: &Hop) -> bool {
        hop.link == 0 || self.links.get(&hop.link).is_some_and(|link| link.admin_up)
    }

    fn unicast(&self, hops: &Hops, mtu: Option<u16>) -> Option<Action> {
        if let Hops::Object(id) = hops
            && matches!(self.nexthops.get(id), Some(Nexthop::Blackhole))
        {
            return Some(Action::Blackhole);
        }
        let Some(mut hops) = self.flat(hops) else {
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
        let paths: Option<Vec<Path>> = hops.iter().map(|hop| self.path(hop, mtu)).collect();
        Some(paths.map_or(Action::Punt, Action::Forward))
    }

    /// Our path for a hop; `None` if only the kernel can take it.
    fn path(&self, hop: &Hop, mtu: Option<u16>) -> Option<Path> {
        let gateway = match hop.gateway {
            Gateway::OnLink => None,
            Gateway::Via(address) => Some(address),
            Gateway::Foreign => return None,
        };
        // The kernel takes no more than these for a member of a next-hop object.
        let weight = hop.weight.clamp(1, u16::MAX.into()) as u16;
        Some(Path {
            interface: *self.owned.get(&hop.link)?,
            gateway,
            weight,
            mtu,
        })
    }

    /// The hops with next-hop objects followed; `None` if one is not known or not for us.
    fn flat(&self, hops: &Hops) -> Option<Vec<Hop>> {
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
