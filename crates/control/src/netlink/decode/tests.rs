use proptest::prelude::*;

use kernel::netlink::layout::{NHA_GATEWAY, NHA_GROUP, NHA_ID, NHA_OIF, RTAX_MTU};
use kernel::netlink::{Builder, Messages};
use router::change::Address;

use super::route::route_mtu;
use super::*;
use crate::facts::{Gateway, Hop, Hops, Nexthop, Place, Route};

fn decoded(bytes: &[u8]) -> Option<Event> {
    event(&Messages(bytes).next()?)
}

fn route_header(length: u8) -> [u8; 12] {
    [2, length, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0]
}

#[test]
fn a_route_with_a_gateway() {
    let bytes = Builder::new(libc::RTM_NEWROUTE, &route_header(24))
        .flags(0x600)
        .attribute(libc::RTA_DST, &[10, 1, 2, 77])
        .number(libc::RTA_OIF, 7)
        .attribute(libc::RTA_GATEWAY, &[192, 0, 2, 1])
        .number(libc::RTA_PRIORITY, 20)
        .attribute(libc::RTA_METRICS, &metrics(&[(RTAX_MTU, 1400), (4, 77)]))
        .attribute(libc::RTA_PREFSRC, &[10, 9, 9, 9])
        .finish(0);
    let Some(Event::Route(route, place)) = decoded(&bytes) else {
        panic!("not a route")
    };
    assert_eq!(route.source, Some([10, 9, 9, 9].into()));
    assert_eq!(
        (route.destination, route.length, route.metric, route.mtu),
        (0x0a01_0200, 24, 20, Some(1400))
    );
    assert_eq!(place, Place::First);
    let hop = Hop {
        gateway: Gateway::Via(Ipv4Addr::new(192, 0, 2, 1)),
        ..Hop::on_link(7)
    };
    assert_eq!(route.hops, Hops::One(hop));
}

/// What stands in RTA_METRICS.
fn metrics(values: &[(u16, u32)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (kind, value) in values {
        bytes.extend_from_slice(&8u16.to_ne_bytes());
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&value.to_ne_bytes());
    }
    bytes
}

#[test]
fn route_mtus() {
    assert_eq!(route_mtu(&metrics(&[(1, 9), (RTAX_MTU, 1280)])), Some(1280));
    assert_eq!(route_mtu(&metrics(&[(RTAX_MTU, 0)])), None);
    assert_eq!(route_mtu(&metrics(&[(RTAX_MTU, 70_000)])), Some(u16::MAX));
    assert_eq!(route_mtu(&metrics(&[(4, 1280)])), None);
    assert_eq!(route_mtu(&[8, 0, 2, 0, 1]), None);
}

#[test]
fn a_multipath_route() {
    let mut paths = Vec::new();
    for (link, share) in [(3u8, 0u8), (4, 9)] {
        paths.extend_from_slice(&16u16.to_ne_bytes());
        paths.extend_from_slice(&[0, share]);
        paths.extend_from_slice(&u32::from(link).to_ne_bytes());
        paths.extend_from_slice(&8u16.to_ne_bytes());
        paths.extend_from_slice(&libc::RTA_GATEWAY.to_ne_bytes());
        paths.extend_from_slice(&[10, 0, 0, link]);
    }
    let bytes = Builder::new(libc::RTM_NEWROUTE, &route_header(0))
        .attribute(libc::RTA_MULTIPATH, &paths)
        .finish(0);
    let Some(Event::Route(
        Route {
            hops: Hops::Many(hops),
            ..
        },
        _,
    )) = decoded(&bytes)
    else {
        panic!()
    };
    assert_eq!(
        hops.iter()
            .map(|hop| (hop.link, hop.weight))
            .collect::<Vec<_>>(),
        [(3, 1), (4, 10)]
    );
    assert_eq!(hops[1].gateway, Gateway::Via(Ipv4Addr::new(10, 0, 0, 4)));
}

#[test]
fn next_hop_objects_and_their_groups() {
    let object = |header: [u8; 8]| {
        let message = Builder::new(RTM_NEWNEXTHOP, &header).number(NHA_ID, 9);
        message.number(NHA_OIF, 3)
    };
    let (ip4, ip6) = ([2, 0, 0, 0, 0, 0, 0, 0], [10, 0, 0, 0, 0, 0, 0, 0]);
    let by = object(ip4).attribute(NHA_GATEWAY, &[10, 0, 0, 1]);
    let hop = Hop {
        gateway: Gateway::Via(Ipv4Addr::new(10, 0, 0, 1)),
        ..Hop::on_link(3)
    };
    let nexthop = |nexthop| Some(Event::Nexthop(9, nexthop));
    assert_eq!(decoded(&by.finish(0)), nexthop(Nexthop::Hop(hop)));
    let by = object(ip6).attribute(NHA_GATEWAY, &[0; 16]);
    assert_eq!(decoded(&by.finish(0)), nexthop(Nexthop::Foreign));
    // The last member is cut off.
    let members = [
        1, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 255, 255, 0, 0, 3, 0, 0, 0,
    ];
    let group = object(ip4).attribute(NHA_GROUP, &members);
    let members = vec![(1, 5), (2, 65_536)];
    assert_eq!(decoded(&group.finish(0)), nexthop(Nexthop::Group(members)));
}

