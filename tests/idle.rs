//! A router without traffic sleeps, and wakes for the first packet.

use std::time::Duration;

use crate::harness::craft::{Ip4, Ip6, Mac};
use crate::harness::router::{forwards, is_to};
use crate::harness::topology::{CONFIGURATION, H0, H1, HOST, R0, ROUTER, ip6, text};
use crate::harness::{Directory, Hosts, Netns, Raw, Router, patience, skipped, until};

/// Processor seconds that a process has used (`/proc/<pid>/stat`, fields 14 and 15, hundredths of a
/// second).
fn used(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the router lives");
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .expect("a name")
        .1
        .split_whitespace()
        .collect();
    let ticks = |field: usize| fields[field - 3].parse::<f64>().expect("a number");
    (ticks(14) + ticks(15)) / 100.0
}

/// Fails if an idle router keeps a processor busy, measured over three seconds.
fn assert_idle(routers: &[&Router]) {
    const SECONDS: f64 = 3.0;
    let pids: Vec<u32> = routers.iter().map(|router| router.process.pid()).collect();
    let before: Vec<f64> = pids.iter().map(|pid| used(*pid)).collect();
    std::thread::sleep(Duration::from_secs_f64(SECONDS));
    for (pid, before) in pids.iter().zip(before) {
        let share = (used(*pid) - before) / SECONDS * 100.0;
        println!("idle router: {share:.1} % of a processor");
        // The aim is 5; one that polls uses all of it. Between them is room for any machine.
        assert!(
            share < 30.0,
            "an idle router used {share:.0} % of a processor"
        );
    }
}

/// Waits until each worker has fallen asleep again.
fn fall_asleep(routers: &[&Router]) {
    let sleeps = || -> Vec<u64> {
        let threads = routers.iter().map(|router| router.show(&["threads"]));
        let all = threads.flat_map(|shown| shown["threads"].as_array().expect("a list").clone());
        all.map(|thread| thread["sleeps"].as_u64().expect("a number"))
            .collect()
    };
    let before = sleeps();
    let again = until(patience(), || {
        sleeps()
            .iter()
            .zip(&before)
            .all(|(now, before)| now > before)
    });
    assert!(again, "a worker stays awake: {before:?}, {:?}", sleeps());
}

/// Sends one packet and fails if it does not arrive.
fn assert_first_arrives(left: &Raw, right: &Raw, round: u8) {
    right.drain(Duration::from_millis(1));
    let dst = [48, 1, 0, round].into();
    left.send(&Ip4::udp([16, 0, 0, 1].into(), dst, 1, 26).frame(H0, R0));
    let first = right.expect(patience(), |frame| is_to(frame, dst));
    assert!(first.is_some(), "the first packet after idle was lost");
}

/// The same of IPv6.
fn assert_first_of_ip6_arrives(left: &Raw, right: &Raw, round: u16) {
    right.drain(Duration::from_millis(1));
    let dst = ip6(0x4800, round);
    left.send(&Ip6::udp(ip6(0x1600, 1), dst, 1, 26).frame(H0, R0));
    let first = right.expect(patience(), |frame| {
        frame[12..14] == [0x86, 0xdd] && frame[38..54] == dst.octets()
    });
    assert!(first.is_some(), "the first IPv6 packet after idle was lost");
}

#[test]
fn idle_router_sleeps_and_first_packet_is_not_lost() {
    if skipped(
        "idle_router_sleeps_and_first_packet_is_not_lost",
        &["ip", "ethtool"],
    ) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    hosts.add_ip6();
    let (left, right) = hosts.raw();
    let router = Router::start(&hosts.router, CONFIGURATION);
    assert!(forwards(&left, &right));
    assert_idle(&[&router]);
    for round in 0..5 {
        fall_asleep(&[&router]);
        assert_first_arrives(&left, &right, round);
        fall_asleep(&[&router]);
        assert_first_of_ip6_arrives(&left, &right, round.into());
    }
}

/// Ethernet addresses of the memif between two routers.
const NEAR: Mac = [2, 0x70, 0x73, 3, 0, 1];
const FAR: Mac = [2, 0x70, 0x73, 3, 0, 2];

/// `left - r0 [first] m0 - memif - m0 [second] r1 - right`.
#[test]
fn idle_memif_sleeps_and_first_packet_is_not_lost() {
    if skipped(
        "idle_memif_sleeps_and_first_packet_is_not_lost",
        &["ip", "ethtool"],
    ) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    let other = Netns::create("second").unwrap();
    let moved = format!("link set r1 netns {}", other.name());
    hosts.router.ip(&moved).unwrap();
    other
        .ip_batch(&format!(
            "addr add {}/24 dev r1\nlink set r1 up\n",
            ROUTER[1]
        ))
        .unwrap();
    let directory = Directory::new();
    let socket = directory.path().join("between.sock");
    let yaml = |port: &str, mac: Mac, own: &str, role: &str| {
        format!(
            "interfaces:\n  {port}: {{}}\n  m0: {{ lcp: m0, mac: '{}', addresses: [ {own}/30 ] }}\n\
             ports:\n  m0: {{ memif: {{ socket: {}, id: 0, role: {role} }} }}\n",
            text(mac),
            socket.display()
        )
    };
    let first = Router::start(&hosts.router, &yaml("r0", NEAR, "198.18.2.1", "server"));
    let second = Router::start(&other, &yaml("r1", FAR, "198.18.2.2", "client"));
    let routes = |netns: &Netns, peer: &str, mac: Mac, prefix: &str| {
        let lines = format!(
            "neigh replace {peer} lladdr {} dev m0 nud permanent\nroute replace {prefix} via {peer} dev m0\n",
            text(mac)
        );
        // A host interface has carrier only once its memif is connected.
        let up = until(patience(), || netns.ip_batch(&lines).is_ok());
        assert!(up, "no route by the memif");
    };
    routes(&hosts.router, "198.18.2.2", FAR, "48.0.0.0/8");
    routes(&other, "198.18.2.1", NEAR, "16.0.0.0/8");
    other
        .ip_batch(&format!(
            "neigh replace {0} lladdr {1} dev r1 nud permanent\nroute replace 48.0.0.0/8 via {0} dev r1\n",
            HOST[1],
            text(H1)
        ))
        .unwrap();
    let (left, right) = hosts.raw();
    assert!(forwards(&left, &right), "{}", second.process.log());
    assert_idle(&[&first, &second]);
    for round in 0..5 {
        fall_asleep(&[&first, &second]);
        assert_first_arrives(&left, &right, round);
    }
}
