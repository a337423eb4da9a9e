//! The routes of one family, and the host routes of its neighbors.

use std::collections::HashMap;
use std::ops::Bound::{Excluded, Included};

use tables::entry::Entry;
use tables::ids::Full;
use tables::prefix::Prefix;
use tables::rib::BuildMix;
use tables::special::Special;
use tables::{Fib, ip6};

use super::Alarms;
use super::nexthops::{Links, NextHops};
use crate::change::{InterfaceId, Path, Route};
use crate::family::Ip;

/// The route of a neighbor on a connected network.
#[derive(Debug, Clone, Copy)]
struct Host {
    entry: Entry,
    /// The entry of the kernel's own route of this prefix, in whose place it stands.
    beneath: Option<Entry>,
}

/// Parts that the routes of both families share.
pub struct Shared<'a> {
    pub(super) links: &'a Links,
    pub(super) nexthops: &'a mut NextHops,
    pub(super) alarms: &'a mut Alarms,
}

/// The routes of one family.
pub struct Routes<A: Ip> {
    pub(crate) fib: A::Fib,
    /// Neighbors that have a host route of their own in the FIB. All its other routes are the
    /// kernel's.
    hosts: HashMap<Prefix<A>, Host, BuildMix>,
}

impl Routes<u128> {
    /// Those alone that hold whatever the kernel says: what is good on its link only, and groups,
    /// are the host's; what is no address on any link goes nowhere (RFC 4291 sections 2.5 to 2.7).
    pub(super) fn with_reserved(mut fib: ip6::Fib) -> Self {
        let (link_local, multicast) = (0xfe80 << 112, 0xff00 << 112);
        for (first, length, special) in [
            (link_local, 10, Special::Punt),
            (multicast, 8, Special::Punt),
            // Unspecified and loopback.
            (0, 127, Special::Blackhole),
        ] {
            let inserted = fib.insert(Prefix::cut(first, length), Entry::special(special));
            debug_assert!(inserted.is_ok(), "an empty table has room");
        }
        Self::new(fib)
    }
}

impl<A: Ip> Routes<A> {
    /// None yet.
    pub(super) fn new(fib: A::Fib) -> Self {
        Routes {
            fib,
            hosts: HashMap::default(),
        }
    }

    /// True if the FIB's route of exactly this prefix is a neighbor's.
    pub(crate) fn is_neighbor(&self, prefix: Prefix<A>) -> bool {
        self.hosts.contains_key(&prefix)
    }

    // If a step fails for want of room, the same change is applied again once tables have room. So
    // nothing below asks whether the first step was done before.

    /// Sets the kernel's route of a prefix.
    pub(super) fn set(
        &mut self,
        shared: &mut Shared<'_>,
        prefix: Prefix<A>,
        route: &Route,
    ) -> Result<(), Full> {
        let entry = match route {
            Route::Forward(paths) => {
                let entry = shared.nexthops.acquire(shared.links, A::FAMILY, paths);
                entry.inspect_err(|_| shared.alarms.next_hops_full += 1)?
            }
            Route::Local => Entry::special(Special::Local),
            Route::Broadcast => Entry::special(Special::Broadcast),
            Route::Punt => Entry::special(Special::Punt),
            Route::Blackhole => Entry::special(Special::Blackhole),
            Route::Unreachable => Entry::special(Special::Unreachable),
            Route::Prohibit => Entry::special(Special::Prohibit),
        };
        let old = self.install(shared, prefix, entry)?;
        self.release_both(shared, prefix, old);
        self.host_routes_in(shared, prefix)
    }

    /// Removes the kernel's route of a prefix.
    pub(super) fn delete(
        &mut self,
        shared: &mut Shared<'_>,
        prefix: Prefix<A>,
    ) -> Result<(), Full> {
        if self.route(prefix).is_some() {
            let old = self.fib.remove(prefix);
            self.release_both(shared, prefix, old);
        }
        self.host_routes_in(shared, prefix)
    }

    /// The entry of the kernel's route of exactly this prefix.
    fn route(&self, prefix: Prefix<A>) -> Option<Entry> {
        match self.hosts.get(&prefix) {
            Some(host) => host.beneath,
            None => self.fib.routes().get(prefix).copied(),
        }
    }

    /// Puts an acquired entry into the FIB and returns the one that was there; without room it is
    /// released.
    fn install(
        &mut self,
        shared: &mut Shared<'_>,
        prefix: Prefix<A>,
        entry: Entry,
    ) -> Result<Option<Entry>, Full> {
        self.fib.insert(prefix, entry).inspect_err(|_| {
            *shared.alarms.full(A::FAMILY) += 1;
            shared.nexthops.release(entry);
        })
    }

    /// Releases what the FIB had for a prefix; if that was a neighbor's, what was beneath it too.
    fn release_both(&mut self, shared: &mut Shared<'_>, prefix: Prefix<A>, old: Option<Entry>) {
        let beneath = self.hosts.remove(&prefix).and_then(|host| host.beneath);
        let both = old.into_iter().chain(beneath);
        both.for_each(|entry| shared.nexthops.release(entry));
    }

    /// Looks at the host routes of all neighbors in `prefix` again, after its route changed.
    fn host_routes_in(&mut self, shared: &mut Shared<'_>, prefix: Prefix<A>) -> Result<(), Full> {
        let last = Included((prefix.last().ip(), InterfaceId::MAX));
        let mut from = Included((prefix.addr().ip(), 0));
        while let Some((&(address, _), _)) = shared.links.neighbors.range((from, last)).next() {
            if let Some(number) = A::of(address) {
                self.host_route(shared, number)?;
            }
            from = Excluded((address, InterfaceId::MAX));
        }
        Ok(())
    }

    /// Gives a resolved neighbor on a connected network its own route, or takes it away.
    ///
    /// The kernel resolves destinations of a connected route one by one; so does the FIB, by a host
    /// route under the connected prefix.
    pub(super) fn host_route(&mut self, shared: &mut Shared<'_>, address: A) -> Result<(), Full> {
        let prefix = Prefix::host(address);
        let wanted = self.connected(shared, prefix);
        let have = self.hosts.get(&prefix).copied();
        if have.map(|host| shared.nexthops.paths(host.entry.group())) == wanted.as_deref() {
            return Ok(());
        }
        let beneath = self.route(prefix);
        match wanted {
            Some(paths) => {
                let entry = shared.nexthops.acquire(shared.links, A::FAMILY, &paths)?;
                self.install(shared, prefix, entry)?;
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
            shared.nexthops.release(host.entry);
        }
        Ok(())
    }

    /// The paths of the kernel's route that has `host` on its links, with the host itself as the
    /// next hop there; `None` if it is on no link, or a neighbor on none of them.
    fn connected(&self, shared: &Shared<'_>, host: Prefix<A>) -> Option<Vec<Path>> {
        let address = host.addr().ip();
        let cover = || Some(*self.fib.routes().covers(host).next()?.1);
        let longest = self.route(host).or_else(cover)?;
        let paths = shared.nexthops.paths(longest.group());
        let neighbors = &shared.links.neighbors;
        let is_neighbor = |path: &Path| {
            path.gateway.is_none() && neighbors.contains_key(&(address, path.interface))
        };
        let itself = |path: &Path| Path {
            gateway: path.gateway.or(Some(address)),
            ..*path
        };
        let known = paths.iter().any(is_neighbor);
        known.then(|| paths.iter().map(itself).collect())
    }
}
