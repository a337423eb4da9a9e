//! Addresses and routes of the kernel that are ours, beside those of others.

mod support;

use std::net::IpAddr;
use std::time::Duration;

use control::config::Checked;
use control::facts::{Gateway, Hop};
use control::netdev::{configure, is_known};
use control::netlink::{Requests, StaticRoute};

use support::Netns;

/// A namespace with the devices `pa` and `pb`, up, with an address of somebody else on each.
fn place(test: &str) -> Option<(Netns, Requests)> {
    let netns = Netns::new(test)?;
    netns.batch(
        "link add pa type veth peer name pb\nlink set pa up\nlink set pb up\n\
         address add 10.1.0.1/24 dev pa\naddress add 10.2.0.1/24 dev pb\n\
         address add 2001:db8:1::1/64 dev pa nodad\naddress add 2001:db8:2::1/64 dev pb nodad\n",
    );
    let requests = Requests::open_filtering(Some(&netns.path())).expect("a socket");
    Some((netns, requests))
}

fn index(netns: &Netns, device: &str) -> u32 {
    let shown = netns.ip(&format!("-o link show dev {device}"));
    let index = shown.split(':').next().and_then(|text| text.parse().ok());
    index.expect("it begins with the index")
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn route(prefix: &str, hops: &[(u32, &str, u32)]) -> StaticRoute {
    let hop = |&(link, gateway, weight): &(u32, &str, u32)| Hop {
        link,
        gateway: match gateway {
            "" => Gateway::OnLink,
            address => Gateway::Via(ip(address)),
        },
        weight,
    };
    StaticRoute {
        prefix: prefix.parse().expect("a prefix"),
        table: 254,
        metric: None,
        hops: hops.iter().map(hop).collect(),
    }
}

#[test]
fn an_address_goes_and_takes_no_other_with_it() {
    let test = "an_address_goes_and_takes_no_other_with_it";
    let Some((netns, mut requests)) = place(test) else {
        return;
    };
    let pa = index(&netns, "pa");
    netns.write("net/ipv4/conf/all/promote_secondaries", "0");
    for promote in ["0", "1"] {
        netns.write("net/ipv4/conf/pa/promote_secondaries", promote);
        assert!(requests.give_address(pa, ip("10.3.0.1"), 24).expect("new"));
        netns.ip("address add 10.3.0.2/24 dev pa");
        let third = requests.give_address(pa, ip("10.3.0.3"), 24);
        assert!(third.expect("another of the network"));
        requests.take_address(pa, ip("10.3.0.1"), 24).expect("ours");
        let shown = netns.ip("-4 address show dev pa");
        assert!(!shown.contains("10.3.0.1/"), "{shown}");
        assert!(
            shown.contains("10.3.0.2/24") && shown.contains("10.3.0.3/24"),
            "{shown}"
        );
        let setting = netns.sh("cat /proc/sys/net/ipv4/conf/pa/promote_secondaries");
        assert_eq!(setting.trim(), promote);
        let kept = netns.ip("-4 route show dev pa");
        assert!(kept.contains("10.3.0.0/24"), "{kept}");
        netns.ip("address del 10.3.0.2/24 dev pa");
        requests.take_address(pa, ip("10.3.0.3"), 24).expect("ours");
        assert!(!netns.ip("-4 address show dev pa").contains("10.3.0."));
    }
}

#[test]
fn addresses_of_others_are_used_and_stay() {
    let test = "addresses_of_others_are_used_and_stay";
    let Some((netns, mut requests)) = place(test) else {
        return;
    };
    let pa = index(&netns, "pa");
    for (address, length) in [("10.1.0.1", 24), ("2001:db8:1::1", 64)] {
        let given = requests.give_address(pa, ip(address), length);
        assert!(!given.expect("it is there"), "{address}");
        requests
            .take_address(pa, ip(address), length)
            .expect("not ours");
        let shown = netns.ip("address show dev pa");
        assert!(shown.contains(&format!("{address}/{length}")), "{shown}");
    }
    requests
        .give_address(pa, ip("2001:db8:9::1"), 64)
        .expect("new");
    let all = requests.all_addresses().expect("a list");
    let ours: Vec<_> = all.iter().filter(|given| given.ours).collect();
    if testbed::lacks(test, (5, 18), "does not say who made an address") {
        return;
    }
    assert_eq!(ours.len(), 1, "{all:?}");
    assert_eq!((ours[0].link, ours[0].length), (pa, 64));
    requests
        .take_address(pa, ip("2001:db8:9::1"), 64)
        .expect("ours");
    assert!(!netns.ip("address show dev pa").contains("2001:db8:9::1"));
}

/// The kernel asks whether another host has an IPv6 address before it may be used. Of one that the
/// device has had with another length it has asked, so that it goes on being used.
#[test]
fn an_address_that_changes_only_its_length_is_usable_at_once() {
    let test = "an_address_that_changes_only_its_length";
    let Some((netns, mut requests)) = place(test) else {
        return;
    };
    if testbed::lacks(test, (5, 18), "does not say who made an address") {
        return;
    }
    let (pa, host) = (index(&netns, "pa"), ip("2001:db8:7::1"));
    netns.sh("echo 1 > /proc/sys/net/ipv6/conf/pa/accept_dad");
    let shown = || netns.ip("address show dev pa to 2001:db8:7::/48");
    assert!(requests.give_address(pa, host, 64).expect("new"));
    assert!(shown().contains("tentative"), "{}", shown());
    let usable = || !shown().contains("tentative");
    assert!(testbed::until(
        testbed::patience(Duration::from_secs(30)),
        usable
    ));
    let taken = requests.take_address(pa, host, 64).expect("ours");
    assert!(taken.is_some_and(|taken| is_known(&taken, host)));
    assert!(requests.give_again(pa, host, 62).expect("new"));
    let now = shown();
    assert!(
        now.contains("2001:db8:7::1/62") && !now.contains("tentative"),
        "{now}"
    );
    // It is as any other, and ours.
    assert!(!now.contains("nodad"), "{now}");
    let all = requests.all_addresses().expect("addresses");
    assert!(
        all.iter().any(|given| given.address == host && given.ours),
        "{all:?}"
    );
    // A start that finds another length goes the same way.
    let wanted =
        "interfaces: { pa: { addresses: [ '2001:db8:7::1/60', '2001:db8:7:90::1/128' ] } }";
    let wanted = Checked::parse("x", wanted).expect("valid").wanted();
    let wanted = wanted.expect("what the router can do").interfaces.remove(0);
    let link = requests.link_named("pa").expect("there");
    configure(&mut requests, &link, &wanted).expect("configured");
    let now = shown();
    for line in now.lines().filter(|line| line.contains("inet6")) {
        assert_eq!(line.contains("tentative"), line.contains("90::1"), "{now}");
    }
    assert!(now.contains("::1/60") && now.contains("90::1/128"), "{now}");
    // Nobody knows yet whether it is another's.
    let other = ip("2001:db8:7:90::1");
    let taken = requests.take_address(pa, other, 128).expect("ours");
    assert!(taken.is_some_and(|taken| !is_known(&taken, other)));
}

/// To the kernel an IPv6 address with another prefix length is the same address, which is there.
#[test]
fn an_address_with_another_length_is_not_there() {
    let test = "an_address_with_another_length_is_not_there";
    let Some((netns, mut requests)) = place(test) else {
        return;
    };
    let pa = index(&netns, "pa");
    let has = |address: &str| netns.ip("address show dev pa").contains(address);
    assert!(
        requests
            .give_address(pa, ip("10.1.0.1"), 25)
            .expect("it is another")
    );
    let given = requests.give_address(pa, ip("2001:db8:1::1"), 48);
    let why = given.expect_err("somebody else's is in the way");
    assert_eq!(why.kind(), std::io::ErrorKind::AlreadyExists);
    assert!(why.to_string().contains("2001:db8:1::1/64"), "{why}");
    assert!(has("2001:db8:1::1/64") && !has("2001:db8:1::1/48"));
    if testbed::lacks(test, (5, 18), "does not say who made an address") {
        return;
    }
    for address in ["2001:db8:7::1", "fe80::7"] {
        for (old, new) in [(64, 48), (48, 64)] {
            assert!(requests.give_address(pa, ip(address), old).expect("new"));
            assert!(!requests.give_address(pa, ip(address), old).expect("there"));
            requests
                .give_address(pa, ip(address), new)
                .expect_err("the other length");
            requests.take_address(pa, ip(address), old).expect("ours");
            assert!(requests.give_address(pa, ip(address), new).expect("free"));
            assert!(has(&format!("{address}/{new}")));
            requests.take_address(pa, ip(address), new).expect("ours");
            // With the slash: the device's own link-local address may begin alike.
            assert!(!has(&format!("{address}/")));
        }
    }
}

#[test]
fn routes_are_made_replaced_found_and_removed() {
    let test = "routes_are_made_replaced_found_and_removed";
    let Some((netns, mut requests)) = place(test) else {
        return;
    };
    let [pa, pb] = ["pa", "pb"].map(|device| index(&netns, device));
    netns.ip("route add 203.0.113.0/24 via 10.1.0.9");
    let in_table = StaticRoute {
        table: 1000,
        metric: Some(7),
        ..route("198.51.100.0/24", &[(0, "10.1.0.2", 1)])
    };
    let routes = [
        route("16.0.0.0/8", &[(0, "10.1.0.2", 1)]),
        route("17.0.0.0/8", &[(0, "10.1.0.2", 1), (0, "10.2.0.2", 256)]),
        route("18.0.0.0/8", &[]),
        route("19.0.0.0/8", &[(pa, "", 1)]),
        route("20.0.0.0/8", &[(pb, "2001:db8:2::2", 1)]),
        in_table,
        route("0.0.0.0/0", &[(pa, "10.1.0.2", 1)]),
        route("3fff:1::/32", &[(0, "2001:db8:1::2", 1)]),
        route("3fff:2::/32", &[(pa, "fe80::2", 1), (pb, "fe80::3", 3)]),
        route("3fff:3::/32", &[]),
        route("::/0", &[(pb, "fe80::3", 1)]),
    ];
    for route in &routes {
        let made = requests.add_route(route);
        made.unwrap_or_else(|error| panic!("{route:?}: {error}"));
        let again = requests.add_route(route).expect_err("it is there");
        assert_eq!(again.kind(), std::io::ErrorKind::AlreadyExists);
    }
    let own = requests.own_routes().expect("a list");
    assert_eq!(own.len(), routes.len(), "{own:?}");
    for route in &routes {
        let found = own.iter().filter(|own| route.is(own)).count();
        assert_eq!(found, 1, "{route:?} of {own:?}");
    }
    let shown = netns.ip("route show table all");
    assert!(
        shown.contains("16.0.0.0/8 via 10.1.0.2 dev pa proto 80"),
        "{shown}"
    );
    // Other next hops, fewer, more, none.
    let others: [&[(u32, &str, u32)]; 4] = [
        &[(pb, "fe80::3", 1)],
        &[(pa, "fe80::2", 2), (pb, "fe80::3", 1)],
        &[],
        &[(pa, "fe80::4", 1)],
    ];
    for prefix in ["3fff:2::/32", "17.0.0.0/8"] {
        for hops in others {
            let other = route(prefix, hops);
            let replaced = requests.replace_route(&other);
            replaced.unwrap_or_else(|error| panic!("{other:?}: {error}"));
            let own = requests.own_routes().expect("a list");
            let there: Vec<_> = own.iter().filter(|own| own.is_at(&other)).collect();
            assert!(
                there.len() == 1 && other.is(there[0]),
                "{other:?}: {there:?}"
            );
        }
    }
    // A foreign route of the same place stays.
    let foreign = route("203.0.113.0/24", &[(0, "10.1.0.2", 1)]);
    let refused = requests.add_route(&foreign).expect_err("it is another's");
    assert_eq!(refused.kind(), std::io::ErrorKind::AlreadyExists);
    requests.remove_route(&foreign).expect("none of ours");
    for route in &routes {
        requests.remove_route(route).expect("ours");
        requests.remove_route(route).expect("gone");
    }
    assert_eq!(requests.own_routes().expect("a list"), []);
    let left = netns.ip("route show");
    assert!(left.contains("203.0.113.0/24 via 10.1.0.9"), "{left}");
    let nowhere = route("21.0.0.0/8", &[(0, "192.0.2.1", 1)]);
    let refused = requests
        .add_route(&nowhere)
        .expect_err("no link leads there");
    assert_eq!(refused.kind(), std::io::ErrorKind::NetworkUnreachable);
}

/// To the kernel a request to remove a route without a metric is about the lowest that there is.
#[test]
fn a_route_that_is_not_there_takes_no_other_with_it() {
    let test = "a_route_that_is_not_there_takes_no_other_with_it";
    let Some((_netns, mut requests)) = place(test) else {
        return;
    };
    for prefix in ["16.0.0.0/8", "0.0.0.0/0", "3fff:1::/32", "::/0"] {
        for metric in [None, Some(0)] {
            let others = [5, 2000].map(|metric| StaticRoute {
                metric: Some(metric),
                ..route(prefix, &[])
            });
            for other in &others {
                requests.add_route(other).expect("new");
            }
            let gone = StaticRoute {
                metric,
                ..route(prefix, &[])
            };
            requests.remove_route(&gone).expect("it is not there");
            let own = requests.own_routes().expect("a list");
            assert_eq!(own.len(), 2, "{prefix} {metric:?}: {own:?}");
            requests.add_route(&gone).expect("new");
            requests.remove_route(&gone).expect("ours");
            let own = requests.own_routes().expect("a list");
            for other in &others {
                assert!(own.iter().any(|own| other.is(own)), "{other:?}: {own:?}");
                requests.remove_route(other).expect("ours");
            }
            assert_eq!(requests.own_routes().expect("a list"), []);
        }
    }
}

#[test]
fn one_device_is_asked_for_alone() {
    let test = "one_device_is_asked_for_alone";
    let Some((netns, mut requests)) = place(test) else {
        return;
    };
    let long = "a-name-of-more-than-15-characters";
    netns.ip("link property add dev pa altname other");
    netns.ip(&format!("link property add dev pa altname {long}"));
    let pa = index(&netns, "pa");
    for name in ["pa", "other", long] {
        let link = requests.link_named(name).expect("it is there");
        assert_eq!((link.index, link.name.as_str()), (pa, "pa"));
    }
    let very_long = "x".repeat(500);
    for name in ["pc", "", "a-name-of-no-device-at-all", &very_long] {
        let missing = requests.link_named(name).expect_err("there is none");
        assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
        let expected = format!("there is no network device {name}");
        assert_eq!(missing.to_string(), expected);
    }
    let all = requests.addresses_of(pa).expect("asked").into_iter();
    let all: Vec<_> = all.map(|its| (its.link, its.address)).collect();
    assert_eq!(all, [(pa, ip("10.1.0.1")), (pa, ip("2001:db8:1::1"))]);
    assert_eq!(requests.addresses_of(9999).expect("asked"), []);
    // One that does not filter sees the same.
    let mut plain = Requests::open(Some(&netns.path())).expect("a socket");
    assert_eq!(plain.addresses_of(pa).expect("asked").len(), 2);
}

#[test]
fn devices_are_removed_all_at_once_and_no_others() {
    let test = "devices_are_removed_all_at_once_and_no_others";
    let Some((netns, mut requests)) = place(test) else {
        return;
    };
    netns.batch("link add qa type veth peer name qb\nlink add ra type veth peer name rb\n");
    let [pa, qa] = ["pa", "qa"].map(|name| index(&netns, name));
    let gone = pa + 1000;
    requests.remove_all(&[pa, gone, qa]).expect("removed");
    let names = |links: Vec<control::facts::Link>| -> Vec<String> {
        let names = links.into_iter().map(|link| link.name);
        names.filter(|name| name != "lo").collect()
    };
    let left = names(requests.links().expect("the devices"));
    assert_eq!(left, ["rb", "ra"]);
    // Nothing is left to remove, and `lo` is there, which cannot be removed.
    requests.remove_all(&[gone]).expect("nothing");
    requests.remove_all(&[]).expect("nothing");
    assert!(requests.link_named("lo").is_ok());
}
