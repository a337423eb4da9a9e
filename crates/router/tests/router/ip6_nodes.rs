//! ip6-input, ip6-lookup, ip6-rewrite, icmp6-error: which packets take which edge, and what they are
//! afterwards.

use std::net::Ipv6Addr;

use router::{Change, Interface, Route};
use wire::craft::Packet;
use wire::{eth, icmp6, ip, ip6};

use crate::harness::*;
use crate::ip6::lab as networks;

/// A sender on interface 1, and a destination behind interface 2.
pub const NEAR: &str = "2001:db8:1::2";
pub const FAR: &str = "2001:db8:4800::1";

/// Networks 2001:db8:1 to 3 on the interfaces, host `::2` resolved on each, 2001:db8:4800::/40 by
/// that on 2.
pub fn lab() -> Lab {
    prepared(networks())
}

/// The same in a router of one's own.
pub fn prepared(mut lab: Lab) -> Lab {
    for id in 1..=3 {
        lab.apply(vec![neighbor6(id, &format!("2001:db8:{id}::2"))]);
    }
    let far = Route::Forward(vec![via6(2, "2001:db8:2::2")]);
    lab.apply(vec![route("2001:db8:4800::/40", far)]);
    lab
}

pub fn address(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

pub fn between(src: &str, dst: &str) -> Packet {
    Packet::udp6((address(src), 1025), (address(dst), 12)).macs(host_mac(1, 2), own_mac(1))
}

/// A packet that is forwarded, as interface 1 receives it.
pub fn good() -> Packet {
    between(NEAR, FAR)
}

/// Frame that interface `id` sends when it forwards one to its neighbor.
fn forwarded(frame: &[u8], id: u16) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[..6].copy_from_slice(&host_mac(id, 66).0);
    frame[6..12].copy_from_slice(&own_mac(id).0);
    frame[21] -= 1;
    frame
}

#[test]
fn a_packet_leaves_with_a_new_header_and_one_hop_less() {
    let mut lab = lab();
    // More than a batch, and not a multiple of one.
    let frames: Vec<_> = (2..=255u8)
        .map(|hops| good().ttl(hops).flow_label(hops.into()).frame())
        .collect();
    lab.receive(1, frames.clone());
    let want: Vec<_> = frames.iter().map(|frame| forwarded(frame, 2)).collect();
    assert_eq!(lab.sent(2), want);
    // To a host on the link, and back out of the interface where it came from.
    for (id, dst) in [(3, "2001:db8:3::2"), (1, NEAR)] {
        let frame = between(FAR, dst).frame();
        lab.receive(1, [frame.clone()]);
        assert_eq!(lab.sent(id), [forwarded(&frame, id)]);
    }
    lab.check_buffers(0);
}

#[test]
fn headers_that_are_wrong_are_dropped_for_their_reason() {
    let mut lab = lab();
    let frame = good().frame();
    let with = |at: usize, byte: u8| {
        let mut frame = frame.clone();
        frame[14 + at] = byte;
        frame
    };
    for (frame, edge) in [
        (frame[..53].to_vec(), "Truncated"),
        (frame[..14].to_vec(), "Truncated"),
        (with(0, 0x40), "BadVersion"),
        (with(0, 0x70), "BadVersion"),
        (with(5, 9), "BadLength"),
        (with(4, 0xff), "BadLength"),
        (between("ff02::1", FAR).frame(), "MartianSource"),
        (between("::1", FAR).frame(), "MartianSource"),
        (between(NEAR, "::1").frame(), "MartianDestination"),
        (between(NEAR, "::").frame(), "MartianDestination"),
        (between("::1", "ff02::1").frame(), "MartianSource"),
    ] {
        lab.takes(frame, "ip6-input", edge);
    }
    for id in 1..=3 {
        assert_eq!(lab.sent(id), Vec::<Vec<u8>>::new());
    }
}

