//! A router without traffic sleeps, and wakes for the first packet.

use std::time::Duration;

use crate::harness::{
    Hosts, Router,
    craft::Ip4,
    router::{forwards, is_to},
    skipped,
    topology::{CONFIGURATION, H0, R0},
};

/// Processor seconds that a process has used (`/proc/<pid>/stat`, fields 14 and 15, hundredths of a second).
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

#[test]
fn idle_router_sleeps_and_first_packet_is_not_lost() {
    if skipped(
        "idle_router_sleeps_and_first_packet_is_not_lost",
        &["ip", "ethtool"],
    ) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    let (left, right) = hosts.raw();
    let router = Router::start(&hosts.router, CONFIGURATION);
    assert!(forwards(&left, &right));
    for round in 0..3u8 {
        std::thread::sleep(Duration::from_secs(1));
        right.drain(Duration::from_millis(1));
        let before = used(router.process.pid());
        std::thread::sleep(Duration::from_secs(2));
        let share = (used(router.process.pid()) - before) / 2.0;
        println!("idle router: {:.1} % of a processor", share * 100.0);
        // One that polls uses all of it, one that sleeps next to nothing: half way is a wide margin for both.
        assert!(
            share < 0.5,
            "an idle router used {:.0} % of a processor",
            share * 100.0
        );
        let dst = [48, 1, 0, round].into();
        left.send(&Ip4::udp([16, 0, 0, 1].into(), dst, 1, 26).frame(H0, R0));
        let first = right.expect(crate::harness::PATIENCE, |frame| is_to(frame, dst));
        assert!(first.is_some(), "the first packet after idle was lost");
    }
}
