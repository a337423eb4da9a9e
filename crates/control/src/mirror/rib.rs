//! The kernel's routes by prefix, and which one of each prefix counts.
//!
//! Within a prefix the kernel asks table local, then main, then default; within a table the lowest
//! metric wins, and of equal ones the first. A route whose links are all down does not count. A
//! route of table default counts only where no route of the other two covers it, however short that
//! is.
//!
//! Of IPv6 the kernel makes routes by gateways with the same prefix, table and metric one route with
//! several next hops. News of any of them shows them all, but a deletion names those that go. Of
//! routes from router advertisements with equal metrics the best preference wins. A replacement may
//! leave the same route twice.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use router::change::Route as Action;
use router::{Family, Ip};
use tables::prefix::Prefix;
use tables::rib::{self, BuildMix};

use super::entry::{Entry, Need};
use super::topology::Topology;
use crate::facts::{Place, Table};

type Prefixes<A> = HashSet<Prefix<A>, BuildMix>;
/// The prefixes with a route that needs something, by who made it (`RTPROT_*`).
type Users<A> = HashMap<Need, BTreeMap<u8, Prefixes<A>>>;

#[derive(Debug)]
struct Marked {
    entry: Entry,
    generation: u32,
}

/// All routes of a family.
#[derive(Debug)]
pub(super) struct Rib<A: Ip> {
    routes: rib::Rib<A, Vec<Marked>>,
    users: Users<A>,
    /// Prefixes with a route of table default: hardly ever any.
    last_resort: BTreeSet<Prefix<A>>,
    generation: u32,
    dumping: bool,
}

impl<A: Ip> Default for Rib<A> {
    fn default() -> Self {
        Rib {
            routes: rib::Rib::new(),
            users: HashMap::new(),
            last_resort: BTreeSet::new(),
            generation: 0,
            dumping: false,
        }
    }
}

impl<A: Ip> Rib<A> {
    /// Inserts a route. News about a route that is there already changes nothing, unless it takes
    /// the place of another; a dump shows the order as it is, and a route that stands elsewhere is
    /// moved.
    pub fn insert(&mut self, prefix: Prefix<A>, entry: Entry, place: Place) {
        let generation = self.generation;
        if entry.table == Table::Default {
            self.last_resort.insert(prefix);
        }
        let list = self.routes.get_or_default(prefix);
        let replaced = replaced::<A>(list, &entry, place).filter(|_| !self.dumping);
        let again = (A::FAMILY, place) == (Family::V6, Place::Replace);
        // Of the same route twice, a dump shows each once.
        let old = |known: &Marked| known.generation != generation;
        let same = |known: &Marked| known.entry == entry;
        let known = list.iter().position(|known| same(known) && old(known));
        match known.or_else(|| list.iter().position(same)) {
            Some(at) if self.dumping => drop(list.remove(at)),
            Some(at) if !again || replaced.is_none_or(|old| old == at) => return,
            _ => need(&mut self.users, prefix, &entry),
        }
        let rank = entry.rank();
        let behind = |known: &Marked| match known.entry.rank().cmp(&rank) {
            Ordering::Less => false,
            Ordering::Equal if self.dumping => known.generation != generation,
            Ordering::Equal => place != Place::Last,
            Ordering::Greater => true,
        };
        let at = list.iter().position(behind).unwrap_or(list.len());
        let marked = Marked { entry, generation };
        match replaced {
            Some(at) => {
                let old = std::mem::replace(&mut list[at], marked);
                self.tidy(prefix, old.entry.uses().collect());
            }
            None => {
                // Nearly all prefixes have one route: room for four would be half of all memory.
                list.reserve_exact(1);
                list.insert(at, marked);
            }
        }
    }

    /// Removes a route; of IPv6, those of its next hops that are named.
    pub fn remove(&mut self, prefix: Prefix<A>, entry: &Entry) {
        match A::FAMILY {
            Family::V4 => self.retain(prefix, |known| known != entry),
            Family::V6 => {
                let Some(list) = self.routes.get_mut(prefix) else {
                    return;
                };
                let first = |like: fn(&Entry, &Entry) -> bool| {
                    let lost = |k: &Marked| k.entry.has(entry) && like(&k.entry, entry);
                    list.iter().position(lost)
                };
                // The closest to what is named: it is one route.
                let lost = first(|known, gone| known == gone)
                    .or_else(|| first(|known, gone| known.advertised == gone.advertised))
                    .or_else(|| first(|_, _| true));
                let Some(at) = lost else { return };
                let maker = list[at].entry.protocol;
                if list[at].entry.lose(entry) {
                    list.remove(at);
                }
                let gone = Need::of(&entry.hops).map(|need| (need, maker));
                self.tidy(prefix, gone.collect());
            }
        }
    }

    /// Keeps those routes of a prefix for which `keep` is true.
    pub fn retain(&mut self, prefix: Prefix<A>, mut keep: impl FnMut(&Entry) -> bool) {
        self.retain_marked(prefix, |known| keep(&known.entry));
    }

    fn retain_marked(&mut self, prefix: Prefix<A>, mut keep: impl FnMut(&Marked) -> bool) {
        if let Some(list) = self.routes.get_mut(prefix) {
            let mut lost = Vec::new();
            list.retain(|known| {
                let kept = keep(known);
                if !kept {
                    lost.extend(known.entry.uses());
                }
                kept
            });
            self.tidy(prefix, lost);
        }
    }

    /// A dump begins: what is inserted from now on is marked as seen.
    pub fn begin(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.dumping = true;
    }

    /// The dump has ended.
    pub fn end(&mut self) {
        self.dumping = false;
    }