#[test]
fn what_only_the_kernel_can_do_is_left_to_it() {
    let mut lab = lab().add_host();
    let option = good().extension(ip::HOP_BY_HOP, &[0, 1, 4, 0, 0, 0, 0]);
    let mut jumbogram = option.frame();
    jumbogram[18..20].fill(0);
    let frames = [
        option.frame(),
        jumbogram,
        between(NEAR, "ff02::1").frame(),
        between(NEAR, "fe80::1").frame(),
        between("fe80::2", FAR).frame(),
        between("fe80::2", "2001:db8:1::1").frame(),
        between("::", FAR).frame(),
    ];
    for frame in &frames {
        lab.takes(frame.clone(), "ip6-input", "Punt");
        assert_eq!(lab.sent(4), std::slice::from_ref(frame), "as it came");
    }
    let own = between(NEAR, "2001:db8:1::1").ttl(1).frame();
    lab.takes(own.clone(), "ip6-lookup", "Punt");
    assert_eq!(lab.sent(4), [own]);
}

#[test]
fn extension_headers_are_the_destinations_business() {
    let mut lab = lab();
    for (number, bytes) in [
        (ip::DESTINATION_OPTIONS, [0, 0x5e, 4, 0, 0, 0, 0]),
        (ip::ROUTING, [0, 0, 1, 0, 0, 0, 0]),
        (ip::FRAGMENT, [0, 5, 1, 0, 0, 0, 9]),
    ] {
        let frame = good().extension(number, &bytes).frame();
        lab.receive(1, [frame.clone()]);
        assert_eq!(lab.sent(2), [forwarded(&frame, 2)]);
    }
}

#[test]
fn padding_is_not_sent_on_and_long_packets_are_whole() {
    let mut lab = lab();
    let frame = good().frame();
    let padded = [&frame[..], &[0xee; 30]].concat();
    lab.receive(1, [padded]);
    assert_eq!(lab.sent(2), [forwarded(&frame, 2)]);
    for id in 1..=3 {
        lab.apply(vec![Change::InterfaceSet(Interface {
            mtu: 9000,
            ..interface(id)
        })]);
    }
    let long = good().frame_len(9014).frame();
    lab.receive(1, [long.clone()]);
    assert_eq!(lab.sent(2), [forwarded(&long, 2)]);
    lab.check_buffers(0);
}

/// The error about `frame` that interface 1 has sent: type, code and what follows the checksum.
fn error(lab: &Lab, frame: &[u8]) -> (u8, u8, u32) {
    let sent = lab.sent(1);
    assert_eq!(sent.len(), 1);
    let (ethernet, packet) = eth::Header::parse(&sent[0]).unwrap();
    assert_eq!((ethernet.dst, ethernet.src), (host_mac(1, 66), own_mac(1)));
    let (h, message) = ip6::Header::parse(packet).unwrap();
    let quoted = (frame.len() - 14).min(1280 - 48);
    assert_eq!(
        (h.version(), h.next_header, h.hop_limit),
        (6, ip::ICMP6, 64)
    );
    assert_eq!((h.total_len(), packet.len()), (48 + quoted, 48 + quoted));
    assert_eq!(h.src, address("2001:db8:1::1").octets());
    assert_eq!(h.dst, frame[22..38]);
    let sum = wire::checksum::transport(h.src, h.dst, ip::ICMP6, message);
    assert_eq!(sum, 0);
    assert_eq!(message[8..], frame[14..14 + quoted]);
    let (header, _) = icmp6::Header::parse(message).unwrap();
    (header.kind, header.code, header.rest())
}

#[test]
fn errors_tell_the_sender_what_is_wrong() {
    let mut lab = lab();
    for (prefix, special) in [
        ("2001:db8:6000::/40", Route::Blackhole),
        ("2001:db8:6100::/40", Route::Unreachable),
        ("2001:db8:6200::/40", Route::Prohibit),
    ] {
        lab.apply(vec![route(prefix, special)]);
    }
    let narrow = Interface {
        mtu: 1400,
        ..interface(2)
    };
    lab.apply(vec![Change::InterfaceSet(narrow)]);
    for (packet, node, edge, told) in [
        (good().ttl(1), "ip6-rewrite", "HopLimitExpired", (3, 0, 0)),
        (good().ttl(0), "ip6-rewrite", "HopLimitExpired", (3, 0, 0)),
        (
            good().frame_len(1415),
            "ip6-rewrite",
            "TooBig",
            (2, 0, 1400),
        ),
        (
            between(NEAR, "2001:db8:6100::1"),
            "ip6-lookup",
            "Unreachable",
            (1, 0, 0),
        ),
        (
            between(NEAR, "2001:db8:6200::1"),
            "ip6-lookup",
            "Prohibited",
            (1, 1, 0),
        ),
        (
            between(NEAR, "2001:db8:9900::1"),
            "ip6-lookup",
            "NoRoute",
            (1, 0, 0),
        ),
    ] {
        let frame = packet.frame();
        lab.takes(frame.clone(), node, edge);
        assert_eq!(error(&lab, &frame), told, "{node} {edge}");
    }
    lab.receive(1, [good().frame_len(1414).frame()]);
    assert_eq!(lab.sent(2).len(), 1, "as long as the link takes");
    let hole = between(NEAR, "2001:db8:6000::1").frame();
    lab.takes(hole, "ip6-lookup", "Blackhole");
    assert_eq!(lab.sent(1).len(), 0);
}

