//! Many routes, and many changes under traffic.

mod family;
mod table;

use std::fmt::Write;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tables::prefix::Prefix;

use crate::harness::random::Random;
use crate::harness::router::{forwards, forwards_to, is_to};
use crate::harness::topology::{CONFIGURATION, HOST, HOST6};
use crate::harness::{Hosts, Netns, Raw, Router, SetOnDrop, patience, skipped, until};

use self::family::{Family, inside, prefixes};
use self::table::{differences, kernels, routers, routers_route, way_fits};

/// IPv4 and IPv6 routes of the test that always runs, and of the one that runs when asked.
const MANY: [usize; 2] = [80_000, 20_000];
const FULL: [usize; 2] = [1_000_000, 250_000];

/// The router has a full table after so many times what the kernel takes to tell it, at most.
const SLOWER: u32 = 10;

/// Which routes come when the router runs.
enum Later {
    None,
    Quarter,
}

/// Destinations that are asked of kernel and router one by one.
const SAMPLES: usize = 100;

/// Lines for `ip -batch` that add routes to these prefixes: by one of some gateways on either side,
/// by two, or to nowhere.
fn lines<A: Family>(random: &mut Random, prefixes: &[Prefix<A>]) -> String {
    let mut text = String::new();
    for prefix in prefixes {
        let gateway = |random: &mut Random, side: usize| {
            let gateway = A::Ip::from(A::gateway(side, random.below(16)));
            format!("via {gateway} dev r{side}")
        };
        let target = match random.below(100) {
            0 => random
                .one_of(&["blackhole", "unreachable", "prohibit"])
                .to_owned(),
            1..4 => {
                let (one, other) = (gateway(random, 0), gateway(random, 1));
                format!("nexthop {one} nexthop {other}")
            }
            n => gateway(random, n % 2),
        };
        // Writing to a String cannot fail.
        let _ = match target.split_once(' ') {
            None => writeln!(text, "route add {target} {prefix}"),
            Some(_) => writeln!(text, "route add {prefix} {target}"),
        };
    }
    text
}

/// Waits until the router's table is the kernel's.
fn assert_same(netns: &Netns, router: &Router) {
    let mut found = Vec::new();
    // The kernel's anew each time: it says a moment later that a link has carrier.
    let same = until(patience(), || {
        found = differences(&kernels(netns), &routers(router));
        found.is_empty()
    });
    found.truncate(10);
    assert!(same, "{found:#?}");
}

/// Asks kernel and router what becomes of some destinations: half of them in known prefixes.
fn assert_same_ways<A: Family>(
    random: &mut Random,
    netns: &Netns,
    router: &Router,
    known: &[Prefix<A>],
) {
    let mut destinations = String::new();
    for i in 0..SAMPLES {
        let known = known[random.below(known.len())];
        let prefix = match i % 2 {
            0 => Prefix::cut(known.addr(), A::LENGTHS[0]),
            _ => known,
        };
        destinations += &format!(" {}", A::Ip::from(inside(random, prefix)));
    }
    let script =
        format!("for a in {destinations}; do echo $a $(ip -o route get $a 2>&1 || true); done");
    for line in netns.sh(&script).unwrap().lines() {
        let (address, answer) = line.split_once(' ').unwrap();
        let found = &router.show(&[A::SHOW, "fib", address])["route"];
        let fits = match found.is_null() {
            true => answer.contains("Network is unreachable"),
            false => way_fits(answer, &routers_route(found)),
        };
        assert!(fits, "{line}: {found}");
    }
}

/// How long the kernel takes to tell all its routes to somebody who only writes them down.
fn dump(netns: &Netns) -> Duration {
    let start = Instant::now();
    netns
        .sh("ip -4 route save table all > /dev/null; ip -6 route save table all > /dev/null")
        .unwrap();
    start.elapsed()
}

