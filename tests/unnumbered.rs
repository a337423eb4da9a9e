//! IPv4 on links without an IPv4 network of their own.

use std::time::Duration;

use crate::harness::craft::{ICMP, Ip4};
use crate::harness::router::{forwards, is_to};
use crate::harness::topology::{CONFIGURATION, H1, R1, ROUTER};
use crate::harness::{Hosts, Raw, Router, patience, skipped, until};

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
