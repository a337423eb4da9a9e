//! Dumps of a real kernel (Linux 6.18), with devices 3 (`pa`) and 5 (`pb`).

use std::net::IpAddr;

use kernel::netlink::Messages;

use super::event;
use crate::facts::{Event, Gateway, Hop, Hops, Preference, Route, RouteKind, Table};

fn events(bytes: &[u8]) -> Vec<Event> {
    Messages(bytes).filter_map(|m| event(&m)).collect()
}

fn routes(bytes: &[u8]) -> Vec<Route> {
    let all = events(bytes).into_iter();
    all.map(|event| match event {
        Event::Route(route, _) => route,
        other => panic!("{other:?}"),
    })
    .collect()
}

/// The only route of a prefix.
fn of<'a>(routes: &'a [Route], prefix: &str) -> &'a Route {
    let prefix = prefix.parse().unwrap();
    let mut found = routes.iter().filter(|route| route.prefix == prefix);
    let first = found.next().expect("there is one");
    assert_eq!(found.next(), None);
    first
}

fn via(link: u32, gateway: &str, weight: u32) -> Hop {
    Hop {
        link,
        gateway: Gateway::Via(gateway.parse().unwrap()),
        weight,
    }
}

#[test]
fn ip6_routes() {
    let all = routes(include_bytes!("../../../../../fuzz/seeds/netlink/routes6"));
    let one = of(&all, "3fff:1::/32");
    assert_eq!(one.hops, Hops::One(via(3, "fe80::2", 1)));
    assert_eq!((one.metric, one.mtu), (20, Some(1400)));
    assert_eq!(one.source, "2001:db8:1::1".parse::<IpAddr>().ok());
    let two = of(&all, "3fff:2::/32");
    let hops = [via(3, "fe80::2", 1), via(5, "2001:db8:3::2", 3)];
    assert_eq!(two.hops, Hops::Many(hops.into()));
    assert_eq!((two.advertised, two.table), (None, Table::Main));
    assert_eq!(of(&all, "3fff:3::/32").kind, RouteKind::Blackhole);
    assert_eq!(of(&all, "3fff:4::/32").hops, Hops::Object(7));
    let default = of(&all, "::/0");
    assert_eq!(default.advertised, Some(Preference::High));
    assert_eq!(default.hops, Hops::One(via(5, "fe80::9", 1)));
    assert_eq!(of(&all, "2001:db8:1::/64").hops, Hops::One(Hop::on_link(3)));
    // Own addresses, and those of the routers' anycast group.
    for prefix in ["::1/128", "2001:db8:1::1/128", "2001:db8:1::/128"] {
        let own = of(&all, prefix);
        assert_eq!((own.kind, own.table), (RouteKind::Local, Table::Local));
    }
    // Link-local and multicast ones are not among them.
    assert_eq!(all.len(), 15);
}

#[test]
fn ip4_routes_by_ip6_gateways() {
    let all = routes(include_bytes!(
        "../../../../../fuzz/seeds/netlink/routes-by-ip6"
    ));
    let one = of(&all, "198.51.100.0/24");
    assert_eq!(one.hops, Hops::One(via(3, "fe80::2", 1)));
    let hops = [via(3, "fe80::2", 1), via(3, "10.0.0.2", 1)];
    assert_eq!(of(&all, "203.0.113.0/24").hops, Hops::Many(hops.into()));
}

#[test]
fn ip6_addresses() {
    let all = events(include_bytes!(
        "../../../../../fuzz/seeds/netlink/addresses6"
    ));
    let all = all.into_iter().map(|event| match event {
        Event::Address(3 | 5, a) if a.scope == 0 => {
            Some((a.to_string(), a.peer.to_string(), a.deprecated))
        }
        Event::Address(..) => None,
        other => panic!("{other:?}"),
    });
    let expected = [
        ("2001:db8:2::1/64", "2001:db8:2::1", true),
        ("2001:db8:1::1/64", "2001:db8:1::1", false),
        ("2001:db8:3::1/128", "2001:db8:3::2", false),
    ];
    let expected = expected.map(|(own, peer, old)| (own.to_owned(), peer.to_owned(), old));
    assert!(all.flatten().eq(expected));
}

#[test]
fn ip6_neighbors() {
    let all = events(include_bytes!(
        "../../../../../fuzz/seeds/netlink/neighbors6"
    ));
    let mac = |address: &str| {
        let address: IpAddr = address.parse().unwrap();
        all.iter().find_map(|event| match event {
            Event::Neighbor(n) if n.link == 3 && n.address == address => Some(n.mac),
            _ => None,
        })
    };
    assert_eq!(mac("fe80::2"), Some(Some([2, 0, 0, 0, 0, 0x99].into())));
    assert_eq!(mac("fe80::3"), Some(None), "it does not answer");
    assert_eq!(mac("2001:db8:1::7"), None, "a proxy");
}
