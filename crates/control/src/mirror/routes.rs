//! The router's routes, derived from the kernel's and kept up as these, and what they depend on,
//! change.

use std::collections::BTreeMap;

use router::Ip;
use router::change::{Change, InterfaceId, Prefix as AnyPrefix, Route as Action};
use tables::prefix::Prefix;

use super::entry::{Entry, Need};
use super::rib::Rib;
use super::topology::{LinkState, Topology};
use crate::facts::{Hop, Hops, Nexthop, Place, Route, RouteKind, Table};

/// The routes by a link that somebody has made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Made {
    /// Number of prefixes that have such a route.
    pub prefixes: usize,
    /// The routes of some of them, in no order.
    pub some: Vec<MadeRoute>,
}

/// A route that somebody has made. The kernel tells routes apart by all but the next hops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeRoute {
    /// Destination.
    pub prefix: AnyPrefix,
    /// The table that it is in.
    pub table: Table,
    /// Type of service.
    pub tos: u8,
    /// Metric.
    pub metric: u32,
    /// Its next hops.
    pub hops: Vec<Hop>,
}

/// The kernel's routes and what they are resolved against. Whatever changes either says what that
/// changes for the router.
#[derive(Debug, Default)]
pub(super) struct Routes {
    ip4: Rib<u32>,
    ip6: Rib<u128>,
    topology: Topology,
}

impl Routes {
    /// A link is one of our interfaces from now on.
    pub fn bind(&mut self, link: u32, id: InterfaceId, out: &mut Vec<Change>) {
        let needs = self.topology.leading_to_link(link);
        self.edit(&needs, out, |topology| {
            topology.owned.insert(link, id);
        });
    }

    /// A link is ours no longer.
    pub fn unbind(&mut self, link: u32, out: &mut Vec<Change>) {
        let needs = self.topology.leading_to_link(link);
        self.edit(&needs, out, |topology| {
            topology.owned.remove(&link);
        });
    }

    /// A link is there, or its state has changed.
    pub fn set_link(&mut self, link: u32, state: LinkState, out: &mut Vec<Change>) {
        if self.topology.links.get(&link) == Some(&state) {
            return;
        }
        let needs = self.topology.leading_to_link(link);
        let change = |topology: &mut Topology| {
            topology.links.insert(link, state);
        };
        if state.admin_up {
            return self.edit(&needs, out, change);
        }
        // The kernel drops the routes of a link that goes down, all but the host's own addresses.
        self.purge(&needs, out, change, |topology, entry| {
            entry.kind == RouteKind::Local || topology.any_alive(&entry.hops)
        });
    }

    /// A link is gone, and with it the routes that lead nowhere else.
    pub fn remove_link(&mut self, link: u32, out: &mut Vec<Change>) {
        let needs = self.topology.leading_to_link(link);
        let change = |topology: &mut Topology| {
            topology.links.remove(&link);
            topology.owned.remove(&link);
        };
        self.purge(&needs, out, change, |topology, entry| {
            topology.any_alive(&entry.hops)
        });
    }

    /// A next-hop object is there, or has changed.
    pub fn set_nexthop(&mut self, id: u32, nexthop: Nexthop, out: &mut Vec<Change>) {
        if self.topology.nexthop(id) != Some(&nexthop) {
            let needs = self.topology.leading_to_object(id);
            self.edit(&needs, out, |topology| topology.set_nexthop(id, nexthop));
        }
    }

    /// A next-hop object is gone. The kernel drops the routes that use the object itself; groups
    /// lose a member, and an empty group is gone too.
    pub fn remove_nexthop(&mut self, id: u32, out: &mut Vec<Change>) {
        let needs = self.topology.leading_to_object(id);
        let change = |topology: &mut Topology| topology.remove_nexthop(id);
        self.purge(&needs, out, change, |_, entry| {
            entry.hops != Hops::Object(id)
        });
    }

    /// A route is there.
    pub fn insert(&mut self, route: Route, place: Place, out: &mut Vec<Change>) {
        let (prefix, entry) = Entry::split(route);
        match prefix {
            AnyPrefix::V4(prefix) => edit(&mut self.ip4, &self.topology, prefix, out, |rib| {
                rib.insert(prefix, entry, place);
            }),
            AnyPrefix::V6(prefix) => edit(&mut self.ip6, &self.topology, prefix, out, |rib| {
                rib.insert(prefix, entry, place);
            }),
        }
    }

    /// A route is gone.
    pub fn remove(&mut self, route: Route, out: &mut Vec<Change>) {
        let (prefix, entry) = Entry::split(route);
        match prefix {
            AnyPrefix::V4(prefix) => edit(&mut self.ip4, &self.topology, prefix, out, |rib| {
                rib.remove(prefix, &entry);
            }),
            AnyPrefix::V6(prefix) => edit(&mut self.ip6, &self.topology, prefix, out, |rib| {
                rib.remove(prefix, &entry);
            }),
        }
    }

    /// The routes by a link, by who made them (`RTPROT_*`); of each those of no more than `most`
    /// prefixes are listed, however many there are.
    pub fn made(&self, link: u32, most: usize) -> BTreeMap<u8, Made> {
        let mut all = BTreeMap::new();
        for need in self.topology.leading_to_link(link) {
            made(&self.ip4, &self.topology, need, most, &mut all);
            made(&self.ip6, &self.topology, need, most, &mut all);
        }
        all
    }

