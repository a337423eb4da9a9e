//! The mirror against a real kernel, in network namespaces of its own.

mod support;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use control::facts::Link;
use control::mirror::{LinkNews, Mirror, Options};
use router::change::{Address, Mac, Path, Prefix, Route};

use support::{Follower, Netns};

/// A namespace with two connected veth interfaces `pa` (10.0.1.1/24) and `pb` (10.0.2.1/24), ours
/// as 1 and 2.
fn two_interfaces(test: &str) -> Option<(Netns, Mirror, Follower)> {
    let netns = Netns::new(test)?;
    for (name, net) in [("pa", 1), ("pb", 2)] {
        netns.ip(&format!("link add {name} type veth peer name {name}-far"));
        netns.ip(&format!("link set {name} up"));
        netns.ip(&format!("link set {name}-far up"));
        netns.ip(&format!("address add 10.0.{net}.1/24 dev {name}"));
    }
    let (mirror, follower) = Follower::of_two(&netns);
    Some((netns, mirror, follower))
}

fn via(interface: u16, gateway: &str) -> Path {
    Path {
        interface,
        gateway: Some(gateway.parse().expect("an address")),
        weight: 1,
        mtu: None,
        source: None,
    }
}

/// The IPv4 addresses among all.
fn of_family4(addresses: &[Address]) -> Vec<Address> {
    let all = addresses.iter().filter(|a| a.address.is_ipv4());
    all.copied().collect()
}

fn forward(paths: &[Path]) -> Option<Route> {
    Some(Route::Forward(paths.to_vec()))
}

#[test]
fn interfaces_addresses_and_their_routes_are_seen() {
    let Some((netns, _mirror, mut follower)) =
        two_interfaces("interfaces_addresses_and_their_routes")
    else {
        return;
    };
    let memory = &follower.memory;
    assert!(memory.interfaces[&1].up && memory.interfaces[&1].mtu == 1500);
    let own = Ipv4Addr::new(10, 0, 1, 1);
    assert_eq!(of_family4(&memory.addresses[&1]), [Address::new(own, 24)]);
    assert_eq!(memory.route("10.0.1.1/32"), Some(&Route::Local));
    assert_eq!(memory.route("10.0.1.255/32"), Some(&Route::Broadcast));
    assert_eq!(memory.route("127.0.0.0/8"), Some(&Route::Local));
    let connected = Route::Forward(vec![Path {
        interface: 1,
        gateway: None,
        weight: 1,
        mtu: None,
        source: Some(own.into()),
    }]);
    assert_eq!(memory.route("10.0.1.0/24"), Some(&connected));

    netns.ip("link set pa mtu 1400");
    follower.until("the MTU is 1400", |_, memory| {
        memory.interfaces[&1].mtu == 1400
    });
    netns.ip("link set pa-far down");
    follower.until("carrier is gone", |_, memory| !memory.interfaces[&1].up);
    netns.ip("address del 10.0.1.1/24 dev pa");
    follower.until("the address is gone", |_, memory| {
        of_family4(&memory.addresses[&1]).is_empty()
    });
    follower.until("its routes are gone", |_, memory| {
        memory.route("10.0.1.0/24").is_none()
    });
}

#[test]
fn addresses_stand_in_the_kernels_order() {
    let Some((netns, _mirror, mut follower)) = two_interfaces("addresses_in_the_kernels_order")
    else {
        return;
    };
    netns.ip("address add 10.255.0.1/32 dev lo");
    let printed = |netns: &Netns| -> Vec<(IpAddr, bool)> {
        let printed = netns.ip("-j -4 address show dev pa");
        let links: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
        let list = links[0]["addr_info"].as_array().expect("a list").iter();
        let address = |info: &serde_json::Value| {
            let own = info["local"].as_str().expect("an address");
            let secondary = info["secondary"].as_bool().unwrap_or(false);
            (own.parse().expect("an address"), secondary)
        };
        list.map(address).collect()
    };
    netns.write("net/ipv4/conf/pa/promote_secondaries", "1");
    for step in [
        "add 10.0.1.2/24",
        "add 10.0.9.1/24",
        "add 10.0.8.1/24 scope link",
        "add 10.0.7.1 peer 10.0.7.2/32",
        "add 10.0.1.3/24",
        // The first of the same network takes its place, then the next one that of this.
        "del 10.0.1.1/24",
        "del 10.0.1.2/24",
        "del 10.0.7.1 peer 10.0.7.2/32",
    ] {
        netns.ip(&format!("address {step} dev pa"));
        let wanted = printed(&netns);
        follower.until(step, |_, memory| {
            let known = of_family4(&memory.addresses[&1]);
            known
                .iter()
                .map(|a| (a.address, a.secondary))
                .eq(wanted.iter().copied())
        });
    }
    assert_eq!(follower.memory.sources.0, Some([10, 255, 0, 1].into()));
}

