//! Random changes of both families, and every look-up compared with a few lines that say what is wanted.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use router::{Change, Family, Interface, Kind, Mac, Path, Prefix, Route};
use tables::adjacency::Kind as AdjacencyKind;
use tables::random::Random;
use tables::special::Special;

use crate::harness::*;

/// IPv6 routes that are always there.
const RESERVED: usize = 3;

/// State that is wanted, as the changes said it.
#[derive(Default)]
struct Wanted {
    interfaces: BTreeMap<u16, Interface>,
    neighbors: BTreeMap<(IpAddr, u16), Mac>,
    routes: BTreeMap<Prefix, Route>,
}

/// Fate of a packet.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone)]
enum Fate {
    Special(&'static str),
    Resolve(String, IpAddr),
    OnLink(String),
    Down,
    Send(String, u32, String),
}

impl Wanted {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::InterfaceSet(i) => {
                self.interfaces.insert(i.id, i.clone());
            }
            Change::InterfaceDelete(id) => {
                self.interfaces.remove(id);
                self.neighbors.retain(|(_, i), _| i != id);
            }
            Change::NeighborSet {
                interface,
                address,
                mac,
            } => {
                self.neighbors.insert((*address, *interface), *mac);
            }
            Change::NeighborDelete { interface, address } => {
                self.neighbors.remove(&(*address, *interface));
            }
            Change::RouteSet { prefix, route } => {
                self.routes.insert(*prefix, route.clone());
            }
            Change::RouteDelete { prefix } => {
                self.routes.remove(prefix);
            }
            _ => {}
        }
    }

    /// All that may become of packets to `destination`.
    fn fates(&self, destination: IpAddr) -> BTreeSet<Fate> {
        let covering = self.routes.iter().filter(|(p, _)| p.contains(destination));
        let special = |s| BTreeSet::from([Fate::Special(s)]);
        match covering.max_by_key(|(p, _)| p.length()).map(|(_, r)| r) {
            None => special("no route"),
            Some(Route::Local) => special("local"),
            Some(Route::Broadcast) => special("broadcast"),
            Some(Route::Punt) => special("punt"),
            Some(Route::Blackhole) => special("blackhole"),
            Some(Route::Unreachable) => special("unreachable"),
            Some(Route::Prohibit) => special("prohibit"),
            Some(Route::Forward(paths)) => self.forward(paths, destination),
        }
    }

    fn forward(&self, paths: &[Path], destination: IpAddr) -> BTreeSet<Fate> {
        let up = |p: &&Path| self.interfaces.get(&p.interface).is_some_and(|i| i.up);
        let ways: Vec<&Path> = paths.iter().filter(up).collect();
        if ways.is_empty() {
            return BTreeSet::from([Fate::Down]);
        }
        // The kernel resolves a destination on every link by itself; the first that has it makes
        // its host route.
        let found = paths.iter().any(|p| {
            p.gateway.is_none() && self.neighbors.contains_key(&(destination, p.interface))
        });
        ways.iter()
            .map(|p| {
                let i = &self.interfaces[&p.interface];
                let (kind, least) = match destination {
                    IpAddr::V4(_) => ([8, 0], 68),
                    IpAddr::V6(_) => ([0x86, 0xdd], 1280),
                };
                let mtu = p.mtu.map_or(i.mtu, |mtu| mtu.max(least).min(i.mtu));
                let hop = match p.gateway {
                    Some(gateway) => gateway,
                    None if found => destination,
                    None => return Fate::OnLink(i.name.clone()),
                };
                match self.neighbors.get(&(hop, p.interface)) {
                    Some(mac) => {
                        let header = [&mac.0[..], &i.mac.0, &kind].concat();
                        let hex = header.iter().map(|b| format!("{b:02x}")).collect();
                        Fate::Send(i.name.clone(), u32::from(mtu), hex)
                    }
                    None => Fate::Resolve(i.name.clone(), hop),
                }
            })
            .collect()
    }
}

/// Fates that the tables give, read as a worker reads them.
fn table(lab: &mut Lab, destination: IpAddr) -> BTreeSet<Fate> {
    let cx = lab.workers[0].context();
    let entry = match destination {
        IpAddr::V4(to) => cx.fib.lookup(to.into()),
        IpAddr::V6(to) => cx.ip6.lookup(&to.to_bits()),
    };
    let buckets = if entry.is_multi() { 16 } else { 1 };
    let ids = (0..buckets).map(|b| cx.groups.bucket(entry.group(), b << 28));
    ids.map(|id| {
        if let Some(special) = Special::of(id) {
            return Fate::Special(match special {
                Special::NoRoute => "no route",
                Special::Local => "local",
                Special::Broadcast => "broadcast",
                Special::Punt => "punt",
                Special::Blackhole => "blackhole",
                Special::Unreachable => "unreachable",
                Special::Prohibit => "prohibit",
            });
        }
        let a = cx.adjacencies.load(id);
        let name = format!("eth{}", a.tx_if());
        match a.kind() {
            AdjacencyKind::Rewrite => {
                let header = a.header().iter().map(|b| format!("{b:02x}")).collect();
                Fate::Send(name, a.mtu().into(), header)
            }
            AdjacencyKind::Incomplete => {
                Fate::Resolve(name, cx.adjacencies.next_hop(id).expect("a next hop"))
            }
            AdjacencyKind::Glean => Fate::OnLink(name),
            _ => Fate::Down,
        }
    })
    .collect()
}

