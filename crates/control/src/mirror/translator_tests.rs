use router::change::{Address, Path, Route as Action};

use super::*;
use crate::facts::{Gateway, Hop, Hops, Nexthop, Place, Route, RouteKind, Table};

fn link(index: u32, name: &str, up: bool) -> Event {
    Event::Link(Link {
        index,
        name: name.into(),
        altnames: Vec::new(),
        mac: Some([2, 0, 0, 0, 0, index as u8].into()),
        mtu: 1500,
        max_mtu: None,
        admin_up: up,
        carrier: up,
        loopback: false,
        master: None,
        kind: None,
        bus: None,
        bus_address: None,
    })
}

fn hop(link: u32, gateway: [u8; 4]) -> Hop {
    Hop {
        link,
        gateway: Gateway::Via(gateway.into()),
        weight: 1,
    }
}

fn unicast(prefix: &str, hops: Hops) -> Route {
    Route {
        prefix: prefix.parse().expect("a prefix"),
        table: Table::Main,
        tos: 0,
        metric: 0,
        protocol: libc::RTPROT_STATIC,
        advertised: None,
        kind: RouteKind::Unicast,
        mtu: None,
        source: None,
        hops,
    }
}

fn route(route: &Route) -> Event {
    Event::Route(route.clone(), Place::Last)
}

fn owned(id: InterfaceId) -> Binding {
    Binding {
        id,
        name: format!("if{id}"),
        host: None,
        port_up: true,
        serving: true,
        on: None,
        bond: None,
        tunnel: None,
        l2: None,
    }
}

fn news(translator: &mut Translator, events: Vec<Event>) -> Vec<Change> {
    translator.apply(Batch {
        events,
        resync: false,
    })
}

/// Devices 11 and 12 are ours as 1 and 2, 13 is not.
fn three_links() -> Translator {
    let mut translator = Translator::new();
    news(
        &mut translator,
        vec![
            link(11, "a", true),
            link(12, "b", true),
            link(13, "c", true),
        ],
    );
    translator.bind(11, owned(1));
    translator.bind(12, owned(2));
    translator
}

fn set(prefix: &str, route: Action) -> Change {
    Change::RouteSet {
        prefix: prefix.parse().expect("a prefix"),
        route,
    }
}

fn addresses(interface: InterfaceId, addresses: &[Address]) -> Change {
    Change::AddressesSet {
        interface,
        addresses: addresses.to_vec(),
    }
}

fn source_set(address: IpAddr) -> Change {
    match address {
        IpAddr::V4(address) => Change::SourceSet {
            ip4: Some(address),
            ip6: None,
        },
        IpAddr::V6(_) => panic!("{address} is no IPv4 address"),
    }
}

fn via(interface: InterfaceId, gateway: [u8; 4]) -> Path {
    Path {
        interface,
        gateway: Some(gateway.into()),
        weight: 1,
        mtu: None,
        source: None,
    }
}

/// Routes lead by it before, so that nothing but this is to be changed then.
#[test]
fn all_interfaces_serve_at_once() {
    let mut translator = Translator::new();
    let by_either = unicast(
        "48.0.0.0/8",
        Hops::Many([hop(11, [10, 0, 1, 2]), hop(12, [10, 0, 2, 2])].into()),
    );
    news(
        &mut translator,
        vec![link(11, "a", true), link(12, "b", true), route(&by_either)],
    );
    let mut changes = Vec::new();
    for (link, id) in [(11, 1), (12, 2)] {
        let idle = Binding {
            serving: false,
            ..owned(id)
        };
        changes.extend(translator.bind(link, idle));
    }
    let serving = |changes: &[Change]| -> Vec<_> {
        let interfaces = changes.iter().filter_map(|change| match change {
            Change::InterfaceSet(i) => Some((i.id, i.up, i.serving)),
            _ => None,
        });
        interfaces.collect()
    };
    assert_eq!(serving(&changes), [(1, true, false), (2, true, false)]);
    let paths = vec![via(1, [10, 0, 1, 2]), via(2, [10, 0, 2, 2])];
    assert_eq!(
        changes.last(),
        Some(&set("48.0.0.0/8", Action::Forward(paths)))
    );
    let changes = translator.serve_all();
    assert_eq!(changes.len(), 2, "{changes:?}");
    let mut both = serving(&changes);
    both.sort_unstable();
    assert_eq!(both, [(1, true, true), (2, true, true)]);
    assert_eq!(translator.serve_all(), []);
}

