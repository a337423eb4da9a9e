//! VLAN sub-interfaces: what has their tags is routed as theirs, leaves with their tags, and goes to
//! the host with them.

use graph::Command;
use router::arc;
use router::{Change, Interface, Kind, Prefix, Route, Tags};

use crate::harness::*;

/// Sub-interfaces 11 of 1, 12 and 13 of 2.
const SUBS: [(u16, u16, Tags); 3] = [
    (11, 1, Tags::one(100)),
    (12, 2, Tags::two(200, 300).with_service()),
    (13, 2, Tags::one(100)),
];

fn tags(id: u16) -> Tags {
    let sub = SUBS.iter().find(|sub| sub.0 == id);
    sub.map_or(Tags::NONE, |sub| sub.2)
}

/// The interface whose cable an interface's packets come by.
fn parent(id: u16) -> u16 {
    let sub = SUBS.iter().find(|sub| sub.0 == id);
    sub.map_or(id, |sub| sub.1)
}

fn is_sub(id: u16) -> bool {
    parent(id) != id
}

fn sub(id: u16) -> Interface {
    Interface {
        kind: Kind::Sub {
            parent: parent(id),
            tags: tags(id),
            host: None,
        },
        ..interface(id)
    }
}

/// The frame with the tags of an interface.
fn tagged(frame: &[u8], id: u16) -> Vec<u8> {
    let tags = tags(id);
    let outer = if tags.service { 0x88a8u16 } else { 0x8100 };
    let words = [outer, tags.outer, 0x8100, tags.inner];
    let bytes: Vec<u8> = words.into_iter().flat_map(u16::to_be_bytes).collect();
    [&frame[..12], &bytes[..tags.len()], &frame[12..]].concat()
}

/// [`Lab::with_host`] with all sub-interfaces, a neighbor `.2` on each, and 60.id.0.0/16 and
/// 2001:db8:60:id::/64 behind it.
fn lab() -> Lab {
    subs(wired6(Lab::with_host()))
}

fn subs(mut lab: Lab) -> Lab {
    for (id, parent, _) in SUBS {
        for worker in &mut lab.router.workers {
            let egress = Command::Egress(id, parent);
            assert!(worker.command(egress).is_ok());
        }
        let mut changes = connected(id);
        changes[0] = Change::InterfaceSet(sub(id));
        lab.apply(changes);
    }
    for id in [1, 2, 3, 11, 12, 13] {
        let far = format!("60.{id}.0.0/16");
        let far6 = format!("2001:db8:60:{id}::/64");
        lab.apply(vec![
            neighbor(id, 2),
            route(&far, Route::Forward(vec![via(id, 2)])),
            route(&far6, Route::Forward(vec![via(id, 2)])),
        ]);
    }
    lab
}

fn far(id: u16) -> u32 {
    u32::from_be_bytes([60, id as u8, 1, 1])
}

/// A packet to `60.to.1.1` as interface `from` receives it, without tags.
fn packet(from: u16, to: u16) -> wire::craft::Packet {
    let source = (addr(from as u8, 2), 1025);
    wire::craft::Packet::udp(source, (far(to), 12)).macs(host_mac(from, 2), own_mac(from))
}

const ALL: [u16; 6] = [1, 2, 3, 11, 12, 13];

