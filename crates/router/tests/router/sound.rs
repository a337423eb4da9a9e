//! Rules that hold whatever a router receives, of either family: nothing leaks, and all that leaves
//! is well-formed and was received.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use router::acl::{Direction, Packets};
use router::bond::{Headers, Spread};
use router::vxlan::Tunnel;
use router::{ArpRequests, BridgeDomain, Change, Interface, Kind, L2, Route, Tags, arc};
use tables::acl::Rule;
use tables::prefix::{Address, Prefix};
use wire::lacp::{self, Pdu, state};
use wire::{arp, eth, ip};

use super::harness::*;

/// A bond that hashes, and its members; one with LACP, and its member. Their address is that of
/// interface 1, and so is that of tunnels.
const XOR: u16 = 30;
pub const XOR_MEMBERS: [u16; 2] = [31, 32];
const LACP: u16 = 33;
pub const LACP_MEMBER: u16 = 34;

/// A bridge domain: its members are what has this tag on interface 1, and an interface; and its own
/// interface, whose address is that of interface 1. It answers ARP requests.
const DOMAIN: u16 = 1;
const BRIDGED_SUB: u16 = 40;
pub const BRIDGED_TAG: u16 = 100;
pub const BRIDGED: u16 = 41;
const BVI: u16 = 42;

/// A cross connect of what has one tag on interface 1 and what has two others on an interface.
const CROSSED_SUBS: [(u16, u16, Tags); 2] = [
    (43, 1, Tags::one(101)),
    (44, CROSSED, Tags::two(200, 300).with_service()),
];
pub const CROSSED: u16 = 45;

/// Tunnels of either family, and their ends: to the host on interface 2, and to that on 1.
const TUNNELS: [(u16, [&str; 2]); 4] = [
    (20, ["10.0.2.1", "10.0.2.2"]),
    (21, ["2001:db8:2::1", "2001:db8:2::2"]),
    (22, ["10.0.1.1", "10.0.1.2"]),
    (23, ["2001:db8:1::1", "2001:db8:1::2"]),
];
/// Of each.
pub const VNI: u32 = 7;
const TUNNEL_MTU: usize = 1400;

/// A router with ways of every kind, in both families: a small link, several next hops, decisions, a
/// host interface (number 4, of 1), tunnels (20 to 23; 63.0.0.0/8 to 66.0.0.0/8 by these), bonds
/// (67.0.0.0/8 and 68.0.0.0/8), a bridge (69.0.0.0/8), a cross connect that changes tags. Each IPv4 way `N.0.0.0/8` has a twin `2001:db8:N00::/40`.
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
        Change::FeatureSet {
            interface: 1,
            feature: arc::SAMPLED,
            argument: Some(2),
        },
    ]);
    lab.apply(filtered());
    let devices = TUNNELS
        .map(|(id, _)| id)
        .into_iter()
        .chain([XOR, LACP, BVI]);
    let ways = devices.clone().zip(63..);
    bonds(&mut lab);
    bridge(&mut lab);
    cross_connect(&mut lab);
    tunnels(&mut lab);
    lab.apply(ways.flat_map(|(id, net)| way(id, net)).collect());
    agree(&mut lab);
    lab
}

/// Ways of either family by a host on an interface.
fn way(id: u16, net: u16) -> [Change; 4] {
    let host6 = format!("2001:db8:{id}::2");
    let far6 = format!("2001:db8:{net}00::/40");
    [
        neighbor(id, 2),
        neighbor6(id, &host6),
        route(&format!("{net}.0.0.0/8"), Route::Forward(vec![via(id, 2)])),
        route(&far6, Route::Forward(vec![via6(id, &host6)])),
    ]
}

fn tunnels(lab: &mut Lab) {
    let tunnel = |(id, ends): (u16, [&str; 2])| {
        let [local, remote]: [IpAddr; 2] = ends.map(|end| end.parse().unwrap());
        let tunnel = Tunnel::new(local, remote, VNI).unwrap();
        Change::InterfaceSet(Interface {
            kind: Kind::Vxlan { tunnel, host: None },
            mac: own_mac(1),
            mtu: TUNNEL_MTU as u16,
            ..interface(id)
        })
    };
    lab.apply(TUNNELS.map(tunnel).into());
    lab.apply(vec![neighbor6(1, TUNNELS[3].1[1])]);
}