#[test]
fn only_routes_wholly_by_our_interfaces_are_forwarded() {
    let mut translator = three_links();
    let (ours, theirs) = (hop(11, [10, 0, 1, 2]), hop(13, [10, 0, 3, 2]));
    let foreign = Hop {
        gateway: Gateway::Foreign,
        ..ours
    };
    let heavy = Hop {
        weight: 300,
        ..ours
    };
    let cases = [
        (
            Hops::One(ours),
            Action::Forward(vec![via(1, [10, 0, 1, 2])]),
        ),
        (Hops::One(theirs), Action::Punt),
        (Hops::One(foreign), Action::Punt),
        (Hops::Many([ours, theirs].into()), Action::Punt),
        (
            Hops::Many([ours, hop(12, [10, 0, 2, 2])].into()),
            Action::Forward(vec![via(1, [10, 0, 1, 2]), via(2, [10, 0, 2, 2])]),
        ),
        (
            Hops::Many([heavy, hop(12, [10, 0, 2, 2])].into()),
            Action::Forward(vec![
                Path {
                    weight: 300,
                    ..via(1, [10, 0, 1, 2])
                },
                via(2, [10, 0, 2, 2]),
            ]),
        ),
        (Hops::Object(99), Action::Punt),
    ];
    for (hops, action) in cases {
        let known = unicast("192.0.2.0/24", hops);
        assert_eq!(
            news(&mut translator, vec![route(&known)]),
            [set("192.0.2.0/24", action)]
        );
        assert_eq!(
            news(&mut translator, vec![route(&known)]),
            [],
            "the same again is no news"
        );
        let gone = news(&mut translator, vec![Event::RouteGone(known)]);
        assert_eq!(
            gone,
            [Change::RouteDelete {
                prefix: "192.0.2.0/24".parse().unwrap()
            }]
        );
    }
}

#[test]
fn routes_are_translated_anew_when_an_interface_becomes_ours_or_leaves() {
    let mut translator = three_links();
    news(
        &mut translator,
        vec![route(&unicast(
            "192.0.2.0/24",
            Hops::One(hop(13, [10, 0, 3, 2])),
        ))],
    );
    let changes = translator.bind(13, owned(3));
    assert!(
        matches!(&changes[0], Change::InterfaceSet(interface) if interface.id == 3 && interface.up)
    );
    assert_eq!(
        changes[1..],
        [set(
            "192.0.2.0/24",
            Action::Forward(vec![via(3, [10, 0, 3, 2])])
        )]
    );
    let changes = translator.unbind(13);
    assert_eq!(
        changes,
        [
            set("192.0.2.0/24", Action::Punt),
            Change::InterfaceDelete(3)
        ]
    );
}

#[test]
fn what_was_known_before_is_told_when_an_interface_becomes_ours() {
    let mut translator = Translator::new();
    let own = Address::new([10, 0, 1, 1], 24);
    let resolved = Neighbor {
        link: 11,
        address: [10, 0, 1, 2].into(),
        mac: Some([2; 6].into()),
    };
    let pending = Neighbor {
        link: 11,
        address: [10, 0, 1, 3].into(),
        mac: None,
    };
    let events = vec![
        link(11, "a", true),
        Event::Address(11, own),
        Event::Neighbor(resolved),
        Event::Neighbor(pending),
    ];
    let source = source_set(own.address);
    assert_eq!(news(&mut translator, events), [source]);
    let changes = translator.bind(11, owned(1));
    assert_eq!(changes[1], addresses(1, &[own]));
    assert_eq!(
        changes[2],
        Change::NeighborSet {
            interface: 1,
            address: resolved.address,
            mac: [2; 6].into()
        }
    );
    assert_eq!(changes.len(), 3);
}

