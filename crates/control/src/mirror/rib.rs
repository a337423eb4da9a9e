//! The kernel's routes by prefix, and which of those of one prefix counts.
//!
//! Within a prefix the kernel asks table local, then main, then default; within a table the lowest metric wins, and of
//! equal ones the first. A route whose links are all down does not count. A route of table default counts only where
//! no route of the other two covers it, however short that is.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use router::change::Route as Action;

use super::entry::{Entry, Key, Need};
use super::resolve::World;
use crate::facts::{Place, Table};

type Keys = HashSet<Key, BuildHasherDefault<Mix>>;

#[derive(Debug)]
struct Marked {
    entry: Entry,
    generation: u32,
}

/// All routes.
#[derive(Debug, Default)]
pub(super) struct Rib {
    prefixes: HashMap<Key, Vec<Marked>, BuildHasherDefault<Mix>>,
    /// The prefixes with a route that needs this.
    users: HashMap<Need, Keys>,
    /// Prefixes with a route of table default: hardly ever any.
    last_resort: BTreeSet<Key>,
    generation: u32,
    dumping: bool,
}

impl Rib {
    /// Puts a route in. News about a route that is there already change nothing; a dump shows the order as it is, and a route that
    /// stands elsewhere is moved.
    pub fn insert(&mut self, key: Key, entry: Entry, place: Place) {
        let generation = self.generation;
        if entry.table == Table::Default {
            self.last_resort.insert(key);
        }
        let list = self.prefixes.entry(key).or_default();
        match list.iter().position(|known| known.entry == entry) {
            Some(_) if !self.dumping => return,
            Some(at) => drop(list.remove(at)),
            None => need(&mut self.users, key, &entry),
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
                self.tidy(key, Need::of(&old.entry.hops).collect());
            }
            None => list.insert(at, marked),
        }
    }

    /// Takes a route out.
    pub fn remove(&mut self, key: Key, entry: &Entry) {
        self.retain(key, |known| known != entry);
    }

    /// Keeps those routes of a prefix that `keep` says.
    pub fn retain(&mut self, key: Key, mut keep: impl FnMut(&Entry) -> bool) {
        self.retain_marked(key, |known| keep(&known.entry));
    }

    fn retain_marked(&mut self, key: Key, mut keep: impl FnMut(&Marked) -> bool) {
        if let Some(list) = self.prefixes.get_mut(&key) {
            let mut lost = Vec::new();
            list.retain(|known| {
                let kept = keep(known);
                if !kept {
                    lost.extend(Need::of(&known.entry.hops));
                }
                kept
            });
            self.tidy(key, lost);
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
    pub fn unseen(&self) -> Vec<Key> {
        let stale =
            |list: &Vec<Marked>| list.iter().any(|known| known.generation != self.generation);
        self.prefixes
            .iter()
            .filter(|(_, list)| stale(list))
            .map(|(key, _)| *key)
            .collect()
    }

    /// Takes out those routes of a prefix that the dump has not shown.
    pub fn sweep(&mut self, key: Key) {
        let generation = self.generation;
        self.retain_marked(key, |known| known.generation == generation);
    }

    /// Routes of a prefix are gone, which needed this: what remains may need less.
    fn tidy(&mut self, key: Key, lost: Vec<Need>) {
        let list = self
            .prefixes
            .get(&key)
            .map(Vec::as_slice)
            .unwrap_or_default();
        if !list.iter().any(|known| known.entry.table == Table::Default) {
            self.last_resort.remove(&key);
        }
        for need in lost {
            let needs = |known: &Marked| Need::of(&known.entry.hops).any(|other| other == need);
            if !list.iter().any(needs)
                && let Some(users) = self.users.get_mut(&need)
            {
                users.remove(&key);
                if users.is_empty() {
                    self.users.remove(&need);
                }
            }
        }
        if list.is_empty() {
            self.prefixes.remove(&key);
        }
    }

    /// The prefixes with a route that needs any of these, each once.
    pub fn users(&self, needs: &[Need]) -> Vec<Key> {
        let sets = needs.iter().filter_map(|need| self.users.get(need));
        let mut keys: Vec<Key> = sets.flatten().copied().collect();
        if needs.len() > 1 {
            keys.sort_unstable();
            keys.dedup();
        }
        keys
    }

    /// What is to be done with packets of a prefix; `None`: nothing by this prefix.
    pub fn effective(&self, world: &World, key: Key) -> Option<Action> {
        let (table, action) = self.best(world, key)?;
        (table != Table::Default || !self.covered(world, key)).then_some(action)
    }

    /// Whether there is any route of table default.
    pub fn has_last_resort(&self) -> bool {
        !self.last_resort.is_empty()
    }

    /// The prefixes of table default within this one, whose routes may count or not as this one's change.
    pub fn dependents(&self, key: Key) -> Vec<Key> {
        let within =
            |other: &&Key| **other != key && other.1 >= key.1 && truncate(other.0, key.1) == key.0;
        self.last_resort.iter().filter(within).copied().collect()
    }

    fn best(&self, world: &World, key: Key) -> Option<(Table, Action)> {
        let list = self.prefixes.get(&key)?;
        let usable = list
            .iter()
            .map(|known| &known.entry)
            .filter(|entry| entry.tos == 0);
        usable
            .map(|entry| (entry.table, world.action(entry)))
            .find_map(|(table, action)| Some((table, action?)))
    }

    fn covered(&self, world: &World, (address, length): Key) -> bool {
        (0..length).any(|shorter| {
            let above = self.best(world, (truncate(address, shorter), shorter));
            above.is_some_and(|(table, _)| table != Table::Default)
        })
    }
}

fn need(users: &mut HashMap<Need, Keys>, key: Key, entry: &Entry) {
    for need in Need::of(&entry.hops) {
        users.entry(need).or_default().insert(key);
    }
}

fn truncate(address: u32, length: u8) -> u32 {
    address & u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)
}