/// A router beside a kernel with so many IPv4 and IPv6 routes, of which some come later. Returns
/// how long the router took to have those that were there, and the kernel to tell them.
fn learn(name: &str, [ip4, ip6]: [usize; 2], later: Later) -> [Duration; 2] {
    let mut random = Random::new(name);
    let hosts = Hosts::new(1500, false);
    hosts.add_ip6();
    let (left, right) = hosts.raw();
    let ip4 = prefixes::<u32>(&mut random, ip4);
    let ip6 = prefixes::<u128>(&mut random, ip6);
    let texts = [lines(&mut random, &ip4), lines(&mut random, &ip6)];
    // From all over the table, not only its end.
    let (mut early, mut late) = (String::new(), String::new());
    for (i, line) in texts.iter().flat_map(|text| text.lines()).enumerate() {
        let text = match (&later, i % 4) {
            (Later::Quarter, 0) => &mut late,
            _ => &mut early,
        };
        text.extend([line, "\n"]);
    }
    hosts.router.ip_batch(&early).unwrap();
    let dumped = dump(&hosts.router);
    let start = Instant::now();
    let router = Router::start(&hosts.router, CONFIGURATION);
    let answered = start.elapsed();
    println!("{name}: {} IPv4 and {} IPv6 routes", ip4.len(), ip6.len());
    println!(
        "{name}: it answers after {answered:.2?}; the kernel dumps its routes in {dumped:.2?}"
    );
    for line in router.process.log().lines() {
        println!("{name}: {line}");
    }
    hosts.router.ip_batch(&late).unwrap();
    for to in [IpAddr::V4(u32::FAR.into()), IpAddr::V6(u128::FAR.into())] {
        assert!(forwards_to(&left, &right, to), "{to}");
    }
    assert_same(&hosts.router, &router);
    assert_same_ways(&mut random, &hosts.router, &router, &ip4);
    assert_same_ways(&mut random, &hosts.router, &router, &ip6);
    [answered, dumped]
}

#[test]
fn many_routes_are_learned() {
    if !skipped("many_routes_are_learned", &["ip", "ethtool"]) {
        learn("many_routes_are_learned", MANY, Later::Quarter);
    }
}

/// Takes a minute; `make bench` runs it with the release binary.
#[test]
#[ignore = "a minute long"]
fn a_full_table_is_learned() {
    if !skipped("a_full_table_is_learned", &["ip", "ethtool"]) {
        let [answered, dumped] = learn("a_full_table_is_learned", FULL, Later::None);
        assert!(
            answered < SLOWER * dumped,
            "{answered:.2?} for what the kernel tells in {dumped:.2?}"
        );
    }
}

#[test]
fn the_table_follows_links_and_next_hops() {
    let name = "the_table_follows_links_and_next_hops";
    if skipped(name, &["ip", "ethtool"]) {
        return;
    }
    let mut random = Random::new(name);
    let hosts = Hosts::new(1500, false);
    let (left, right) = hosts.raw();
    hosts.add_ip6();
    let router = Router::start(&hosts.router, CONFIGURATION);
    assert!(forwards(&left, &right));
    let (ip4, ip6) = (
        prefixes::<u32>(&mut random, 3000),
        prefixes::<u128>(&mut random, 3000),
    );
    let text = lines(&mut random, &ip4) + &lines(&mut random, &ip6);
    hosts.router.ip_batch(&text).unwrap();
    // Routes that share next-hop objects, as FRR makes them.
    let objects = format!(
        "nexthop add id 11 via {0} dev r0\nnexthop add id 12 via {1} dev r1\nnexthop add id 13 group 11/12,3\n\
         route add 203.0.113.0/24 nhid 11\nroute add 203.0.114.0/24 nhid 13\n\
         nexthop add id 21 via {2} dev r0\nnexthop add id 22 via {3} dev r1\nnexthop add id 23 group 21/22,3\n\
         route add 3fff:113::/32 nhid 21\nroute add 3fff:114::/32 nhid 23\n",
        HOST[0], HOST[1], HOST6[0], HOST6[1]
    );
    hosts.router.ip_batch(&objects).unwrap();
    assert_same(&hosts.router, &router);
    for change in [
        "nexthop replace id 11 via 198.18.1.9 dev r1",
        "nexthop replace id 13 group 12",
        "nexthop del id 11",
        "nexthop replace id 21 via 2001:db8:1::9 dev r1",
        "nexthop replace id 23 group 22",
        "nexthop del id 21",
        "addr add 198.19.0.1/24 dev r0",
        "route replace 203.0.115.0/24 via 198.19.0.7",
        "route add 203.0.115.0/24 metric 10 via 198.18.1.7",
        "route del 203.0.115.0/24 metric 0",
        "addr del 198.19.0.1/24 dev r0",
        "addr add 2001:db8:19::1/64 dev r0 nodad",
        "route replace 3fff:115::/32 via 2001:db8:19::7",
        "route append 3fff:115::/32 via 2001:db8:1::7",
        "route add 3fff:115::/32 metric 10 via 2001:db8:1::8",
        "route del 3fff:115::/32 metric 1024",
        "addr del 2001:db8:19::1/64 dev r0",
        "link set r1 down",
        "link set r1 up",
        "link set lo down",
        "link set lo up",
    ] {
        hosts.router.ip(change).expect(change);
        println!("{name}: {change}");
        assert_same(&hosts.router, &router);
    }
    for carrier in ["down", "up"] {
        hosts.right.ip(&format!("link set h1 {carrier}")).unwrap();
        println!("{name}: carrier {carrier}");
        assert_same(&hosts.router, &router);
    }
    // The kernel took the IPv6 addresses away with the link.
    hosts.add_ip6();
    hosts
        .router
        .ip_batch(&text.replace("route add", "route replace"))
        .unwrap();
    hosts.add_routes();
    assert_same(&hosts.router, &router);
    assert!(forwards(&left, &right), "{}", router.process.log());
}