#[test]
fn a_tap_stands_for_a_port_with_a_state_of_its_own() {
    let mut translator = Translator::new();
    news(&mut translator, vec![link(11, "tap-memif", true)]);
    let changes = translator.bind(
        11,
        Binding {
            host: Some(2),
            port_up: false,
            ..owned(1)
        },
    );
    let [Change::InterfaceSet(routed), Change::InterfaceSet(host)] = &changes[..] else {
        panic!("{changes:?}")
    };
    assert_eq!(
        (routed.kind, routed.up, routed.name.as_str()),
        (Kind::Routed { host: Some(2) }, false, "if1")
    );
    assert_eq!(
        (host.kind, host.up, host.name.as_str()),
        (Kind::Host { of: 1 }, true, "if1-host")
    );
    let changes = translator.set_port_up(11, true);
    assert!(matches!(&changes[0], Change::InterfaceSet(interface) if interface.up));
    assert_eq!(translator.set_port_up(11, true), []);
    assert_eq!(
        translator.unbind(11),
        [Change::InterfaceDelete(2), Change::InterfaceDelete(1)]
    );
}

/// A bond is up while a member is, and so is what has tags on it.
#[test]
fn a_bond_is_as_its_members() {
    let mut translator = three_links();
    news(&mut translator, vec![link(14, "d", true)]);
    let bond = Binding {
        bond: Some(Spread::RoundRobin),
        ..owned(3)
    };
    translator.bind(13, bond);
    let sub = Binding {
        on: Some((3, Tags::one(5))),
        ..owned(4)
    };
    translator.bind(14, sub);
    let last = |changes: &[Change], id: InterfaceId| {
        let all = changes.iter().rev().filter_map(|change| match change {
            Change::InterfaceSet(i) if i.id == id => Some(i.up),
            _ => None,
        });
        all.into_iter().next()
    };
    let both = |changes: &[Change]| [last(changes, 3), last(changes, 4)];
    let member = Some(L2::Bond(3));
    assert_eq!(both(&translator.set_l2(11, member)), [Some(true); 2]);
    let down =
        |translator: &mut Translator, index, name| news(translator, vec![link(index, name, false)]);
    assert_eq!(both(&down(&mut translator, 11, "a")), [Some(false); 2]);
    assert_eq!(both(&translator.set_l2(12, member)), [Some(true); 2]);
    assert_eq!(both(&translator.set_l2(12, None)), [Some(false); 2]);
    translator.set_l2(12, member);
    assert_eq!(both(&translator.unbind(12)), [Some(false); 2]);
    translator.bind(
        12,
        Binding {
            l2: member,
            ..owned(2)
        },
    );
    let gone = news(&mut translator, vec![Event::LinkGone(12)]);
    assert_eq!(both(&gone), [Some(false); 2]);
    let changes = translator.set_bond(13, Spread::Broadcast);
    let kind = Kind::Bond {
        spread: Spread::Broadcast,
        enabled: true,
        host: None,
    };
    assert!(matches!(&changes[0], Change::InterfaceSet(i) if i.kind == kind));
    // Nobody is at the other end, and then it is down, which LACP has to know.
    translator.set_port_up(13, false);
    let changes = down(&mut translator, 13, "c");
    let disabled = Kind::Bond {
        spread: Spread::Broadcast,
        enabled: false,
        host: None,
    };
    assert!(matches!(&changes[0], Change::InterfaceSet(i) if i.kind == disabled));
}

#[test]
fn a_tunnel_has_other_ends_at_once() {
    let tunnel = |vni| Tunnel::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), vni).unwrap();
    let mut translator = three_links();
    let bound = translator.bind(
        13,
        Binding {
            tunnel: Some(tunnel(7)),
            ..owned(3)
        },
    );
    let kinds = |changes: &[Change]| {
        let of = |change: &Change| match change {
            Change::InterfaceSet(i) => Some(i.kind),
            _ => None,
        };
        changes.iter().filter_map(of).collect::<Vec<_>>()
    };
    let kind = |vni| Kind::Vxlan {
        tunnel: tunnel(vni),
        host: None,
    };
    assert_eq!(kinds(&bound), [kind(7)]);
    assert_eq!(kinds(&translator.set_tunnel(13, tunnel(8))), [kind(8)]);
    assert_eq!(translator.set_tunnel(13, tunnel(8)), []);
}

