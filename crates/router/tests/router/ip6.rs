//! IPv6 in the state: routes and their next hops, neighbors, sources; and IPv4 by IPv6 neighbors.

use std::net::Ipv6Addr;

use router::ip::show::{Adjacency, Query, Route as Shown, fib, fib_list};
use router::neighbor::show::neighbors;
use router::show::{addresses, memory};
use router::{Change, Family, Path, Route, Unresolved};

use crate::harness::*;

fn gone6(interface: u16, address: &str) -> Change {
    Change::NeighborDelete {
        interface,
        address: ip6(address),
    }
}

/// A lab in which the kernel has `2001:db8:ID::1/64` configured on interfaces 1 to 3.
pub fn lab() -> Lab {
    wired6(Lab::new())
}

fn longest(lab: &Lab, address: &str) -> Option<Shown> {
    fib(&lab.router, address.parse::<Query<u128>>().unwrap()).route
}

/// The one adjacency that packets to this address take.
fn adjacency(lab: &Lab, address: &str) -> Adjacency {
    longest(lab, address).unwrap().buckets[0].adjacency.clone()
}

fn hex(adjacency: &Adjacency) -> &str {
    adjacency.rewrite.as_deref().unwrap_or_default()
}

#[test]
fn a_neighbor_on_a_connected_network_has_a_host_route() {
    let mut lab = lab();
    let host = "2001:db8:2::9";
    assert_eq!(adjacency(&lab, host).kind, "glean");
    lab.apply(vec![neighbor6(2, host)]);
    let shown = longest(&lab, host).unwrap();
    assert_eq!(
        (&shown.prefix[..], shown.source),
        ("2001:db8:2::9/128", "neighbor")
    );
    assert_eq!(hex(&adjacency(&lab, host)), "02000000024202fe0000000286dd");
    // The route goes and comes; another interface's neighbor of that address is none here.
    let connected = "2001:db8:2::/64";
    let delete = Change::RouteDelete {
        prefix: prefix(connected),
    };
    lab.apply(vec![delete]);
    assert_eq!(longest(&lab, host), None);
    lab.apply(vec![route(connected, Route::Forward(vec![on_link(3)]))]);
    assert_eq!(adjacency(&lab, host).kind, "glean");
    lab.apply(vec![route(connected, Route::Forward(vec![on_link(2)]))]);
    assert_eq!(adjacency(&lab, host).kind, "rewrite");
    lab.apply(vec![gone6(2, host)]);
    assert_eq!(longest(&lab, host).unwrap().prefix, connected);
}

#[test]
fn what_is_good_on_its_link_only_goes_to_the_host_whatever_the_routes() {
    let mut lab = lab();
    let default = route("::/0", Route::Forward(vec![via6(2, "fe80::2")]));
    lab.apply(vec![default, neighbor6(2, "fe80::2")]);
    for (address, kind) in [
        ("fe80::2", "punt"),
        ("febf::1", "punt"),
        ("ff02::1", "punt"),
        ("::", "blackhole"),
        ("::1", "blackhole"),
        ("fec0::1", "rewrite"),
        ("::2", "rewrite"),
    ] {
        assert_eq!(adjacency(&lab, address).kind, kind, "{address}");
    }
    // The neighbor is one all the same: of that interface alone.
    assert_eq!(hex(&adjacency(&lab, "::2")), "02000000024202fe0000000286dd");
    lab.apply(vec![route(
        "::/0",
        Route::Forward(vec![via6(3, "fe80::2")]),
    )]);
    assert_eq!(adjacency(&lab, "::2").kind, "incomplete");
}

#[test]
fn several_next_hops_share_the_buckets_and_a_link_that_is_down_has_none() {
    let mut lab = lab();
    let weighted = Path {
        weight: 3,
        ..via6(3, "fe80::3")
    };
    let paths = Route::Forward(vec![via6(2, "fe80::2"), weighted]);
    let far = "2001:db8:ffff::";
    lab.apply(vec![
        neighbor6(2, "fe80::2"),
        neighbor6(3, "fe80::3"),
        route(&format!("{far}/48"), paths),
    ]);
    let share = |lab: &Lab, interface: &str| -> usize {
        let buckets = longest(lab, far).unwrap().buckets;
        let of = |name: &Option<String>| name.as_deref() == Some(interface);
        let mine = buckets.iter().filter(|b| of(&b.adjacency.interface));
        mine.map(|b| b.last - b.first + 1).sum()
    };
    assert_eq!((share(&lab, "eth2"), share(&lab, "eth3")), (4, 12));
    let mut down = interface(3);
    down.up = false;
    lab.apply(vec![Change::InterfaceSet(down)]);
    assert_eq!((share(&lab, "eth2"), share(&lab, "eth3")), (16, 0));
    let one = Route::Forward(vec![via6(2, "fe80::2")]);
    lab.apply(vec![route(&format!("{far}/48"), one)]);
    assert!(!longest(&lab, far).unwrap().multipath);
}