/// Few addresses, so that prefixes nest and neighbors meet routes.
fn address(random: &mut Random, family: Family) -> IpAddr {
    let b = random.below(3) as u8;
    let d = [0, 1, 2, 127, 128, 254, 255][random.below(7) as usize];
    match family {
        Family::V4 => Ipv4Addr::new(10, 0, b, d).into(),
        Family::V6 => Ipv6Addr::new(0x2001, 0xdb8, 0, b.into(), 0, 0, 0, d.into()).into(),
    }
}

fn family(random: &mut Random) -> Family {
    Family::ALL[random.below(2) as usize]
}

/// A path of a route of `family`; IPv4 routes have gateways of both.
fn path(random: &mut Random, family: Family) -> Path {
    let of_gateway = match random.below(3) {
        0 => Family::V6,
        _ => family,
    };
    Path {
        interface: 1 + random.below(4) as u16,
        gateway: (random.below(3) > 0).then(|| address(random, of_gateway)),
        weight: 1 + random.below(4) as u16,
        mtu: (random.below(4) == 0).then(|| 60 + random.below(3) as u16 * 700),
        source: (random.below(4) == 0).then(|| address(random, family)),
    }
}

fn length(random: &mut Random, family: Family) -> u8 {
    match family {
        // The default route rarely: painting it takes a while.
        Family::V4 => match random.below(200) {
            0 => 0,
            n => [8, 16, 22, 23, 24, 25, 30, 31, 32, 32, 32][n as usize % 11],
        },
        Family::V6 => {
            [0, 16, 32, 48, 62, 63, 64, 65, 112, 120, 127, 128, 128][random.below(13) as usize]
        }
    }
}

fn change(random: &mut Random) -> Change {
    let interface = 1 + random.below(4) as u16;
    let family = family(random);
    let length = length(random, family);
    let prefix = Prefix::new(address(random, family), length).unwrap();
    match random.below(12) {
        0..=1 => Change::InterfaceSet(Interface {
            id: interface,
            name: format!("eth{interface}"),
            kind: Kind::Routed { host: None },
            mac: Mac([2, 1, 1, 1, interface as u8, random.below(2) as u8]),
            mtu: 1500 + random.below(2) as u16,
            up: random.below(3) > 0,
            l2: None,
            serving: random.below(3) > 0,
        }),
        2 if random.below(4) == 0 => Change::InterfaceDelete(interface),
        2..=4 => Change::NeighborSet {
            interface,
            address: address(random, family),
            mac: Mac([2, 0, 0, 0, 0, random.below(3) as u8]),
        },
        5 => Change::NeighborDelete {
            interface,
            address: address(random, family),
        },
        6..=9 => {
            let paths = 1 + random.below(3).saturating_sub(1);
            let forward = Route::Forward((0..paths).map(|_| path(random, family)).collect());
            let specials = [
                Route::Local,
                Route::Broadcast,
                Route::Punt,
                Route::Blackhole,
                Route::Unreachable,
                Route::Prohibit,
            ];
            let route = match random.below(10) {
                n @ 0..=5 if random.below(3) == 0 => specials[n as usize].clone(),
                _ => forward,
            };
            Change::RouteSet { prefix, route }
        }
        _ => Change::RouteDelete { prefix },
    }
}

#[test]
fn look_ups_agree_with_what_is_wanted() {
    for seed in 0..8 {
        let mut random = Random::new(seed);
        let (mut lab, mut wanted) = (Lab::sized(1, 64), Wanted::default());
        let used = |lab: &Lab| -> Vec<u64> {
            let tables = router::show::memory(&lab.router).tables;
            tables.iter().map(|table| table.used).collect()
        };
        let before = used(&lab);
        for step in 0..4000 {
            let changes: Vec<Change> = (0..=random.below(3)).map(|_| change(&mut random)).collect();
            changes.iter().for_each(|c| wanted.apply(c));
            assert_eq!(lab.router.apply(changes.clone()), Ok(0));
            lab.workers[0].round(lab.now);
            for _ in 0..6 {
                let family = family(&mut random);
                let to = address(&mut random, family);
                // One beside it, too.
                let to = match to {
                    IpAddr::V4(to) => IpAddr::from((u32::from(to) ^ random.below(2)).to_be_bytes()),
                    IpAddr::V6(to) => {
                        IpAddr::from((u128::from(to) ^ u128::from(random.below(2))).to_be_bytes())
                    }
                };
                assert_eq!(
                    table(&mut lab, to),
                    wanted.fates(to),
                    "{to} after {changes:?}, seed {seed} step {step}"
                );
            }
        }
        // All that was made is given back when it is no longer wanted.
        let routes: Vec<Prefix> = wanted.routes.keys().copied().collect();
        lab.apply(
            routes
                .into_iter()
                .map(|prefix| Change::RouteDelete { prefix })
                .collect(),
        );
        lab.apply((1..=4).map(Change::InterfaceDelete).collect());
        assert_eq!(used(&lab), before, "seed {seed}");
        let memory = router::show::memory(&lab.router);
        assert_eq!((memory.ip4_routes, memory.ip6_routes), (0, RESERVED));
    }
}