#[test]
fn a_dump_removes_what_it_does_not_show_and_says_only_what_differs() {
    let mut translator = three_links();
    let routes = [1u8, 2, 3].map(|n| {
        unicast(
            &format!("192.0.{n}.0/24"),
            Hops::One(hop(11, [10, 0, 1, n])),
        )
    });
    news(&mut translator, routes.iter().map(route).collect());
    let moved = Route {
        hops: Hops::One(hop(12, [10, 0, 2, 9])),
        ..routes[1].clone()
    };
    let dump = |complete| {
        let end = Event::DumpEnd {
            section: Section::Routes,
            complete,
        };
        vec![
            Event::DumpBegin(Section::Routes),
            route(&routes[0]),
            route(&moved),
            end,
        ]
    };
    assert_eq!(
        news(&mut translator, dump(false)),
        [set(
            "192.0.2.0/24",
            Action::Forward(vec![via(2, [10, 0, 2, 9])])
        )],
        "what is missing may only have been skipped"
    );
    assert!(translator.synced());
    let deleted = Change::RouteDelete {
        prefix: "192.0.3.0/24".parse().unwrap(),
    };
    assert_eq!(news(&mut translator, dump(true)), [deleted]);
    assert_eq!(news(&mut translator, dump(true)), []);
}

#[test]
fn a_dump_of_links_removes_those_that_are_gone() {
    let mut translator = three_links();
    news(
        &mut translator,
        vec![route(&unicast(
            "192.0.2.0/24",
            Hops::One(hop(11, [10, 0, 1, 2])),
        ))],
    );
    translator.take_news();
    let end = Event::DumpEnd {
        section: Section::Links,
        complete: true,
    };
    let events = vec![
        Event::DumpBegin(Section::Links),
        link(12, "b", true),
        link(13, "c", true),
        end,
    ];
    let changes = news(&mut translator, events);
    assert_eq!(
        changes,
        [
            Change::RouteDelete {
                prefix: "192.0.2.0/24".parse().unwrap()
            },
            Change::InterfaceDelete(1)
        ]
    );
    assert_eq!(translator.take_news(), [LinkNews::Vanished { index: 11 }]);
}

#[test]
fn a_path_that_is_down_is_left_out() {
    let mut translator = three_links();
    let both = Hops::Many([hop(11, [10, 0, 1, 2]), hop(12, [10, 0, 2, 2])].into());
    news(&mut translator, vec![route(&unicast("192.0.2.0/24", both))]);
    let changes = news(&mut translator, vec![link(11, "a", false)]);
    assert_eq!(
        changes[0],
        set("192.0.2.0/24", Action::Forward(vec![via(2, [10, 0, 2, 2])]))
    );
    let changes = news(&mut translator, vec![link(12, "b", false)]);
    assert_eq!(
        changes[0],
        Change::RouteDelete {
            prefix: "192.0.2.0/24".parse().unwrap()
        }
    );
}

#[test]
fn neighbors_of_others_and_of_groups_are_not_ours() {
    let mut translator = three_links();
    let neighbor = |link, address: [u8; 4]| {
        Event::Neighbor(Neighbor {
            link,
            address: address.into(),
            mac: Some([2; 6].into()),
        })
    };
    assert_eq!(
        news(
            &mut translator,
            vec![neighbor(13, [10, 0, 3, 2]), neighbor(11, [224, 0, 0, 5])]
        ),
        []
    );
    let changes = news(
        &mut translator,
        vec![neighbor(11, [10, 0, 1, 2]), neighbor(11, [10, 0, 1, 2])],
    );
    assert_eq!(changes.len(), 1);
}

