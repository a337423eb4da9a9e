//! Changes that have found a table full: kept, and tried again when there is room.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Bound;

use crate::change::{Change, DomainId, InterfaceId, Prefix};

/// Most changes that one call tries again, so that the next batch of the kernel's does not wait for
/// all that a full table has kept.
const AT_ONCE: usize = 1024;

/// Subject of a change; a later change of the same replaces it. They are tried again in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Acls,
    Policies,
    Nat,
    Interface(InterfaceId),
    Features(InterfaceId),
    Addresses(InterfaceId),
    Source,
    Bridge(DomainId),
    Neighbor(InterfaceId, IpAddr),
    Route(Prefix),
}

/// The changes that wait for room.
#[derive(Debug, Default)]
pub(crate) struct Deferred {
    changes: BTreeMap<Key, Change>,
    /// Change that the next call goes on with.
    next: Option<Key>,
    /// Changes that may fit, as far as is known: 0 after all of them have failed since there was
    /// new room.
    hopeful: usize,
}

impl Deferred {
    /// Number of changes that wait.
    pub(crate) fn len(&self) -> usize {
        self.changes.len()
    }

    /// Notes how a change went. It replaces one that waits for the same thing.
    pub(crate) fn settle(&mut self, change: &Change, fitted: bool) {
        if let &Change::InterfaceDelete(id) = change {
            let of = |key: &Key| match *key {
                Key::Addresses(i) | Key::Neighbor(i, _) => i == id,
                _ => false,
            };
            self.changes.retain(|key, _| !of(key));
        }
        let key = key(change);
        if fitted {
            self.changes.remove(&key);
        } else {
            self.changes.insert(key, change.clone());
        }
    }

    /// Tables have gained room: all changes are worth another try.
    pub(crate) fn room(&mut self) {
        self.hopeful = self.changes.len();
    }

    /// Tries some changes again with `apply`, which says whether a change fits. True if any was
    /// tried.
    pub(crate) fn retry(&mut self, mut apply: impl FnMut(&Change) -> bool) -> bool {
        if self.hopeful == 0 || self.changes.is_empty() {
            self.hopeful = 0;
            return false;
        }
        let from = self.next.map_or(Bound::Unbounded, Bound::Included);
        let mut tried = self.changes.range((from, Bound::Unbounded));
        let now: Vec<_> = tried.by_ref().take(AT_ONCE).map(|(k, _)| *k).collect();
        self.next = tried.next().map(|(k, _)| *k);
        for key in now {
            if apply(&self.changes[&key]) {
                self.changes.remove(&key);
                self.hopeful = self.changes.len();
            } else {
                self.hopeful = self.hopeful.saturating_sub(1);
            }
        }
        true
    }
}

fn key(change: &Change) -> Key {
    match change {
        Change::InterfaceSet(i) => Key::Interface(i.id),
        Change::InterfaceDelete(id) => Key::Interface(*id),
        Change::AddressesSet { interface, .. } => Key::Addresses(*interface),
        // Any of them writes all features of the interface.
        Change::FeatureSet { interface, .. }
        | Change::AclsAttach { interface, .. }
        | Change::PolicyAttach { interface, .. }
        | Change::FeaturesDelete(interface) => Key::Features(*interface),
        // They take no table's room, so that one key is enough.
        Change::AclSet { .. } | Change::AclDelete(_) => Key::Acls,
        Change::PolicySet { .. } | Change::PolicyDelete(_) => Key::Policies,
        Change::NatSet(_) => Key::Nat,
        Change::BridgeSet(domain) => Key::Bridge(domain.id),
        Change::BridgeDelete(id) => Key::Bridge(*id),
        Change::SourceSet { .. } => Key::Source,
        Change::NeighborSet {
            interface, address, ..
        }
        | Change::NeighborDelete { interface, address } => Key::Neighbor(*interface, *address),
        Change::RouteSet { prefix, .. } | Change::RouteDelete { prefix } => Key::Route(*prefix),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::{Route, arc};

    fn route(n: u32, route: Route) -> Change {
        let prefix = Prefix::host(Ipv4Addr::from(n));
        Change::RouteSet { prefix, route }
    }

    #[test]
    fn all_are_tried_once_for_each_time_that_there_is_room() {
        let mut deferred = Deferred::default();
        let count = 3 * AT_ONCE as u32 + 7;
        for n in 0..count {
            deferred.settle(&route(n, Route::Punt), false);
        }
        assert!(!deferred.retry(|_| true), "there is no room yet");
        deferred.room();
        // Room for one: wherever it is, it is found.
        let wanted = route(count - 3, Route::Punt);
        let (mut tries, mut found) = (0, 0);
        while deferred.retry(|change| {
            tries += 1;
            let fits = *change == wanted && found == 0;
            found += u32::from(fits);
            fits
        }) {}
        assert_eq!((found, deferred.len()), (1, count as usize - 1));
        assert!(tries <= 2 * count + 2 * AT_ONCE as u32, "{tries}");
    }

    #[test]
    fn a_later_change_of_the_same_takes_its_place() {
        let mut deferred = Deferred::default();
        deferred.settle(&route(1, Route::Punt), false);
        deferred.settle(&route(1, Route::Local), false);
        deferred.settle(&route(2, Route::Local), false);
        deferred.settle(&route(2, Route::Punt), true);
        let neighbor = Change::NeighborSet {
            interface: 7,
            address: Ipv4Addr::LOCALHOST.into(),
            mac: [2; 6].into(),
        };
        let features = Change::FeatureSet {
            interface: 7,
            feature: arc::ip4_in(0),
            argument: None,
        };
        deferred.settle(&neighbor, false);
        deferred.settle(&features, false);
        deferred.settle(&Change::InterfaceDelete(7), true);
        deferred.room();
        let mut tried = Vec::new();
        deferred.retry(|change| {
            tried.push(change.clone());
            true
        });
        assert_eq!(tried, [features, route(1, Route::Local)]);
        assert_eq!(deferred.len(), 0);
    }
}