#[test]
fn routes_come_go_and_yield_to_better_ones() {
    let Some((netns, _mirror, mut follower)) = two_interfaces("routes_come_go_and_yield") else {
        return;
    };
    let mut is = |what: &str, prefix: &str, route: Option<Route>| {
        follower.until(what, |_, memory| memory.route(prefix) == route.as_ref());
    };
    netns.ip("route add 198.51.100.0/24 via 10.0.1.2 metric 100");
    is(
        "metric 100",
        "198.51.100.0/24",
        forward(&[via(1, "10.0.1.2")]),
    );
    netns.ip("route add 198.51.100.0/24 via 10.0.2.2 metric 10");
    is(
        "metric 10 wins",
        "198.51.100.0/24",
        forward(&[via(2, "10.0.2.2")]),
    );
    netns.ip("route del 198.51.100.0/24 via 10.0.2.2 metric 10");
    is(
        "metric 100 again",
        "198.51.100.0/24",
        forward(&[via(1, "10.0.1.2")]),
    );
    netns.ip("route replace 198.51.100.0/24 via 10.0.1.9 metric 100");
    is(
        "replaced",
        "198.51.100.0/24",
        forward(&[via(1, "10.0.1.9")]),
    );
    netns.ip("route append 198.51.100.0/24 via 10.0.2.9 metric 100");
    netns.ip("route del 198.51.100.0/24 via 10.0.1.9 metric 100");
    is(
        "the appended one remains",
        "198.51.100.0/24",
        forward(&[via(2, "10.0.2.9")]),
    );
    netns.ip("route add blackhole 203.0.113.0/25");
    is("blackhole", "203.0.113.0/25", Some(Route::Blackhole));
    netns.ip("route add unreachable 203.0.113.128/25");
    is("unreachable", "203.0.113.128/25", Some(Route::Unreachable));
    netns.ip("route add prohibit 192.0.2.0/24");
    is("prohibit", "192.0.2.0/24", Some(Route::Prohibit));
    netns.ip("route add 192.0.2.77/32 dev lo");
    is(
        "not by an interface of ours",
        "192.0.2.77/32",
        Some(Route::Punt),
    );
    netns.ip("route add default via 10.0.1.2 table default");
    is(
        "the last resort counts",
        "0.0.0.0/0",
        forward(&[via(1, "10.0.1.2")]),
    );
    netns.ip("route add default via 10.0.2.2");
    is(
        "main comes first",
        "0.0.0.0/0",
        forward(&[via(2, "10.0.2.2")]),
    );
}

#[test]
fn multipath_and_nexthop_objects() {
    let Some((netns, _mirror, mut follower)) = two_interfaces("multipath_and_nexthop_objects")
    else {
        return;
    };
    let mut is = |what: &str, prefix: &str, route: Option<Route>| {
        follower.until(what, |_, memory| memory.route(prefix) == route.as_ref());
    };
    let both = [
        via(1, "10.0.1.2"),
        Path {
            weight: 3,
            ..via(2, "10.0.2.2")
        },
    ];
    netns.ip("route add 198.51.100.0/24 nexthop via 10.0.1.2 nexthop via 10.0.2.2 weight 3");
    is("two paths", "198.51.100.0/24", forward(&both));
    netns.ip("nexthop add id 1 via 10.0.1.2 dev pa");
    netns.ip("nexthop add id 2 via 10.0.2.2 dev pb");
    netns.ip("nexthop add id 10 group 1/2,3");
    netns.ip("route add 203.0.113.0/24 nhid 10");
    is("a group", "203.0.113.0/24", forward(&both));
    netns.ip("nexthop replace id 1 via 10.0.1.7 dev pa");
    is(
        "a member replaced",
        "203.0.113.0/24",
        forward(&[via(1, "10.0.1.7"), both[1]]),
    );
    netns.ip("link set pa down");
    is(
        "the other path of the group",
        "203.0.113.0/24",
        forward(&[both[1]]),
    );
    is("the other path", "198.51.100.0/24", forward(&[both[1]]));
    netns.ip("nexthop del id 10");
    is("its routes are gone", "203.0.113.0/24", None);
    netns.ip("link set pa up");
    is("both paths again", "198.51.100.0/24", forward(&both));
}

