//! Many routes, and many changes under traffic.

use std::{
    fmt::Write,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use crate::harness::{
    Hosts, Router,
    craft::Ip4,
    router::{forwards, forwards_to, is_to},
    skipped,
    topology::{CONFIGURATION, H0, HOST, R0},
};

/// Routes in this test; `PARSHALL_ROUTES` asks for another number, a full table say.
const ROUTES: u32 = 100_000;

/// Changes under traffic.
const CHANGES: u32 = 10_000;

/// Lines for `ip -batch`: prefixes of 24 bits from 100.0.0.0 on, all by the right host.
fn lines(verb: &str, numbers: impl Iterator<Item = u32>) -> String {
    numbers.fold(String::new(), |mut text, number| {
        let prefix = std::net::Ipv4Addr::from((100 << 24) + (number << 8));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "route {verb} {prefix}/24 via {} dev r1", HOST[1]);
        text
    })
}

#[test]
fn many_routes_are_learned() {
    if skipped("many_routes_are_learned", &["ip", "ethtool"]) {
        return;
    }
    let routes = std::env::var("PARSHALL_ROUTES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(ROUTES);
    let hosts = Hosts::new(1500, false);
    let (left, right) = hosts.raw();
    // Half are there before the router, half come while it runs.
    hosts.router.ip_batch(&lines("add", 0..routes / 2)).unwrap();
    let _router = Router::start(&hosts.router, CONFIGURATION);
    hosts
        .router
        .ip_batch(&lines("add", routes / 2..routes))
        .unwrap();
    for number in [0, routes / 2 - 1, routes / 2, routes - 1] {
        let dst = ((100 << 24) + (number << 8) + 1).into();
        assert!(
            forwards_to(&left, &right, dst),
            "route {number} of {routes}"
        );
    }
}

#[test]
fn changes_under_traffic_lose_nothing() {
    if skipped("changes_under_traffic_lose_nothing", &["ip", "ethtool"]) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    let (left, right) = hosts.raw();
    let _router = Router::start(&hosts.router, CONFIGURATION);
    assert!(forwards(&left, &right));
    right.drain(Duration::from_millis(50));
    let over = AtomicBool::new(false);
    let dst = [48, 2, 0, 1].into();
    let (sent, received) = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let wanted = |right: &crate::harness::Raw, limit| {
                right.expect(limit, |frame| is_to(frame, dst)).is_some()
            };
            let mut received = 0u32;
            while !over.load(Ordering::Relaxed) {
                received += u32::from(wanted(&right, Duration::from_millis(50)));
            }
            while wanted(&right, Duration::from_millis(500)) {
                received += 1;
            }
            received
        });
        let sender = scope.spawn(|| {
            let mut sent = 0u32;
            while !over.load(Ordering::Relaxed) {
                left.send(&Ip4::udp([16, 0, 0, 1].into(), dst, sent as u16, 26).frame(H0, R0));
                sent += 1;
                std::thread::sleep(Duration::from_micros(200));
            }
            sent
        });
        hosts
            .router
            .ip_batch(&lines("add", 0..CHANGES / 2))
            .unwrap();
        hosts
            .router
            .ip_batch(&lines("del", 0..CHANGES / 2))
            .unwrap();
        std::thread::sleep(Duration::from_millis(500));
        over.store(true, Ordering::Relaxed);
        (sender.join().unwrap(), receiver.join().unwrap())
    });
    println!("{CHANGES} changes, {sent} packets");
    assert_eq!(received, sent, "packets lost while routes changed");
}
