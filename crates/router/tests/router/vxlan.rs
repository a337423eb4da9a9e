//! VXLAN tunnels: what leaves by one is in UDP, what comes in in its UDP is the tunnel's.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};

use graph::{Buffers, Pkt, Stage};
use router::vxlan::{Encap, Tunnel, show};
use router::{Address, Change, Interface, Kind, L2, Route, Tags};
use wire::checksum;
use wire::craft::Packet;

use crate::harness::*;

/// The tunnel, its host interface, and a sub-interface.
const TUNNEL: u16 = 20;
const HOST: u16 = 22;
const SUB: u16 = 21;
const VNI: u32 = 0x0001_2345;

/// Bytes in front of the frame by IPv4, and by IPv6, without those of Ethernet.
const OUTER4: usize = 14 + 20 + 8 + 8;
const OUTER6: usize = 14 + 40 + 8 + 8;

fn ends6() -> [IpAddr; 2] {
    ["2001:db8:2::1", "2001:db8:2::2"].map(ip6)
}

fn tunnel(local: IpAddr, remote: IpAddr, l2: Option<L2>) -> Change {
    Change::InterfaceSet(Interface {
        kind: Kind::Vxlan {
            tunnel: Tunnel::new(local, remote, VNI).unwrap(),
            host: Some(HOST),
        },
        mtu: 9000,
        l2,
        ..interface(TUNNEL)
    })
}

/// Interfaces 1 to 3 with the host's end of 2 (as 4), and a tunnel from 10.0.2.1 to 10.0.2.2, or
/// between addresses of IPv6 there. It is cross-connected with interface 3.
fn lab(ends: [IpAddr; 2]) -> Lab {
    let mut lab = wired6(Lab::new());
    for id in [4, HOST] {
        lab.plug(id, 0);
    }
    let host = |id, of| {
        Change::InterfaceSet(Interface {
            kind: Kind::Host { of },
            ..interface(id)
        })
    };
    let underlay = Interface {
        kind: Kind::Routed { host: Some(4) },
        ..interface(2)
    };
    let end = Interface {
        l2: Some(L2::CrossConnect(TUNNEL)),
        mtu: 9000,
        ..interface(3)
    };
    lab.apply(vec![
        host(4, 2),
        host(HOST, TUNNEL),
        Change::InterfaceSet(underlay),
        tunnel(ends[0], ends[1], Some(L2::CrossConnect(3))),
        Change::InterfaceSet(end),
        neighbor6(2, "2001:db8:2::2"),
    ]);
    lab
}

pub fn lab4() -> Lab {
    lab([ip(2, 1), ip(2, 2)])
}

/// A frame of stations behind interface 3 and the tunnel.
pub fn frame(port: u16, len: usize) -> Vec<u8> {
    let packet = Packet::udp((0xc0a8_0001, port), (0xc0a8_0002, 9));
    packet
        .macs(host_mac(3, 9), host_mac(20, 9))
        .frame_len(len)
        .frame()
}

/// The packet with such a frame that the other end sends, by IPv4.
pub fn packed(inner: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = VNI.to_be_bytes();
    let content = [&[8, 0, 0, 0, a, b, c, 0], inner].concat();
    let packet = Packet::udp((addr(2, 2), 50000), (addr(2, 1), 4789));
    let packet = packet.macs(host_mac(2, 2), own_mac(2));
    packet.without_udp_checksum().payload(&content).frame()
}

/// The same by IPv6, with a checksum.
fn packed6(inner: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = VNI.to_be_bytes();
    let content = [&[8, 0, 0, 0, a, b, c, 0], inner].concat();
    let [local, remote]: [Ipv6Addr; 2] =
        ["2001:db8:2::1", "2001:db8:2::2"].map(|text| text.parse().unwrap());
    let packet = Packet::udp6((remote, 50000), (local, 4789));
    packet
        .macs(host_mac(2, 66), own_mac(2))
        .payload(&content)
        .frame()
}