#[test]
fn ip4_packets_go_by_an_ip6_neighbor() {
    let mut lab = lab();
    let paths = || Route::Forward(vec![via6(3, "fe80::9")]);
    lab.apply(vec![
        route("50.0.0.0/8", paths()),
        route("50::/16", paths()),
    ]);
    let frame = udp(0x3200_0001).frame();
    lab.receive(1, [frame.clone()]);
    let asked = Unresolved {
        interface: 3,
        address: ip6("fe80::9"),
    };
    assert_eq!(lab.router.unresolved(), [asked]);
    lab.check_buffers(1);
    lab.apply(vec![neighbor6(3, "fe80::9")]);
    assert_eq!(lab.sent(3), [forwarded(&frame, 3, 66)]);
    lab.check_buffers(0);
    // The same next hop has another header for each family.
    let shown = |query: &str| {
        let shown = fib(&lab.router, query.parse::<Query<u32>>().unwrap());
        shown.route.unwrap().buckets[0].adjacency.clone()
    };
    let (of_ip4, of_ip6) = (shown("50.0.0.1"), adjacency(&lab, "50::1"));
    assert_eq!(hex(&of_ip4), "02000000034202fe000000030800");
    assert_eq!(hex(&of_ip6), "02000000034202fe0000000386dd");
    assert_eq!(
        of_ip4.to_string(),
        "ipv4 via fe80::9 eth3: mtu:1500 02000000034202fe000000030800"
    );
    lab.apply(vec![gone6(3, "fe80::9")]);
    let of_ip6 = adjacency(&lab, "50::1").to_string();
    assert_eq!(of_ip6, "arp-ipv6: via fe80::9 eth3: mtu:1500 unresolved");
}

#[test]
fn a_route_has_no_mtu_below_what_ip6_asks_of_every_link() {
    let mut lab = lab();
    let small = |mtu| Path {
        mtu: Some(mtu),
        ..via6(2, "fe80::2")
    };
    for (mtu, used) in [(576, 1280), (1400, 1400), (9000, 1500)] {
        lab.apply(vec![route("7::/16", Route::Forward(vec![small(mtu)]))]);
        assert_eq!(adjacency(&lab, "7::1").mtu, used);
    }
}

#[test]
fn a_full_table_keeps_what_was_there() {
    let mut lab = lab();
    let short = route("2001:db8::/32", Route::Prohibit);
    lab.apply(vec![short]);
    let to = |n: u16| format!("2001:db8:{n:x}:1::/64");
    let mut put = |n: &u16| lab.router.apply(vec![route(&to(*n), Route::Blackhole)]) == Ok(0);
    let last = (0..u16::MAX).find(|n| !put(n)).unwrap();
    let shown = memory(&lab.router);
    assert!(last > 50 && shown.ip6_fib_full > 0 && shown.fib_full == 0);
    assert!(shown.to_string().contains("found no room in the ip6 fib"));
    let inside = |n: u16| to(n).replace("/64", "1");
    assert_eq!(adjacency(&lab, &inside(last)).kind, "prohibit");
    assert_eq!(adjacency(&lab, &inside(5)).kind, "blackhole");
    // Room is made, and what waited is put in.
    let gone = (0..last / 2).map(|n| Change::RouteDelete {
        prefix: prefix(&to(n)),
    });
    lab.apply(gone.collect());
    let start = std::time::Instant::now();
    while lab.router.deferred() > 0 && start.elapsed().as_secs() < 60 {
        lab.run();
    }
    assert_eq!(adjacency(&lab, &inside(last)).kind, "blackhole");
}

#[test]
fn workers_choose_the_source_for_a_destination() {
    let mut lab = lab();
    let source = |lab: &mut Lab, interface, destination: &str| {
        let snapshot = lab.workers[0].context().snapshot();
        snapshot.ip6_source(interface, destination.parse().unwrap())
    };
    let own = |text: &str| Some(text.parse::<Ipv6Addr>().unwrap());
    assert_eq!(source(&mut lab, 2, "2a00::1"), own("2001:db8:2::1"));
    lab.apply(vec![
        Change::AddressesSet {
            interface: 2,
            addresses: vec![],
        },
        Change::SourceSet {
            ip4: None,
            ip6: own("2001:db8:ff::1"),
        },
    ]);
    assert_eq!(source(&mut lab, 2, "2a00::1"), own("2001:db8:ff::1"));
    // What a route names goes before that.
    let named = Path {
        source: Some(ip6("2001:db8:3::1")),
        ..via6(2, "fe80::2")
    };
    lab.apply(vec![route("7::/16", Route::Forward(vec![named]))]);
    let shown = adjacency(&lab, "7::1");
    assert_eq!(shown.source, Some(ip6("2001:db8:3::1")));
    let cx = lab.workers[0].context();
    assert_eq!(cx.adjacencies.source(shown.id), shown.source);
}

#[test]
fn the_families_are_shown_apart_and_together() {
    let mut lab = lab();
    lab.apply(vec![neighbor6(2, "2001:db8:2::9")]);
    let router = &lab.router;
    let count = |family| neighbors(router, family).neighbors.len();
    assert_eq!(
        [None, Some(Family::V4), Some(Family::V6)].map(count),
        [4, 3, 1]
    );
    let list = fib_list::<u128>(router, None, 2);
    assert_eq!((list.routes, list.left_out), (10, 8));
    let text = list.to_string();
    assert!(text.starts_with("ipv6 flow hash:["), "{text}");
    let next = format!(
        "... and 8 more routes: show ip6 fib after {}\n",
        list.list[1].prefix
    );
    assert!(text.ends_with(&next), "{text}");
    let shown = fib(router, "2001:db8:2::9".parse::<Query<u128>>().unwrap()).to_string();
    let path = "ip6 weight=1 attached-nexthop:\n        2001:db8:2::9 eth2\n";
    assert!(shown.contains(path), "{shown}");
    let connected = fib(router, "2001:db8:2::/64".parse::<Query<u128>>().unwrap()).to_string();
    let path = "ip6 weight=1 attached:\n        eth2\n";
    assert!(connected.contains(path), "{connected}");
    let text = addresses(router, &[]).to_string();
    let eth2 = "eth2 (up):\n  L3 10.0.2.1/24\n  L3 2001:db8:2::1/64\n  L3 fe80::1/64\n";
    assert!(text.contains(eth2), "{text}");
}