#[test]
fn packets_are_forwarded_from_and_to_any_tags() {
    for workers in [1, 2] {
        let mut lab = subs(wired6(Lab::sized(workers, 64).wired()));
        for (from, to) in ALL.into_iter().flat_map(|from| ALL.map(|to| (from, to))) {
            let frames = (0..3).map(|n| packet(from, to).id(n).payload(&[7; 30]).frame());
            let frames: Vec<_> = frames.collect();
            let before = [lab.counted(from), lab.counted(to)];
            let received = frames.iter().map(|frame| tagged(frame, from));
            lab.receive(parent(from), received.collect::<Vec<_>>());
            let want: Vec<_> = frames
                .iter()
                .map(|frame| tagged(&forwarded(frame, to, 2), to))
                .collect();
            assert_eq!(lab.sent(parent(to)), want, "{from} to {to}");

            let destination = format!("2001:db8:60:{to}::1");
            let source: std::net::Ipv6Addr = "2001:db8:9::1".parse().unwrap();
            let destination: std::net::Ipv6Addr = destination.parse().unwrap();
            let packet = wire::craft::Packet::udp6((source, 1), (destination, 2));
            let frame = packet.macs(host_mac(from, 2), own_mac(from)).frame();
            lab.receive(parent(from), [tagged(&frame, from)]);
            let mut want = frame;
            want[..6].copy_from_slice(&host_mac(to, 2).0);
            want[6..12].copy_from_slice(&own_mac(to).0);
            want[21] -= 1;
            assert_eq!(lab.sent(parent(to)), [tagged(&want, to)], "{from} to {to}");
            // With their tags, as at the parent. Ports count for themselves.
            let bytes: usize = frames.iter().chain([&want]).map(Vec::len).sum();
            let [came, left] = [from, to].map(|id| (bytes + 4 * tags(id).len()) as u64);
            let counted = |id: u16, before: [u64; 5]| {
                let now = lab.counted(id);
                std::array::from_fn::<u64, 4, _>(|at| now[at] - before[at])
            };
            if is_sub(from) {
                assert_eq!(counted(from, before[0])[..2], [4, came], "{from} to {to}");
            }
            if is_sub(to) {
                assert_eq!(counted(to, before[1])[2..], [4, left], "{from} to {to}");
            }
        }
        lab.check_buffers(0);
    }
}

/// More tags, fewer, others: those of the sub-interface or none.
#[test]
fn frames_with_other_tags_are_the_hosts() {
    let mut lab = lab();
    let whole = tagged(&packet(11, 3).frame(), 11);
    let mut group = whole.clone();
    group[..6].fill(0xff);
    let mut own = whole.clone();
    own[..6].copy_from_slice(&own_mac(1).0);
    own[15] = 101;
    let mut twice = own.clone();
    twice[15] = 100;
    twice.splice(12..12, [0x81, 0, 0, 100]);
    let mut service = own.clone();
    service[12..16].copy_from_slice(&[0x88, 0xa8, 0, 100]);
    let mut zero = own.clone();
    zero[14..16].fill(0);
    let mut arp = whole.clone();
    arp[16..18].copy_from_slice(&[8, 6]);
    for frame in [group, own, twice, service, zero, arp] {
        lab.takes(frame.clone(), "punt", "Host");
        assert_eq!(lab.sent(4), [frame], "as it came");
    }
    let mut stranger = whole.clone();
    stranger[5] ^= 1;
    lab.takes(stranger, "vlan-input", "NotOurs");
    let mut of_group = whole.clone();
    of_group[6] |= 1;
    lab.takes(of_group, "vlan-input", "BadSource");
    lab.takes(whole[..17].to_vec(), "vlan-input", "Runt");
    let mut two = tagged(&packet(12, 3).frame(), 12);
    two.truncate(21);
    lab.receive(2, [two]);
    assert_eq!(lab.edge("vlan-input", "Runt"), 2);
    // Two tags, where the sub-interface has one.
    lab.receive(2, [tagged(&packet(13, 3).frame(), 13)]);
    assert_eq!(lab.sent(3).len(), 1);
    // No host at interface 2: a tag of no sub-interface, and one whose inner tag is of none.
    let to_two = |id| [&own_mac(2).0[..], &tagged(&packet(id, 3).frame(), id)[6..]].concat();
    let (mut outer, mut inner) = (to_two(13), to_two(12));
    outer[15] ^= 1;
    inner[19] ^= 1;
    for frame in [outer, inner] {
        let before = lab.edge("vlan-input", "NoSub");
        lab.receive(2, [frame]);
        assert_eq!(lab.edge("vlan-input", "NoSub"), before + 1);
    }
    assert_eq!(lab.edge("punt", "NoHost"), 0);
}

