//! What the kernel's routes mean to the router, kept up as routes, and what they depend on, change.

use router::change::{Change, InterfaceId, Prefix, Route as Action};

use super::entry::Entry;
use super::rib::Rib;
use super::topology::{LinkState, Topology};
use crate::facts::{Hops, Nexthop, Place, Route, RouteKind};

/// The kernel's routes and what they are resolved against. Whatever changes either says what that
/// changes for the router.
#[derive(Debug, Default)]
pub(super) struct Routes {
    rib: Rib,
    topology: Topology,
}

impl Routes {
    /// A link is one of our interfaces from now on.
    pub fn own(&mut self, link: u32, id: InterfaceId, out: &mut Vec<Change>) {
        let prefixes = self.prefixes_by(link);
        self.edit(prefixes, out, |_, topology| {
            topology.owned.insert(link, id);
        });
    }

    /// A link is ours no longer.
    pub fn disown(&mut self, link: u32, out: &mut Vec<Change>) {
        let prefixes = self.prefixes_by(link);
        self.edit(prefixes, out, |_, topology| {
            topology.owned.remove(&link);
        });
    }

    /// A link is there, or its state has changed.
    pub fn set_link(&mut self, link: u32, state: LinkState, out: &mut Vec<Change>) {
        if self.topology.links.get(&link) == Some(&state) {
            return;
        }
        let prefixes = self.prefixes_by(link);
        let purged = match state.admin_up {
            true => Vec::new(),
            false => prefixes.clone(),
        };
        self.edit(prefixes, out, |rib, topology| {
            topology.links.insert(link, state);
            // The kernel drops the routes of a link that goes down, all but the host's own
            // addresses.
            for prefix in purged {
                rib.retain(prefix, |entry| {
                    entry.kind == RouteKind::Local || topology.any_alive(&entry.hops)
                });
            }
        });
    }

    /// A link is gone, and with it the routes that lead nowhere else.
    pub fn remove_link(&mut self, link: u32, out: &mut Vec<Change>) {
        let prefixes = self.prefixes_by(link);
        let purged = prefixes.clone();
        self.edit(prefixes, out, |rib, topology| {
            topology.links.remove(&link);
            topology.owned.remove(&link);
            for prefix in purged {
                rib.retain(prefix, |entry| topology.any_alive(&entry.hops));
            }
        });
    }

    /// A next-hop object is there, or has changed.
    pub fn set_nexthop(&mut self, id: u32, nexthop: Nexthop, out: &mut Vec<Change>) {
        if self.topology.nexthop(id) != Some(&nexthop) {
            let prefixes = self.rib.users(&self.topology.leading_to_object(id));
            self.edit(prefixes, out, |_, topology| {
                topology.set_nexthop(id, nexthop);
            });
        }
    }

    /// A next-hop object is gone. The kernel drops the routes that use the object itself; groups
    /// lose a member, and an empty group is gone too.
    pub fn remove_nexthop(&mut self, id: u32, out: &mut Vec<Change>) {
        let prefixes = self.rib.users(&self.topology.leading_to_object(id));
        let purged = prefixes.clone();
        self.edit(prefixes, out, |rib, topology| {
            topology.remove_nexthop(id);
            for prefix in purged {
                rib.retain(prefix, |entry| entry.hops != Hops::Object(id));
            }
        });
    }

    /// A route is there.
    pub fn insert(&mut self, route: Route, place: Place, out: &mut Vec<Change>) {
        let (prefix, entry) = Entry::split(route);
        self.edit_one(prefix, out, |rib| rib.insert(prefix, entry, place));
    }

    /// A route is gone.
    pub fn remove(&mut self, route: Route, out: &mut Vec<Change>) {
        let (prefix, entry) = Entry::split(route);
        self.edit_one(prefix, out, |rib| rib.remove(prefix, &entry));
    }

    /// A dump of the routes begins.
    pub fn begin(&mut self) {
        self.rib.begin();
    }

    /// The dump has ended.
    pub fn end(&mut self) {
        self.rib.end();
    }

    /// Removes the routes that the dump has not shown.
    pub fn sweep(&mut self, out: &mut Vec<Change>) {
        let unseen = self.rib.unseen();
        self.edit(unseen.clone(), out, |rib, _| {
            unseen.into_iter().for_each(|prefix| rib.sweep(prefix));
        });
    }

    fn prefixes_by(&self, link: u32) -> Vec<Prefix> {
        self.rib.users(&self.topology.leading_to_link(link))
    }

    /// Changes one prefix and says what that changes.
    fn edit_one(&mut self, prefix: Prefix, out: &mut Vec<Change>, change: impl FnOnce(&mut Rib)) {
        if self.rib.has_last_resort() {
            return self.edit(vec![prefix], out, |rib, _| change(rib));
        }
        let before = self.rib.effective(&self.topology, prefix);
        change(&mut self.rib);
        let after = self.rib.effective(&self.topology, prefix);
        difference(prefix, before, after, out);
    }

    /// Changes prefixes, or what their routes depend on, and says what that changes.
    fn edit(
        &mut self,
        mut prefixes: Vec<Prefix>,
        out: &mut Vec<Change>,
        change: impl FnOnce(&mut Rib, &mut Topology),
    ) {
        if self.rib.has_last_resort() {
            let dependents = prefixes.iter().flat_map(|p| self.rib.dependents(*p));
            let dependents: Vec<Prefix> = dependents.collect();
            prefixes.extend(dependents);
            prefixes.sort_unstable();
            prefixes.dedup();
        }
        let before: Vec<_> = prefixes
            .iter()
            .map(|&prefix| self.rib.effective(&self.topology, prefix))
            .collect();
        change(&mut self.rib, &mut self.topology);
        for (prefix, before) in prefixes.into_iter().zip(before) {
            let after = self.rib.effective(&self.topology, prefix);
            difference(prefix, before, after, out);
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