    /// The prefixes that have routes which the dump has not shown.
    pub fn unseen(&self) -> Vec<Prefix<A>> {
        let unseen = |list: &[Marked]| list.iter().any(|k| k.generation != self.generation);
        let stale = self.routes.iter().filter(|(_, list)| unseen(list));
        stale.map(|(prefix, _)| prefix).collect()
    }

    /// Removes the routes of a prefix that the dump has not shown.
    pub fn sweep(&mut self, prefix: Prefix<A>) {
        let generation = self.generation;
        self.retain_marked(prefix, |known| known.generation == generation);
    }

    /// Routes of a prefix that needed these, by who made them, are gone: what remains may need less.
    fn tidy(&mut self, prefix: Prefix<A>, lost: Vec<(Need, u8)>) {
        let list = self.routes.get(prefix).map_or(&[][..], Vec::as_slice);
        if !list.iter().any(|known| known.entry.table == Table::Default) {
            self.last_resort.remove(&prefix);
        }
        for lost in lost {
            let (need, maker) = lost;
            let uses = |known: &Marked| known.entry.uses().any(|other| other == lost);
            if !list.iter().any(uses)
                && let Some(makers) = self.users.get_mut(&need)
                && let Some(prefixes) = makers.get_mut(&maker)
            {
                prefixes.remove(&prefix);
                if prefixes.is_empty() {
                    makers.remove(&maker);
                }
                if makers.is_empty() {
                    self.users.remove(&need);
                }
            }
        }
        if list.is_empty() {
            self.routes.remove(prefix);
        }
    }

    /// The prefixes with a route that needs any of these, each once.
    pub fn users(&self, needs: &[Need]) -> Vec<Prefix<A>> {
        let makers = needs.iter().filter_map(|need| self.users.get(need));
        let sets: Vec<&Prefixes<A>> = makers.flat_map(BTreeMap::values).collect();
        let mut prefixes: Vec<Prefix<A>> = sets.iter().copied().flatten().copied().collect();
        if sets.len() > 1 {
            prefixes.sort_unstable();
            prefixes.dedup();
        }
        prefixes
    }

    /// The prefixes with a route that needs this, by who made it.
    pub fn makers(&self, need: Need) -> impl Iterator<Item = (u8, &Prefixes<A>)> {
        let makers = self.users.get(&need).into_iter().flatten();
        makers.map(|(maker, prefixes)| (*maker, prefixes))
    }

    /// The routes of a prefix.
    pub fn of(&self, prefix: Prefix<A>) -> impl Iterator<Item = &Entry> {
        let list = self.routes.get(prefix).into_iter().flatten();
        list.map(|known| &known.entry)
    }

    /// The action for packets of a prefix; `None`: this prefix has none.
    pub fn effective(&self, topology: &Topology, prefix: Prefix<A>) -> Option<Action> {
        let (table, action) = self.best(topology, prefix)?;
        (table != Table::Default || !self.covered(topology, prefix)).then_some(action)
    }

    /// Returns true if there is any route of table default.
    pub fn has_last_resort(&self) -> bool {
        !self.last_resort.is_empty()
    }

    /// The prefixes of table default within this one, whose routes may count or not as this one's
    /// change.
    pub fn dependents(&self, prefix: Prefix<A>) -> Vec<Prefix<A>> {
        // In order a prefix comes right before all those within it.
        let from = self.last_resort.range(prefix..);
        let within = from.take_while(|other| prefix.contains(other.addr()));
        within.filter(|other| **other != prefix).copied().collect()
    }

    fn best(&self, topology: &Topology, prefix: Prefix<A>) -> Option<(Table, Action)> {
        best(topology, self.routes.get(prefix)?)
    }

    fn covered(&self, topology: &Topology, prefix: Prefix<A>) -> bool {
        let mut covers = self.routes.covers(prefix);
        covers
            .any(|(_, list)| best(topology, list).is_some_and(|(table, _)| table != Table::Default))
    }
}

/// The route of a prefix, if any, that a new one takes the place of.
fn replaced<A: Ip>(list: &[Marked], entry: &Entry, place: Place) -> Option<usize> {
    let first = |like: fn(&Entry, &Entry) -> bool| {
        let same = |known: &Marked| known.entry.rank() == entry.rank() && like(&known.entry, entry);
        list.iter().position(same)
    };
    match (A::FAMILY, place) {
        (Family::V4, Place::Replace) => first(|_, _| true),
        (Family::V6, Place::Replace) => {
            let alike = first(|known, new| known.spreads() == new.spreads());
            alike.or_else(|| first(|_, _| true))
        }
        (Family::V6, _) => {
            let siblings = first(|known, new| known.spreads() && new.spreads());
            siblings.or_else(|| first(|known, new| new.extends(known)))
        }
        (Family::V4, _) => None,
    }
}

/// The first of a prefix's routes that can be used, of those of its rank the preferred one.
fn best(topology: &Topology, list: &[Marked]) -> Option<(Table, Action)> {
    let entries = list.iter().map(|known| &known.entry);
    let usable = entries.filter(|entry| entry.tos == 0);
    usable
        .filter_map(|entry| Some((entry, topology.action(entry)?)))
        .min_by_key(|(entry, _)| (entry.rank(), entry.preference()))
        .map(|(entry, action)| (entry.table, action))
}

fn need<A: Ip>(users: &mut Users<A>, prefix: Prefix<A>, entry: &Entry) {
    for (need, maker) in entry.uses() {
        let makers = users.entry(need).or_default();
        makers.entry(maker).or_default().insert(prefix);
    }
}

#[cfg(test)]
#[path = "rib_tests.rs"]
mod tests;
