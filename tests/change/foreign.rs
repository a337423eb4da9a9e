//! What others set: routes, addresses, MTUs.

use super::{
    Router, alone_with_spare_links, becomes, change, has, patience, skipped, state, until,
};

/// Routes of one maker that are counted, and listed.
const MANY: u32 = 300;
const FEW: u32 = 12;

/// They are listed if they are few, and counted if they are many, whoever made them; and they stay.
#[test]
fn routes_of_others_are_listed_or_counted() {
    if skipped("routes_of_others_are_listed_or_counted", &["ip"]) {
        return;
    }
    let (alone, netns) = alone_with_spare_links();
    let yaml = "interfaces:\n  x0: { addresses: [ 10.9.0.1/24, '2001:db8:9::1/64' ] }\n\
                \x20 x1: { addresses: [ 10.10.0.1/24 ] }\n\
                routes: [ { prefix: 16.9.0.0/16, via: 10.9.0.9 } ]\n";
    let router = Router::start(&netns, yaml);
    let prefix = |i: u32| format!("17.{}.{}.0/24", i / 256, i % 256);
    let add = |i| format!("route add {} via 10.9.0.9 proto bgp\n", prefix(i));
    let mut lines: String = (0..MANY).map(add).collect();
    lines += "route add 18.2.0.0/16 via 10.10.0.9 proto ospf metric 20\n\
              route add 18.2.0.0/16 via 10.10.0.9 proto ospf metric 30\n\
              route add 18.6.0.0/16 via 10.10.0.9 proto ospf table default\n\
              route add 18.1.0.0/16 proto ospf nexthop via 10.9.0.9 nexthop via 10.10.0.9\n\
              nexthop add id 7 via 10.10.0.8 dev x1\nroute add 18.3.0.0/16 nhid 7 proto isis\n\
              route add 3fff::/20 via 2001:db8:9::9 proto ra\n\
              route add 18.4.0.0/16 via 10.9.0.9 proto 77\nroute add 18.5.0.0/16 via 10.9.0.9\n";
    netns.ip_batch(&lines).expect("routes of others");
    let file = router.file().display().to_string();
    let plan = || router.ask(&["plan", "-c", &file]).expect("a plan");
    let foreign = "no change\n\nforeign, left as it is:\n\
        \x20 route 18.5.0.0/16 via 10.9.0.9 on x0 (boot)\n\
        \x20 route 3fff::/20 via 2001:db8:9::9 on x0 (ra)\n\
        \x20 route 18.4.0.0/16 via 10.9.0.9 on x0 (protocol 77)\n\
        \x20 route 18.3.0.0/16 via 10.10.0.8 on x1 (isis)\n\
        \x20 route 18.1.0.0/16 via 10.9.0.9 on x0, via 10.10.0.9 on x1 (ospf)\n\
        \x20 route 18.2.0.0/16 metric 20 via 10.10.0.9 on x1 (ospf)\n\
        \x20 route 18.2.0.0/16 metric 30 via 10.10.0.9 on x1 (ospf)\n\
        \x20 route 18.6.0.0/16 in table default via 10.10.0.9 on x1 (ospf)\n\
        \x20 300 routes on x0 (bgp)\n";
    assert!(until(patience(), || plan() == foreign), "{}", plan());
    let dump = router.ask(&["dump"]).expect("it says what it is");
    for line in foreign.lines().skip(3) {
        let comment = format!("# foreign: {}\n", line.trim_start());
        assert!(dump.contains(&comment), "{comment}{dump}");
    }
    assert!(has(&netns, "route show", &["17.1.43.0/24", "18.2.0.0/16"]));
    // Those that are left when others go are listed.
    let remove = |i| format!("route del {} proto bgp\n", prefix(i));
    let lines: String = (FEW..MANY).map(remove).collect();
    netns.ip_batch(&lines).expect("they can go");
    let few = || {
        let listed = plan().matches("  route 17.0.").count();
        listed == FEW as usize
    };
    assert!(until(patience(), few), "{}", plan());
    drop((router, netns, alone));
}