#[test]
fn the_routes_of_a_link_that_goes_down_are_gone_without_a_word() {
    let Some((netns, _mirror, mut follower)) = two_interfaces("routes_of_a_link_that_goes_down")
    else {
        return;
    };
    netns.ip("route add 198.51.100.0/24 via 10.0.1.2");
    follower.until("the route is there", |_, memory| {
        memory.route("198.51.100.0/24").is_some()
    });
    netns.ip("link set pa down");
    follower.until("it is gone", |_, memory| {
        memory.route("198.51.100.0/24").is_none()
    });
    assert_eq!(follower.memory.route("10.0.1.1/32"), Some(&Route::Local));
    netns.ip("link set pa up");
    follower.until("the connected one is back", |_, memory| {
        memory.route("10.0.1.0/24").is_some()
    });
    assert_eq!(follower.memory.route("198.51.100.0/24"), None);
}

#[test]
fn neighbors_follow_their_state() {
    let Some((netns, _mirror, mut follower)) = two_interfaces("neighbors_follow_their_state")
    else {
        return;
    };
    let address = "10.0.1.2".parse().unwrap();
    netns.ip("neighbor add 10.0.1.2 lladdr 02:00:00:00:00:02 dev pa nud permanent");
    let mac = Mac([2, 0, 0, 0, 0, 2]);
    follower.until("resolved", |_, memory| {
        memory.neighbors.get(&(1, address)) == Some(&mac)
    });
    netns.ip("neighbor change 10.0.1.2 lladdr 02:00:00:00:00:03 dev pa nud reachable");
    follower.until("moved", |_, memory| {
        memory.neighbors.get(&(1, address)) == Some(&Mac([2, 0, 0, 0, 0, 3]))
    });
    netns.ip("neighbor change 10.0.1.2 dev pa nud failed");
    follower.until("failed", |_, memory| {
        !memory.neighbors.contains_key(&(1, address))
    });
    netns.ip("neighbor replace 10.0.1.2 lladdr 02:00:00:00:00:02 dev pa nud stale");
    follower.until("stale is good enough", |_, memory| {
        memory.neighbors.contains_key(&(1, address))
    });
    netns.ip("neighbor del 10.0.1.2 dev pa");
    follower.until("deleted", |_, memory| {
        !memory.neighbors.contains_key(&(1, address))
    });
}

#[test]
fn interfaces_appear_leave_and_vanish() {
    let Some((netns, _mirror, mut follower)) = two_interfaces("interfaces_appear_leave_and_vanish")
    else {
        return;
    };
    follower.translator.take_news();
    netns.ip("link add late type veth peer name late-far");
    follower.until("it appears", |translator, _| {
        Link::named(translator.links(), "late").is_some()
    });
    let news = follower.translator.take_news();
    assert!(
        news.iter()
            .any(|news| matches!(news, LinkNews::Appeared { name, .. } if name == "late")),
        "{news:?}"
    );
    netns.ip("link set late up");
    netns.ip("link set late-far up");
    netns.ip("route add 198.51.100.0/24 dev late");
    follower.until("the kernel's", |_, memory| {
        memory.route("198.51.100.0/24") == Some(&Route::Punt)
    });
    follower.bind("late", 3);
    assert!(matches!(
        follower.memory.route("198.51.100.0/24"),
        Some(Route::Forward(_))
    ));
    let link = follower.index("late");
    let changes = follower.translator.unbind(link);
    follower.memory.apply(changes);
    assert_eq!(follower.memory.route("198.51.100.0/24"), Some(&Route::Punt));
    follower.bind("late", 3);
    netns.ip("link del late");
    follower.until("it vanishes", |_, memory| {
        !memory.interfaces.contains_key(&3)
    });
    assert_eq!(follower.memory.route("198.51.100.0/24"), None);
    let vanished = LinkNews::Vanished { index: link };
    assert!(follower.translator.take_news().contains(&vanished));
}

#[test]
fn it_tells_when_it_has_caught_up() {
    let Some((netns, mirror, mut follower)) = two_interfaces("it_tells_when_it_has_caught_up")
    else {
        return;
    };
    for host in 2..30 {
        let gateway = format!("10.0.1.{host}");
        netns.ip(&format!("route replace 198.51.100.0/24 via {gateway}"));
        let asked = mirror.catch_up();
        follower.until("it has caught up", |translator, _| {
            translator.caught_up() == asked
        });
        let route = follower.memory.route("198.51.100.0/24");
        assert_eq!(route, forward(&[via(1, &gateway)]).as_ref());
    }
}