#[test]
fn addresses_are_told_in_the_kernels_order_and_the_hosts_own_for_interfaces_without() {
    let mut translator = three_links();
    let [first, second, host] = [1, 2, 3].map(|n| Address::new([10, 0, n, 1], 24));
    let on_lo = |address| Event::Address(1, address);
    let both = vec![Event::Address(11, first), Event::Address(11, second)];
    assert_eq!(
        news(&mut translator, both),
        [
            addresses(1, &[first]),
            addresses(1, &[first, second]),
            source_set(first.address)
        ]
    );
    assert_eq!(
        news(&mut translator, vec![on_lo(host)]),
        [source_set(host.address)],
        "the loopback device comes first"
    );
    // News were lost in which the first address went and came again.
    let dump = vec![
        Event::DumpBegin(Section::Addresses),
        Event::Address(11, second),
        Event::Address(11, first),
        Event::DumpEnd {
            section: Section::Addresses,
            complete: true,
        },
    ];
    assert_eq!(
        news(&mut translator, dump.clone()),
        [addresses(1, &[second, first]), source_set(second.address)]
    );
    assert_eq!(news(&mut translator, dump), []);
    assert_eq!(
        news(&mut translator, vec![Event::AddressGone(11, second)]),
        [addresses(1, &[first]), source_set(first.address)]
    );
}

#[test]
fn routes_follow_their_objects_and_links() {
    let mut translator = three_links();
    let object = |id, link: u32| {
        let gateway = [10, 0, (link - 10) as u8, 2];
        Event::Nexthop(id, Nexthop::Hop(hop(link, gateway)))
    };
    let group = Event::Nexthop(10, Nexthop::Group(vec![(1, 1), (2, 1)]));
    let events = vec![
        object(1, 11),
        object(2, 12),
        group,
        route(&unicast("192.0.2.0/24", Hops::Object(10))),
        route(&unicast("198.51.100.0/24", Hops::Object(2))),
    ];
    let [by_a, by_b] = [via(1, [10, 0, 1, 2]), via(2, [10, 0, 2, 2])];
    let forward = |prefix, paths: &[Path]| set(prefix, Action::Forward(paths.to_vec()));
    assert_eq!(
        news(&mut translator, events),
        [
            forward("192.0.2.0/24", &[by_a, by_b]),
            forward("198.51.100.0/24", &[by_b])
        ]
    );
    let moved = via(2, [10, 0, 2, 9]);
    let nexthop = Nexthop::Hop(hop(12, [10, 0, 2, 9]));
    assert_eq!(
        news(&mut translator, vec![Event::Nexthop(2, nexthop)]),
        [
            forward("192.0.2.0/24", &[by_a, moved]),
            forward("198.51.100.0/24", &[moved])
        ]
    );
    assert_eq!(
        news(&mut translator, vec![link(11, "a", false)])[0],
        forward("192.0.2.0/24", &[moved]),
    );
    news(&mut translator, vec![link(11, "a", true)]);
    // The object goes, and its route with it; the group has a member less, and is gone with the
    // last.
    let gone = |prefix: &str| Change::RouteDelete {
        prefix: prefix.parse().unwrap(),
    };
    assert_eq!(
        news(&mut translator, vec![Event::NexthopGone(2)]),
        [forward("192.0.2.0/24", &[by_a]), gone("198.51.100.0/24")]
    );
    assert_eq!(
        news(
            &mut translator,
            vec![Event::NexthopGone(1), Event::NexthopGone(10)]
        ),
        [gone("192.0.2.0/24")]
    );
    assert_eq!(
        news(&mut translator, vec![object(2, 12), object(10, 12)]),
        [],
        "no route remembers them"
    );
}

#[test]
fn both_families_follow_the_same_links_and_objects() {
    let mut translator = three_links();
    let gateway = IpAddr::from([0xfe80, 0, 0, 0, 0, 0, 0, 2]);
    let by = |link| Hop {
        gateway: Gateway::Via(gateway),
        ..Hop::on_link(link)
    };
    let path = |interface| Path {
        gateway: Some(gateway),
        ..via(interface, [0; 4])
    };
    let both = |route: Action| [set("192.0.2.0/24", route.clone()), set("3fff::/32", route)];
    let routes = ["192.0.2.0/24", "3fff::/32"].map(|prefix| unicast(prefix, Hops::Object(1)));
    let mut events = vec![Event::Nexthop(1, Nexthop::Hop(by(11)))];
    events.extend(routes.iter().map(route));
    let forward = |interface| both(Action::Forward(vec![path(interface)]));
    assert_eq!(news(&mut translator, events), forward(1));
    let moved = Event::Nexthop(1, Nexthop::Hop(by(12)));
    assert_eq!(news(&mut translator, vec![moved]), forward(2));
    translator.unbind(12);
    assert_eq!(translator.bind(12, owned(2))[1..], forward(2));
    let gone = routes.map(|route| Change::RouteDelete {
        prefix: route.prefix,
    });
    let changes = news(&mut translator, vec![Event::NexthopGone(1)]);
    assert_eq!(changes, gone);
}

