//! The kernel's routes by prefix, and which one of each prefix counts.
//!
//! Within a prefix the kernel asks table local, then main, then default; within a table the lowest
//! metric wins, and of equal ones the first. A route whose links are all down does not count. A
//! route of table default counts only where no route of the other two covers it, however short that
//! is.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap, HashSet};

use router::change::{Prefix, Route as Action};
use tables::rib::{self, BuildMix};

use super::entry::{Entry, Need};
use super::topology::Topology;
use crate::facts::{Place, Table};

type Prefixes = HashSet<Prefix, BuildMix>;

#[derive(Debug)]
struct Marked {
    entry: Entry,
    generation: u32,
}

/// All routes.
#[derive(Debug, Default)]
pub(super) struct Rib {
    routes: rib::Rib<u32, Vec<Marked>>,
    /// The prefixes with a route that needs this.
    users: HashMap<Need, Prefixes>,
    /// Prefixes with a route of table default: hardly ever any.
    last_resort: BTreeSet<Prefix>,
    generation: u32,
    dumping: bool,
}

impl Rib {
    /// Inserts a route. News about a route that is there already changes nothing; a dump shows the
    /// order as it is, and a route that stands elsewhere is moved.
    pub fn insert(&mut self, prefix: Prefix, entry: Entry, place: Place) {
        let generation = self.generation;
        if entry.table == Table::Default {
            self.last_resort.insert(prefix);
        }
        let list = self.routes.get_or_default(prefix);
        match list.iter().position(|known| known.entry == entry) {
            Some(_) if !self.dumping => return,
            Some(at) => drop(list.remove(at)),
            None => need(&mut self.users, prefix, &entry),
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
        let replaced = list
            .get_mut(at)
            .filter(|known| place == Place::Replace && known.entry.rank() == rank);
        match replaced {
            Some(known) => {
                let old = std::mem::replace(known, marked);
                self.tidy(prefix, Need::of(&old.entry.hops).collect());
            }
            None => list.insert(at, marked),
        }
    }

    /// Removes a route.
    pub fn remove(&mut self, prefix: Prefix, entry: &Entry) {
        self.retain(prefix, |known| known != entry);
    }

    /// Keeps those routes of a prefix for which `keep` is true.
    pub fn retain(&mut self, prefix: Prefix, mut keep: impl FnMut(&Entry) -> bool) {
        self.retain_marked(prefix, |known| keep(&known.entry));
    }

    fn retain_marked(&mut self, prefix: Prefix, mut keep: impl FnMut(&Marked) -> bool) {
        if let Some(list) = self.routes.get_mut(prefix) {
            let mut lost = Vec::new();
            list.retain(|known| {
                let kept = keep(known);
                if !kept {
                    lost.extend(Need::of(&known.entry.hops));
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
    pub fn unseen(&self) -> Vec<Prefix> {
        let unseen = |list: &[Marked]| list.iter().any(|k| k.generation != self.generation);
        let stale = self.routes.iter().filter(|(_, list)| unseen(list));
        stale.map(|(prefix, _)| prefix).collect()
    }

    /// Removes the routes of a prefix that the dump has not shown.
    pub fn sweep(&mut self, prefix: Prefix) {
        let generation = self.generation;
        self.retain_marked(prefix, |known| known.generation == generation);
    }

    /// Routes of a prefix that needed these are gone: what remains may need less.
    fn tidy(&mut self, prefix: Prefix, lost: Vec<Need>) {
        let list = self.routes.get(prefix).map_or(&[][..], Vec::as_slice);
        if !list.iter().any(|known| known.entry.table == Table::Default) {
            self.last_resort.remove(&prefix);
        }
        for need in lost {
            let needs = |known: &Marked| Need::of(&known.entry.hops).any(|other| other == need);
            if !list.iter().any(needs)
                && let Some(users) = self.users.get_mut(&need)
            {
                users.remove(&prefix);
                if users.is_empty() {
                    self.users.remove(&need);
                }
            }
        }
        if list.is_empty() {
            self.routes.remove(prefix);
        }
    }

    /// The prefixes with a route that needs any of these, each once.
    pub fn users(&self, needs: &[Need]) -> Vec<Prefix> {
        let sets = needs.iter().filter_map(|need| self.users.get(need));
        let mut prefixes: Vec<Prefix> = sets.flatten().copied().collect();
        if needs.len() > 1 {
            prefixes.sort_unstable();
            prefixes.dedup();
        }
        prefixes
    }

    /// What is to be done with packets of a prefix; `None`: nothing by this prefix.
    pub fn effective(&self, topology: &Topology, prefix: Prefix) -> Option<Action> {
        let (table, action) = self.best(topology, prefix)?;
        (table != Table::Default || !self.covered(topology, prefix)).then_some(action)
    }

    /// Whether there is any route of table default.
    pub fn has_last_resort(&self) -> bool {
        !self.last_resort.is_empty()
    }

    /// The prefixes of table default within this one, whose routes may count or not as this one's
    /// change.
    pub fn dependents(&self, prefix: Prefix) -> Vec<Prefix> {
        // In order a prefix comes right before all those within it.
        let from = self.last_resort.range(prefix..);
        let within = from.take_while(|other| prefix.contains(other.addr()));
        within.filter(|other| **other != prefix).copied().collect()
    }

    fn best(&self, topology: &Topology, prefix: Prefix) -> Option<(Table, Action)> {
        best(topology, self.routes.get(prefix)?)
    }

    fn covered(&self, topology: &Topology, prefix: Prefix) -> bool {
        let mut covers = self.routes.covers(prefix);
        covers
            .any(|(_, list)| best(topology, list).is_some_and(|(table, _)| table != Table::Default))
    }
}

/// The first of a prefix's routes that can be used.
fn best(topology: &Topology, list: &[Marked]) -> Option<(Table, Action)> {
    let entries = list.iter().map(|known| &known.entry);
    let usable = entries.filter(|entry| entry.tos == 0);
    usable
        .map(|entry| (entry.table, topology.action(entry)))
        .find_map(|(table, action)| Some((table, action?)))
}

fn need(users: &mut HashMap<Need, Prefixes>, prefix: Prefix, entry: &Entry) {
    for need in Need::of(&entry.hops) {
        users.entry(need).or_default().insert(prefix);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use router::change::Path;

    use super::super::topology::LinkState;
    use super::*;
    use crate::facts::{Gateway, Hop, Hops, RouteKind};

    /// The links 1 to 4 are ours; the last two are down.
    fn topology() -> Topology {
        let mut topology = Topology::default();
        for link in 1..=4 {
            let up = link <= 2;
            topology.links.insert(
                link,
                LinkState {
                    admin_up: up,
                    carrier: up,
                },
            );
            topology.owned.insert(link, link as u16);
        }
        topology
    }

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    fn entry() -> impl Strategy<Value = Entry> {
        let table = prop_oneof![Just(Table::Local), Just(Table::Main), Just(Table::Default)];
        let kind = prop_oneof![
            Just(RouteKind::Unicast),
            Just(RouteKind::Blackhole),
            Just(RouteKind::Local)
        ];
        (table, 0..2u8, 0..3u32, kind, 1..=4u32).prop_map(|(table, tos, metric, kind, link)| {
            let hops = Hops::One(Hop {
                link,
                gateway: Gateway::OnLink,
                weight: 1,
            });
            Entry {
                table,
                tos,
                metric,
                kind,
                mtu: None,
                source: None,
                hops,
            }
        })
    }

    fn place() -> impl Strategy<Value = Place> {
        prop_oneof![Just(Place::Replace), Just(Place::First), Just(Place::Last)]
    }

    /// What an entry does, written down once more.
    fn does(entry: &Entry) -> Option<Action> {
        let Hops::One(hop) = &entry.hops else {
            return None;
        };
        match entry.kind {
            RouteKind::Local => Some(Action::Local),
            RouteKind::Blackhole => Some(Action::Blackhole),
            _ if hop.link > 2 => None,
            _ => Some(Action::Forward(vec![Path {
                mtu: None,
                source: None,
                interface: hop.link as u16,
                gateway: None,
                weight: 1,
            }])),
        }
    }

    /// The rule of the kernel by exhaustive search in a plain list.
    fn oracle(list: &[(Prefix, Entry)], prefix: Prefix) -> Option<Action> {
        let best = |prefix: Prefix, tables: &[Table]| {
            tables.iter().find_map(|&table| {
                (0..3).find_map(|metric| {
                    let mut all = list
                        .iter()
                        .filter(|(k, e)| *k == prefix && e.table == table && e.tos == 0);
                    all.find_map(|(_, e)| (e.metric == metric).then(|| does(e)).flatten())
                })
            })
        };
        let first = best(prefix, &[Table::Local, Table::Main]);
        let covered = || {
            (0..prefix.len()).any(|len| {
                let shorter = Prefix::new(prefix.addr(), len).unwrap();
                best(shorter, &[Table::Local, Table::Main]).is_some()
            })
        };
        first.or_else(|| {
            if covered() {
                None
            } else {
                best(prefix, &[Table::Default])
            }
        })
    }

    /// `ip route add|append|replace` on a plain list.
    fn insert(list: &mut Vec<(Prefix, Entry)>, prefix: Prefix, entry: Entry, place: Place) {
        if list.contains(&(prefix, entry.clone())) {
            return;
        }
        let first = list
            .iter()
            .position(|(k, e)| *k == prefix && e.rank() == entry.rank());
        match (place, first) {
            (Place::Replace, Some(at)) => list[at] = (prefix, entry),
            (Place::First, _) => list.insert(0, (prefix, entry)),
            _ => list.push((prefix, entry)),
        }
    }

    /// Which prefixes need what, worked out anew.
    fn users(rib: &Rib) -> HashMap<Need, Prefixes> {
        let mut users = HashMap::new();
        for (prefix, list) in rib.routes.iter() {
            list.iter()
                .for_each(|known| need(&mut users, prefix, &known.entry));
        }
        users
    }

    proptest! {
        #[test]
        fn the_route_that_counts_is_the_kernels(
            steps in prop::collection::vec((0..4u8, entry(), place(), 0..8u8), 0..60),
        ) {
            let prefixes = ["0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "11.0.0.0/8"].map(prefix);
            let (mut rib, mut list, topology) = (Rib::default(), Vec::new(), topology());
            let mut lost = false;
            for (at, entry, place, what) in steps {
                let prefix = prefixes[usize::from(at)];
                // Of some news nothing is heard, until a dump shows all that there is.
                let heard = what < 6;
                lost |= !heard;
                if what & 1 == 0 {
                    if heard {
                        rib.remove(prefix, &entry);
                    }
                    list.retain(|known| *known != (prefix, entry.clone()));
                } else {
                    if heard {
                        rib.insert(prefix, entry.clone(), place);
                    }
                    insert(&mut list, prefix, entry, place);
                }
                if lost && heard {
                    rib.begin();
                    for (prefix, entry) in in_order(&list) {
                        rib.insert(prefix, entry, Place::Last);
                    }
                    rib.end();
                    rib.unseen().into_iter().for_each(|prefix| rib.sweep(prefix));
                    lost = false;
                }
                if !lost {
                    for prefix in prefixes {
                        prop_assert_eq!(rib.effective(&topology, prefix), oracle(&list, prefix));
                    }
                }
                prop_assert_eq!(&rib.users, &users(&rib));
            }
        }

        #[test]
        fn a_dump_that_shows_what_is_known_changes_nothing_meanwhile(
            steps in prop::collection::vec((entry(), place()), 0..20),
        ) {
            let prefix = prefix("10.0.0.0/8");
            let (mut rib, mut list, topology) = (Rib::default(), Vec::new(), topology());
            for (entry, place) in steps {
                rib.insert(prefix, entry.clone(), place);
                insert(&mut list, prefix, entry, place);
            }
            let before = rib.effective(&topology, prefix);
            rib.begin();
            for (prefix, entry) in in_order(&list) {
                rib.insert(prefix, entry, Place::Last);
                prop_assert_eq!(rib.effective(&topology, prefix), before.clone());
            }
        }
    }

    #[test]
    fn routes_of_table_default_depend_on_those_around_them() {
        let mut rib = Rib::default();
        let default = Entry {
            table: Table::Default,
            tos: 0,
            metric: 0,
            kind: RouteKind::Blackhole,
            mtu: None,
            source: None,
            hops: Hops::Many(Box::default()),
        };
        let all = [
            "0.0.0.0/0",
            "10.0.0.0/8",
            "10.1.0.0/16",
            "10.1.255.255/32",
            "11.0.0.0/8",
        ];
        for text in all {
            rib.insert(prefix(text), default.clone(), Place::Last);
        }
        for (text, dependents) in [
            ("0.0.0.0/0", &all[1..]),
            ("10.0.0.0/8", &all[2..4]),
            ("10.1.0.0/17", &[]),
            ("10.1.128.0/17", &all[3..4]),
            ("12.0.0.0/8", &[]),
        ] {
            let expected: Vec<_> = dependents.iter().map(|text| prefix(text)).collect();
            assert_eq!(rib.dependents(prefix(text)), expected, "{text}");
        }
    }

    /// As the kernel shows them: by rank, and those of equal rank in their order.
    fn in_order(list: &[(Prefix, Entry)]) -> Vec<(Prefix, Entry)> {
        let mut sorted = list.to_vec();
        sorted.sort_by_key(|(_, entry)| entry.rank());
        sorted
    }
}
