//! Rules that hold whatever a router receives, of either family: nothing leaks, and all that leaves
//! is well-formed and was received.

use std::collections::HashMap;

use router::acl::{Direction, Packets};
use router::{Change, Interface, Route};
use tables::acl::Rule;
use tables::prefix::{Address, Prefix};

use super::harness::*;

/// A router with ways of every kind, in both families: a small link, several next hops, decisions, a
/// host interface (number 4, of 1). Each IPv4 way `N.0.0.0/8` has a twin `2001:db8:N00::/40`.
pub fn lab() -> Lab {
    let mut lab = wired6(Lab::with_host());
    let ecmp = Route::Forward(vec![via(2, 2), via(3, 2)]);
    let hosts = [2, 3].map(|id| format!("2001:db8:{id}::2"));
    let ecmp6 = Route::Forward(vec![via6(2, &hosts[0]), via6(3, &hosts[1])]);
    lab.apply(vec![
        Change::InterfaceSet(Interface {
            mtu: 576,
            ..interface(3)
        }),
        route("60.0.0.0/8", Route::Blackhole),
        route("61.0.0.0/8", Route::Prohibit),
        route("62.0.0.0/8", ecmp),
        neighbor6(2, &hosts[0]),
        neighbor6(3, &hosts[1]),
        route(
            "2001:db8:4800::/40",
            Route::Forward(vec![via6(2, &hosts[0])]),
        ),
        route("2001:db8:6000::/40", Route::Blackhole),
        route("2001:db8:6100::/40", Route::Prohibit),
        route("2001:db8:6200::/40", ecmp6),
    ]);
    lab.apply(filtered());
    lab
}

/// Access lists in both directions that let most packets pass.
fn filtered() -> Vec<Change> {
    fn one<A: Address>(port: u16) -> Rule<A> {
        let all = 0..=u16::MAX;
        Rule {
            source: Prefix::DEFAULT,
            destination: Prefix::DEFAULT,
            protocol: None,
            source_ports: all.clone(),
            destination_ports: if port == 0 { all } else { port..=port },
        }
    }
    // Enough rules for a tree.
    let ports = (1..=40).map(|port| (false, port * 300)).chain([(true, 0)]);
    let rules = ports.flat_map(|(permit, port)| {
        [Packets::V4(one(port)), Packets::V6(one(port))]
            .map(|packets| router::acl::Rule { permit, packets })
    });
    let (name, rules) = ("most".to_owned(), rules.collect());
    let attach = |(interface, direction)| Change::AclsAttach {
        interface,
        direction,
        acls: vec!["most".to_owned()],
    };
    let places = [(1, Direction::Input), (2, Direction::Output)];
    let set = Change::AclSet { name, rules };
    [set].into_iter().chain(places.map(attach)).collect()
}

/// Part that stays the same on the way: IPv4 addresses, identification, protocol; IPv6 all but the
/// hop limit. And the TTL or hop limit.
fn key(ip: &[u8]) -> Option<(Vec<u8>, u8)> {
    match ip.first()? >> 4 {
        6 => Some(([ip.get(..7)?, ip.get(8..40)?].concat(), ip[7])),
        _ => Some((
            [ip.get(4..6)?, &[*ip.get(9)?], ip.get(12..20)?].concat(),
            ip[8],
        )),
    }
}

/// The IPv6 neighbor that comes and goes.
pub const WAITING: &str = "2001:db8:2::9";

/// The TTLs or hop limits that went in with each key.
type Seen = HashMap<Vec<u8>, Vec<u8>>;

/// A frame that left by a routed interface.
fn check(frame: &[u8], interface: u16, mtu: usize, seen: &Seen) {
    assert!(frame.len() >= 34, "{frame:02x?}");
    assert_eq!(frame[6..12], own_mac(interface).0);
    assert_eq!(frame[0] & 1, 0);
    let ip = &frame[14..];
    let ((total, ours), mtu) = match [frame[12], frame[13]] {
        [8, 0] => (ip4(ip), mtu),
        // RFC 8200 section 5: every link carries so many.
        [0x86, 0xdd] => (ip6(ip), mtu.max(1280)),
        other => panic!("ethertype {other:02x?}"),
    };
    assert!(total <= ip.len() && total <= mtu, "{total}");
    assert!(
        ip.len() == total || frame.len() <= 60,
        "{} bytes",
        frame.len()
    );
    if ours {
        return;
    }
    let (key, ttl) = key(ip).unwrap();
    assert!(
        seen[&key].contains(&(ttl + 1)),
        "ttl {ttl} of {:?}",
        seen[&key]
    );
}

/// Length of an IPv4 packet, and whether it is an ICMP error of the router's own.
fn ip4(ip: &[u8]) -> (usize, bool) {
    let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    assert_eq!(ip[0], 0x45);
    assert!(total >= 20);
    assert_eq!(wire::checksum::of(&ip[..20]), 0);
    let error = ip[9] == 1 && ip[8] == 64 && total >= 48 && [3, 11].contains(&ip[20]);
    (total, error && wire::checksum::of(&ip[20..total]) == 0)
}

/// The same of an IPv6 packet.
fn ip6(ip: &[u8]) -> (usize, bool) {
    let (header, content) = wire::ip6::Header::parse(ip).unwrap();
    assert_eq!(ip[0] >> 4, 6);
    let length = usize::from(header.payload_len());
    let error = header.next_header == wire::ip::ICMP6 && header.hop_limit == 64 && length >= 48;
    let message = content.get(..length).unwrap_or_default();
    let proto = wire::ip::ICMP6;
    let sum = wire::checksum::pseudo_header(header.src, header.dst, proto, length)
        .with(message)
        .checksum();
    (
        40 + length,
        error && (1..=3).contains(&message[0]) && sum == 0,
    )
}

/// Interface `from` (1 or 4) receives these frames; a neighbor that packets wait for comes and
/// goes.
pub fn round(lab: &mut Lab, from: u16, received: Vec<Vec<u8>>) {
    let mut seen = Seen::new();
    for (key, ttl) in received.iter().filter_map(|frame| key(frame.get(14..)?)) {
        seen.entry(key).or_default().push(ttl);
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
    lab.apply(vec![neighbor(2, 9), neighbor6(2, WAITING)]);
    lab.sent(2).iter().for_each(|f| check(f, 2, 1500, &seen));
    let gone = [ip(2, 9), WAITING.parse().unwrap()].map(|address| Change::NeighborDelete {
        interface: 2,
        address,
    });
    lab.apply(gone.into());
    let held = held(lab);
    lab.check_buffers(held);
}

/// Packets that wait for a neighbor.
fn held(lab: &Lab) -> usize {
    let nodes = lab.router.workers[0].counters.nodes.iter();
    let waiting = nodes.filter(|(name, _)| ["ip4-arp", "ip6-discover-neighbor"].contains(name));
    let held = |(_, counters): &(_, std::sync::Arc<graph::counters::NodeCounters>)| {
        let left: u64 = counters.edges.iter().map(|e| e.get()).sum();
        (counters.packets.get() - left) as usize
    };
    waiting.map(held).sum()
}