#[test]
fn an_address_with_its_peer_scope_and_rank() {
    let secondary = libc::IFA_F_SECONDARY.try_into().unwrap();
    let header = [2, 32, secondary, 253, 7, 0, 0, 0];
    let message = |attributes: &[(u16, [u8; 4])]| {
        let message = Builder::new(libc::RTM_NEWADDR, &header);
        let add = |m: Builder, (kind, value): &(u16, [u8; 4])| m.attribute(*kind, value);
        decoded(&attributes.iter().fold(message, add).finish(0))
    };
    let (own, peer) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let address = Address {
        scope: 253,
        secondary: true,
        ..Address::new(own.into(), 32)
    };
    let far = Address {
        peer: peer.into(),
        ..address
    };
    assert_eq!(
        message(&[(libc::IFA_ADDRESS, peer), (libc::IFA_LOCAL, own)]),
        Some(Event::Address(7, far))
    );
    for kind in [libc::IFA_ADDRESS, libc::IFA_LOCAL] {
        assert_eq!(message(&[(kind, own)]), Some(Event::Address(7, address)));
    }
    assert_eq!(message(&[]), None);
}

#[test]
fn routes_of_other_tables_families_and_the_cache_are_passed_over() {
    for (at, value) in [
        (0, 10u8),
        (1, 33),
        (4, 100),
        (7, libc::RTN_MULTICAST),
        (9, 2),
    ] {
        let mut header = route_header(8);
        header[at] = value;
        assert_eq!(
            decoded(&Builder::new(libc::RTM_NEWROUTE, &header).finish(0)),
            None,
            "{at}"
        );
    }
}

#[test]
fn a_neighbor_being_resolved_has_no_address() {
    for (state, usable) in [
        (libc::NUD_REACHABLE, true),
        (libc::NUD_FAILED, false),
        (libc::NUD_INCOMPLETE, false),
    ] {
        let mut header = [2, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0];
        header[8..10].copy_from_slice(&state.to_ne_bytes());
        let bytes = Builder::new(libc::RTM_NEWNEIGH, &header)
            .attribute(libc::NDA_DST, &[10, 0, 0, 1])
            .attribute(libc::NDA_LLADDR, &[2, 0, 0, 0, 0, 1])
            .finish(0);
        let Some(Event::Neighbor(neighbor)) = decoded(&bytes) else {
            panic!()
        };
        assert_eq!(neighbor.mac.is_some(), usable);
    }
}

/// Whether what a message is taken for, if for anything, is something that can be.
fn is_possible(kind: u16, payload: &[u8]) -> bool {
    let message = Message {
        kind,
        flags: 0,
        sequence: 0,
        payload,
    };
    match event(&message) {
        Some(Event::Route(r, _) | Event::RouteGone(r)) => {
            let host = u32::MAX.checked_shr(r.length.into()).unwrap_or(0);
            r.length <= 32 && r.destination & host == 0
        }
        Some(Event::Address(_, a) | Event::AddressGone(_, a)) => a.length <= 32,
        _ => true,
    }
}

proptest! {
    #[test]
    fn any_payload_is_decoded_or_refused(kind in 16u16..110, payload in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(is_possible(kind, &payload));
    }

    #[test]
    fn damaged_routes_are_decoded_or_refused(at in 0usize..60, value: u8, cut in 0usize..60) {
        let mut bytes = Builder::new(libc::RTM_NEWROUTE, &route_header(24))
            .attribute(libc::RTA_DST, &[10, 1, 2, 0])
            .attribute(libc::RTA_MULTIPATH, &[16, 0, 0, 0, 3, 0, 0, 0, 8, 0, 5, 0, 10, 0, 0, 1])
            .finish(0);
        let at = 16 + at % (bytes.len() - 16);
        bytes[at] = value;
        let end = bytes.len() - cut.min(bytes.len() - 16);
        prop_assert!(is_possible(libc::RTM_NEWROUTE, &bytes[16..end]));
    }
}
