//! Many routes, and many changes under traffic.

mod table;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::harness::craft::Ip4;
use crate::harness::random::Random;
use crate::harness::router::{forwards, forwards_to, is_to};
use crate::harness::topology::{CONFIGURATION, H0, HOST, R0};
use crate::harness::{Hosts, Netns, Raw, Router, SetOnDrop, patience, skipped, until};

use self::table::{differences, kernels, routers, routers_route, way_fits};

/// Routes of the test that always runs, and of the one that runs when asked.
const MANY: usize = 100_000;
const FULL: usize = 1_000_000;

/// Destinations that are asked of kernel and router one by one.
const SAMPLES: usize = 100;

/// First octets of the topology's and the host's own networks.
const OURS: [u32; 4] = [16, 48, 127, 198];

/// Random prefixes of which most have lengths as in the Internet's table, none of them the
/// topology's own.
fn prefixes(random: &mut Random, count: usize) -> Vec<(Ipv4Addr, u8)> {
    let lengths = [24, 24, 24, 24, 24, 24, 24, 23, 22, 22, 21, 20, 19, 18, 16];
    let mut found = BTreeSet::new();
    while found.len() < count {
        let length = match random.below(100) {
            0 => 9 + random.below(24) as u8,
            _ => random.one_of(&lengths),
        };
        let address = (random.bits() as u32) & (u32::MAX << (32 - length));
        if (1..224).contains(&(address >> 24)) && !OURS.contains(&(address >> 24)) {
            found.insert((Ipv4Addr::from(address), length));
        }
    }
    found.into_iter().collect()
}

/// Lines for `ip -batch` that add routes to these prefixes: by one of some gateways on either side,
/// by two, or to nowhere.
fn lines(random: &mut Random, prefixes: &[(Ipv4Addr, u8)]) -> String {
    let mut text = String::new();
    for (address, length) in prefixes {
        let gateway = |random: &mut Random, side: usize| {
            let gateway = Ipv4Addr::from(u32::from(HOST[side]) + random.below(16) as u32);
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
            None => writeln!(text, "route add {target} {address}/{length}"),
            Some(_) => writeln!(text, "route add {address}/{length} {target}"),
        };
    }
    text
}

/// Waits until the router's table is the kernel's.
fn assert_same(netns: &Netns, router: &Router) {
    let kernel = kernels(netns);
    let mut found = Vec::new();
    let same = until(patience(), || {
        found = differences(&kernel, &routers(router));
        found.is_empty()
    });
    found.truncate(10);
    assert!(same, "{found:#?}");
}

/// Asks kernel and router what becomes of some destinations: half of them in known prefixes.
fn assert_same_ways(random: &mut Random, netns: &Netns, router: &Router, known: &[(Ipv4Addr, u8)]) {
    let mut destinations = String::new();
    for i in 0..SAMPLES {
        let any = (1 + random.below(222) as u32) << 24 | random.bits() as u32 >> 8;
        let (address, length) = known[random.below(known.len())];
        let host = any & u32::MAX.checked_shr(length.into()).unwrap_or(0);
        let address = match i % 2 {
            0 => Ipv4Addr::from(any),
            _ => Ipv4Addr::from(u32::from(address) | host),
        };
        destinations += &format!(" {address}");
    }
    let script =
        format!("for a in {destinations}; do echo $a $(ip -o route get $a 2>&1 || true); done");
    for line in netns.sh(&script).unwrap().lines() {
        let (address, answer) = line.split_once(' ').unwrap();
        let found = &router.show(&["ip", "fib", address])["route"];
        let fits = match found.is_null() {
            true => answer.contains("Network is unreachable"),
            false => way_fits(answer, &routers_route(found)),
        };
        assert!(fits, "{line}: {found}");
    }
}

/// A router beside a kernel with `count` routes of which some come later.
fn learn(name: &str, count: usize, later: usize) {
    let mut random = Random::new(name);
    let hosts = Hosts::new(1500, false);
    let (left, right) = hosts.raw();
    let prefixes = prefixes(&mut random, count);
    // From all over the table, not only its end.
    let (late, early): (Vec<_>, Vec<_>) = prefixes
        .iter()
        .partition(|(a, _)| u32::from(*a) % 9973 < (9973 * later / count) as u32);
    let (early, late) = (lines(&mut random, &early), lines(&mut random, &late));
    hosts.router.ip_batch(&early).unwrap();
    let start = Instant::now();
    let router = Router::start(&hosts.router, CONFIGURATION);
    println!("{name}: {} routes", early.lines().count());
    println!("{name}: it answers after {:.2?}", start.elapsed());
    for line in router.process.log().lines() {
        println!("{name}: {line}");
    }
    hosts.router.ip_batch(&late).unwrap();
    assert!(forwards(&left, &right));
    assert_same(&hosts.router, &router);
    assert_same_ways(&mut random, &hosts.router, &router, &prefixes);
}