#[test]
fn news_that_was_lost_is_made_up_for() {
    let Some(netns) = Netns::new("news_that_was_lost_is_made_up_for") else {
        return;
    };
    netns.ip("link add pa type veth peer name pb");
    netns.ip("link set pa up");
    netns.ip("link set pb up");
    netns.ip("address add 10.0.1.1/24 dev pa");
    let (sender, batches) = sync_channel(1);
    let options = Options {
        netns: Some(netns.path()),
        receive_buffer: 1,
        interval: Duration::from_secs(3600),
    };
    let mirror = Mirror::start(options, sender).expect("a mirror");
    let mut follower = Follower::new(batches);
    follower.until("all was seen once", |translator, _| translator.synced());
    follower.bind("pa", 1);
    // Nobody reads meanwhile: the channel fills, then the smallest buffer that the kernel grants.
    let lines = |verb: &str, from: u32, to: u32| -> String {
        (from..to)
            .map(|n| {
                format!(
                    "route {verb} 100.{}.{}.0/24 via 10.0.1.2\n",
                    n >> 8,
                    n & 255
                )
            })
            .collect()
    };
    netns.batch(&lines("add", 0, 6000));
    netns.batch(&lines("del", 1000, 2000));
    follower.until("5000 routes", |_, memory| {
        memory
            .routes
            .values()
            .filter(|route| **route == Route::Forward(vec![via(1, "10.0.1.2")]))
            .count()
            == 5000
    });
    assert!(
        mirror.counters().overflows.load(Ordering::Relaxed) > 0,
        "nothing was lost: the test shows nothing"
    );
    let printed = netns.ip("-j route show table main");
    let kernel: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    let kernel: Vec<String> = kernel
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["dst"].as_str().unwrap().to_owned())
        .collect();
    let ours = follower.memory.routes.iter().filter(|(prefix, route)| {
        matches!(prefix, Prefix::V4(_)) && matches!(route, Route::Forward(_))
    });
    let mut ours: Vec<String> = ours.map(|(prefix, _)| prefix.to_string()).collect();
    let mut kernel: Vec<String> = kernel
        .into_iter()
        .map(|d| {
            if d.contains('/') {
                d
            } else {
                format!("{d}/32")
            }
        })
        .collect();
    ours.sort();
    kernel.sort();
    assert_eq!(ours, kernel);
}

/// Takes half a minute to load; run by hand: `cargo test -p control --release --test mirror --
/// --ignored --nocapture`.
#[test]
#[ignore = "loads a million routes"]
fn a_million_routes() {
    let Some(netns) = Netns::new("a_million_routes") else {
        return;
    };
    netns.ip("link add pa type veth peer name pb");
    netns.ip("link set pa up");
    netns.ip("link set pb up");
    netns.ip("address add 10.0.1.1/24 dev pa");
    let lines = (0..1_000_000u32).map(|n| {
        let address = Ipv4Addr::from(0x1400_0000 + (n << 8) + n % 7 * 32);
        format!(
            "route add {address}/{} via 10.0.1.{}\n",
            if n % 7 == 0 { 24 } else { 27 },
            2 + n % 100
        )
    });
    netns.batch(&lines.collect::<String>());
    let begun = Instant::now();
    let (mirror, batches) = Mirror::open(Some(&netns.path())).expect("a mirror");
    let mut follower = Follower::new(batches);
    follower.until("all was seen once", |translator, _| translator.synced());
    println!(
        "dumped and translated: {:?}, remembered as {} routes",
        begun.elapsed(),
        follower.memory.routes.len()
    );
    let begun = Instant::now();
    follower.bind("pa", 1);
    println!("re-translated for a new interface: {:?}", begun.elapsed());
    let changes: String = (0..100_000u32)
        .map(|n| {
            let address = Ipv4Addr::from(0x1400_0000 + ((7 * n % 700_000) << 8));
            format!("route replace {address}/24 via 10.0.1.{}\n", 120 + n % 100)
        })
        .collect();
    let begun = Instant::now();
    netns.batch(&changes);
    println!("the kernel took 100,000 changes in {:?}", begun.elapsed());
    let last = via(1, "10.0.1.219");
    follower.until("the last change is there", |_, memory| {
        memory.route("30.174.89.0/24") == forward(&[last]).as_ref()
    });
    let overflows = mirror.counters().overflows.load(Ordering::Relaxed);
    println!(
        "followed after {:?}, {overflows} overflows",
        begun.elapsed()
    );
    let begun = Instant::now();
    netns.ip("link set pa down");
    follower.until("all routes are gone", |_, memory| memory.routes.len() < 10);
    println!("link down, all routes gone: {:?}", begun.elapsed());
    drop(mirror);
}
