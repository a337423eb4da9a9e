//! The mirror's IPv6 against a real kernel, in network namespaces of its own.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use control::facts::Link;
use control::mirror::{Binding, Mirror, Translator};
use router::change::{Path, Prefix, Route};
use serde_json::Value;
use tables::random::Random;
use testbed::{patience, until};

use support::{Follower, Memory, Netns};

/// A namespace with three connected veth interfaces, `pa` (2001:db8:1::1/64), `pb`
/// (2001:db8:2::1/64) and `pc` (2001:db8:3::1/64). The first two are ours as 1 and 2.
fn two_interfaces(test: &str) -> Option<(Netns, Mirror, Follower)> {
    let netns = Netns::new(test)?;
    netns.ip("link set lo up");
    netns.write("net/ipv6/conf/all/forwarding", "1");
    for (n, name) in (1..).zip(DEVICES) {
        netns.ip(&format!("link add {name} type veth peer name {name}-far"));
        netns.write(&format!("net/ipv6/conf/{name}/accept_dad"), "0");
        netns.ip(&format!("link set {name} up"));
        netns.ip(&format!("link set {name}-far up"));
        netns.ip(&format!("address add 2001:db8:{n}::1/64 dev {name} nodad"));
    }
    // The kernel says up to a second later that a link has come up, and then the mirror dumps again.
    let all_up = || netns.ip("link show").matches(" state UP ").count() == 2 * DEVICES.len();
    assert!(until(patience(Duration::from_secs(20)), all_up));
    let (mirror, follower) = Follower::of_two(&netns);
    Some((netns, mirror, follower))
}

const DEVICES: [&str; 3] = ["pa", "pb", "pc"];

/// A way out: our interface, and the gateway.
type Way = (u16, Option<IpAddr>);