#[test]
fn many_routes_are_learned() {
    if !skipped("many_routes_are_learned", &["ip", "ethtool"]) {
        learn("many_routes_are_learned", MANY, MANY / 4);
    }
}

/// Takes a minute; `make bench` runs it with the release binary.
#[test]
#[ignore = "a minute long"]
fn a_full_table_is_learned() {
    if !skipped("a_full_table_is_learned", &["ip", "ethtool"]) {
        learn("a_full_table_is_learned", FULL, 0);
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
    let router = Router::start(&hosts.router, CONFIGURATION);
    assert!(forwards(&left, &right));
    let prefixes = prefixes(&mut random, 3000);
    let text = lines(&mut random, &prefixes);
    hosts.router.ip_batch(&text).unwrap();
    // Routes that share next-hop objects, as FRR makes them.
    let objects = format!(
        "nexthop add id 11 via {0} dev r0\nnexthop add id 12 via {1} dev r1\nnexthop add id 13 group 11/12,3\n\
         route add 203.0.113.0/24 nhid 11\nroute add 203.0.114.0/24 nhid 13\n",
        HOST[0], HOST[1]
    );
    hosts.router.ip_batch(&objects).unwrap();
    assert_same(&hosts.router, &router);
    for change in [
        "nexthop replace id 11 via 198.18.1.9 dev r1",
        "nexthop replace id 13 group 12",
        "nexthop del id 11",
        "addr add 198.19.0.1/24 dev r0",
        "route replace 203.0.115.0/24 via 198.19.0.7",
        "route add 203.0.115.0/24 metric 10 via 198.18.1.7",
        "route del 203.0.115.0/24 metric 0",
        "addr del 198.19.0.1/24 dev r0",
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
    hosts
        .router
        .ip_batch(&text.replace("add", "replace"))
        .unwrap();
    hosts.add_routes();
    assert_same(&hosts.router, &router);
    assert!(forwards(&left, &right), "{}", router.process.log());
}

/// Sends packets to one destination until `over`; returns how many were sent and how many arrived.
fn count_through(left: &Raw, right: &Raw, over: &AtomicBool) -> (u32, u32) {
    let dst = [48, 2, 0, 1].into();
    let arrived = |limit| right.expect(limit, |frame| is_to(frame, dst)).is_some();
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut sent = 0u32;
            while !over.load(Ordering::Acquire) {
                left.send(&Ip4::udp([16, 0, 0, 1].into(), dst, sent as u16, 26).frame(H0, R0));
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
        received += late.iter().filter(|frame| is_to(frame, dst)).count() as u32;
        (sender.join().unwrap(), received)
    })
}

#[test]
fn changes_under_traffic_lose_nothing() {
    let name = "changes_under_traffic_lose_nothing";
    if skipped(name, &["ip", "ethtool"]) {
        return;
    }
    let mut random = Random::new(name);
    let hosts = Hosts::new(1500, false);
    let (left, right) = hosts.raw();
    let router = Router::start(&hosts.router, CONFIGURATION);
    assert!(forwards(&left, &right));
    right.drain(Duration::from_millis(50));
    let prefixes = prefixes(&mut random, 10_000);
    let adding = lines(&mut random, &prefixes);
    let deleting: String = prefixes
        .iter()
        .map(|(a, length)| format!("route del {a}/{length}\n"))
        .collect();
    let over = AtomicBool::new(false);
    let (sent, received) = std::thread::scope(|scope| {
        let ending = SetOnDrop(&over);
        let traffic = scope.spawn(|| count_through(&left, &right, &over));
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
    let (address, _) = prefixes[0];
    assert!(!router.show(&["ip", "fib", &address.to_string()])["route"].is_null());
    assert!(forwards_to(&left, &right, [48, 2, 0, 1].into()));
}