/// RFC 8200 section 5: every link carries 1280 bytes, whatever a route says.
#[test]
fn a_route_that_takes_less_than_any_link_does_not_count() {
    let mut lab = lab();
    let path = router::Path {
        mtu: Some(1000),
        ..via6(2, "2001:db8:2::2")
    };
    lab.apply(vec![route(
        "2001:db8:4800::/40",
        Route::Forward(vec![path]),
    )]);
    let frame = good().frame_len(14 + 1280).frame();
    lab.receive(1, [frame.clone()]);
    assert_eq!(lab.sent(2), [forwarded(&frame, 2)]);
    let frame = good().frame_len(14 + 1281).frame();
    lab.receive(1, [frame.clone()]);
    assert_eq!(error(&lab, &frame), (2, 0, 1280));
}

#[test]
fn no_error_about_errors_and_what_has_no_one_sender() {
    let mut lab = lab();
    let icmp = |kind| {
        let packet = Packet::icmp6(address(NEAR), address(FAR), kind, 0, 0);
        packet.macs(host_mac(1, 2), own_mac(1)).ttl(1)
    };
    for kind in [0, 1, 2, 3, 4, 100, 127, icmp6::REDIRECT] {
        lab.takes(icmp(kind).frame(), "icmp6-error", "NotAllowed");
    }
    for kind in [128, 129, 140, 255] {
        lab.takes(icmp(kind).frame(), "icmp6-error", "Lookup");
    }
    // Behind an extension, and where the type is missing.
    let option = icmp(1).extension(ip::DESTINATION_OPTIONS, &[0, 1, 4, 0, 0, 0, 0]);
    lab.takes(option.frame(), "icmp6-error", "NotAllowed");
    let typeless = Packet::raw6(address(NEAR), address(FAR), ip::ICMP6)
        .macs(host_mac(1, 2), own_mac(1))
        .ttl(1);
    lab.takes(typeless.frame(), "icmp6-error", "NotAllowed");
    // A later fragment is not known to be one.
    let later = icmp(1).extension(ip::FRAGMENT, &[0, 5, 1, 0, 0, 0, 9]);
    lab.takes(later.frame(), "icmp6-error", "Lookup");
}

/// "Packet too big" is not held back by a flood of others, nor by another sender's of the same.
#[test]
fn errors_are_limited_apart() {
    let mut lab = lab();
    let expired = good().ttl(1).frame();
    lab.receive(1, vec![expired; 2000]);
    assert!(lab.edge("icmp6-error", "RateLimited") > 1000);
    lab.sent(1);
    let frame = good().frame_len(1515).frame();
    lab.receive(1, [frame.clone()]);
    assert_eq!(error(&lab, &frame), (2, 0, 1500));
    // A host takes the allowance of its network, not of others.
    let long = |network: u32| {
        let src = format!("2001:db8:1:{network:x}::7");
        between(&src, FAR).frame_len(1515).frame()
    };
    lab.receive(1, vec![long(0); 2000]);
    let before = lab.edge("icmp6-error", "RateLimited");
    assert!(before > 2900, "{before}");
    lab.receive(1, (1..=100).map(long));
    // Those few that share the bucket.
    assert!(lab.edge("icmp6-error", "RateLimited") - before < 5);
}