/// Sends packets to one destination until `over`; returns how many were sent and how many arrived.
fn count_through<A: Family>(left: &Raw, right: &Raw, over: &AtomicBool) -> (u32, u32) {
    let to: IpAddr = A::Ip::from(A::FAR).into();
    let arrived = |limit| right.expect(limit, |frame| is_to(frame, to)).is_some();
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut sent = 0u32;
            while !over.load(Ordering::Acquire) {
                left.send(&A::FAR.packet(sent as u16));
                sent += 1;
                std::thread::sleep(Duration::from_micros(100));
            }
            sent
        });
        let mut received = 0u32;
        while !sender.is_finished() {
            received += u32::from(arrived(Duration::from_millis(50)));
        }
        let late = right.drain(Duration::from_millis(500));
        received += late.iter().filter(|frame| is_to(frame, to)).count() as u32;
        (sender.join().unwrap(), received)
    })
}

/// Adds and deletes routes while packets of the family pass.
fn change_under_traffic<A: Family>(name: &str) {
    let mut random = Random::new(name);
    let hosts = Hosts::new(1500, false);
    hosts.add_ip6();
    let (left, right) = hosts.raw();
    let router = Router::start(&hosts.router, CONFIGURATION);
    let to: IpAddr = A::Ip::from(A::FAR).into();
    assert!(forwards_to(&left, &right, to));
    right.drain(Duration::from_millis(50));
    let prefixes = prefixes::<A>(&mut random, 10_000);
    let adding = lines(&mut random, &prefixes);
    let deleting: String = prefixes
        .iter()
        .map(|prefix| format!("route del {prefix}\n"))
        .collect();
    let over = AtomicBool::new(false);
    let (sent, received) = std::thread::scope(|scope| {
        let ending = SetOnDrop(&over);
        let traffic = scope.spawn(|| count_through::<A>(&left, &right, &over));
        let start = Instant::now();
        let mut changes = 0;
        for batch in [&adding, &deleting].into_iter().cycle().take(9) {
            hosts.router.ip_batch(batch).unwrap();
            changes += prefixes.len();
        }
        let spent = start.elapsed();
        assert_same(&hosts.router, &router);
        drop(ending);
        let per_second = changes as f64 / spent.as_secs_f64();
        println!(
            "{name}: {changes} changes in {spent:.2?}, {per_second:.0} a second; the router has them all after {:.2?}",
            start.elapsed()
        );
        traffic.join().unwrap()
    });
    println!("{name}: {sent} packets meanwhile, {received} arrived");
    assert_eq!(received, sent, "packets lost while routes changed");
    // A route that came and stayed is used.
    let came = A::Ip::from(prefixes[0].addr());
    assert!(!router.show(&[A::SHOW, "fib", &came.to_string()])["route"].is_null());
    assert!(forwards_to(&left, &right, to));
}

#[test]
fn changes_under_traffic_lose_nothing() {
    let name = "changes_under_traffic_lose_nothing";
    if !skipped(name, &["ip", "ethtool"]) {
        change_under_traffic::<u32>(name);
    }
}

#[test]
fn ip6_changes_under_traffic_lose_nothing() {
    let name = "ip6_changes_under_traffic_lose_nothing";
    if !skipped(name, &["ip", "ethtool"]) {
        change_under_traffic::<u128>(name);
    }
}