/// The fate of packets.
#[derive(Debug, PartialEq, Eq, Clone)]
enum Fate {
    Forward(BTreeSet<Way>),
    Host,
    /// A way of it is not ours: the kernel forwards.
    Kernel,
    Drop(&'static str),
}

/// The router's interface of a device, if it is ours.
fn interface(device: &str) -> Option<u16> {
    let at = DEVICES[..2].iter().position(|name| *name == device);
    at.map(|at| at as u16 + 1)
}

/// The way of a hop that the kernel prints; `None` if it is not by an interface of ours.
fn way(hop: &Value) -> Option<Way> {
    let gateway = hop["gateway"].as_str().or(hop["via"]["host"].as_str());
    let gateway = gateway.map(|text| text.parse().expect("an address"));
    Some((interface(hop["dev"].as_str()?)?, gateway))
}

fn is_dead(hop: &Value) -> bool {
    let flags = hop["flags"].as_array().into_iter().flatten();
    flags
        .filter_map(Value::as_str)
        .any(|flag| flag == "dead" || flag == "linkdown")
}

/// The fate of packets on a route that the kernel prints.
fn fate(route: &Value) -> Fate {
    match route["type"].as_str() {
        Some("blackhole") => return Fate::Drop("blackhole"),
        Some("unreachable") => return Fate::Drop("unreachable"),
        Some("prohibit") => return Fate::Drop("prohibit"),
        Some("local" | "anycast") => return Fate::Host,
        _ => {}
    }
    let hops = match route["nexthops"].as_array() {
        Some(hops) => hops.clone(),
        None => vec![route.clone()],
    };
    let alive = hops.iter().filter(|hop| !is_dead(hop));
    let ways: Option<BTreeSet<Way>> = alive.map(way).collect();
    ways.map_or(Fate::Kernel, Fate::Forward)
}

fn ours(route: &Route) -> Fate {
    match route {
        Route::Forward(paths) => {
            Fate::Forward(paths.iter().map(|p| (p.interface, p.gateway)).collect())
        }
        Route::Local | Route::Broadcast => Fate::Host,
        Route::Punt => Fate::Kernel,
        Route::Blackhole => Fate::Drop("blackhole"),
        Route::Unreachable => Fate::Drop("unreachable"),
        Route::Prohibit => Fate::Drop("prohibit"),
    }
}

/// The routes of tables local and main as the kernel prints them: of each prefix the one that
/// counts.
fn printed(netns: &Netns) -> BTreeMap<Prefix, Fate> {
    let mut routes = BTreeMap::<Prefix, (u64, Fate)>::new();
    for table in ["local", "main"] {
        let text = netns.ip(&format!("-6 -j route show table {table}"));
        let all: Value = serde_json::from_str(&text).expect("JSON");
        for route in all.as_array().expect("a list") {
            let text = match route["dst"].as_str().expect("a destination") {
                "default" => "::/0",
                text => text,
            };
            let prefix: Prefix = text.parse().expect("a prefix");
            let IpAddr::V6(first) = prefix.address() else {
                panic!("{text}")
            };
            if first.is_multicast() || first.is_unicast_link_local() {
                continue;
            }
            let fate = fate(route);
            // All its links are down: the next one counts.
            if fate == Fate::Forward(BTreeSet::new()) {
                continue;
            }
            // The local table goes before the main one, whatever the metrics.
            let metric = route["metric"].as_u64().unwrap_or(0);
            let rank = metric + u64::from(table == "main") * (1 << 32);
            if routes.get(&prefix).is_none_or(|(known, _)| rank < *known) {
                routes.insert(prefix, (rank, fate));
            }
        }
    }
    let routes = routes.into_iter();
    routes.map(|(prefix, (_, fate))| (prefix, fate)).collect()
}

fn of_ip6(memory: &Memory) -> BTreeMap<Prefix, Fate> {
    let all = memory.routes.iter();
    let all = all.filter(|(prefix, _)| matches!(prefix, Prefix::V6(_)));
    all.map(|(prefix, route)| (*prefix, ours(route))).collect()
}

/// Returns true if two tables are the same; if the test fails in the end, its output says where
/// they differed.
fn is_same(ours: &BTreeMap<Prefix, Fate>, kernel: &BTreeMap<Prefix, Fate>) -> bool {
    let prefixes: BTreeSet<&Prefix> = ours.keys().chain(kernel.keys()).collect();
    for prefix in prefixes {
        let (ours, kernel) = (ours.get(prefix), kernel.get(prefix));
        if ours != kernel {
            println!("{prefix}: {ours:?}, the kernel: {kernel:?}");
        }
    }
    ours == kernel
}

/// The longest match.
fn look_up(routes: &BTreeMap<Prefix, Fate>, to: Ipv6Addr) -> Option<&Fate> {
    let within = routes
        .iter()
        .filter(|(prefix, _)| prefix.contains(to.into()));
    within
        .max_by_key(|(prefix, _)| prefix.length())
        .map(|(_, fate)| fate)
}

/// One of few prefixes, so that they nest and are met again.
fn prefix(random: &mut Random) -> String {
    let (n, length) = (random.below(3), [32, 48, 64, 128][random.below(4) as usize]);
    match (length, random.below(8)) {
        (_, 0) => "default".to_owned(),
        (32, _) => format!("3fff:{n}::/32"),
        (48, _) => format!("3fff:{n}:1::/48"),
        (64, _) => format!("3fff:{n}:1:2::/64"),
        _ => format!("3fff:{n}:1:2::3/128"),
    }
}

fn hop(random: &mut Random) -> String {
    let n = random.below(3) as usize;
    let (device, host) = (DEVICES[n], 2 + random.below(3));
    match random.below(3) {
        0 => format!("via 2001:db8:{}::{host} dev {device}", n + 1),
        _ => format!("via fe80::{host} dev {device}"),
    }
}

/// Kinds of steps, those that the kernel announces in full, and all.
const TOLD: u32 = 11;
const ALL: u32 = 14;

/// A change of one of the first `kinds`, which the kernel may refuse.
fn step(random: &mut Random, kinds: u32) -> String {
    let (to, metric) = (prefix(random), 100 + random.below(2));
    let verb = ["add", "append", "replace"][random.below(3) as usize];
    let device = DEVICES[random.below(3) as usize];
    match random.below(kinds) {
        0..=3 => format!("-6 route {verb} {to} {} metric {metric}", hop(random)),
        4 | 5 => {
            let weight = 1 + random.below(3);
            let (a, b) = (hop(random), hop(random));
            format!("-6 route {verb} {to} metric {metric} nexthop {a} nexthop {b} weight {weight}")
        }
        6 => {
            // What a dump shows and news that is older are not told apart: a replacement that is
            // heard again must not meet a route of another kind.
            let metric = if kinds == TOLD { metric } else { metric + 2 };
            format!("-6 route {verb} {to} dev {device} metric {metric}")
        }
        7 => {
            let kind = ["blackhole", "unreachable", "prohibit"][random.below(3) as usize];
            format!("-6 route {verb} {kind} {to} metric {}", metric + 4)
        }
        8 | 9 => format!("-6 route del {to} {} metric {metric}", hop(random)),
        10 => format!("-6 route del {to}"),
        11 => format!(
            "-6 address add 3fff:{}:1:9::1/64 dev {device} nodad",
            random.below(3)
        ),
        12 => format!(
            "-6 address del 3fff:{}:1:9::1/64 dev {device}",
            random.below(3)
        ),
        _ => {
            let state = ["down", "up", "up"][random.below(3) as usize];
            format!("link set {device} {state}")
        }
    }
}

#[test]
fn random_changes_are_followed_and_packets_go_the_kernels_way() {
    let Some((netns, mirror, mut follower)) = two_interfaces("ip6_random_changes") else {
        return;
    };
    let mut random = Random::new(0x6970_3600);
    let dumps = || mirror.counters().dumps.load(Relaxed);
    // The first dump is counted a moment after all of it has been sent.
    assert!(until(patience(Duration::from_secs(20)), || dumps() > 0));
    let before = dumps();
    for round in 0..20 {
        let kinds = if round < 10 { TOLD } else { ALL };
        if round == 10 {
            assert_eq!(dumps(), before, "news alone must do");
            netns.ip("-6 route flush proto boot");
        }
        let steps: Vec<String> = (0..25).map(|_| step(&mut random, kinds)).collect();
        for step in &steps {
            netns.try_ip(step);
        }
        // The kernel may still be about to see that a link is up.
        follower.until(&format!("round {round}: {steps:#?}"), |_, memory| {
            is_same(&of_ip6(memory), &printed(&netns))
        });
    }
    for device in DEVICES {
        netns.ip(&format!("link set {device} up"));
    }
    follower.until("all links are up", |_, memory| {
        is_same(&of_ip6(memory), &printed(&netns))
    });
    let routes = of_ip6(&follower.memory);
    assert!(routes.len() > 8, "{routes:#?}");
    for _ in 0..150 {
        let segment = |random: &mut Random, most| random.below(most) as u16;
        let (n, a, b) = (
            segment(&mut random, 4),
            segment(&mut random, 3),
            segment(&mut random, 4),
        );
        let to = Ipv6Addr::new(0x3fff, n, a, b, 0, 0, 0, segment(&mut random, 5));
        let known = look_up(&routes, to);
        match netns.try_ip(&format!("-6 -j route get {to}")) {
            // The kernel answers with an error if it would drop the packet.
            None => assert!(
                matches!(known, None | Some(Fate::Drop(_))),
                "{to}: {known:?}"
            ),
            Some(text) => {
                let all: Value = serde_json::from_str(&text).expect("JSON");
                match (fate(&all[0]), known) {
                    (Fate::Forward(one), Some(Fate::Forward(ways))) => {
                        assert!(one.is_subset(ways), "{to}: {one:?} is not in {ways:?}");
                    }
                    // Of several ways, the kernel has taken one that is ours.
                    (Fate::Forward(_), Some(Fate::Kernel)) => {}
                    (kernel, known) => assert_eq!(Some(&kernel), known, "{to}"),
                }
            }
        }
    }
}

fn via(interface: u16, gateway: &str) -> Path {
    Path {
        interface,
        gateway: Some(gateway.parse().expect("an address")),
        weight: 1,
        mtu: None,
        source: None,
    }
}

#[test]
fn hops_are_appended_and_deleted_one_by_one() {
    let Some((netns, _mirror, mut follower)) = two_interfaces("ip6_hops_one_by_one") else {
        return;
    };
    let mut is = |what: &str, paths: &[Path]| {
        let route = (!paths.is_empty()).then(|| Route::Forward(paths.to_vec()));
        follower.until(what, |_, memory| {
            memory.route("3fff::/32") == route.as_ref()
        });
    };
    let [a, b] = [via(1, "fe80::2"), via(2, "fe80::2")];
    netns.ip("-6 route add 3fff::/32 via fe80::2 dev pb");
    is("one", &[b]);
    netns.ip("-6 route append 3fff::/32 via fe80::2 dev pa");
    is("two", &[a, b]);
    netns.ip("-6 route append 3fff::/32 via fe80::3 dev pa");
    is("three", &[a, via(1, "fe80::3"), b]);
    netns.ip("-6 route del 3fff::/32 via fe80::2 dev pb");
    is("two again", &[a, via(1, "fe80::3")]);
    netns.ip("link set pa down");
    is("none", &[]);
    netns.ip("link set pa up");
    netns.ip(
        "-6 route add 3fff::/32 nexthop via fe80::2 dev pa nexthop via fe80::2 dev pb weight 4",
    );
    is("by weight", &[a, Path { weight: 4, ..b }]);
    netns.ip("-6 route del 3fff::/32");
    is("all gone", &[]);
    netns.ip("-6 nexthop add id 1 via fe80::2 dev pa");
    netns.ip("-6 nexthop add id 2 via fe80::2 dev pb");
    netns.ip("nexthop add id 10 group 1/2");
    netns.ip("-6 route add 3fff::/32 nhid 10");
    is("a group of objects", &[a, b]);
    netns.ip("nexthop del id 1");
    is("one member of it", &[b]);
}

#[test]
fn ip4_routes_by_ip6_gateways_are_followed() {
    let Some((netns, _mirror, mut follower)) = two_interfaces("ip4_routes_by_ip6_gateways") else {
        return;
    };
    netns.ip("route add 198.51.100.0/24 via inet6 fe80::2 dev pa mtu 1400");
    netns.ip(
        "route add 203.0.113.0/24 nexthop via inet6 fe80::2 dev pa nexthop via inet6 fe80::3 dev pb",
    );
    let forward = |paths: &[Path]| Some(Route::Forward(paths.to_vec()));
    let narrow = Path {
        mtu: Some(1400),
        ..via(1, "fe80::2")
    };
    follower.until("one hop", |_, memory| {
        memory.route("198.51.100.0/24") == forward(&[narrow]).as_ref()
    });
    let both = [via(1, "fe80::2"), via(2, "fe80::3")];
    follower.until("two hops", |_, memory| {
        memory.route("203.0.113.0/24") == forward(&both).as_ref()
    });
}

#[test]
fn addresses_and_neighbors_are_followed() {
    let Some((netns, _mirror, mut follower)) = two_interfaces("ip6_addresses_and_neighbors") else {
        return;
    };
    let own = |memory: &Memory| -> Vec<(String, bool)> {
        let all = memory.addresses[&1].iter();
        let all = all.filter(|a| a.scope == 0);
        all.map(|a| (a.to_string(), a.deprecated)).collect()
    };
    netns.ip("address add 3fff:1::1/64 dev pa nodad preferred_lft 0");
    netns.ip("address add 3fff:2::1/64 dev pa nodad");
    let printed = |netns: &Netns| -> Vec<(String, bool)> {
        let text = netns.ip("-6 -j address show dev pa scope global");
        let links: Value = serde_json::from_str(&text).expect("JSON");
        let list = links[0]["addr_info"].as_array().expect("a list").iter();
        let address = |info: &Value| {
            let (own, length) = (info["local"].as_str(), info["prefixlen"].as_u64());
            let text = format!("{}/{}", own.expect("an address"), length.expect("a length"));
            (text, info["deprecated"].as_bool().unwrap_or(false))
        };
        // It prints an empty object for an address of another scope.
        list.filter(|info| info["local"].is_string())
            .map(address)
            .collect()
    };
    let wanted = printed(&netns);
    follower.until("the kernel's order", |_, memory| own(memory) == wanted);
    netns.ip("address add 3fff:ff::1/128 dev lo nodad");
    let loopback = "3fff:ff::1".parse().ok();
    follower.until("the source of all", |_, memory| {
        memory.sources.1 == loopback
    });
    let neighbor = (1, "fe80::2".parse().expect("an address"));
    netns.ip("neighbor add fe80::2 lladdr 02:00:00:00:00:02 dev pa nud permanent");
    follower.until("a neighbor", |_, memory| {
        memory.neighbors.contains_key(&neighbor)
    });
    netns.ip("neighbor del fe80::2 dev pa");
    follower.until("gone", |_, memory| {
        !memory.neighbors.contains_key(&neighbor)
    });
    netns.ip("link set pa down");
    follower.until("no address", |_, memory| own(memory).is_empty());
}

/// Bytes of memory that this process has in use.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("is there");
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    4096 * pages.unwrap_or(0)
}

