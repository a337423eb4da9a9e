//! ip4-arp: packets wait for their neighbor.

use std::net::Ipv4Addr;
use std::time::Duration;

use router::Unresolved;

use crate::harness::*;

fn to(host: u8, n: u16) -> Vec<u8> {
    udp(addr(2, host)).id(n).frame()
}

#[test]
fn the_kernel_is_asked_once_and_packets_leave_in_order() {
    let mut lab = Lab::new();
    lab.receive(1, (0..5).map(|n| to(9, n)));
    lab.receive(1, (5..10).map(|n| to(9, n)));
    let asked = Unresolved {
        interface: 2,
        address: ip(2, 9),
    };
    assert_eq!(lab.router.unresolved(), [asked]);
    assert!(lab.sent(2).is_empty());
    lab.check_buffers(10);
    lab.apply(vec![neighbor(2, 9)]);
    let want: Vec<_> = (0..10).map(|n| forwarded(&to(9, n), 2, 9)).collect();
    assert_eq!(lab.sent(2), want);
    lab.check_buffers(0);
    lab.receive(1, [to(9, 11)]);
    assert_eq!(lab.sent(2), [forwarded(&to(9, 11), 2, 9)]);
}

#[test]
fn a_gateway_that_is_unresolved_is_waited_for() {
    let mut lab = Lab::new();
    let change = router::Route::Forward(vec![via(3, 7)]);
    lab.apply(vec![route("50.0.0.0/8", change)]);
    let frame = udp(0x3200_0001).frame();
    lab.receive(1, [frame.clone()]);
    let asked = Unresolved {
        interface: 3,
        address: ip(3, 7),
    };
    assert_eq!(lab.router.unresolved(), [asked]);
    // Something else changes: it is tried again, and waits on.
    lab.apply(vec![neighbor(3, 8)]);
    assert!(lab.sent(3).is_empty());
    lab.check_buffers(1);
    lab.apply(vec![neighbor(3, 7)]);
    assert_eq!(lab.sent(3), [forwarded(&frame, 3, 7)]);
    lab.check_buffers(0);
}

#[test]
fn few_packets_are_held_for_one_neighbor() {
    let mut lab = Lab::new();
    lab.receive(1, (0..20).map(|n| to(9, n)));
    assert_eq!(lab.edge("ip4-arp", "Full"), 4);
    lab.check_buffers(16);
}

/// A network on interface 3 whose hosts do not answer, and packets to so many of them.
fn scan(lab: &mut Lab, hosts: std::ops::Range<u32>) {
    let change = router::Route::Forward(vec![on_link(3)]);
    lab.apply(vec![route("52.0.0.0/8", change)]);
    lab.receive(1, hosts.map(|n| udp(0x3400_0000 + n).frame()));
}

/// True if the kernel is asked for this neighbor when a packet comes for `destination`.
fn is_asked(lab: &mut Lab, destination: u32, interface: u16, neighbor: u32) -> bool {
    lab.router.unresolved();
    lab.receive(1, [udp(destination).frame()]);
    let asked = Unresolved {
        interface,
        address: Ipv4Addr::from(neighbor).into(),
    };
    lab.router.unresolved().contains(&asked)
}

#[test]
fn a_scan_of_one_network_stops_no_other_resolution() {
    let mut lab = Lab::new();
    let gateway = router::Route::Forward(vec![via(3, 7)]);
    lab.apply(vec![route("50.0.0.0/8", gateway)]);
    for round in 0..10 {
        scan(&mut lab, 5000 * round..5000 * (round + 1));
        // A limited number of requests: the kernel's table is for all.
        let asked = lab.router.unresolved().len();
        assert!(asked <= 129 + 64, "{asked}");
    }
    assert!(lab.edge("ip4-arp", "Limited") > 40_000);
    // A gateway on the same link, a host of another one.
    assert!(is_asked(&mut lab, 0x3200_0001, 3, addr(3, 7)));
    assert!(is_asked(&mut lab, addr(2, 9), 2, addr(2, 9)));
    // And a host of the same network, as soon as one more may be asked for.
    assert!(!is_asked(&mut lab, addr(3, 9), 3, addr(3, 9)));
    lab.advance(Duration::from_secs(1));
    assert!(is_asked(&mut lab, addr(3, 9), 3, addr(3, 9)));
    lab.apply(vec![neighbor(3, 7), neighbor(2, 9), neighbor(3, 9)]);
    assert_eq!(lab.sent(2).len(), 1);
    assert_eq!(lab.sent(3).len(), 2);
}

/// The kernel has one table of neighbors: scans of several networks, by several workers, may not
/// fill it.
#[test]
fn scans_by_all_workers_share_what_may_be_asked() {
    let mut lab = Lab::sized(2, 64).wired();
    let on = |interface| router::Route::Forward(vec![on_link(interface)]);
    lab.apply(vec![
        route("52.0.0.0/8", on(2)),
        route("53.0.0.0/8", on(3)),
        route("54.0.0.0/8", on(1)),
    ]);
    let mut asked = 0;
    let mut scan = |lab: &mut Lab, from: u16, net: u32| {
        for n in 0..20 {
            let to = |host| udp((net << 24) + n * 100 + host);
            let macs = (host_mac(from, 2), own_mac(from));
            let frames = (0..100).map(|host| to(host).macs(macs.0, macs.1).frame());
            lab.receive(from, frames.collect::<Vec<_>>());
            asked += lab.router.unresolved().len();
        }
        asked
    };
    // The same network by two workers: interface 1 is one's, interface 2 the other's.
    scan(&mut lab, 1, 52);
    let one = scan(&mut lab, 2, 52);
    assert_eq!(one, 128);
    // Three networks: 128 of each would be more than there is for all.
    scan(&mut lab, 1, 53);
    let all = scan(&mut lab, 2, 54);
    assert_eq!(all, 300);
}

#[test]
fn the_oldest_place_is_given_up_but_never_a_gateways_for_a_host() {
    let mut lab = Lab::new();
    // Hosts of two networks take the allowance of both, and with that all places.
    for net in [2, 3] {
        lab.receive(1, (3..131).map(|h| udp(addr(net, h)).frame()));
    }
    lab.check_buffers(256);
    lab.receive(1, [udp(addr(1, 3)).frame()]);
    assert_eq!(lab.edge("ip4-arp", "Full"), 1, "the oldest is gone");
    lab.check_buffers(256);
    lab.apply(vec![neighbor(2, 3), neighbor(2, 4)]);
    assert_eq!(lab.sent(2), [forwarded(&udp(addr(2, 4)).frame(), 2, 4)]);
    // A neighbor that was resolved has left its place.
    lab.advance(Duration::from_millis(3));
    lab.receive(1, [udp(addr(1, 4)).frame()]);
    assert_eq!(lab.edge("ip4-arp", "Full"), 1);
    lab.check_buffers(256);
}

#[test]
fn a_neighbor_that_does_not_answer_is_given_up() {
    let mut lab = Lab::new();
    lab.receive(1, [to(9, 1), to(9, 2)]);
    lab.advance(Duration::from_secs(2));
    assert_eq!(
        lab.edge("ip4-arp", "Unresolved"),
        0,
        "they may still answer"
    );
    lab.advance(Duration::from_secs(2));
    assert_eq!(lab.edge("ip4-arp", "Unresolved"), 2);
    let sent = lab.sent(1);
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0][34..36], [3, 1], "host unreachable");
    lab.check_buffers(0);
}