#[test]
fn the_host_gets_what_is_its_own_with_tags() {
    let mut lab = lab();
    for packet in [
        packet(11, 3).options(&[1, 1, 1, 0]),
        wire::craft::Packet::udp((addr(11, 2), 1), (addr(11, 1), 2))
            .macs(host_mac(11, 2), own_mac(11)),
    ] {
        let frame = tagged(&packet.payload(&[7; 20]).frame(), 11);
        lab.takes(frame.clone(), "punt", "Host");
        assert_eq!(lab.sent(4), [frame]);
    }
    // No host at interface 2.
    let frame = wire::craft::Packet::udp((addr(12, 2), 1), (addr(12, 1), 2));
    let frame = frame.macs(host_mac(12, 2), own_mac(12)).frame();
    lab.receive(2, [tagged(&frame, 12)]);
    assert_eq!(lab.edge("punt", "NoHost"), 1);
    // What the host sends with tags leaves as it is.
    let frame = tagged(&packet(11, 3).frame(), 11);
    lab.receive(4, [frame.clone()]);
    assert_eq!(lab.sent(1), [frame]);
}

/// Gives 11 and 12 the host interfaces 5 and 6.
fn with_hosts(lab: &mut Lab) {
    for (id, host) in [(11, 5), (12, 6)] {
        lab.plug(host, 0);
        let end = Interface {
            kind: Kind::Host { of: id },
            ..interface(host)
        };
        let kind = Kind::Sub {
            parent: parent(id),
            tags: tags(id),
            host: Some(host),
        };
        lab.apply(vec![
            Change::InterfaceSet(end),
            Change::InterfaceSet(Interface { kind, ..sub(id) }),
        ]);
    }
}

#[test]
fn a_host_interface_of_its_own_has_no_tags() {
    let mut lab = lab();
    with_hosts(&mut lab);
    for (id, host) in [(11, 5), (12, 6)] {
        let mut arp = packet(id, 3).frame();
        arp[..6].fill(0xff);
        arp[12..14].copy_from_slice(&[8, 6]);
        let mut other = packet(id, 3).frame();
        other[12..14].copy_from_slice(&[0x88, 0xb5]);
        let own = wire::craft::Packet::udp((addr(id as u8, 2), 1), (addr(id as u8, 1), 2));
        let own = own.macs(host_mac(id, 2), own_mac(id)).frame();
        let with_options = packet(id, 3).options(&[1, 1, 1, 0]).frame();
        for frame in [arp, other, own, with_options] {
            lab.receive(parent(id), [tagged(&frame, id)]);
            assert_eq!(lab.sent(host), std::slice::from_ref(&frame), "{id}");
            // What the host sends has the tags again.
            lab.receive(host, [frame.clone()]);
            assert_eq!(lab.sent(parent(id)), [tagged(&frame, id)], "{id}");
        }
        lab.apply(vec![unaddressed(id)]);
        let mut payload = [0; 240];
        payload[28..34].copy_from_slice(&own_mac(id).0);
        let offer = wire::craft::Packet::udp((addr(id as u8, 2), 67), (addr(id as u8, 9), 68));
        let offer = offer.macs(host_mac(id, 2), own_mac(id)).payload(&payload);
        lab.receive(parent(id), [tagged(&offer.frame(), id)]);
        assert_eq!(lab.sent(host), [offer.frame()], "{id}");
    }
    // What no sub-interface has is the parent's host's still.
    let mut stray = tagged(&packet(11, 3).frame(), 11);
    stray[..6].copy_from_slice(&own_mac(1).0);
    stray[15] = 101;
    lab.receive(1, [stray.clone()]);
    assert_eq!(lab.sent(4), [stray]);
    lab.check_buffers(0);
}

#[test]
fn errors_and_pieces_have_the_tags_of_their_way() {
    let mut lab = lab();
    lab.receive(2, [tagged(&packet(12, 3).ttl(1).frame(), 12)]);
    let error = lab.sent(2).pop().expect("an error");
    let dressed = tagged(&[0; 64], 12);
    assert_eq!(error[12..20], dressed[12..20]);
    assert_eq!(error[..6], host_mac(12, 2).0);
    let ip = &error[22..];
    assert_eq!(
        (ip[9], &ip[12..16], ip[20]),
        (1, &addr(12, 1).to_be_bytes()[..], 11)
    );

    let frame = packet(3, 12).payload(&[7; 1700]).frame();
    lab.receive(3, [frame]);
    let pieces = lab.sent(2);
    assert_eq!(pieces.len(), 2);
    for piece in &pieces {
        assert_eq!(piece[12..20], dressed[12..20]);
        assert!(piece.len() <= 1500 + 22);
    }
    lab.check_buffers(0);
}

