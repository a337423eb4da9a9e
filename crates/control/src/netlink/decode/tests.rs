use proptest::prelude::*;

use kernel::netlink::layout::{NHA_GATEWAY, NHA_GROUP, NHA_ID, NHA_OIF, RTAX_MTU};
use kernel::netlink::{Builder, Messages};
use router::change::{Address, Prefix};

use super::route::route_mtu;
use super::*;
use crate::facts::{Gateway, Hop, Hops, Nexthop, Place, Preference, Route, RouteKind};

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
        (&route.prefix.to_string()[..], route.metric, route.mtu),
        ("10.1.2.0/24", 20, Some(1400))
    );
    assert_eq!(place, Place::First);
    let hop = Hop {
        gateway: Gateway::Via([192, 0, 2, 1].into()),
        ..Hop::on_link(7)
    };
    assert_eq!(route.hops, Hops::One(hop));
}

/// `2001:db8:1::/48 metric 1024 nexthop via fe80::2 dev 3 nexthop via fe80::3 dev 4 weight 2`.
#[test]
fn an_ip6_route_with_two_hops_goes_behind_others() {
    let header = [10, 48, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0];
    let gateway = |n| Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, n);
    let mut hops = Vec::new();
    for (link, share, n) in [(3u32, 0u8, 2), (4, 1, 3)] {
        hops.extend_from_slice(&[28, 0, 0, share]);
        hops.extend_from_slice(&link.to_ne_bytes());
        hops.extend_from_slice(&[20, 0, 5, 0]);
        hops.extend_from_slice(&gateway(n).octets());
    }
    let destination = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0);
    let message = |protocol: u8, flags: i32| {
        let mut header = header;
        header[5] = protocol;
        let message = Builder::new(libc::RTM_NEWROUTE, &header)
            .flags(flags)
            .attribute(libc::RTA_DST, &destination.octets())
            .number(libc::RTA_PRIORITY, 1024)
            .attribute(libc::RTA_PREF, &[3]);
        decoded(&message.attribute(libc::RTA_MULTIPATH, &hops).finish(0))
    };
    let Some(Event::Route(route, place)) = message(3, libc::NLM_F_CREATE | libc::NLM_F_EXCL) else {
        panic!("not a route")
    };
    assert_eq!(place, Place::Last);
    assert_eq!(route.prefix.to_string(), "2001:db8:1::/48");
    let hop = |link, n, weight| Hop {
        link,
        gateway: Gateway::Via(gateway(n).into()),
        weight,
    };
    let hops = Hops::Many([hop(3, 2, 1), hop(4, 3, 2)].into());
    assert_eq!((route.hops, route.advertised), (hops, None));
    let Some(Event::Route(route, place)) = message(9, libc::NLM_F_REPLACE) else {
        panic!("not a route")
    };
    assert_eq!(route.advertised, Some(Preference::Low));
    assert_eq!(place, Place::Replace);
}

#[test]
fn an_ip4_route_by_an_ip6_gateway() {
    let via = |family: u16, address: &[u8]| [&family.to_ne_bytes()[..], address].concat();
    let hop = |via: &[u8]| {
        let message = Builder::new(libc::RTM_NEWROUTE, &route_header(0))
            .number(libc::RTA_OIF, 7)
            .attribute(libc::RTA_VIA, via);
        match decoded(&message.finish(0)) {
            Some(Event::Route(route, _)) => route.hops,
            other => panic!("{other:?}"),
        }
    };
    let address = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 9);
    let by = |gateway| {
        Hops::One(Hop {
            gateway,
            ..Hop::on_link(7)
        })
    };
    assert_eq!(
        hop(&via(10, &address.octets())),
        by(Gateway::Via(address.into()))
    );
    // A family that is not known, an address that is cut off.
    assert_eq!(hop(&via(28, &[0; 16])), by(Gateway::Foreign));
    assert_eq!(hop(&via(10, &[0; 15])), by(Gateway::Foreign));
}