/// Another name or port of an interface, and one that it cannot have: whoever set something on its
/// device does not notice, also where the router found the device down.
#[test]
fn what_others_set_outlasts_names_and_ports() {
    if skipped("what_others_set_outlasts_names_and_ports", &["ip"]) {
        return;
    }
    let (alone, netns) = alone_with_spare_links();
    let with = |x0: &str, ports: &str| {
        format!(
            "interfaces:\n  x0: {{ {x0}addresses: [ 10.9.0.1/24, '2001:db8:9::1/64' ] }}\n  x1: {{}}\n{ports}"
        )
    };
    let router = Router::start(&netns, &with("", ""));
    netns
        .ip_batch(
            "route add 17.1.0.0/16 via 10.9.0.9 proto bird\n\
             route add 3fff:1::/32 via 2001:db8:9::9 proto bgp\n\
             address add 2001:db8:aa::9/64 dev x0 nodad\n\
             neighbor add 10.9.0.77 lladdr 02:00:00:00:00:77 dev x0\n",
        )
        .expect("what others set");
    let untouched = |device: &str| {
        let address = format!("address show dev {device}");
        has(&netns, "route show", &["17.1.0.0/16 via 10.9.0.9"])
            && has(&netns, "-6 route show", &["3fff:1::/32 via 2001:db8:9::9"])
            && has(
                &netns,
                &address,
                &["2001:db8:aa::9/64", "10.9.0.1/24", ",UP"],
            )
            && has(&netns, "neighbor show nud permanent", &["10.9.0.77"])
    };
    let port = |settings: &str| format!("ports: {{ x0: {{ netdev: x0, {settings} }} }}\n");
    for (x0, ports, device) in [
        ("lcp: y0, ", String::new(), "y0"),
        ("lcp: z0, ", String::new(), "z0"),
        ("lcp: z0, ", port("mode: copy"), "z0"),
        ("", port("mode: copy, queues: 1"), "x0"),
        ("", String::new(), "x0"),
    ] {
        becomes(&router, &with(x0, &ports));
        assert!(untouched(device), "{x0}{ports}: {:#?}", state(&netns));
    }
    for (x0, ports) in [
        ("lcp: p1, ", String::new()),
        ("", port("mode: zero-copy")),
        ("lcp: y0, ", port("mode: zero-copy")),
    ] {
        let refused = change(&router, &with(x0, &ports));
        assert!(refused.is_err(), "{x0}{ports}");
        assert!(untouched("x0"), "{x0}{ports}: {:#?}", state(&netns));
    }
    // It goes back to what it was.
    becomes(&router, "interfaces: { x1: {} }\n");
    assert!(!has(&netns, "address show dev x0", &[",UP"]));
    drop((router, netns, alone));
}

/// An interface that waits, as its device cannot have its port, is opened once it is given another.
#[test]
fn a_port_that_could_not_be_had_may_be_changed() {
    if skipped("a_port_that_could_not_be_had_may_be_changed", &["ip"]) {
        return;
    }
    let (alone, netns) = alone_with_spare_links();
    netns.ip("link set x0 name away").expect("a name");
    let with = |mode: &str| {
        format!("interfaces: {{ x0: {{}} }}\nports: {{ x0: {{ netdev: x0, mode: {mode} }} }}\n")
    };
    let router = Router::start(&netns, &with("zero-copy"));
    netns.ip("link set away name x0").expect("its name");
    let shown = || router.show_text(&["hardware"]);
    let refused = || shown().contains("waiting: ") && !shown().contains("no network device");
    assert!(until(patience(), refused), "{}", shown());
    assert!(change(&router, &with("generic, queues: 200")).is_err());
    becomes(&router, &with("copy"));
    assert!(shown().contains("af_xdp on x0"), "{}", shown());
    drop((router, netns, alone));
}