#[test]
fn a_neighbor_is_one_of_its_family_and_a_group_is_none() {
    let mut translator = three_links();
    let neighbor = |address: &str| {
        Event::Neighbor(Neighbor {
            link: 11,
            address: address.parse().unwrap(),
            mac: Some([2; 6].into()),
        })
    };
    let events = vec![neighbor("fe80::2"), neighbor("ff02::2")];
    let set = Change::NeighborSet {
        interface: 1,
        address: "fe80::2".parse().unwrap(),
        mac: [2; 6].into(),
    };
    assert_eq!(news(&mut translator, events), [set]);
}

#[test]
fn an_interface_has_addresses_of_both_families_and_the_host_a_source_of_each() {
    let mut translator = three_links();
    let ip4 = Address::new([10, 0, 1, 1], 24);
    let [first, second] = [1, 2].map(|n| Address::new([0x3fff, n, 0, 0, 0, 0, 0, 1], 64));
    let local = Address {
        scope: 253,
        ..Address::new([0xfe80, 0, 0, 0, 0, 0, 0, 1], 64)
    };
    let told = |address| Event::Address(11, address);
    let sources = |ip6: Address| Change::SourceSet {
        ip4: Some([10, 0, 1, 1].into()),
        ip6: match ip6.address {
            IpAddr::V6(address) => Some(address),
            IpAddr::V4(_) => None,
        },
    };
    news(&mut translator, vec![told(ip4)]);
    assert_eq!(
        news(&mut translator, vec![told(local)]),
        [addresses(1, &[ip4, local])]
    );
    // A new one goes before those that are as wide, or narrower.
    assert_eq!(
        news(&mut translator, vec![told(first), told(second)]),
        [
            addresses(1, &[ip4, first, local]),
            addresses(1, &[ip4, second, first, local]),
            sources(second)
        ],
        "the source is told once"
    );
    // It is the same address still.
    let old = Address {
        deprecated: true,
        ..second
    };
    assert_eq!(
        news(&mut translator, vec![told(old)]),
        [addresses(1, &[ip4, old, first, local]), sources(first)]
    );
    let gone = Event::AddressGone(11, old);
    assert_eq!(
        news(&mut translator, vec![gone]),
        [addresses(1, &[ip4, first, local])]
    );
}

/// A sub-interface on top of one that is bound follows that one's going and coming.
#[test]
fn a_sub_interface_is_up_only_while_its_parent_is() {
    let mut translator = Translator::new();
    let both = vec![link(7, "m", true), link(8, "m.5", true)];
    news(&mut translator, both);
    let sub = Binding {
        on: Some((1, Tags::one(5))),
        l2: Some(L2::Bridge(3)),
        ..owned(2)
    };
    let ups = |changes: Vec<Change>| -> Vec<bool> {
        let subs = changes.into_iter().filter_map(|change| match change {
            Change::InterfaceSet(interface) if interface.id == 2 => {
                let kind = Kind::Sub {
                    parent: 1,
                    tags: Tags::one(5),
                    host: None,
                };
                assert_eq!((interface.kind, interface.l2), (kind, Some(L2::Bridge(3))));
                Some(interface.up)
            }
            _ => None,
        });
        subs.collect()
    };
    assert_eq!(ups(translator.bind(8, sub)), [false]);
    assert_eq!(ups(translator.bind(7, owned(1))), [true]);
    assert_eq!(ups(translator.set_port_up(7, false)), [false]);
    assert_eq!(ups(translator.set_port_up(7, true)), [true]);
    for up in [false, true] {
        let changes = news(&mut translator, vec![link(7, "m", up)]);
        assert_eq!(ups(changes), [up]);
    }
    assert_eq!(ups(translator.unbind(7)), [false]);
}
