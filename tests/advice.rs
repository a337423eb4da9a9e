//! Settings of the machine that are in the way: router and load tester say which, and what to do.

use std::net::UdpSocket;

use crate::harness::topology::{CONFIGURATION, HOST};
use crate::harness::{Hosts, Netns, Router, patience, skipped, until};

/// A host that leaves checksums to its virtual link sends them unfinished. The router sees that and
/// says what to do.
#[test]
fn unfinished_checksums_are_reported() {
    if skipped("unfinished_checksums_are_reported", &["ip", "ethtool"]) {
        return;
    }
    let hosts = Hosts::new(1500, true);
    let router = Router::start(&hosts.router, CONFIGURATION);
    let socket = hosts
        .left
        .inside(|| UdpSocket::bind((HOST[0], 0)).expect("an address of its own"));
    let seen = || {
        let shown = router.show(&["errors"]).to_string();
        shown.contains("rx-checksum-unfinished")
    };
    let send = || {
        for _ in 0..5 {
            socket.send_to(&[7; 100], (HOST[1], 5001)).expect("a route");
        }
    };
    // The lab's hosts finish theirs: nothing to report.
    for _ in 0..20 {
        send();
    }
    assert!(!seen(), "{}", router.show_text(&["errors"]));
    hosts
        .left
        .exec(&["ethtool", "-K", "h0", "tx", "on"])
        .expect("a veth has that");
    let reported = until(patience(), || {
        send();
        seen() && router.process.log().contains("ethtool -K")
    });
    assert!(reported, "{}", router.process.log());
    assert!(
        router
            .show_text(&["hardware", "r0"])
            .contains("rx-checksum-unfinished")
    );
    let log = router.process.log();
    let lines = log.lines().filter(|line| line.contains("ethtool -K"));
    assert_eq!(lines.count(), 1, "{log}");
}

/// Kernel settings that send packets another way than expected are in the log and shown, at the
/// start and when they come later; and gone when they go.
#[test]
fn kernel_settings_in_the_way_are_logged() {
    if skipped("kernel_settings_in_the_way_are_logged", &["ip", "nft"]) {
        return;
    }
    // Taps: neither XDP programs nor live frames, so that others may run beside it.
    let netns = Netns::create("router").expect("root may make namespaces");
    let yaml = "interfaces: { r0: { lcp: r0 } }\nports: { r0: { tap: {} } }\n";
    netns.set_forwarding(false).expect("root may set it");
    let nft = |commands: &str| {
        netns.exec(&["nft", commands]).expect("root may");
    };
    // What forwarded packets do not pass, and what does nothing, is no matter.
    nft(
        "add table inet host; add chain inet host in { type filter hook input priority 0; policy drop; }
         add chain inet host through { type filter hook forward priority 0; }",
    );
    let before = Router::start(&netns, yaml);
    let log = before.process.log();
    assert!(
        !log.contains("policy rules") && !log.contains("for forwarded packets"),
        "{log}"
    );
    drop(before);
    netns
        .ip("rule add from 192.0.2.0/24 lookup 100")
        .expect("root may add rules");
    nft(
        "add table ip nat; add chain ip nat leaving { type nat hook postrouting priority 100; }
         add rule ip nat leaving masquerade",
    );
    let router = Router::start(&netns, yaml);
    let logged = |texts: &[&str]| {
        until(patience(), || {
            let (log, shown) = (router.process.log(), router.show_text(&["warnings"]));
            let said = |text: &&str| log.contains(text) && shown.contains(text);
            texts.iter().all(said)
        })
    };
    let at_the_start = [
        "net.ipv4.ip_forward is 0",
        "net.ipv6.conf.all.forwarding is 0",
        "policy rules (ip rule)",
        "for forwarded packets, in nat leaving: packets",
    ];
    assert!(logged(&at_the_start), "{}", router.process.log());
    nft("add rule inet host through tcp dport 25 drop");
    let both = ["for forwarded packets, in host through, nat leaving: packets"];
    assert!(logged(&both), "{}", router.process.log());
    nft(
        "flush ruleset; add table netdev early
         add chain netdev early in { type filter hook ingress device r0 priority 0; policy drop; }",
    );
    let early = ["for forwarded packets, in early in: packets"];
    assert!(logged(&early), "{}", router.process.log());
    nft("flush ruleset");
    let gone = until(patience(), || {
        !router.show_text(&["warnings"]).contains("firewall")
    });
    assert!(gone, "{}", router.process.log());
}

/// The kernel forwards between virtual interfaces on the generator's processor. The load tester
/// says so, and what to do about it.
#[test]
fn a_generator_that_falls_short_says_why() {
    if skipped("a_generator_that_falls_short_says_why", &["ip", "ethtool"]) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    hosts.router.set_forwarding(true).expect("forwarding");
    let said = hosts.overload();
    assert!(
        said.contains("The generator fell short: software interrupts took"),
        "{said}"
    );
}
