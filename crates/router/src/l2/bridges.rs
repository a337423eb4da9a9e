//! The bridge domains: what control says of them, and what workers read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tables::ids::Full;
use tables::interface::L2;
use tables::mac::{Key, Macs, Station, WORDS_FOR_EACH};
use tables::mem::Cells;

use super::counts::{Frames, Learned};
use super::owners::{Owners, Table};
use crate::by_number::{ByNumber, put};
use crate::change::{ArpRequests, BridgeDomain, DomainId, Interface, InterfaceId, Mac};

/// Stations of all domains together: 2 MiB of memory. More than any switch of the size of a router
/// forwards for, and a limit to what a flood of made-up addresses may take.
const STATIONS: usize = 1 << 16;

/// A bridge domain as workers see it.
#[derive(Debug)]
pub(crate) struct Domain {
    pub(super) settings: BridgeDomain,
    /// Its interfaces, but for its own.
    pub(super) members: Box<[InterfaceId]>,
    /// Who has which address.
    pub(super) owners: Arc<Owners>,
    /// Frames that its members were flooded with, and those that told control nothing.
    pub(super) frames: Arc<Frames>,
}

/// The domains that workers see, by number.
pub(crate) type Domains = ByNumber<Domain>;

/// The bridge domains, their members and stations.
pub(crate) struct Bridges {
    domains: Domains,
    /// Of domains that there are, and of those that interfaces wait for.
    members: BTreeMap<DomainId, BTreeSet<InterfaceId>>,
    /// By own interface, its domain.
    bvis: BTreeMap<InterfaceId, DomainId>,
    /// By own interface, its station.
    own: BTreeMap<InterfaceId, Key>,
    pub(crate) stations: Macs,
    /// Of domains that do not just flood ARP requests.
    addresses: BTreeMap<DomainId, Table>,
    /// What each domain has learned.
    learned: BTreeMap<DomainId, Learned>,
}

impl Default for Bridges {
    fn default() -> Self {
        Bridges {
            domains: Arc::default(),
            members: BTreeMap::new(),
            bvis: BTreeMap::new(),
            own: BTreeMap::new(),
            stations: Macs::new(Cells::boxed(STATIONS * WORDS_FOR_EACH)),
            addresses: BTreeMap::new(),
            learned: BTreeMap::new(),
        }
    }
}

impl Bridges {
    /// The domains, for workers.
    pub(crate) fn domains(&self) -> Domains {
        self.domains.clone()
    }

    /// The own interface of a domain, if it has one.
    pub(crate) fn bvi(&self, domain: DomainId) -> Option<InterfaceId> {
        let domain = self.domains.get(usize::from(domain))?.as_ref()?;
        domain.settings.bvi
    }

    /// The domain that an interface is the own one of.
    pub(crate) fn of_bvi(&self, interface: InterfaceId) -> Option<DomainId> {
        self.bvis.get(&interface).copied()
    }

    /// Makes or changes a domain. Returns its own interface before.
    pub(crate) fn set(&mut self, domain: BridgeDomain) -> Option<InterfaceId> {
        let id = domain.id;
        if domain.arp == ArpRequests::Flood {
            self.addresses.remove(&id);
        } else {
            self.addresses.entry(id).or_default();
        }
        self.replace(id, Some(domain))
    }

    /// Removes a domain and forgets its stations. Its members are in none then. Returns its own
    /// interface.
    pub(crate) fn delete(&mut self, id: DomainId) -> Option<InterfaceId> {
        self.forget(|key, _, _| key.domain() == id);
        self.addresses.remove(&id);
        self.learned.remove(&id);
        self.replace(id, None)
    }

    /// The settings of a domain.
    fn settings(&self, id: DomainId) -> Option<&BridgeDomain> {
        let domain = self.domains.get(usize::from(id))?.as_ref();
        domain.map(|domain| &domain.settings)
    }

    /// Puts a domain, or none, in place of another one. Returns its own interface before.
    fn replace(&mut self, id: DomainId, new: Option<BridgeDomain>) -> Option<InterfaceId> {
        let old = self.settings(id).and_then(|old| old.bvi);
        old.map(|bvi| self.bvis.remove(&bvi));
        let bvi = new.as_ref().and_then(|new| new.bvi);
        bvi.map(|bvi| self.bvis.insert(bvi, id));
        self.show(id, new);
        old
    }

    /// Takes in what an interface does at layer 2 instead of what it did. True if that concerns a
    /// domain.
    pub(crate) fn join(
        &mut self,
        interface: InterfaceId,
        old: Option<L2>,
        new: Option<L2>,
    ) -> bool {
        if old == new {
            return false;
        }
        let domain = |l2| match l2 {
            Some(L2::Bridge(domain)) => Some(domain),
            _ => None,
        };
        if let Some(left) = domain(old) {
            self.forget(|key, station, _| key.domain() == left && station.interface == interface);
            self.members.entry(left).or_default().remove(&interface);
            if let Some(learned) = self.learned.get_mut(&left) {
                learned.left(interface);
            }
            self.show(left, self.settings(left).cloned());
        }
        if let Some(joined) = domain(new) {
            self.members.entry(joined).or_default().insert(interface);
            self.show(joined, self.settings(joined).cloned());
        }
        domain(old).is_some() || domain(new).is_some()
    }