fn port(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

#[test]
fn frames_leave_in_udp_over_ip4() {
    let mut lab = lab4();
    let inner = frame(7, 100);
    lab.receive(3, [inner.clone()]);
    let [sent] = &lab.sent(2)[..] else {
        panic!("one packet leaves")
    };
    assert_eq!(sent[OUTER4..], inner);
    let from = port(sent, 34);
    assert!(from >= 49152);
    let mut wanted = [&host_mac(2, 2).0[..], &own_mac(2).0, &[8, 0]].concat();
    // 100 and 36 bytes, not to be cut, 64 hops, UDP.
    wanted.extend([0x45, 0, 0, 136, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    wanted.extend([10, 0, 2, 1, 10, 0, 2, 2]);
    seal(&mut wanted);
    wanted.extend([&from.to_be_bytes()[..], &4789u16.to_be_bytes()].concat());
    wanted.extend([0, 116, 0, 0, 8, 0, 0, 0, 0x01, 0x23, 0x45, 0]);
    assert_eq!(sent[..OUTER4], wanted);
    assert_eq!(lab.edge("vxlan-encap", "Ip4"), 1);

    // Flows have ports of their own, and keep them.
    let flows = || (0..200).map(|port| frame(port, 60));
    lab.receive(3, flows());
    let ports: Vec<_> = lab.sent(2).iter().map(|frame| port(frame, 34)).collect();
    assert!(ports.iter().all(|port| *port >= 49152));
    assert!(ports.iter().collect::<BTreeSet<_>>().len() > 180);
    lab.receive(3, flows());
    let again: Vec<_> = lab.sent(2).iter().map(|frame| port(frame, 34)).collect();
    assert_eq!(again, ports);
    lab.check_buffers(0);
}

#[test]
fn frames_leave_in_udp_over_ip6_with_a_checksum() {
    let mut lab = lab(ends6());
    lab.apply(vec![Change::InterfaceSet(Interface {
        mtu: 9200,
        kind: Kind::Routed { host: Some(4) },
        ..interface(2)
    })]);
    // Also in several buffers of odd lengths.
    for len in [60, 61, 1000, 1999, 3001, 9001] {
        let inner = frame(7, len);
        lab.receive(3, [inner.clone()]);
        let [sent] = &lab.sent(2)[..] else {
            panic!("one packet of {len} leaves")
        };
        assert_eq!(sent[OUTER6..], inner);
        let wanted = [&host_mac(2, 66).0[..], &own_mac(2).0, &[0x86, 0xdd]].concat();
        assert_eq!(sent[..14], wanted);
        let length = ((len + 16) as u16).to_be_bytes();
        assert_eq!(sent[14..22], [0x60, 0, 0, 0, length[0], length[1], 17, 64]);
        let ends: [[u8; 16]; 2] = [22, 38].map(|at| sent[at..at + 16].try_into().unwrap());
        let [local, remote] = ends.map(|end| IpAddr::from(Ipv6Addr::from(end)));
        assert_eq!([local, remote], ends6());
        assert_ne!(port(sent, 60), 0);
        let sum = checksum::transport(ends[0], ends[1], 17, &sent[54..]);
        assert_eq!(sum, 0, "{len}");
        lab.check_buffers(0);
    }
}

#[test]
fn frames_come_out_as_if_they_had_come_in_at_the_tunnel() {
    let mut lab = lab4();
    for len in [14, 60, 61, 1400] {
        let inner = frame(7, 1400)[..len].to_vec();
        // With a checksum, too, and with bytes behind what UDP counts.
        let mut summed = packed(&inner);
        let ends = [addr(2, 2), addr(2, 1)];
        wire::udp::seal(ends[0], ends[1], &mut summed[34..]);
        let mut padded = [packed(&inner), vec![9; 20]].concat();
        let total = (padded.len() - 14) as u16;
        padded[16..18].copy_from_slice(&total.to_be_bytes());
        seal(&mut padded);
        lab.receive(2, [packed(&inner), summed, padded]);
        assert_eq!(lab.sent(3), vec![inner; 3], "{len}");
    }
    assert_eq!(lab.edge("vxlan-input", "Frame"), 12);
    lab.check_buffers(0);

    let mut lab = self::lab(ends6());
    for len in [60, 61, 1400] {
        let inner = frame(7, len);
        let mut bare = packed6(&inner);
        bare[60..62].fill(0);
        lab.receive(2, [packed6(&inner), bare]);
        assert_eq!(lab.sent(3), vec![inner; 2]);
    }
    lab.check_buffers(0);
}

/// RFC 6040: the outer header says what the inner one does, and what it says in addition the inner
/// one says then.
#[test]
fn congestion_is_told_through_the_tunnel() {
    const CE: u8 = 3;
    let frame4 = |tos| {
        let packet = Packet::udp((0xc0a8_0001, 7), (0xc0a8_0002, 9)).tos(tos);
        packet.macs(host_mac(3, 9), host_mac(20, 9)).frame()
    };
    let frame6 = |tos| {
        let [from, to]: [Ipv6Addr; 2] =
            ["2001:db8:8::1", "2001:db8:8::2"].map(|text| text.parse().unwrap());
        let packet = Packet::udp6((from, 7), (to, 9)).tos(tos);
        packet.macs(host_mac(3, 9), host_mac(20, 9)).frame()
    };
    let tagged = |tos| {
        let mut frame = frame4(tos);
        frame.splice(12..12, [0x88, 0xa8, 0, 5, 0x81, 0, 0, 6]);
        frame
    };
    let kinds: [&dyn Fn(u8) -> Vec<u8>; 3] = [&frame4, &frame6, &tagged];
    let outer4 = |inner: &[u8], ecn| {
        let mut frame = packed(inner);
        frame[15] = 0xb8 | ecn;
        seal(&mut frame);
        frame
    };
    let outer6 = |inner: &[u8], ecn: u8| {
        let mut frame = packed6(inner);
        frame[15] |= ecn << 4;
        frame
    };
    let (mut four, mut six) = (lab4(), lab(ends6()));
    for kind in kinds {
        for ecn in 0..=CE {
            four.receive(3, [kind(0xb8 | ecn)]);
            assert_eq!(four.sent(2)[0][15], ecn, "no DSCP");
            six.receive(3, [kind(0xb8 | ecn)]);
            assert_eq!(six.sent(2)[0][14..16], [0x60, ecn << 4]);
            let refused = |lab: &Lab| lab.edge("vxlan-input", "Congested");
            let before = [refused(&four), refused(&six)];
            for outer in 0..=CE {
                let inner = kind(0xb8 | ecn);
                four.receive(2, [outer4(&inner, outer)]);
                six.receive(2, [outer6(&inner, outer)]);
                let wanted = match (ecn, outer) {
                    (0, CE) => vec![],
                    (_, CE) => vec![kind(0xb8 | CE)],
                    (2, 1) => vec![kind(0xb8 | 1)],
                    _ => vec![inner],
                };
                assert_eq!(four.sent(3), wanted, "{ecn} in {outer}");
                assert_eq!(six.sent(3), wanted, "{ecn} in {outer}");
            }
            let more = u64::from(ecn == 0);
            let now = [refused(&four), refused(&six)];
            assert_eq!(now, before.map(|count| count + more));
        }
    }
    // What is not IP, or has no whole header, goes on as it is.
    for inner in [
        [&frame4(0)[..12], &[8, 6], &[0; 46]].concat(),
        frame4(0)[..33].to_vec(),
    ] {
        four.receive(2, [outer4(&inner, CE)]);
        assert_eq!(four.sent(3), [inner]);
    }
    four.check_buffers(0);
    six.check_buffers(0);
}

/// Frames without what is around them, as Linux counts them.
#[test]
fn a_tunnel_counts_its_frames() {
    let mut lab = lab4();
    lab.receive(3, [frame(7, 100), frame(8, 3001)]);
    lab.receive(2, [packed(&frame(7, 60)), packed(&[1; 13])]);
    // The second is too long for the way, which is not the tunnel's business.
    assert_eq!(lab.counted(20), [2, 73, 2, 3101, 1]);
    assert_eq!(lab.counted(2)[2..4], [1, 150]);
    let text = router::show::interfaces(&lab.router, Some("eth20"), &[]).unwrap();
    assert!(
        text.to_string()
            .contains("rx packets                     2"),
        "{text}"
    );
    lab.router.clear(router::show::Clear::Interface);
    assert_eq!(lab.counted(20), [0; 5]);
}

#[test]
fn headers_need_room_in_front() {
    for (ends, bytes) in [([ip(2, 1), ip(2, 2)], OUTER4), (ends6(), OUTER6)] {
        let mut lab = lab(ends);
        let pool = lab.router.pool().clone();
        let mut bufs = Buffers::new(pool.clone());
        let cx = lab.workers[0].context();
        let frame = frame(7, 100);
        for room in [bytes - 1, bytes] {
            let mut d = bufs.copy_in(&frame).unwrap();
            d.set_tx_if(TUNNEL);
            let mut p = Pkt::new(&pool, &mut d);
            while p.shift(-1) {}
            p.shift(room as i32);
            p.truncate(frame.len());
            p.bytes_mut().copy_from_slice(&frame);
            let next = format!("{:?}", Encap.packet(cx, &mut p));
            match room == bytes {
                true => assert_eq!(next, if bytes == OUTER4 { "Ip4" } else { "Ip6" }),
                false => assert_eq!((&next[..], p.bytes()), ("NoRoom", &frame[..])),
            }
            bufs.free(d);
        }
    }
}

/// A change of a frame.
type Edit<'a> = &'a dyn Fn(&mut Vec<u8>);

#[test]
fn what_is_wrong_is_a_counted_drop() {
    let good = packed(&frame(7, 100));
    let with = |edit: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = good.clone();
        edit(&mut frame);
        let total = (frame.len() - 14) as u16;
        frame[16..18].copy_from_slice(&total.to_be_bytes());
        seal(&mut frame);
        frame
    };
    let cases: [(Edit<'_>, &str, &str); 8] = [
        (&|f| f.truncate(42), "vxlan-input", "Truncated"),
        (&|f| f.truncate(43), "vxlan-input", "Truncated"),
        (&|f| f.truncate(49), "vxlan-input", "Truncated"),
        (&|f| f[42] = 0xf7, "vxlan-input", "NoVni"),
        (&|f| f[38..40].fill(0), "vxlan-input", "BadLength"),
        (
            &|f| f[38..40].copy_from_slice(&[0, 15]),
            "vxlan-input",
            "BadLength",
        ),
        (&|f| f.truncate(149), "vxlan-input", "BadLength"),
        (
            &|f| f[40..42].copy_from_slice(&[1, 2]),
            "vxlan-input",
            "BadChecksum",
        ),
    ];
    let mut lab = lab4();
    for (edit, node, edge) in cases {
        let before = lab.edge(node, edge);
        lab.receive(2, [with(edit)]);
        assert_eq!(lab.edge(node, edge), before + 1, "{edge}");
        assert!(lab.sent(3).is_empty() && lab.sent(4).is_empty(), "{edge}");
        lab.check_buffers(0);
    }
    // A frame that claims to come from many.
    let mut of_group = frame(7, 100);
    of_group[6] |= 1;
    lab.receive(2, [packed(&of_group)]);
    assert_eq!(lab.edge("vxlan-input", "BadSource"), 1);
    assert!(lab.sent(3).is_empty());
    // A whole packet without a whole frame.
    for len in [0, 1, 13] {
        let before = lab.edge("ethernet-input", "Runt");
        lab.receive(2, [packed(&frame(7, 60)[..len])]);
        assert_eq!(lab.edge("ethernet-input", "Runt"), before + 1);
    }
    let mut six = packed6(&frame(7, 100));
    six[60] ^= 1;
    let mut lab = self::lab(ends6());
    lab.receive(2, [six]);
    assert_eq!(lab.edge("vxlan-input", "BadChecksum"), 1);
    lab.check_buffers(0);
}

#[test]
fn what_is_of_no_tunnel_is_the_hosts() {
    let good = packed(&frame(7, 100));
    let with = |edit: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = good.clone();
        edit(&mut frame);
        seal(&mut frame);
        frame
    };
    let others = [
        // Another network, another sender, another port, a fragment.
        with(&|f| f[48] ^= 1),
        with(&|f| f[29] = 3),
        with(&|f| f[37] ^= 1),
        with(&|f| f[20] = 0x20),
        with(&|f| f[21] = 1),
        // No UDP, and less than its header.
        with(&|f| f[23] = 6),
        with(&|f| {
            f.truncate(41);
            f[17] = 27;
        }),
    ];
    let mut lab = lab4();
    for (at, other) in others.into_iter().enumerate() {
        lab.receive(2, [other.clone()]);
        assert_eq!(lab.sent(4), [other], "{at}");
    }
    assert_eq!(lab.edge("vxlan-input", "NoTunnel"), 2);
    assert!(lab.sent(3).is_empty());
    // Without tunnels all of it, and nothing comes to the node.
    lab.apply(vec![Change::InterfaceDelete(TUNNEL)]);
    lab.receive(2, [good.clone()]);
    assert_eq!(lab.sent(4), [good]);
    assert_eq!(lab.edge("vxlan-input", "NoTunnel"), 2);
    lab.check_buffers(0);
}

#[test]
fn a_tunnel_has_other_ends_from_one_packet_to_the_next() {
    let mut lab = lab4();
    let l2 = Some(L2::CrossConnect(3));
    lab.apply(vec![tunnel(ip(2, 1), ip(2, 3), l2), neighbor(2, 3)]);
    let old = packed(&frame(7, 100));
    lab.receive(2, [old.clone()]);
    assert_eq!(lab.sent(4), [old], "the host's now");
    lab.receive(3, [frame(7, 100)]);
    assert_eq!(lab.sent(2)[0][30..34], [10, 0, 2, 3]);
    let [local, remote] = ends6();
    lab.apply(vec![tunnel(local, remote, l2)]);
    lab.receive(3, [frame(7, 100)]);
    assert_eq!(lab.sent(2)[0][12..14], [0x86, 0xdd]);
    // It is down, and then gone.
    let down = Interface {
        up: false,
        ..interface(TUNNEL)
    };
    lab.apply(vec![Change::InterfaceSet(Interface {
        kind: Kind::Vxlan {
            tunnel: Tunnel::new(local, remote, VNI).unwrap(),
            host: None,
        },
        ..down
    })]);
    lab.receive(3, [frame(7, 100)]);
    lab.receive(2, [packed6(&frame(7, 100))]);
    assert_eq!(lab.edge("ethernet-input", "OtherDown"), 1);
    assert_eq!(lab.edge("ethernet-input", "Down"), 1);
    lab.check_buffers(0);
}

/// Addresses, tags, and what the host sends.
#[test]
fn a_tunnel_routes_and_has_sub_interfaces() {
    let mut lab = lab4();
    lab.apply(vec![
        Change::InterfaceSet(interface(3)),
        tunnel(ip(2, 1), ip(2, 2), None),
    ]);
    let sub = Interface {
        kind: Kind::Sub {
            parent: TUNNEL,
            tags: Tags::one(100),
            host: None,
        },
        mac: own_mac(TUNNEL),
        ..interface(SUB)
    };
    lab.apply(vec![Change::InterfaceSet(sub)]);
    for (id, far) in [(TUNNEL, "50.0.0.0/8"), (SUB, "51.0.0.0/8")] {
        lab.apply(vec![
            Change::AddressesSet {
                interface: id,
                addresses: vec![Address::new(ip(id as u8, 1), 24)],
            },
            route(
                &format!("10.0.{id}.0/24"),
                Route::Forward(vec![on_link(id)]),
            ),
            neighbor(id, 2),
            route(far, Route::Forward(vec![via(id, 2)])),
        ]);
    }
    lab.receive(1, [udp(0x3200_0001).frame(), udp(0x3300_0001).frame()]);
    let sent = lab.sent(2);
    assert_eq!(sent.len(), 2);
    let plain = udp(0x3200_0001).frame();
    let mut wanted = forwarded(&plain, TUNNEL, 2);
    assert_eq!(sent[0][OUTER4..], wanted);
    wanted = forwarded(&udp(0x3300_0001).frame(), TUNNEL, 2);
    wanted[..6].copy_from_slice(&host_mac(SUB, 2).0);
    wanted.splice(12..12, [0x81, 0, 0, 100]);
    assert_eq!(sent[1][OUTER4..], wanted);

    // What comes in there is routed; errors about it go back by the tunnel.
    let packet = |to, ttl| {
        let packet = Packet::udp((addr(TUNNEL as u8, 2), 5), (to, 7)).ttl(ttl);
        packet.macs(host_mac(TUNNEL, 2), own_mac(TUNNEL)).frame()
    };
    lab.receive(2, [packed(&packet(addr(3, 2), 9)), packed(&packet(FAR, 1))]);
    assert_eq!(lab.sent(3).len(), 1);
    let [error] = &lab.sent(2)[..] else {
        panic!("an error leaves")
    };
    assert_eq!(error[OUTER4..][..6], host_mac(TUNNEL, 2).0);
    assert_eq!(error[OUTER4..][23], 1, "ICMP");

    // The host's own, and what is for it.
    let arp = [&[0xff; 6][..], &own_mac(TUNNEL).0, &[8, 6], &[0; 46]].concat();
    lab.receive(HOST, [arp.clone()]);
    assert_eq!(lab.sent(2)[0][OUTER4..], arp);
    lab.receive(2, [packed(&arp)]);
    assert_eq!(lab.sent(HOST), [arp]);
    lab.check_buffers(0);
}

/// A way to the other end that leads into the tunnel, and a tunnel to this router itself.
#[test]
fn a_tunnel_in_itself_ends_with_a_counted_drop() {
    let mut lab = lab4();
    let far = IpAddr::from([50, 0, 0, 1]);
    lab.apply(vec![
        tunnel(ip(2, 1), far, None),
        Change::AddressesSet {
            interface: TUNNEL,
            addresses: vec![Address::new(ip(TUNNEL as u8, 1), 24)],
        },
        neighbor(TUNNEL, 2),
        route("50.0.0.0/8", Route::Forward(vec![via(TUNNEL, 2)])),
    ]);
    lab.receive(1, [udp(0x3200_0002).frame()]);
    assert_eq!(lab.edge("vxlan-encap", "InTunnel"), 1);
    lab.check_buffers(0);

    let mut lab = lab4();
    let l2 = Some(L2::CrossConnect(3));
    lab.apply(vec![tunnel(ip(2, 1), ip(2, 1), l2)]);
    lab.receive(3, [frame(7, 100)]);
    assert_eq!(lab.edge("punt", "Own"), 1);
    assert_eq!(lab.edge("vxlan-input", "Frame"), 0);
    lab.check_buffers(0);
}

/// RFC 7348 section 4.3.
#[test]
fn what_is_too_long_for_the_way_is_dropped_and_nobody_is_told() {
    for (lab, outer, node, edge) in [
        (lab4(), OUTER4, "ip4-rewrite", "FragmentationNeeded"),
        (lab(ends6()), OUTER6, "ip6-rewrite", "TooBig"),
    ] {
        let mut lab = lab;
        let fits = 1514 - outer;
        lab.receive(3, [frame(7, fits), frame(7, fits + 1)]);
        assert_eq!(lab.sent(2).len(), 1);
        assert_eq!(lab.edge(node, edge), 1);
        let error = node.replace("ip", "icmp").replace("rewrite", "error");
        assert_eq!(lab.edge(&error, "NotAllowed"), 1);
        assert!(lab.sent(3).is_empty());
        lab.check_buffers(0);
    }
}

#[test]
fn an_unresolved_way_holds_packets_in_order() {
    let mut lab = lab4();
    let l2 = Some(L2::CrossConnect(3));
    lab.apply(vec![tunnel(ip(2, 1), ip(2, 7), l2)]);
    lab.receive(3, [frame(7, 100)]);
    assert!(lab.sent(2).is_empty());
    lab.apply(vec![neighbor(2, 7)]);
    let sent = lab.sent(2);
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0][OUTER4..], frame(7, 100));
    lab.check_buffers(0);
}

#[test]
fn tunnels_are_shown() {
    let lab = lab4();
    let shown = show::tunnels(&lab.router);
    let text = "\
interface name           sw_if_index  state  src       dst       vni
eth20                    20           up     10.0.2.1  10.0.2.2  74565
";
    assert_eq!(shown.to_string(), text);
    let json = serde_json::to_value(&shown).unwrap();
    let wanted = serde_json::json!({ "tunnels": [{
        "name": "eth20", "index": 20, "up": true,
        "local": "10.0.2.1", "remote": "10.0.2.2", "vni": VNI,
    }] });
    assert_eq!(json, wanted);
    assert_eq!(
        show::tunnels(&Lab::new().router).to_string(),
        "no VXLAN tunnels\n"
    );
}
