//! Life and death: killed at any moment, stopped, started again.

use std::time::Duration;

use crate::harness::{
    Hosts, PARSHALL, Raw, Router, random::Random, router::forwards, skipped,
    topology::CONFIGURATION,
};

/// Whether an XDP program is on the router's interfaces.
fn has_xdp(hosts: &Hosts) -> bool {
    hosts.router.ip("-d link show").unwrap().contains("xdp")
}

fn forwards_again(hosts: &Hosts, left: &Raw, right: &Raw) {
    let mut router = Router::start(&hosts.router, CONFIGURATION);
    assert!(forwards(left, right), "{}", router.process.log());
    assert!(
        router.process.stop().unwrap().success(),
        "an orderly stop is a success"
    );
}

#[test]
fn killed_at_any_moment_it_starts_again() {
    if skipped("killed_at_any_moment_it_starts_again", &["ip", "ethtool"]) {
        return;
    }
    let mut random = Random::new("killed_at_any_moment_it_starts_again");
    let hosts = Hosts::new(1500, false);
    let (left, right) = hosts.raw();
    for _ in 0..6 {
        let mut router = Router::launch(&hosts.router, CONFIGURATION);
        std::thread::sleep(Duration::from_millis(random.below(600) as u64));
        router.process.kill();
    }
    let gone = crate::harness::until(crate::harness::PATIENCE, || !has_xdp(&hosts));
    assert!(gone, "an XDP program outlives its router");
    forwards_again(&hosts, &left, &right);
}

#[test]
fn kernel_takes_over_when_it_dies() {
    if skipped("kernel_takes_over_when_it_dies", &["ip", "ethtool"]) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    let (left, right) = hosts.raw();
    let mut router = Router::start(&hosts.router, CONFIGURATION);
    assert!(forwards(&left, &right));
    router.process.kill();
    hosts.router.set_forwarding(true).unwrap();
    assert!(forwards(&left, &right), "the kernel forwards by itself");
    hosts.router.set_forwarding(false).unwrap();
    forwards_again(&hosts, &left, &right);
    assert!(!has_xdp(&hosts), "an orderly stop leaves no XDP program");
}

#[test]
fn cleanup_leaves_the_living_alone() {
    if skipped("cleanup_leaves_the_living_alone", &["ip", "ethtool"]) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    let (left, right) = hosts.raw();
    let _router = Router::start(&hosts.router, CONFIGURATION);
    lab::command::run(&[PARSHALL, "cleanup"]).unwrap();
    assert!(
        hosts.router.ip("link show r0").is_ok(),
        "our namespaces are still there"
    );
    assert!(forwards(&left, &right), "the router still forwards");
}