fn bridge(lab: &mut Lab) {
    let member = |id, kind| {
        Change::InterfaceSet(Interface {
            kind,
            l2: Some(L2::Bridge(DOMAIN)),
            ..interface(id)
        })
    };
    let sub = Kind::Sub {
        parent: 1,
        tags: Tags::one(BRIDGED_TAG),
        host: None,
    };
    lab.plug(BRIDGED, 0);
    lab.apply(vec![
        Change::InterfaceSet(Interface {
            mac: own_mac(1),
            ..interface(BVI)
        }),
        Change::BridgeSet(BridgeDomain {
            id: DOMAIN,
            name: "bd1".to_owned(),
            learn: true,
            flood: true,
            unknown_flood: true,
            forward: true,
            bvi: Some(BVI),
            age_minutes: None,
            limit: None,
            arp: ArpRequests::Answer,
        }),
        member(BRIDGED_SUB, sub),
        member(BRIDGED, Kind::Routed { host: None }),
    ]);
}

fn cross_connect(lab: &mut Lab) {
    lab.plug(CROSSED, 0);
    lab.apply(vec![Change::InterfaceSet(interface(CROSSED))]);
    let [one, other] = CROSSED_SUBS;
    for (sub, to) in [(one, other.0), (other, one.0)] {
        lab.sub(sub, Some(L2::CrossConnect(to)));
    }
}

/// The frame with the tags of an end of the cross connect.
pub fn crossing(frame: &[u8], end: usize) -> Vec<u8> {
    let tags = CROSSED_SUBS[end].2;
    let outer = if tags.service { 0x88a8u16 } else { 0x8100 };
    let words = [outer, tags.outer, 0x8100, tags.inner].map(u16::to_be_bytes);
    [
        &frame[..12],
        &words.as_flattened()[..tags.len()],
        &frame[12..],
    ]
    .concat()
}

/// A frame that has the tags of an end of the cross connect without them, and the priority of the
/// outer one.
fn crossed(frame: &[u8], end: usize) -> Option<(Vec<u8>, u8)> {
    let tags = CROSSED_SUBS[end].2;
    let len = tags.len();
    let priority = frame.get(14)? >> 4;
    let mut plain = frame.to_vec();
    plain[14] &= 0xf;
    if let Some(inner) = plain.get_mut(18).filter(|_| len > 4) {
        *inner &= 0xf;
    }
    let rest = [&frame[..12], frame.get(12 + len..)?].concat();
    (crossing(&rest, end) == plain).then_some((rest, priority))
}

fn bonds(lab: &mut Lab) {
    let bond = |id, spread| {
        let host = None;
        Change::InterfaceSet(Interface {
            kind: Kind::Bond {
                spread,
                enabled: true,
                host,
            },
            mac: own_mac(1),
            ..interface(id)
        })
    };
    let member = |id, of| {
        Change::InterfaceSet(Interface {
            l2: Some(L2::Bond(of)),
            ..interface(id)
        })
    };
    for id in [XOR_MEMBERS[0], XOR_MEMBERS[1], LACP_MEMBER] {
        lab.plug(id, 0);
    }
    lab.apply(vec![
        bond(XOR, Spread::Xor(Headers::L34)),
        bond(LACP, Spread::Lacp(Headers::L23)),
        member(XOR_MEMBERS[0], XOR),
        member(XOR_MEMBERS[1], XOR),
        member(LACP_MEMBER, LACP),
    ]);
}

/// The other end of the member with LACP agrees. Nothing that it says later counts: the machines
/// stand still.
fn agree(lab: &mut Lab) {
    for now in (0..3000).step_by(100) {
        lab.router.unresolved();
        lab.router.negotiate(Duration::from_millis(now));
        lab.advance(Duration::from_millis(100));
        for frame in lab.sent(LACP_MEMBER) {
            let Ok(Pdu::Lacp(said)) = lacp::parse(&frame[eth::LEN..]) else {
                panic!("{frame:02x?}");
            };
            lab.receive(LACP_MEMBER, [answer(&said)]);
        }
    }
    assert!(lab.router.has_partner(LACP));
}

