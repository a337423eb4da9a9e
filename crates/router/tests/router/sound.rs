//! What must hold whatever a router receives: nothing leaks, and all that leaves is well-formed and
//! was received.

use std::collections::HashMap;

use router::{Change, Interface, Route};

use super::harness::*;

/// A router with ways of every kind: a small link, several next hops, decisions, a host interface (number
/// 4, of 1).
pub fn lab() -> Lab {
    let mut lab = Lab::with_host();
    let ecmp = Route::Forward(vec![via(2, 2), via(3, 2)]);
    lab.apply(vec![
        Change::InterfaceSet(Interface {
            mtu: 576,
            ..interface(3)
        }),
        route("60.0.0.0/8", Route::Blackhole),
        route("61.0.0.0/8", Route::Prohibit),
        route("62.0.0.0/8", ecmp),
    ]);
    lab
}

/// What goes in, by what stays the same on the way: addresses, identification, protocol.
fn key(ip: &[u8]) -> Vec<u8> {
    [&ip[4..6], &ip[9..10], &ip[12..20]].concat()
}

/// The TTLs that went in with each key.
type Seen = HashMap<Vec<u8>, Vec<u8>>;

/// A frame that left by a routed interface.
fn check(frame: &[u8], interface: u16, mtu: usize, seen: &Seen) {
    assert!(frame.len() >= 34, "{frame:02x?}");
    assert_eq!(frame[6..12], own_mac(interface).0);
    assert!(frame[0] & 1 == 0 && frame[12..14] == [8, 0]);
    let ip = &frame[14..];
    let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    assert_eq!(ip[0], 0x45);
    assert!((20..=ip.len()).contains(&total) && total <= mtu, "{total}");
    assert!(
        ip.len() == total || frame.len() <= 60,
        "{} bytes",
        frame.len()
    );
    assert_eq!(wire::checksum::of(&ip[..20]), 0);
    let ours = ip[9] == 1 && ip[8] == 64 && [3, 11].contains(&ip[20]);
    if ours && wire::checksum::of(&ip[20..total]) == 0 && total >= 48 {
        return;
    }
    let ttls = &seen[&key(ip)];
    assert!(ttls.contains(&(ip[8] + 1)), "ttl {} of {ttls:?}", ip[8]);
}

/// Interface `from` (1 or 4) receives these frames; a neighbor that packets wait for comes and
/// goes.
pub fn round(lab: &mut Lab, from: u16, received: Vec<Vec<u8>>) {
    let mut seen = Seen::new();
    for frame in received.iter().filter(|frame| frame.len() >= 34) {
        seen.entry(key(&frame[14..])).or_default().push(frame[22]);
    }
    let count = received.len();
    lab.receive(from, received.clone());
    let (straight, back) = (lab.sent(1), lab.sent(4));
    if from == 4 {
        let whole: Vec<_> = received.into_iter().filter(|f| f.len() >= 14).collect();
        // On a slow machine the router may meanwhile answer packets that have waited for a neighbor
        // since an earlier round.
        let is_hosts = |frame: &Vec<u8>| whole.contains(frame);
        let (straight, answers): (Vec<_>, Vec<_>) = straight.into_iter().partition(is_hosts);
        assert_eq!(straight, whole, "the host's packets leave as they are");
        answers.iter().for_each(|f| check(f, 1, 1500, &seen));
    } else {
        straight.iter().for_each(|f| check(f, 1, 1500, &seen));
        assert!(
            back.iter()
                .all(|f| received.iter().any(|r| r.starts_with(f)))
        );
    }
    lab.sent(2).iter().for_each(|f| check(f, 2, 1500, &seen));
    lab.sent(3).iter().for_each(|f| check(f, 3, 576, &seen));
    assert_eq!(lab.cables[&from].waiting(), 0, "{count} packets");
    lab.apply(vec![neighbor(2, 9)]);
    lab.sent(2).iter().for_each(|f| check(f, 2, 1500, &seen));
    lab.apply(vec![Change::NeighborDelete {
        interface: 2,
        address: ip(2, 9),
    }]);
    let held = held(lab);
    lab.check_buffers(held);
}

/// Packets that wait for a neighbor.
fn held(lab: &Lab) -> usize {
    let nodes = &lab.router.workers[0].counters.nodes;
    let (_, counters) = nodes.iter().find(|(name, _)| *name == "ip4-arp").unwrap();
    let left: u64 = counters.edges.iter().map(|e| e.get()).sum();
    (counters.packets.get() - left) as usize
}
