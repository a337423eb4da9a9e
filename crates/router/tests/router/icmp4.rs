//! icmp4-error against RFC 1812 section 4.3.

use std::net::{IpAddr, Ipv4Addr};

use router::{Address, Change, Path, Prefix, Route};
use wire::craft::Packet;

use crate::harness::*;

fn to_us(packet: Packet) -> Vec<u8> {
    packet.macs(host_mac(1, 2), own_mac(1)).ttl(1).frame()
}

#[test]
fn an_error_quotes_the_packet_and_comes_from_the_nearest_address() {
    let mut lab = Lab::new();
    for length in [60, 61, 100, 562, 563, 1514] {
        let frame = udp(FAR).tos(0xb9).frame_len(length).ttl(1).frame();
        lab.receive(1, [frame.clone()]);
        let sent = lab.sent(1);
        let error = &sent[0];
        assert_eq!(error[..6], host_mac(1, 2).0);
        assert_eq!(error[6..12], own_mac(1).0);
        let ip = &error[14..];
        let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        let quoted = (length - 14).min(576 - 28);
        assert_eq!((ip[0], total, ip[8], ip[9]), (0x45, 28 + quoted, 64, 1));
        assert_eq!(
            ip[1], 0xd8,
            "internetwork control, type of service as it came"
        );
        assert_eq!(ip[12..16], addr(1, 1).to_be_bytes());
        assert_eq!(ip[16..20], addr(1, 2).to_be_bytes());
        assert_eq!(wire::checksum::of(&ip[..20]), 0);
        assert_eq!(wire::checksum::of(&ip[20..total]), 0);
        assert_eq!(ip[20..22], [11, 0]);
        assert_eq!(ip[28..total], frame[14..14 + quoted]);
    }
    lab.check_buffers(0);
}

#[test]
fn padding_is_not_quoted() {
    let mut lab = Lab::new();
    lab.receive(1, [udp(FAR).ttl(1).frame()]);
    assert_eq!(lab.sent(1)[0].len(), 14 + 28 + 28);
}

#[test]
fn a_jumbo_packet_is_quoted_from_its_first_buffer() {
    let mut lab = Lab::new();
    lab.takes(
        udp(FAR).frame_len(9000).ttl(1).frame(),
        "icmp4-error",
        "Lookup",
    );
    assert_eq!(lab.sent(1)[0].len(), 14 + 576);
}

#[test]
fn no_error_about_errors_fragments_and_what_has_no_one_sender() {
    let mut lab = Lab::new();
    let from = addr(1, 2);
    let icmp = |kind: u8| Packet::icmp(from, FAR, kind, 0, 0);
    for kind in [3, 4, 5, 9, 10, 11, 12, 200] {
        lab.takes(to_us(icmp(kind)), "icmp4-error", "NotAllowed");
    }
    for kind in [0, 8, 13, 14] {
        lab.takes(to_us(icmp(kind)), "icmp4-error", "Lookup");
    }
    let fragment = |word| to_us(Packet::raw(from, FAR, 17).payload(&[0; 64]).fragment(word));
    lab.takes(fragment(0x2001), "icmp4-error", "NotAllowed");
    lab.takes(fragment(0x0001), "icmp4-error", "NotAllowed");
    lab.takes(fragment(0x2000), "icmp4-error", "Lookup");
    // Odd, but they may be hosts'.
    for source in [0xf000_0001, 0x0000_0001] {
        let odd = Packet::udp((source, 1), (FAR, 2));
        lab.takes(to_us(odd), "icmp4-error", "Lookup");
    }
    // The type is behind the packet's end, in the padding.
    let empty = Packet::raw(from, FAR, 1).payload(&[]);
    lab.takes(to_us(empty), "icmp4-error", "NotAllowed");
    lab.sent(1);
}

#[test]
fn errors_are_rationed() {
    let mut lab = Lab::new();
    lab.receive(1, vec![udp(FAR).ttl(1).frame(); 200]);
    assert_eq!(lab.edge("icmp4-error", "Lookup"), 50);
    assert_eq!(lab.edge("icmp4-error", "RateLimited"), 150);
    assert_eq!(lab.sent(1).len(), 50);
    lab.check_buffers(0);
}