/// A hasher for prefixes: multiplication by an odd constant, then the high bits down. The keys come from the kernel's
/// table, whose writer is as privileged as we are.
#[derive(Debug, Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u8(byte);
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u32(u32::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.0 = (self.0.rotate_left(8) ^ u64::from(value)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
mod tests {
    use super::super::resolve::LinkState;
    use super::*;
    use crate::facts::{Gateway, Hop, Hops, RouteKind};
    use proptest::prelude::*;
    use router::change::Path;

    /// The links 1 to 4 are ours; the last two are down.
    fn world() -> World {
        let mut world = World::default();
        for link in 1..=4 {
            let up = link <= 2;
            world.links.insert(
                link,
                LinkState {
                    admin_up: up,
                    carrier: up,
                },
            );
            world.owned.insert(link, link as u16);
        }
        world
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
    fn oracle(list: &[(Key, Entry)], key: Key) -> Option<Action> {
        let best = |key: Key, tables: &[Table]| {
            tables.iter().find_map(|&table| {
                (0..3).find_map(|metric| {
                    let mut all = list
                        .iter()
                        .filter(|(k, e)| *k == key && e.table == table && e.tos == 0);
                    all.find_map(|(_, e)| (e.metric == metric).then(|| does(e)).flatten())
                })
            })
        };
        let first = best(key, &[Table::Local, Table::Main]);
        let covered = || {
            (0..key.1).any(|len| {
                best((truncate(key.0, len), len), &[Table::Local, Table::Main]).is_some()
            })
        };
        first.or_else(|| {
            if covered() {
                None
            } else {
                best(key, &[Table::Default])
            }
        })
    }

    /// `ip route add|append|replace` on a plain list.
    fn insert(list: &mut Vec<(Key, Entry)>, key: Key, entry: Entry, place: Place) {
        if list.contains(&(key, entry.clone())) {
            return;
        }
        let first = list
            .iter()
            .position(|(k, e)| *k == key && e.rank() == entry.rank());
        match (place, first) {
            (Place::Replace, Some(at)) => list[at] = (key, entry),
            (Place::First, _) => list.insert(0, (key, entry)),
            _ => list.push((key, entry)),
        }
    }

    /// Which prefixes need what, worked out anew.
    fn users(rib: &Rib) -> HashMap<Need, Keys> {
        let mut users = HashMap::new();
        for (key, list) in &rib.prefixes {
            list.iter()
                .for_each(|known| need(&mut users, *key, &known.entry));
        }
        users
    }

    proptest! {
        #[test]
        fn the_route_that_counts_is_the_kernels(
            steps in prop::collection::vec((0..4u8, entry(), place(), 0..8u8), 0..60),
        ) {
            let keys: [Key; 4] = [(0, 0), (0x0a00_0000, 8), (0x0a01_0000, 16), (0x0b00_0000, 8)];
            let (mut rib, mut list, world) = (Rib::default(), Vec::new(), world());
            let mut lost = false;
            for (at, entry, place, what) in steps {
                let key = keys[usize::from(at)];
                // Of some news nothing is heard, until a dump shows all that there is.
                let heard = what < 6;
                lost |= !heard;
                if what & 1 == 0 {
                    if heard {
                        rib.remove(key, &entry);
                    }
                    list.retain(|known| *known != (key, entry.clone()));
                } else {
                    if heard {
                        rib.insert(key, entry.clone(), place);
                    }
                    insert(&mut list, key, entry, place);
                }
                if lost && heard {
                    rib.begin();
                    for (key, entry) in in_order(&list) {
                        rib.insert(key, entry, Place::Last);
                    }
                    rib.end();
                    rib.unseen().into_iter().for_each(|key| rib.sweep(key));
                    lost = false;
                }
                if !lost {
                    for key in keys {
                        prop_assert_eq!(rib.effective(&world, key), oracle(&list, key));
                    }
                }
                prop_assert_eq!(&rib.users, &users(&rib));
            }
        }

        #[test]
        fn a_dump_that_shows_what_is_known_changes_nothing_meanwhile(
            steps in prop::collection::vec((entry(), place()), 0..20),
        ) {
            let key = (0x0a00_0000, 8);
            let (mut rib, mut list, world) = (Rib::default(), Vec::new(), world());
            for (entry, place) in steps {
                rib.insert(key, entry.clone(), place);
                insert(&mut list, key, entry, place);
            }
            let before = rib.effective(&world, key);
            rib.begin();
            for (key, entry) in in_order(&list) {
                rib.insert(key, entry, Place::Last);
                prop_assert_eq!(rib.effective(&world, key), before.clone());
            }
        }
    }

    /// As the kernel shows them: by rank, and those of equal rank in their order.
    fn in_order(list: &[(Key, Entry)]) -> Vec<(Key, Entry)> {
        let mut sorted = list.to_vec();
        sorted.sort_by_key(|(_, entry)| entry.rank());
        sorted
    }
}