#[test]
fn sub_interfaces_come_and_go() {
    let mut lab = lab();
    let frame = tagged(&packet(11, 12).frame(), 11);
    let down = Interface {
        up: false,
        ..sub(11)
    };
    lab.apply(vec![Change::InterfaceSet(down)]);
    lab.takes(frame.clone(), "vlan-input", "Down");
    // Other tags: the old ones are nobody's.
    let moved = Interface {
        kind: Kind::Sub {
            parent: 1,
            tags: Tags::one(7),
            host: None,
        },
        ..sub(11)
    };
    lab.apply(vec![Change::InterfaceSet(moved)]);
    lab.takes(frame.clone(), "vlan-input", "NoSub");
    let mut other = frame.clone();
    other[15] = 7;
    lab.takes(other, "vlan-input", "Ip4");
    assert_eq!(lab.sent(2).len(), 1);
    lab.receive(3, [packet(3, 11).frame()]);
    assert_eq!(lab.sent(1).pop().expect("sent")[12..16], [0x81, 0, 0, 7]);
    lab.apply(vec![Change::InterfaceDelete(11)]);
    lab.takes(frame.clone(), "vlan-input", "NoSub");
    lab.apply(vec![Change::InterfaceSet(sub(11))]);
    lab.takes(frame, "vlan-input", "Ip4");
    // A parent that there is no room for.
    let odd = Interface {
        kind: Kind::Sub {
            parent: 999,
            tags: Tags::one(7),
            host: None,
        },
        ..sub(11)
    };
    let refused = lab.router.apply(vec![Change::InterfaceSet(odd)]);
    assert!(refused.unwrap_err().to_string().contains("interface 999"));
}

#[test]
fn a_dhcp_answer_is_the_hosts_until_there_is_an_address() {
    let mut lab = lab();
    lab.apply(vec![unaddressed(11)]);
    let mut payload = [0; 240];
    payload[28..34].copy_from_slice(&own_mac(11).0);
    let offer = wire::craft::Packet::udp((addr(11, 2), 67), (addr(11, 9), 68))
        .macs(host_mac(11, 2), own_mac(11))
        .payload(&payload);
    let frame = tagged(&offer.frame(), 11);
    lab.receive(1, [frame.clone()]);
    assert_eq!(lab.sent(4), std::slice::from_ref(&frame));
    lab.apply(vec![addressed(11)]);
    lab.receive(1, [frame]);
    assert!(lab.sent(4).is_empty());
}

#[test]
fn features_are_those_of_the_sub_interface() {
    let mut lab = lab();
    let set = |feature| Change::FeatureSet {
        interface: 12,
        feature,
        argument: Some(0),
    };
    lab.apply(
        [arc::ip4_in(0), arc::ip4_out(0), arc::interface_out(0)]
            .map(set)
            .into(),
    );
    let in_and_out = [(12, 3), (3, 12), (2, 3), (13, 3), (3, 13)];
    for (from, to) in in_and_out {
        let frame = packet(from, to).frame();
        lab.receive(parent(from), [tagged(&frame, from)]);
        assert_eq!(
            lab.sent(parent(to)),
            [tagged(&forwarded(&frame, to, 2), to)],
            "{from} to {to}"
        );
    }
    for (node, edge) in [
        ("vlan-input", "Ip4Features"),
        ("ip4-rewrite", "Features"),
        ("interface-output", "Features"),
    ] {
        assert_eq!(lab.edge(node, edge), 1, "{node}");
    }
}

/// An address of a sub-interface is an own one; its network is resolved there.
#[test]
fn its_neighbors_are_resolved_on_it() {
    let mut lab = lab();
    lab.apply(vec![Change::RouteSet {
        prefix: Prefix::host(ip(13, 77)),
        route: Route::Forward(vec![on_link(13)]),
    }]);
    let frame = wire::craft::Packet::udp((addr(3, 2), 1), (addr(13, 77), 2));
    let frame = frame.macs(host_mac(3, 2), own_mac(3)).frame();
    lab.receive(3, [frame]);
    let events = lab.router.unresolved();
    assert!(format!("{events:?}").contains("13"), "{events:?}");
    lab.apply(vec![neighbor(13, 77)]);
    let sent = lab.sent(2);
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0][12..16], [0x81, 0, 0, 100]);
}
