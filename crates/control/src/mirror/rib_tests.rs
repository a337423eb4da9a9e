use proptest::prelude::*;

use router::change::Path;
use tables::ip4::Prefix;

use super::super::topology::LinkState;
use super::*;
use crate::facts::{Gateway, Hop, Hops, Preference, RouteKind};

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

/// The maker of a route: a person or a routing protocol.
fn protocol() -> impl Strategy<Value = u8> {
    prop_oneof![Just(libc::RTPROT_STATIC), Just(186)]
}

fn entry() -> impl Strategy<Value = Entry> {
    let table = prop_oneof![Just(Table::Local), Just(Table::Main), Just(Table::Default)];
    let kind = prop_oneof![
        Just(RouteKind::Unicast),
        Just(RouteKind::Blackhole),
        Just(RouteKind::Local)
    ];
    let place = (table, 0..2u8, 0..3u32, protocol());
    (place, kind, 1..=4u32).prop_map(|((table, tos, metric, protocol), kind, link)| {
        let hops = Hops::One(Hop {
            link,
            gateway: Gateway::OnLink,
            weight: 1,
        });
        Entry {
            table,
            tos,
            metric,
            protocol,
            advertised: None,
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

/// The action of an entry, written down once more.
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

/// The prefixes that need each link or object, worked out anew.
fn users<A: Ip>(rib: &Rib<A>) -> Users<A> {
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
        let (mut rib, mut list, topology) = (Rib::<u32>::default(), Vec::new(), topology());
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
        let (mut rib, mut list, topology) = (Rib::<u32>::default(), Vec::new(), topology());
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
    let mut rib = Rib::<u32>::default();
    let default = Entry {
        table: Table::Default,
        tos: 0,
        metric: 0,
        protocol: libc::RTPROT_STATIC,
        advertised: None,
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

/// The kernel makes one route of two that a program has learned from router advertisements.
#[test]
fn routes_of_a_program_that_hears_advertisements_become_one() {
    let hop = |link| Hop {
        link,
        gateway: Gateway::Via([0xfe80, 0, 0, 0, 0, 0, 0, 1].into()),
        weight: 1,
    };
    let entry = |hops| Entry {
        table: Table::Main,
        tos: 0,
        metric: 100,
        protocol: libc::RTPROT_STATIC,
        advertised: Some(Preference::Medium),
        kind: RouteKind::Unicast,
        mtu: None,
        source: None,
        hops,
    };
    let prefix = tables::ip6::Prefix::DEFAULT;
    let mut rib = Rib::<u128>::default();
    let count = |rib: &Rib<u128>| match rib.effective(&topology(), prefix) {
        Some(Action::Forward(paths)) => paths.len(),
        other => panic!("{other:?}"),
    };
    rib.insert(prefix, entry(Hops::One(hop(1))), Place::Last);
    // Its own stay apart.
    rib.insert(prefix, entry(Hops::One(hop(2))), Place::Last);
    assert_eq!(count(&rib), 1);
    rib.remove(prefix, &entry(Hops::One(hop(2))));
    let both = entry(Hops::Many([hop(1), hop(2)].into()));
    rib.insert(prefix, both, Place::Last);
    assert_eq!(count(&rib), 2);
}

/// Routes of one IPv6 prefix as the kernel has them: by rank, those by gateways of equal rank as
/// one.
#[derive(Default)]
struct Kernel(Vec<Entry>);

/// News from the kernel.
enum News {
    Nothing,
    Added(Entry, Place),
    Gone(Entry),
}

impl Kernel {
    /// `ip -6 route append` of one hop, which is refused if it is there.
    fn add(&mut self, new: &Entry) -> News {
        let hop = new.hops.list().unwrap()[0];
        let twin =
            |old: &Entry| old.metric == new.metric && old.hops.list().unwrap().contains(&hop);
        if self.0.iter().any(twin) {
            return News::Nothing;
        }
        let sibling = |old: &&mut Entry| old.metric == new.metric && old.spreads() && new.spreads();
        if let Some(old) = self.0.iter_mut().find(sibling) {
            let before = old.hops.list().unwrap().to_vec();
            old.hops = Hops::Many([&before[..], &[hop]].concat().into());
            // The new hop is shown first.
            let hops = Hops::Many([&[hop], &before[..]].concat().into());
            let shown = Entry {
                hops,
                ..old.clone()
            };
            return News::Added(shown, Place::Last);
        }
        let at = self.0.iter().position(|old| old.metric > new.metric);
        self.0.insert(at.unwrap_or(self.0.len()), new.clone());
        News::Added(new.clone(), Place::Last)
    }

    /// `ip -6 route replace` (`fib6_add_rt2node`): of the routes with this metric, the first that
    /// has siblings or has none, as the new one may have, or else the first. Whether another route
    /// is the same as the new one is not looked at.
    fn replace(&mut self, new: &Entry) -> News {
        let first = |like: bool| {
            self.0.iter().position(|old| {
                old.metric == new.metric && (!like || old.spreads() == new.spreads())
            })
        };
        match first(true).or_else(|| first(false)) {
            Some(at) => {
                self.0[at] = new.clone();
                News::Added(new.clone(), Place::Replace)
            }
            None => self.add(new),
        }
    }

    /// `ip -6 route del`: one hop, or all of a route; of the same route twice, the first.
    fn delete(&mut self, at: usize, all: bool) -> News {
        let Some(named) = self.0.get(at).cloned() else {
            return News::Nothing;
        };
        let at = self.0.iter().position(|old| *old == named).unwrap();
        let old = &mut self.0[at];
        match old.hops.list().unwrap() {
            [gone, left @ ..] if !all && !left.is_empty() => {
                let shown = Entry {
                    hops: Hops::One(*gone),
                    ..old.clone()
                };
                old.hops = Hops::Many(left.into());
                News::Gone(shown)
            }
            _ => News::Gone(self.0.remove(at)),
        }
    }

    /// The way of packets: interfaces and gateways in no order. Of one metric the best preference
    /// wins, and of equal ones the first route.
    fn effective(&self) -> Option<Vec<Path>> {
        let paths = |entry: &Entry| {
            let hops = entry
                .hops
                .list()
                .unwrap()
                .iter()
                .filter(|hop| hop.link <= 2);
            let paths = hops.map(|hop| Path {
                interface: hop.link as u16,
                gateway: match hop.gateway {
                    Gateway::Via(address) => Some(address),
                    _ => None,
                },
                weight: 1,
                mtu: None,
                source: None,
            });
            let paths: Vec<Path> = paths.collect();
            (!paths.is_empty()).then_some(paths)
        };
        let mut usable: Vec<_> = self
            .0
            .iter()
            .filter(|entry| paths(entry).is_some())
            .collect();
        usable.sort_by_key(|entry| (entry.metric, entry.advertised.unwrap_or(Preference::Medium)));
        usable.first().and_then(|entry| paths(entry)).map(sorted)
    }
}

/// An IPv6 route as it comes out of [`Entry::split`].
fn shown(entry: &Entry) -> Entry {
    let hops = match entry.hops.list().unwrap() {
        [hop] => Hops::One(*hop),
        hops => {
            let mut hops = hops.to_vec();
            hops.sort_unstable();
            Hops::Many(hops.into())
        }
    };
    Entry {
        hops,
        ..entry.clone()
    }
}

fn sorted(mut paths: Vec<Path>) -> Vec<Path> {
    paths.sort_unstable();
    paths
}

/// A hop of an IPv6 route, by one of two gateways or on the link.
fn entry6() -> impl Strategy<Value = Entry> {
    let advertised = prop_oneof![
        8 => Just(None),
        1 => Just(Some(Preference::High)),
        1 => Just(Some(Preference::Low))
    ];
    let made = (0..2u32, protocol(), advertised);
    (made, 1..=4u32, 0..3u16).prop_map(|((metric, protocol, advertised), link, gateway)| Entry {
        table: Table::Main,
        tos: 0,
        metric,
        protocol,
        advertised,
        kind: RouteKind::Unicast,
        mtu: None,
        source: None,
        hops: Hops::One(Hop {
            link,
            gateway: match gateway {
                0 => Gateway::OnLink,
                n => Gateway::Via([0xfe80, 0, 0, 0, 0, 0, 0, n].into()),
            },
            weight: 1,
        }),
    })
}

proptest! {
    #[test]
    fn hops_of_ip6_come_and_go_one_by_one(
        steps in prop::collection::vec((entry6(), 0..12u8, 0..4usize), 0..60),
    ) {
        let prefix = tables::ip6::Prefix::DEFAULT;
        let (mut rib, mut kernel, topology) = (Rib::<u128>::default(), Kernel::default(), topology());
        for (entry, what, at) in steps {
            let news = match what {
                0..=4 => kernel.add(&entry),
                5 | 6 => kernel.replace(&entry),
                7 | 8 => kernel.delete(at, false),
                9 | 10 => kernel.delete(at, true),
                _ => {
                    rib.begin();
                    for entry in &kernel.0 {
                        rib.insert(prefix, shown(entry), Place::Last);
                    }
                    rib.end();
                    // Of hops that several have made, it shows the first's maker.
                    for prefix in rib.unseen() {
                        let makers: BTreeSet<u8> = rib.of(prefix).map(|e| e.protocol).collect();
                        prop_assert!(makers.len() > 1, "{:?}", rib);
                        rib.sweep(prefix);
                    }
                    News::Nothing
                }
            };
            match news {
                News::Nothing => {}
                News::Added(entry, place) => rib.insert(prefix, shown(&entry), place),
                News::Gone(entry) => rib.remove(prefix, &entry),
            }
            let known = match rib.effective(&topology, prefix) {
                Some(Action::Forward(paths)) => Some(sorted(paths)),
                None => None,
                other => panic!("{other:?}"),
            };
            prop_assert_eq!(known, kernel.effective());
            prop_assert_eq!(&rib.users, &users(&rib));
        }
    }
}