/// Somebody else replaces an IPv6 address of ours by another prefix length: that is said, and what
/// cannot be done about it is refused before anything is changed; it can be given up.
#[test]
fn an_address_that_somebody_else_has_replaced_is_missed() {
    const NAME: &str = "an_address_that_somebody_else_has_replaced";
    if skipped(NAME, &["ip"]) || testbed::lacks(NAME, (5, 18), "does not say who made an address") {
        return;
    }
    let (alone, netns) = alone_with_spare_links();
    let with = |x1: &str| {
        format!(
            "interfaces:\n  x0: {{ addresses: [ '2001:db8:9::1/64' ] }}\n\
             \x20 x1: {{ addresses: [ {x1}'2001:db8:8::1/64' ] }}\n"
        )
    };
    let ours = with("'2001:db8:7::1/64', ");
    let router = Router::start_with(&netns, &ours, &["--fail-each-step"]);
    // The router gives it again soon: whoever is quicker has it.
    let steps = ["del 2001:db8:7::1/64", "add 2001:db8:7::1/60"];
    let replaced = || {
        let mut done = steps
            .map(|step| netns.ip(&format!("address {step} dev x1")))
            .into_iter();
        done.all(|done| done.is_ok())
    };
    assert!(until(patience(), replaced));
    let missing =
        "interface x1 lacks IPv6 address 2001:db8:7::1/64: the device has it as 2001:db8:7::1/60";
    let shown = || router.show_text(&["warnings"]);
    assert!(
        until(patience(), || shown().contains(missing)),
        "{}",
        shown()
    );
    let before = state(&netns);
    let other = with("'2001:db8:7::1/62', ");
    for yaml in [
        &other,
        &ours.replace("x1: {", "x1: { mac: '02:00:00:00:09:01',"),
    ] {
        let why = change(&router, yaml).expect_err("it cannot be");
        let said = "interface x1 cannot have IPv6 address 2001:db8:7::1/6";
        assert!(why.contains(said) && !why.contains("undone"), "{why}");
        assert_eq!(state(&netns), before);
    }
    // At whatever step it fails, it is taken back wholly.
    let given_up = "interfaces: { x0: {}, x1: { mtu: 2000 } }\n";
    let failures = std::iter::from_fn(|| change(&router, given_up).err()).inspect(|why| {
        assert!(why.contains("the configuration is unchanged"), "{why}");
        assert_eq!(state(&netns), before);
    });
    assert!(failures.count() > 2);
    let gone = || !shown().contains("lacks IPv6 address");
    assert!(until(patience(), gone), "{}", shown());
    assert!(has(&netns, "address show dev x1", &["2001:db8:7::1/60"]));
    drop((router, netns, alone));
}

/// An MTU that the file does not name may become too small for what it does name: that is said, and
/// what the kernel has dropped comes back with a larger one.
#[test]
fn an_mtu_that_becomes_too_small_is_said() {
    if skipped("an_mtu_that_becomes_too_small_is_said", &["ip"]) {
        return;
    }
    let (alone, netns) = alone_with_spare_links();
    // With a larger MTU the kernel begins IPv6 anew, as for a device that comes.
    let on = "cd /proc/sys/net/ipv6/conf/default; echo 0 > disable_ipv6; echo 0 > accept_dad";
    netns.sh(on).expect("IPv6");
    let yaml = "interfaces: { x0: { addresses: [ 10.9.0.1/24, '2001:db8:9::1/64' ] } }\n";
    let router = Router::start(&netns, yaml);
    let has_it = || has(&netns, "address show dev x0", &["2001:db8:9::1/64"]);
    assert!(has_it());
    let said = || {
        let shown = router.show_text(&["warnings"]);
        shown.contains("interface x0 lacks IPv6 address 2001:db8:9::1/64: its MTU is 1000")
    };
    for _ in 0..2 {
        netns.ip("link set x0 mtu 1000").expect("a smaller MTU");
        assert!(until(patience(), said) && !has_it());
        netns.ip("link set x0 mtu 1280").expect("a larger MTU");
        let back = || has_it() && !said();
        assert!(until(patience(), back), "{}", router.process.log());
    }
    drop((router, netns, alone));
}