#[test]
fn what_the_router_answers_for_itself_or_cannot_follow_is_no_ip6_route() {
    let decode = |address: &str, length: u8, at: usize, value: u8| {
        let address: Ipv6Addr = address.parse().unwrap();
        let mut header = [10, length, 0, 0, 254, 2, 0, 1, 0, 0, 0, 0];
        header[at] = value;
        let message = Builder::new(libc::RTM_NEWROUTE, &header)
            .attribute(libc::RTA_DST, &address.octets())
            .number(libc::RTA_OIF, 7);
        match decoded(&message.finish(0)) {
            Some(Event::Route(route, _)) => Some(route.kind),
            _ => None,
        }
    };
    for (address, length) in [
        ("fe80::", 64),
        ("fe80::1", 128),
        ("ff00::", 8),
        ("ff02::1", 128),
    ] {
        assert_eq!(decode(address, length, 7, 1), None, "{address}");
    }
    assert_eq!(decode("fe00::", 9, 7, 1), Some(RouteKind::Unicast));
    let anycast = decode("2001:db8::", 128, 7, libc::RTN_ANYCAST);
    assert_eq!(anycast, Some(RouteKind::Local));
    // By sender (`from`), of table default, a length that no address has.
    for (at, value) in [(2, 64), (4, 253), (1, 129)] {
        assert_eq!(decode("2001:db8::", 32, at, value), None, "{at}");
    }
}

#[test]
fn an_ip6_address_and_what_keeps_it_from_use() {
    let header = [10, 64, 0x80, 0, 7, 0, 0, 0];
    let own = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    let with = |flags: u32| {
        let message = Builder::new(libc::RTM_NEWADDR, &header)
            .attribute(libc::IFA_ADDRESS, &own.octets())
            .number(libc::IFA_FLAGS, flags);
        decoded(&message.finish(0))
    };
    let address = Address::new(own, 64);
    let tentative = Address {
        tentative: true,
        ..address
    };
    let deprecated = Address {
        deprecated: true,
        ..address
    };
    for (flags, address) in [
        (libc::IFA_F_PERMANENT, address),
        (libc::IFA_F_TEMPORARY, address),
        (libc::IFA_F_TENTATIVE, tentative),
        (libc::IFA_F_TENTATIVE | libc::IFA_F_OPTIMISTIC, address),
        (libc::IFA_F_DEPRECATED, deprecated),
    ] {
        assert_eq!(with(flags), Some(Event::Address(7, address)), "{flags:#x}");
    }
}

/// The content of RTA_METRICS.
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
    assert_eq!(hops[1].gateway, Gateway::Via([10, 0, 0, 4].into()));
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
        gateway: Gateway::Via([10, 0, 0, 1].into()),
        ..Hop::on_link(3)
    };
    let nexthop = |nexthop| Some(Event::Nexthop(9, nexthop));
    assert_eq!(decoded(&by.finish(0)), nexthop(Nexthop::Hop(hop)));
    let ip6_hop = |address: Ipv6Addr| {
        let by = object(ip6).attribute(NHA_GATEWAY, &address.octets());
        decoded(&by.finish(0))
    };
    let local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    let hop6 = Hop {
        gateway: Gateway::Via(local.into()),
        ..hop
    };
    assert_eq!(ip6_hop(local), nexthop(Nexthop::Hop(hop6)));
    let mapped = Ipv4Addr::LOCALHOST.to_ipv6_mapped();
    assert_eq!(ip6_hop(mapped), nexthop(Nexthop::Foreign));
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
        ..Address::new(own, 32)
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
        (0, 7u8),
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

/// Returns true if a message is taken for nothing, or for something that can be.
fn is_possible(kind: u16, payload: &[u8]) -> bool {
    let message = Message {
        kind,
        flags: 0,
        sequence: 0,
        payload,
    };
    match event(&message) {
        Some(Event::Route(r, _) | Event::RouteGone(r)) => {
            Prefix::new(r.prefix.address(), r.prefix.length()) == Some(r.prefix)
        }
        Some(Event::Address(_, a) | Event::AddressGone(_, a)) => {
            Prefix::new(a.address, a.length).is_some() && a.address.is_ipv4() == a.peer.is_ipv4()
        }
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