/// Takes a minute to load; run by hand: `cargo test -p control --test ip6 -- --ignored
/// --nocapture`.
#[test]
#[ignore = "loads a quarter of a million IPv6 routes beside a million of IPv4"]
fn full_tables_of_both_families() {
    let Some((netns, mirror, follower)) = two_interfaces("ip6_full_tables") else {
        return;
    };
    drop((mirror, follower));
    netns.ip("address add 10.0.1.1/24 dev pa");
    netns.write("net/ipv6/route/max_size", "2147483647");
    let hop = |n: usize| (2 + n % 100, DEVICES[n % 2], 1 + n % 2);
    let ip4 = tables::synthetic::ip4::routes(1_000_000, 1);
    let ip6 = tables::synthetic::ip6::routes(250_000, 1);
    let lines = ip6.iter().enumerate().map(|(n, prefix)| {
        let (host, device, net) = hop(n);
        format!("-6 route replace {prefix} via 2001:db8:{net}::{host:x} dev {device}\n")
    });
    netns.batch(&lines.collect::<String>().replace("-6 ", ""));
    let lines = ip4
        .iter()
        .enumerate()
        .map(|(n, prefix)| format!("route replace {prefix} via 10.0.1.{}\n", hop(n).0));
    netns.batch(&lines.collect::<String>());
    let memory = tables::Memory::mapped(tables::Sizes::default()).expect("memory");
    let mut state = router::state::State::new(memory, 1);
    let before = resident();
    let begun = Instant::now();
    let (_mirror, batches) = Mirror::open(Some(&netns.path())).expect("a mirror");
    let mut translator = Translator::new();
    while !translator.synced() {
        let batch = batches.recv().expect("the mirror runs");
        drop(translator.apply(batch));
    }
    println!(
        "dumped and translated: {:?}, {} MiB",
        begun.elapsed(),
        (resident() - before) >> 20
    );
    let mut changes = Vec::new();
    let name = |id, name: &str| Binding {
        id,
        name: name.into(),
        host: None,
        port_up: true,
        serving: true,
        on: None,
        bond: None,
        tunnel: None,
        l2: None,
    };
    for (id, device) in [(1, "pa"), (2, "pb")] {
        let link = Link::named(translator.links(), device)
            .expect("is there")
            .index;
        changes.extend(translator.bind(link, name(id, device)));
    }
    let (before, begun) = (resident(), Instant::now());
    let full = changes.iter().filter(|change| state.apply(change).is_err());
    assert_eq!(full.count(), 0);
    println!(
        "applied {} changes: {:?}, {} MiB",
        changes.len(),
        begun.elapsed(),
        (resident() - before) >> 20
    );
}