    /// The address of an interface, if it is a domain's own, is a fixed station of that; the one it
    /// had is not.
    ///
    /// # Errors
    /// [`Full`].
    pub(crate) fn own(&mut self, id: InterfaceId, of: Option<&Interface>) -> Result<(), Full> {
        let domain = self.of_bvi(id);
        let key = of.zip(domain).map(|(i, domain)| key(domain, i.mac));
        if let Some(old) = self.own.remove(&id).filter(|old| Some(*old) != key) {
            self.stations.delete(old);
        }
        let Some(key) = key else {
            return Ok(());
        };
        self.own.insert(id, key);
        let station = Station {
            interface: id,
            fixed: true,
        };
        self.stations.set(key, station)
    }

    /// A worker has seen a station behind an interface.
    pub(crate) fn learn(&mut self, domain: DomainId, mac: Mac, interface: InterfaceId) {
        let members = self.members.get(&domain);
        let is_member = members.is_some_and(|members| members.contains(&interface));
        let settings = self.settings(domain);
        let Some(settings) = settings.filter(|of| of.learn && is_member) else {
            return;
        };
        let key = key(domain, mac);
        let known = self.stations.get(key);
        if known.is_some_and(|(known, _)| known.fixed) {
            return;
        }
        let count = || {
            let all = self.stations.iter();
            all.filter(|(key, ..)| key.domain() == domain).count()
        };
        let is_full = |limit: u32| known.is_none() && count() >= limit as usize;
        let is_full = settings.limit.is_some_and(is_full);
        let learned = self.learned.entry(domain).or_default();
        if is_full {
            learned.refused += 1;
            return;
        }
        let station = Station {
            interface,
            fixed: false,
        };
        // Where there is no room it stays unknown, and what is for it is flooded.
        if self.stations.set(key, station).is_err() {
            learned.refused += 1;
        } else if let Some((before, _)) = known.filter(|(known, _)| known.interface != interface) {
            learned.moved(key, [before.interface, interface]);
        }
    }

    /// How often stations of a domain have moved, and how often one was not learned since a limit
    /// was reached.
    pub(super) fn learned(&self, id: DomainId) -> (u64, u64) {
        let learned = self.learned.get(&id);
        learned.map_or((0, 0), |learned| (learned.moves, learned.refused))
    }

    /// It is this time, in seconds: stations that have moved too often, how often, and the interfaces
    /// of the last move.
    pub(super) fn moving(&mut self, now: u32) -> Vec<(Key, u32, [InterfaceId; 2])> {
        let all = self.learned.values_mut();
        all.filter_map(|learned| learned.look(now)).collect()
    }

    /// A station has said by ARP that it has an address. True if that is news, which
    /// [`show_owners`](Self::show_owners) is to show.
    pub(crate) fn own_address(&mut self, domain: DomainId, address: u32, mac: Mac) -> bool {
        let now = self.stations.clock();
        let table = self.addresses.get_mut(&domain);
        table.is_some_and(|table| table.learn(address, mac, now))
    }

    /// Makes workers see who has which address now.
    pub(crate) fn show_owners(&mut self) {
        let changed = self.addresses.iter_mut();
        let changed: Vec<_> = changed
            .filter_map(|(id, table)| table.take_changed().then_some(*id))
            .collect();
        for id in changed {
            self.show(id, self.settings(id).cloned());
        }
    }

    /// Who has which address in a domain, and the second when it was last heard.
    pub(super) fn owners(&self, id: DomainId) -> impl Iterator<Item = (u32, Mac, u32)> {
        self.addresses.get(&id).into_iter().flat_map(Table::iter)
    }

    /// It is this time, in seconds: forgets stations that were not seen for their domain's age, and
    /// addresses that were not heard of for long. True if workers are to see something new.
    pub(crate) fn age(&mut self, now: u32) -> bool {
        if now == self.stations.clock() {
            return false;
        }
        self.stations.set_clock(now);
        let tables = self.addresses.values_mut();
        let any = tables.fold(false, |any, table| table.age(now) | any);
        self.show_owners();
        self.age_stations(now);
        any
    }

    fn age_stations(&mut self, now: u32) {
        let domains = self.domains.iter().flatten();
        let ages = domains.filter_map(|domain| {
            let minutes = domain.settings.age_minutes?;
            Some((domain.settings.id, u32::from(minutes) * 60))
        });
        let ages: BTreeMap<DomainId, u32> = ages.collect();
        if ages.is_empty() {
            return;
        }
        self.forget(|key, station, seen| {
            let age = ages.get(&key.domain());
            !station.fixed && age.is_some_and(|age| now.wrapping_sub(seen) >= *age)
        });
    }

    /// Forgets stations, by what is known of them and when they were last seen.
    fn forget(&mut self, which: impl Fn(Key, Station, u32) -> bool) {
        let all = self.stations.iter();
        let gone = all.filter(|(key, station, seen)| which(*key, *station, *seen));
        for key in gone.map(|(key, ..)| key).collect::<Vec<_>>() {
            self.stations.delete(key);
        }
    }

    /// Makes workers see a domain with these settings and its members, or none.
    fn show(&mut self, id: DomainId, settings: Option<BridgeDomain>) {
        let members = self.members.get(&id).into_iter().flatten();
        let shown = settings.map(|settings| Domain {
            settings,
            members: members.copied().collect(),
            owners: self
                .addresses
                .get(&id)
                .map(Table::owners)
                .unwrap_or_default(),
            frames: self
                .domains
                .get(usize::from(id))
                .and_then(Option::as_ref)
                .map(|domain| domain.frames.clone())
                .unwrap_or_default(),
        });
        put(&mut self.domains, id, shown);
    }
}

/// Of a station in a domain.
pub(super) fn key(domain: DomainId, mac: Mac) -> Key {
    let [a, b, c, d, e, f] = mac.0;
    Key::new(domain, u64::from_le_bytes([a, b, c, d, e, f, 0, 0]))
}