    /// A dump of the routes begins.
    pub fn begin(&mut self) {
        self.ip4.begin();
        self.ip6.begin();
    }

    /// The dump has ended.
    pub fn end(&mut self) {
        self.ip4.end();
        self.ip6.end();
    }

    /// Removes the routes that the dump has not shown.
    pub fn sweep(&mut self, out: &mut Vec<Change>) {
        sweep(&mut self.ip4, &self.topology, out);
        sweep(&mut self.ip6, &self.topology, out);
    }

    /// Changes what the routes that need any of these depend on.
    fn edit(&mut self, needs: &[Need], out: &mut Vec<Change>, change: impl FnOnce(&mut Topology)) {
        let before = (
            Before::of(&self.ip4, &self.topology, self.ip4.users(needs)),
            Before::of(&self.ip6, &self.topology, self.ip6.users(needs)),
        );
        change(&mut self.topology);
        before.0.tell(&self.ip4, &self.topology, out);
        before.1.tell(&self.ip6, &self.topology, out);
    }

    /// The same, and of these routes only those stay for which `keep` is true afterwards.
    fn purge(
        &mut self,
        needs: &[Need],
        out: &mut Vec<Change>,
        change: impl FnOnce(&mut Topology),
        keep: impl Fn(&Topology, &Entry) -> bool,
    ) {
        let users = (self.ip4.users(needs), self.ip6.users(needs));
        let before = (
            Before::of(&self.ip4, &self.topology, users.0.clone()),
            Before::of(&self.ip6, &self.topology, users.1.clone()),
        );
        change(&mut self.topology);
        let keep = |entry: &Entry| keep(&self.topology, entry);
        users.0.into_iter().for_each(|p| self.ip4.retain(p, keep));
        users.1.into_iter().for_each(|p| self.ip6.retain(p, keep));
        before.0.tell(&self.ip4, &self.topology, out);
        before.1.tell(&self.ip6, &self.topology, out);
    }
}

/// Adds the routes of a family that need this.
fn made<A: Ip>(
    rib: &Rib<A>,
    topology: &Topology,
    need: Need,
    most: usize,
    all: &mut BTreeMap<u8, Made>,
) {
    for (maker, prefixes) in rib.makers(need) {
        let made = all.entry(maker).or_default();
        let room = most.saturating_sub(made.prefixes);
        made.prefixes += prefixes.len();
        for prefix in prefixes.iter().take(room) {
            let by_maker = |entry: &&Entry| entry.uses().any(|of| of == (need, maker));
            let routes = rib.of(*prefix).filter(by_maker);
            made.some.extend(routes.map(|entry| MadeRoute {
                prefix: A::prefix(*prefix),
                table: entry.table,
                tos: entry.tos,
                metric: entry.metric,
                hops: topology.flat(&entry.hops).unwrap_or_default(),
            }));
        }
    }
}

/// Changes the routes of one prefix and says what that changes.
fn edit<A: Ip>(
    rib: &mut Rib<A>,
    topology: &Topology,
    prefix: Prefix<A>,
    out: &mut Vec<Change>,
    change: impl FnOnce(&mut Rib<A>),
) {
    if rib.has_last_resort() {
        let before = Before::of(rib, topology, vec![prefix]);
        change(rib);
        return before.tell(rib, topology, out);
    }
    let before = rib.effective(topology, prefix);
    change(rib);
    difference(prefix, before, rib.effective(topology, prefix), out);
}

fn sweep<A: Ip>(rib: &mut Rib<A>, topology: &Topology, out: &mut Vec<Change>) {
    let unseen = rib.unseen();
    let before = Before::of(rib, topology, unseen.clone());
    unseen.into_iter().for_each(|prefix| rib.sweep(prefix));
    before.tell(rib, topology, out);
}

/// The actions of routes before a change, those that depend on them included.
struct Before<A>(Vec<(Prefix<A>, Option<Action>)>);

impl<A: Ip> Before<A> {
    fn of(rib: &Rib<A>, topology: &Topology, mut prefixes: Vec<Prefix<A>>) -> Self {
        if rib.has_last_resort() {
            let dependents = prefixes.iter().flat_map(|prefix| rib.dependents(*prefix));
            let dependents: Vec<Prefix<A>> = dependents.collect();
            prefixes.extend(dependents);
            prefixes.sort_unstable();
            prefixes.dedup();
        }
        let meaning = |prefix| (prefix, rib.effective(topology, prefix));
        Before(prefixes.into_iter().map(meaning).collect())
    }

    /// Says what means something else now.
    fn tell(self, rib: &Rib<A>, topology: &Topology, out: &mut Vec<Change>) {
        for (prefix, before) in self.0 {
            difference(prefix, before, rib.effective(topology, prefix), out);
        }
    }
}

fn difference<A: Ip>(
    prefix: Prefix<A>,
    before: Option<Action>,
    after: Option<Action>,
    out: &mut Vec<Change>,
) {
    let prefix = A::prefix(prefix);
    match after {
        Some(route) if before.as_ref() != Some(&route) => {
            out.push(Change::RouteSet { prefix, route })
        }
        None if before.is_some() => out.push(Change::RouteDelete { prefix }),
        _ => {}
    }
}