/// What the other end of a member says, which has heard this.
pub fn answer(said: &lacp::Header) -> Vec<u8> {
    let mut them = lacp::Info::new((1, host_mac(9, 9)), 1, (1, 1));
    them.state = state::ACTIVITY | state::AGGREGATION | state::SYNCHRONIZATION;
    let answer = lacp::Header::new(them, said.actor());
    answer.frame(host_mac(9, 9)).to_vec()
}

/// Access lists in both directions that let most packets pass.
pub fn filtered() -> Vec<Change> {
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

/// Part that stays the same on the way: IPv4 addresses, identification, protocol; IPv6 all but
/// congestion notification and the hop limit. And the TTL or hop limit.
fn key(ip: &[u8]) -> Option<(Vec<u8>, u8)> {
    match ip.first()? >> 4 {
        6 => Some((
            [&[ip[0], ip.get(1)? & 0xcf], ip.get(2..7)?, ip.get(8..40)?].concat(),
            ip[7],
        )),
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
    let came_with = seen.get(&key);
    if came_with.is_some_and(|all| all.contains(&(ttl + 1))) {
        return;
    }
    match inside(&ip[..total]) {
        Some(frame) => check(frame, 1, TUNNEL_MTU, seen),
        None => panic!("ttl {ttl} of {came_with:?}: {frame:02x?}"),
    }
}

/// The frame in a packet that a tunnel has made.
fn inside(packet: &[u8]) -> Option<&[u8]> {
    let (ends, udp): ([IpAddr; 2], _) = match packet[0] >> 4 {
        4 => {
            let (header, udp) = wire::ip4::Header::parse(packet)?;
            assert_eq!((header.ttl, header.dscp()), (64, 0));
            assert_eq!((header.proto, header.fragment()), (ip::UDP, 0x4000));
            let ends = [header.src(), header.dst()].map(|end| IpAddr::V4(end.into()));
            assert_eq!(udp[6..8], [0, 0]);
            (ends, udp)
        }
        _ => {
            let (header, udp) = wire::ip6::Header::parse(packet)?;
            assert_eq!((header.hop_limit, header.traffic_class() >> 2), (64, 0));
            assert_eq!(header.next_header, ip::UDP);
            let sum = wire::checksum::transport(header.src, header.dst, ip::UDP, udp);
            assert_eq!(sum, 0);
            ([header.src, header.dst].map(IpAddr::from), udp)
        }
    };
    let of = |tunnel: &(u16, [&str; 2])| tunnel.1.map(|end| end.parse::<IpAddr>().unwrap());
    assert!(TUNNELS.iter().any(|tunnel| of(tunnel) == ends), "{ends:?}");
    let (header, content) = wire::udp::Header::parse(udp)?;
    assert_eq!(usize::from(header.length()), udp.len());
    assert_eq!(header.dst_port(), wire::port::VXLAN);
    let (header, frame) = wire::vxlan::Header::parse(content)?;
    assert_eq!(header.vni(), Some(VNI));
    Some(frame)
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
    let error = header.next_header == ip::ICMP6 && header.hop_limit == 64 && length >= 48;
    let message = content.get(..length).unwrap_or_default();
    let proto = ip::ICMP6;
    let sum = wire::checksum::pseudo_header(header.src, header.dst, proto, length)
        .with(message)
        .checksum();
    (
        40 + length,
        error && (1..=3).contains(&message[0]) && sum == 0,
    )
}

/// A frame that begins with the tag of the bridge's sub-interface, without that.
fn untagged(frame: &[u8]) -> Option<Vec<u8>> {
    let [kind, vlan] = [12, 14].map(|at| frame.get(at..at + 2));
    let is_its =
        kind? == [0x81, 0] && u16::from_be_bytes(vlan?.try_into().ok()?) & 0xfff == BRIDGED_TAG;
    is_its.then(|| [&frame[..12], &frame[16..]].concat())
}

/// A frame that left by a member of the bridge: it has come in there as it is, or is the answer to an
/// ARP request, or the bridge's own interface has sent it.
fn check_bridged(frame: &[u8], bridged: &[Vec<u8>], seen: &Seen) {
    assert!(frame.len() <= eth::LEN + 1500, "{} bytes", frame.len());
    if bridged.iter().any(|came| came == frame) {
        return;
    }
    if frame[12..14] != eth::ARP.to_be_bytes() {
        return check(frame, 1, 1500, seen);
    }
    let (answer, _) = arp::Header::parse(&frame[eth::LEN..]).expect("is one");
    assert_eq!(answer.operation(), arp::REPLY, "{frame:02x?}");
    assert_eq!(frame[6..12], answer.sender_mac.0);
}

/// Where a packet's IP header may be: in its frame, and in the frame of a tunnel of either family, with a
/// tag and without.
const IP_AT: [usize; 6] = [
    14,
    18,
    14 + 36 + 14,
    18 + 36 + 14,
    14 + 56 + 14,
    18 + 56 + 14,
];

/// Interface `from` (1, 4, a member of a bond or of the bridge, an end of the cross connect) receives these frames; a neighbor that packets wait
/// for comes and goes.
pub fn round(lab: &mut Lab, from: u16, received: Vec<Vec<u8>>) {
    let mut seen = Seen::new();
    for at in IP_AT {
        for (key, ttl) in received.iter().filter_map(|frame| key(frame.get(at..)?)) {
            seen.entry(key).or_default().push(ttl);
        }
    }
    // What was learned before this.
    lab.router.unresolved();
    let bridged: Vec<_> = match from {
        BRIDGED => received.clone(),
        _ => received.iter().filter_map(|f| untagged(f)).collect(),
    };
    // What leaves by an end has come in by the other.
    let crosses = |frame: &[u8], end: usize| {
        let left = crossed(frame, end);
        left.is_some() && received.iter().any(|f| crossed(f, 1 - end) == left)
    };
    let check_first = |frame: &Vec<u8>| match untagged(frame) {
        Some(frame) => check_bridged(&frame, &bridged, &seen),
        None if crosses(frame, 0) => {}
        None => check(frame, 1, 1500, &seen),
    };
    let count = received.len();
    lab.receive(from, received.clone());
    let (straight, back) = (lab.sent(1), lab.sent(4));
    if from == 4 {
        let whole: Vec<_> = received.iter().filter(|f| f.len() >= 14).collect();
        // On a slow machine the router may meanwhile answer packets that have waited for a neighbor
        // since an earlier round.
        let is_hosts = |frame: &Vec<u8>| whole.contains(&frame);
        let (straight, answers): (Vec<_>, Vec<_>) = straight.into_iter().partition(is_hosts);
        assert!(
            straight.iter().eq(whole),
            "the host's packets leave as they are"
        );
        answers.iter().for_each(check_first);
    } else {
        straight.iter().for_each(check_first);
        assert!(
            back.iter()
                .all(|f| received.iter().any(|r| r.starts_with(f)))
        );
    }
    let out = lab.sent(CROSSED);
    assert!(out.iter().all(|frame| crosses(frame, 1)), "{out:02x?}");
    let out = lab.sent(BRIDGED);
    out.iter().for_each(|f| check_bridged(f, &bridged, &seen));
    lab.sent(2).iter().for_each(|f| check(f, 2, 1500, &seen));
    lab.sent(3).iter().for_each(|f| check(f, 3, 576, &seen));
    for member in [XOR_MEMBERS[0], XOR_MEMBERS[1], LACP_MEMBER] {
        for frame in lab.sent(member) {
            match frame[..6] == lacp::GROUP.0 {
                true => check_marker(&frame, member),
                false => check(&frame, 1, 1500, &seen),
            }
        }
    }
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

/// The answer to a marker.
fn check_marker(frame: &[u8], member: u16) {
    assert_eq!(member, LACP_MEMBER);
    assert_eq!(frame[6..12], own_mac(member).0);
    assert_eq!(lacp::parse(&frame[eth::LEN..]), Ok(Pdu::MarkerResponse));
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