/// Nobody's path MTU discovery stops because another sender floods.
#[test]
fn fragmentation_needed_is_rationed_by_sender() {
    let mut lab = Lab::new();
    let long = |host: u32| {
        let packet = Packet::udp((addr(1, 0) | host, 1025), (FAR, 12))
            .fragment(0x4000)
            .macs(host_mac(1, 2), own_mac(1))
            .frame_len(1515);
        packet.frame()
    };
    lab.receive(1, vec![long(2); 2000]);
    let limited = lab.edge("icmp4-error", "RateLimited");
    assert!(limited > 1900, "{limited}");
    lab.receive(1, (3..=102).map(long));
    // Those few that share the bucket.
    assert!(lab.edge("icmp4-error", "RateLimited") - limited < 5);
    lab.receive(1, [udp(FAR).ttl(1).frame()]);
    assert_eq!(lab.edge("ip4-rewrite", "TtlExpired"), 1);
    let sent = lab.edge("icmp4-error", "Lookup");
    assert!(sent > 100, "an allowance of its own: {sent}");
}

/// The limit is one for all workers: each receives more than it allows.
#[test]
fn errors_are_rationed_over_all_workers() {
    let mut lab = Lab::sized(2, 64).wired();
    for id in [1, 2] {
        let frame = Packet::udp((addr(id, 2), 1025), (FAR, 12)).ttl(1);
        let macs = (host_mac(id.into(), 2), own_mac(id.into()));
        lab.receive(id.into(), vec![frame.macs(macs.0, macs.1).frame(); 200]);
    }
    // 50 at once, and one a millisecond.
    let sent = lab.edge("icmp4-error", "Lookup");
    assert!((50..100).contains(&sent), "{sent}");
    assert_eq!(lab.edge("icmp4-error", "RateLimited"), 400 - sent);
    lab.check_buffers(0);
}

/// Source address of an error to `sender`.
fn source_of_error(lab: &mut Lab, sender: u32) -> Option<IpAddr> {
    lab.receive(1, vec![to_us(Packet::udp((sender, 1), (FAR, 2)))]);
    let sent = lab.sent(1);
    let address = sent.first()?[26..].first_chunk::<4>();
    Some(IpAddr::from(*address.unwrap()))
}

#[test]
fn errors_come_from_the_address_that_the_route_to_the_sender_names_or_else_from_one_near_the_next_hop()
 {
    let mut lab = Lab::new();
    let own = |last: u8| ip(9, last);
    let secondary = Address {
        secondary: true,
        ..Address::new(own(2), 28)
    };
    let set = |addresses: &[Address]| Change::AddressesSet {
        interface: 1,
        addresses: addresses.to_vec(),
    };
    let sender = u32::from_be_bytes([11, 0, 0, 1]);
    let mut source = |path: Path, addresses: Change| {
        let prefix = Prefix::host(Ipv4Addr::from(sender));
        let route = Route::Forward(vec![path]);
        lab.apply(vec![Change::RouteSet { prefix, route }, addresses]);
        source_of_error(&mut lab, sender)
    };
    let near = Address::new(ip(1, 1), 24);
    let all = [Address::new(own(1), 28), secondary, near];
    assert_eq!(source(via(1, 2), set(&all)), Some(near.address));
    let named = Path {
        source: Some(own(2)),
        ..via(1, 2)
    };
    assert_eq!(source(named, set(&all)), Some(own(2)));
    assert_eq!(source(via(1, 2), set(&all[..2])), Some(own(1)), "the first");
}

#[test]
fn without_an_address_there_is_no_error() {
    let mut lab = Lab::new();
    let sender = addr(1, 2);
    let mut source = |changes: Vec<Change>| {
        lab.apply(changes);
        source_of_error(&mut lab, sender)
    };
    // Without one of its own the interface borrows the host's.
    let host = Ipv4Addr::new(10, 255, 0, 1);
    let borrowed = source(vec![unaddressed(1), host_source(Some(host))]);
    assert_eq!(borrowed, Some(host.into()));
    assert_eq!(source(vec![addressed(1)]), Some(ip(1, 1)));
    assert_eq!(source(vec![unaddressed(1), host_source(None)]), None);
    assert_eq!(lab.edge("icmp4-error", "NoSource"), 1);
}
