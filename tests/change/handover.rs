//! From the kernel to the router and back: whoever forwards, no packet is lost on the way.

use crate::harness::router::forwards;

use super::{
    CONFIGURATION, Hosts, Router, becomes, patience, skipped, under_count, until, without_loss,
};

/// The left device alone.
const ONE: &str = "interfaces:\n  r0: {}\n";

/// Two hosts, and a kernel between them that forwards.
fn forwarding() -> Hosts {
    let hosts = Hosts::new(1500, false);
    hosts.router.set_forwarding(true).expect("a setting");
    hosts
}

fn assert_each_had_a_port(router: &Router) {
    let errors = router.show_text(&["errors"]);
    assert!(!errors.contains("no port serves"), "{errors}");
}

#[test]
fn a_start_takes_over_and_a_stop_gives_back() {
    if skipped(
        "a_start_takes_over_and_a_stop_gives_back",
        &["ip", "ethtool"],
    ) {
        return;
    }
    let hosts = forwarding();
    let router = without_loss(&hosts, || {
        let mut router = Router::start(&hosts.router, CONFIGURATION);
        for _ in 0..3 {
            assert_each_had_a_port(&router);
            assert!(router.process.stop().is_ok_and(|status| status.success()));
            router.relaunch(&hosts.router);
            router.wait();
        }
        router
    });
    assert_each_had_a_port(&router);
}

#[test]
fn an_interface_that_comes_or_goes_leaves_its_packets_to_the_kernel() {
    const NAME: &str = "an_interface_that_comes_or_goes_leaves_its_packets_to_the_kernel";
    if skipped(NAME, &["ip", "ethtool"]) {
        return;
    }
    let hosts = forwarding();
    let router = Router::start(&hosts.router, ONE);
    let ((), lost) = under_count(&hosts, || {
        for _ in 0..5 {
            becomes(&router, CONFIGURATION);
            becomes(&router, ONE);
        }
    });
    assert_each_had_a_port(&router);
    // What a worker has already when a device goes cannot be given back to the kernel.
    let errors = router.show(&["errors"]);
    let errors = errors["errors"].as_array().expect("errors").iter();
    let kept = errors.filter(|error| error["reason"] == "interface has no host interface");
    let kept: u64 = kept.filter_map(|error| error["count"].as_u64()).sum();
    assert_eq!(lost as u64, kept, "{}", router.show_text(&["errors"]));
}

/// While it has another name it is the kernel's, and packets leave by it.
#[test]
fn a_device_that_appears_is_taken_over() {
    const NAME: &str = "a_device_that_appears_is_taken_over";
    let renames = "renames no device that is up";
    if skipped(NAME, &["ip", "ethtool"]) || testbed::lacks(NAME, (6, 2), renames) {
        return;
    }
    let hosts = forwarding();
    let rename = |from: &str, to: &str| {
        let named = hosts.router.ip(&format!("link set {from} name {to}"));
        named.expect("a free name");
    };
    rename("r1", "late");
    let router = without_loss(&hosts, || {
        let router = Router::start(&hosts.router, CONFIGURATION);
        rename("late", "r1");
        let is_open = || {
            let shown = router.show(&["hardware", "r1"]);
            let port = shown["interfaces"][0]["port"].as_str();
            port.is_some_and(|port| port.contains("af_xdp"))
        };
        assert!(until(patience(), is_open), "{}", router.process.log());
        // What was opened serves within one look at the kernel's news, and sends by then.
        let (left, right) = hosts.raw();
        assert!(forwards(&left, &right), "{}", router.process.log());
        router
    });
    assert_each_had_a_port(&router);
}
