//! Links without a network of their own: they have none, or borrow the addresses of another.

use std::time::Duration;

use crate::harness::craft::{ICMP, Ip4};
use crate::harness::router::{forwards, is_to};
use crate::harness::topology::{CONFIGURATION, H1, R1, ROUTER};
use crate::harness::{Hosts, Netns, Raw, Router, patience, skipped, until};

/// A host behind each side.
const LEFT: [u8; 4] = [16, 0, 0, 1];
const RIGHT: [u8; 4] = [48, 0, 0, 1];

/// Whether a packet from the right arrives on the left.
fn comes_back(left: &Raw, right: &Raw) -> bool {
    until(patience(), || {
        right.send(&Ip4::udp(RIGHT.into(), LEFT.into(), 1, 26).frame(H1, R1));
        let came = left.expect(Duration::from_millis(50), |frame| is_to(frame, LEFT));
        came.is_some()
    })
}

/// The source of the error about a packet from the right that has no hop left (ICMP time exceeded,
/// RFC 792).
fn source_of_error(right: &Raw) -> Option<[u8; 4]> {
    let mut expired = Ip4::udp(RIGHT.into(), LEFT.into(), 2, 26);
    expired.ttl = 1;
    right.send(&expired.frame(H1, R1));
    let error = right.expect(patience(), |frame| {
        is_to(frame, RIGHT) && frame[23] == ICMP && frame[34] == 11
    });
    error.map(|frame| [frame[26], frame[27], frame[28], frame[29]])
}

/// The link has only IPv6's link-local address, which the next hop has, too; then it borrows the
/// address of the other link.
#[test]
fn ip4_goes_by_links_without_an_ip4_network() {
    let test = "ip4_goes_by_links_without_an_ip4_network";
    if skipped(test, &["ip", "ethtool"]) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    hosts.add_ip6();
    let (left, right) = hosts.raw();
    let router = Router::start(&hosts.router, CONFIGURATION);
    let own = ROUTER[0];
    let bare = "addr flush dev r1 scope global\n\
                route replace 48.0.0.0/8 via inet6 fe80::2 dev r1\n";
    let borrowed = format!(
        "addr add {own}/32 dev r1\nroute replace 198.18.1.2/32 dev r1\n\
         neigh replace 198.18.1.2 lladdr 02:70:73:01:01:02 dev r1 nud permanent\n\
         route replace 48.0.0.0/8 via 198.18.1.2 dev r1 onlink\n"
    );
    for (lines, gateway) in [(bare, "fe80::2"), (&borrowed, "198.18.1.2")] {
        hosts.router.ip_batch(lines).expect("routes");
        let known = || {
            router
                .show_text(&["ip", "fib", "48.0.0.0/8"])
                .contains(gateway)
        };
        assert!(until(patience(), known), "{lines}");
        assert!(forwards(&left, &right), "{lines}{}", router.process.log());
        assert!(comes_back(&left, &right), "{lines}");
        // The host's own address, for the link has none.
        assert_eq!(source_of_error(&right), Some(own.octets()), "{lines}");
    }
}

/// Two links that borrow the addresses of a loopback, and a host on each: with its own address, the
/// way to the router, and a network behind it.
struct Borrowed {
    hosts: [Netns; 2],
    router: Router,
    netns: Netns,
}

impl Borrowed {
    fn start() -> Self {
        let netns = Netns::with_ipv6("router").expect("root may");
        let hosts = ["left", "right"].map(|name| Netns::with_ipv6(name).expect("root may"));
        let router = Router::start(&netns, &Self::configuration(&hosts, 1));
        let lab = Borrowed {
            hosts,
            router,
            netns,
        };
        for (side, network) in [(0, 16), (1, 48)] {
            let lines = format!(
                "addr add {network}.0.0.1/32 dev lo\naddr add 10.0.{side}.2/32 dev h{side}\n\
                 addr add 2001:db8:{side}::2/128 dev h{side} nodad\n\
                 route add 2001:db8::/32 via 2001:db8::1 dev h{side} onlink\n"
            );
            lab.hosts[side].ip_batch(&lines).expect("addresses");
        }
        lab
    }

    /// The loopback has 10.0.9.`host`.
    fn configuration(hosts: &[Netns; 2], host: u8) -> String {
        let [left, right] = [hosts[0].name(), hosts[1].name()];
        format!(
            "ports: {{ n: {{ null: {{}} }} }}\n\
             loopbacks: {{ loop0: {{ addresses: [ 10.0.9.{host}/24, 2001:db8::1/128 ] }} }}\n\
             taps: {{ tap0: {{ host: {{ name: h0, namespace: {left} }} }}, tap1: {{ host: {{ name: h1, namespace: {right} }} }} }}\n\
             interfaces: {{ tap0: {{ unnumbered: loop0 }}, tap1: {{ unnumbered: loop0 }} }}\n\
             routes:\n\
             - {{ prefix: 10.0.0.2/32, via: [ {{ interface: tap0 }} ] }}\n\
             - {{ prefix: 10.0.1.2/32, via: [ {{ interface: tap1 }} ] }}\n\
             - {{ prefix: 16.0.0.0/8, via: [ {{ address: 10.0.0.2, interface: tap0 }} ] }}\n\
             - {{ prefix: 48.0.0.0/8, via: [ {{ address: 10.0.1.2, interface: tap1 }} ] }}\n\
             - {{ prefix: 2001:db8:0::2/128, via: [ {{ interface: tap0 }} ] }}\n\
             - {{ prefix: 2001:db8:1::2/128, via: [ {{ interface: tap1 }} ] }}\n"
        )
    }

    /// The hosts reach each other and the router, which has 10.0.9.`host`.
    fn assert_joined(&self, host: u8) {
        for side in [0, 1] {
            let way = format!("route replace default via 10.0.9.{host} dev h{side} onlink");
            self.hosts[side].ip(&way).expect("a route");
        }
        let router = format!("10.0.9.{host}");
        let ways = [
            ["16.0.0.1", "48.0.0.1"],
            ["16.0.0.1", &router],
            ["2001:db8:0::2", "2001:db8:1::2"],
            ["2001:db8:0::2", "2001:db8::1"],
        ];
        for [own, other] in ways {
            let ping = ["ping", "-c", "1", "-W", "1", "-I", own, other];
            let pings = until(patience(), || self.hosts[0].exec(&ping).is_ok());
            assert!(pings, "{other}\n{}", self.router.process.log());
        }
    }
}

#[test]
fn borrowed_addresses_are_answered_for_and_follow_their_lender() {
    let test = "borrowed_addresses_are_answered_for_and_follow_their_lender";
    if skipped(test, &["ip", "ping"]) {
        return;
    }
    let lab = Borrowed::start();
    lab.assert_joined(1);
    let yaml = Borrowed::configuration(&lab.hosts, 3);
    std::fs::write(lab.router.file(), yaml).expect("a file");
    let file = lab.router.file().display().to_string();
    lab.router
        .ask(&["apply", "-c", &file])
        .expect("it can be done");
    for device in ["tap0-router", "tap1-router"] {
        let shown = lab.netns.ip(&format!("addr show dev {device}"));
        let shown = shown.expect("it is there");
        let has = |address: &str| shown.contains(&format!("{address} "));
        assert!(has("10.0.9.3/32") && has("2001:db8::1/128"), "{shown}");
        assert!(!has("10.0.9.1/32"), "{shown}");
    }
    lab.assert_joined(3);
}
