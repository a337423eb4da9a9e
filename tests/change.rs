//! Changes of a running router, on real interfaces: what comes, changes and goes, and what stays as
//! it is.

mod carriers;
mod clients;
mod failures;
mod foreign;
mod handover;
mod layer2;
mod left_behind;
mod looks;
mod transitions;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use testbed::Alone;

use crate::harness::craft::Ip4;
use crate::harness::topology::{CONFIGURATION, H0, R0};
use crate::harness::{
    Directory, Hosts, Netns, PARSHALL, Process, Router, SetOnDrop, Spawn, command, patience,
    router, skipped, until,
};

/// Frames are sent one by one in this distance.
const PACE: Duration = Duration::from_micros(500);

/// Sends packets from the left to the right while `work` goes on; every one must arrive.
fn without_loss<T>(hosts: &Hosts, work: impl FnOnce() -> T) -> T {
    let (done, lost) = under_count(hosts, work);
    assert_eq!(lost, 0, "packets did not arrive");
    done
}

/// Sends packets from the left to the right while `work` goes on, and counts those that do not
/// arrive.
fn under_count<T>(hosts: &Hosts, work: impl FnOnce() -> T) -> (T, usize) {
    let (left, right) = hosts.raw();
    assert!(router::forwards(&left, &right), "nothing arrives");
    right.drain(Duration::from_millis(200));
    let (stop, sent) = (AtomicBool::new(false), AtomicU32::new(0));
    let (done, received) = thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let number = sent.fetch_add(1, Ordering::Relaxed);
                let to = Ipv4Addr::from_bits((48 << 24) | number);
                left.send(&Ip4::udp([16, 0, 0, 1].into(), to, 1, 26).frame(H0, R0));
                thread::sleep(PACE);
            }
        });
        let receiver = scope.spawn(|| {
            let mut received = BTreeSet::new();
            loop {
                match right.receive(Duration::from_millis(500)) {
                    Some(frame) if frame.len() >= 34 && frame[30] == 48 => {
                        received.insert(frame[30..34].to_vec());
                    }
                    Some(_) => {}
                    None if stop.load(Ordering::Relaxed) => return received.len(),
                    None => {}
                }
            }
        });
        let done = {
            let _stopped = SetOnDrop(&stop);
            work()
        };
        (done, receiver.join().expect("no panic"))
    });
    let sent = sent.load(Ordering::Relaxed) as usize;
    assert!(sent > 100, "{sent} packets are no traffic");
    (done, sent - received)
}

/// Gives the router another configuration.
///
/// # Errors
/// What it says if it does not take it.
fn change(router: &Router, yaml: &str) -> Result<(), String> {
    let file = router.file();
    std::fs::write(&file, yaml).expect("root may write to /run");
    let words = ["apply", "-c", &file.display().to_string()];
    router.ask(&words).map(drop).map_err(|e| e.to_string())
}

fn becomes(router: &Router, yaml: &str) {
    let done = change(router, yaml);
    assert_eq!(done, Ok(()), "{yaml}\n{}", router.process.log());
}

/// What the kernel of a namespace has, as far as it can be compared: of each device what it is, its
/// addresses; all routes.
fn state(netns: &Netns) -> BTreeSet<String> {
    let json = |words: &str| -> Vec<Value> {
        let text = netns.ip(words).expect("ip");
        serde_json::from_str(&text).expect("JSON")
    };
    let mut state = BTreeSet::new();
    for device in json("-j address show") {
        let name = &device["ifname"];
        let up = device["flags"]
            .as_array()
            .is_some_and(|flags| flags.contains(&"UP".into()));
        let (mtu, mac) = (&device["mtu"], &device["address"]);
        // The kernel chooses that of a tap that is a port, and a router that of its own devices where
        // the configuration does not: no other router has the same.
        let own = || mac.as_str().is_some_and(|mac| mac.starts_with("02:fe:"));
        let mac = match *name == "t0-port" || own() {
            true => &Value::Null,
            false => mac,
        };
        state.insert(format!("device {name} {mtu} {mac} up {up}"));
        for address in device["addr_info"].as_array().into_iter().flatten() {
            let (local, length) = (&address["local"], &address["prefixlen"]);
            if address["scope"] != "link" {
                state.insert(format!("address {name} {local}/{length}"));
            }
        }
    }
    for family in ["-4", "-6"] {
        for route in json(&format!("{family} -j route show table all")) {
            // Of links and hosts the kernel itself knows when to make them, and link-local ones
            // come a moment later.
            if route["protocol"] != "kernel" {
                let fields = ["type", "dst", "metric", "protocol", "table"];
                let mut fields = fields.map(|field| route[field].to_string()).to_vec();
                fields.extend(hops(&route));
                state.insert(format!("route {}", fields.join(" ")));
            }
        }
    }
    state
}

/// The next hops of a route that are alive; one alone has no weight.
fn hops(route: &Value) -> Vec<String> {
    let alive = |hop: &&Value| !hop["flags"].to_string().contains("dead");
    let hops: Vec<&Value> = match route["nexthops"].as_array() {
        Some(hops) => hops.iter().filter(alive).collect(),
        None => vec![route],
    };
    let text = |hop: &&Value| {
        let weight = match hops.len() {
            1 => "1".into(),
            _ => hop["weight"].to_string(),
        };
        format!("{} {} {} {weight}", hop["gateway"], hop["via"], hop["dev"])
    };
    hops.iter().map(text).collect()
}

fn has(netns: &Netns, words: &str, parts: &[&str]) -> bool {
    let shown = netns.ip(words).unwrap_or_default();
    parts.iter().all(|part| shown.contains(part))
}

/// The MTU of spare links: another one than an interface has whose device has none of its own.
const MTU: u16 = 3000;

/// A link `x0` to `p0` and one `x1` to `p1`, for interfaces that come and go.
fn spare_links(netns: &Netns) {
    for i in 0..2 {
        netns
            .ip_batch(&format!(
                "link add x{i} address 02:00:00:00:01:0{i} mtu {MTU} type veth peer name p{i} address 02:00:00:00:02:0{i} mtu {MTU}\n\
                 link set p{i} up\n"
            ))
            .expect("links");
    }
    speak_ip6(netns, ["x0", "x1"]);
}

/// Lets these devices have IPv6 addresses, which are usable at once.
fn speak_ip6(netns: &Netns, devices: [&str; 2]) {
    let devices = devices.join(" ");
    netns
        .sh(&format!(
            "for i in {devices}; do cd /proc/sys/net/ipv6/conf/$i; echo 0 > accept_dad; echo 0 > disable_ipv6; done"
        ))
        .expect("IPv6");
}

/// The machine to ourselves, and a namespace that has the spare links alone.
fn alone_with_spare_links() -> (Alone, Netns) {
    let alone = crate::harness::alone();
    let netns = Netns::create("router").expect("root makes namespaces");
    spare_links(&netns);
    (alone, netns)
}

/// Starts a router again, by this file. The old one must have ended.
fn start_again(router: &mut Router, netns: &Netns, yaml: &str) {
    std::fs::write(router.file(), yaml).expect("root may write to /run");
    router.relaunch(netns);
    router.wait();
}

#[test]
fn interfaces_come_and_go_and_others_lose_nothing() {
    if skipped("interfaces_come_and_go_and_others_lose_nothing", &["ip"]) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    let netns = &hosts.router;
    spare_links(netns);
    netns.ip("address add 10.77.0.1/24 dev x0").unwrap();
    let before = state(netns);
    let router = Router::start(netns, CONFIGURATION);
    let monitor = monitor(netns);
    let (with, with_less) = (
        "  x0: { mtu: 1400, mac: '02:00:00:00:01:99', addresses: [ 10.9.0.1/24, 10.9.0.2/24, '2001:db8:9::1/64' ] }\n\
         \x20 t0: { lcp: t0, addresses: [ 10.9.1.1/24 ] }\nports: { t0: { tap: { name: t0-port } } }\n\
         loopbacks: { loop0: { lcp: lo0, addresses: [ 10.9.9.9/32 ] } }\n\
         routes:\n  - { prefix: 16.1.0.0/16, via: 10.9.0.9 }\n  - { prefix: '3fff::/20', via: '2001:db8:9::9' }\n\
         \x20 - { prefix: 16.2.0.0/16, blackhole: true }\n",
        "  x0: { lcp: y0, addresses: [ 10.9.0.2/24 ], state: down }\nroutes: [ { prefix: 16.2.0.0/16, via: 10.9.0.9 } ]\n",
    );
    without_loss(&hosts, || {
        for _ in 0..3 {
            becomes(&router, &format!("{CONFIGURATION}{with}"));
            let parts = [
                "mtu 1400",
                "02:00:00:00:01:99",
                "10.9.0.1/24",
                "10.9.0.2/24",
                "2001:db8:9::1/64",
                "10.77.0.1/24",
                ",UP",
            ];
            assert!(
                has(netns, "address show dev x0", &parts),
                "{:#?}",
                state(netns)
            );
            assert!(has(netns, "address show dev lo0", &["10.9.9.9/32", ",UP"]));
            assert!(has(netns, "address show dev t0", &["10.9.1.1/24"]));
            let parts = ["16.1.0.0/16 via 10.9.0.9 dev x0", "blackhole 16.2.0.0/16"];
            assert!(has(netns, "route show", &parts), "{:#?}", state(netns));
            assert!(has(netns, "-6 route show", &["via 2001:db8:9::9 dev x0"]));
            let dump = router.ask(&["dump"]).expect("it says what it is");
            let foreign = "# foreign: address 10.77.0.1/24 of x0\n";
            assert!(dump.contains(foreign), "{dump}");
            let file = router.file().display().to_string();
            let plan = router.ask(&["plan", "-c", &file]).expect("a plan");
            let others = plan.strip_prefix("no change\n\nforeign, left as it is:\n");
            let is_listed = |others: &str| others.contains("  address 10.77.0.1/24 of x0\n");
            assert!(others.is_some_and(is_listed), "{plan}");
            let shown = router.show_text(&["interface"]);
            assert!(shown.contains("x0") && shown.contains("t0"), "{shown}");

            becomes(&router, &format!("{CONFIGURATION}{with_less}"));
            let parts = ["mtu 3000", "02:00:00:00:01:00", "10.9.0.2/24"];
            assert!(
                has(netns, "address show dev y0", &parts),
                "{:#?}",
                state(netns)
            );
            assert!(!has(netns, "address show dev y0", &["10.9.0.1"]));
            assert!(!has(netns, "address show dev y0 up", &["y0"]));
            assert!(!has(netns, "link show", &["lo0"]) && !has(netns, "link show", &["t0"]));
            assert!(!has(netns, "route show", &["16.1.0.0"]));
            becomes(&router, CONFIGURATION);
            assert_eq!(state(netns), before);
        }
    });
    assert_untouched(&monitor);
}

/// Prints what the kernel changes about links, addresses and routes.
fn monitor(netns: &Netns) -> Process {
    // The kernel tells up to a second later what the start of a router has done.
    thread::sleep(Duration::from_secs(2));
    let arguments = ["monitor", "link", "address", "route"];
    let spawn = Spawn::new("ip").args(arguments).inside(netns);
    spawn.start().expect("ip monitor")
}

/// Nothing was changed about `r0` and `r1`.
fn assert_untouched(monitor: &Process) {
    let log = monitor.log();
    assert!(log.contains("x0"), "it sees nothing: {log}");
    let ours = |line: &&str| line.contains("r0") || line.contains("r1");
    let touched: Vec<_> = log.lines().filter(ours).collect();
    assert!(touched.is_empty(), "what stayed was touched: {touched:#?}");
}

/// To the kernel an IPv6 address with another prefix length is the one that is there.
#[test]
fn an_ipv6_address_changes_its_length() {
    if skipped("an_ipv6_address_changes_its_length", &["ip"]) {
        return;
    }
    let alone = crate::harness::alone();
    let netns = Netns::with_ipv6("router").expect("root makes namespaces");
    spare_links(&netns);
    netns
        .ip_batch("address add 2001:db8:77::1/64 dev x0 nodad\nroute add 16.9.0.0/16 dev p0\n")
        .expect("what is another's");
    let yaml = |length: u8, more: &str| {
        format!(
            "interfaces:\n  x0: {{ addresses: [ '2001:db8:9::1/{length}'{more} ] }}\n\
             \x20 t0: {{ lcp: t0, addresses: [ '2001:db8:10::1/{length}' ] }}\nports: {{ t0: {{ tap: {{}} }} }}\n\
             loopbacks: {{ loop0: {{ addresses: [ '2001:db8:11::1/{length}' ] }} }}\n"
        )
    };
    let is = |length: u8| {
        let devices = [("x0", 9), ("t0", 10), ("loop0", 11)];
        devices.iter().all(|(device, net)| {
            let shown = netns.ip(&format!("-6 address show dev {device}")).unwrap();
            let (host, whole) = (format!("2001:db8:{net}::1/"), format!("::1/{length} "));
            shown.matches(&host).count() == 1 && shown.contains(&whole)
        })
    };
    let router = Router::start(&netns, &yaml(64, ""));
    assert!(is(64), "{:#?}", state(&netns));
    for length in [48, 64, 128] {
        becomes(&router, &yaml(length, ""));
        // At once, not when somebody looks for what is missing.
        assert!(is(length), "{length}: {:#?}", state(&netns));
    }
    // Somebody else has it with another length, which is refused beforehand; a later step fails.
    let route = "routes: [ { prefix: 16.9.0.0/16, blackhole: yes } ]\n";
    for (b, what, end) in [
        (
            yaml(64, ", '2001:db8:77::1/48'"),
            "2001:db8:77::1/64",
            "or write 2001:db8:77::1/64",
        ),
        (
            yaml(64, "") + route,
            "16.9.0.0/16",
            "the configuration is unchanged",
        ),
    ] {
        let why = change(&router, &b).expect_err("it cannot");
        assert!(why.contains(what), "{why}");
        assert!(why.contains(end), "{why}");
        assert!(is(128), "{:#?}", state(&netns));
    }
    assert!(has(&netns, "address show dev x0", &["2001:db8:77::1/64"]));
    drop((router, netns, alone));
}

/// Makes a device that the router has renamed one that cannot get its name back.
fn take_name(netns: &Netns, device: &str, name: &str) {
    netns
        .ip_batch(&format!(
            "link property del dev {device} altname {name}\nlink add {name} type veth peer name other\n"
        ))
        .expect("the name is free");
}

/// What fails on the way changes nothing, also where the device had been changed by then.
#[test]
fn a_device_that_refuses_is_as_it_was() {
    if skipped("a_device_that_refuses_is_as_it_was", &["ip"]) {
        return;
    }
    let (alone, netns) = alone_with_spare_links();
    let ip6 = |device: &str, off: u8| {
        let echo = format!("echo {off} > /proc/sys/net/ipv6/conf/{device}/disable_ipv6");
        netns.sh(&echo).expect("a setting");
    };
    let fails = |router: &Router, yaml: &str| {
        let before = state(&netns);
        let why = change(router, yaml).expect_err("it cannot");
        assert!(why.contains("the configuration is unchanged"), "{why}");
        let same = until(patience(), || state(&netns) == before);
        assert!(same, "{yaml}\n{before:#?}\n{:#?}", state(&netns));
    };
    // A new one, once it has its name, Ethernet address, MTU and first address.
    netns
        .ip("address add 2001:db8:9::1/60 dev x1")
        .expect("another length of the second");
    let a = "interfaces: { x0: {} }\n";
    let router = Router::start(&netns, a);
    let x1 = "x1: { lcp: y1, mac: '02:00:00:00:01:77', mtu: 1300, addresses: [ 10.9.0.2/24, '2001:db8:9::1/64' ] }";
    fails(&router, &format!("interfaces: {{ x0: {{}}, {x1} }}\n"));
    netns
        .ip("address del 2001:db8:9::1/60 dev x1")
        .expect("it is there still");
    // Its Ethernet address and its state, when an address could not be given again.
    let with = |fields: &str| {
        format!("interfaces: {{ x0: {{ addresses: [ '2001:db8:9::1/64' ]{fields} }} }}\n")
    };
    for (from, to) in [
        ("", ", mac: '02:00:00:00:01:77'"),
        (", state: down", ""),
        ("", ", state: down"),
    ] {
        becomes(&router, &with(from));
        ip6("x0", 1);
        let before = state(&netns);
        let why = change(&router, &with(to)).expect_err("it cannot");
        assert!(why.contains("IPv6 is disabled on it"), "{why}");
        assert_eq!(state(&netns), before);
        ip6("x0", 0);
        becomes(&router, &with(""));
    }
    // Its name, when another device has its old one: it can have another, but not that.
    becomes(&router, "interfaces: { x0: { lcp: y0 } }\n");
    take_name(&netns, "y0", "x0");
    becomes(&router, "interfaces: { x0: { lcp: z0 } }\n");
    for yaml in ["interfaces: { x0: {} }\n", "loopbacks: { loop0: {} }\n"] {
        fails(&router, yaml);
        let shown = router.show_text(&["hardware"]);
        assert!(shown.contains("af_xdp on z0"), "{shown}");
        assert!(!shown.contains("y0"), "{shown}");
    }
    drop((router, netns, alone));
}

/// An MTU of several buffers is what the ports of every kind have, or refused beforehand by name.
#[test]
fn a_large_mtu_is_had_or_refused_at_once() {
    if skipped("a_large_mtu_is_had_or_refused_at_once", &["ip"]) {
        return;
    }
    let (alone, netns) = alone_with_spare_links();
    let directory = Directory::new();
    let socket = directory.path().join("m0.sock").display().to_string();
    let yaml = |x0: &str, x1: &str, others: &str| {
        format!(
            "interfaces: {{ x0: {{ {x0} }}, {x1} t0: {{ lcp: t0, {others} }}, m0: {{ lcp: m0, {others} }} }}\n\
             ports: {{ t0: {{ tap: {{}} }}, m0: {{ memif: {{ socket: {socket} }} }} }}\n"
        )
    };
    let router = Router::start(&netns, &yaml("mtu: 1500", "", "mtu: 1500"));
    let hardware = router.ask(&["show", "hardware"]).expect("an answer");
    becomes(&router, &yaml("mtu: 1500", "", "mtu: 9000"));
    assert!(has(&netns, "link show t0", &["mtu 9000"]));
    assert!(has(&netns, "link show m0", &["mtu 9000"]));
    let (changed, new) = (
        yaml("mtu: 9000", "", "mtu: 9000"),
        yaml("mtu: 1500", "x1: { mtu: 9000 },", "mtu: 9000"),
    );
    if hardware.contains("queues: 1, multi-buffer") {
        for (yaml, device) in [(changed, "x0"), (new, "x1")] {
            becomes(&router, &yaml);
            let shown = format!("link show {device}");
            assert!(has(&netns, &shown, &["mtu 9000"]));
        }
    } else {
        for (yaml, name) in [(changed, "x0"), (new, "x1")] {
            let before = state(&netns);
            let why = change(&router, &yaml).expect_err("it has one buffer for a packet");
            let wanted = format!("interface {name}: cannot have an MTU of 9000: ");
            assert!(why.contains(&wanted), "{why}");
            assert!(!why.contains("is unchanged"), "{why}");
            assert_eq!(state(&netns), before);
        }
    }
    drop((router, netns, alone));
}

/// What can be known beforehand is refused before anything is changed.
#[test]
fn what_a_device_cannot_be_is_refused_at_once() {
    const PROGRAM: &str = "__attribute__((section(\"xdp\"))) int strange(void *c) { return 2; }";
    let skip = skipped(
        "what_a_device_cannot_be_is_refused_at_once",
        &["ip", "clang"],
    );
    if skip {
        return;
    }
    let (alone, netns) = alone_with_spare_links();
    let directory = Directory::new();
    let object = directory.path().join("strange.o").display().to_string();
    let clang = "clang -O2 -target bpf -x c -c - -o";
    let clang: Vec<_> = clang.split(' ').chain([object.as_str()]).collect();
    command::run_with(&clang, PROGRAM).expect("clang compiles it");
    netns.ip("tuntap add w0 mode tun").expect("no Ethernet");
    let xdp = |place: &str| {
        let attach = format!("link set dev {place}");
        netns.ip(&attach).expect("it takes the program");
    };
    let router = Router::start(&netns, "interfaces: { x0: {} }\n");
    let before = state(&netns);
    let refused = |yaml: &str, what: &str| {
        let why = change(&router, yaml).expect_err("it cannot");
        assert!(why.contains(what), "{why}");
        assert!(!why.contains("is unchanged"), "{why}");
        let file = router.file().display().to_string();
        let plan = router.ask(&["plan", "-c", &file]).expect("a plan");
        let (_, refused) = plan.split_once("\nrefused, ").unwrap_or_default();
        assert!(refused.contains(what), "{plan}");
        assert_eq!(state(&netns), before);
    };
    refused(
        "interfaces: { x0: {}, w0: { lcp: y0 } }\n",
        "w0 is not an Ethernet device",
    );
    // Such a program at the other end of a veth limits the packets to a page.
    xdp(&format!("p1 xdpdrv obj {object} sec xdp"));
    refused(
        "interfaces: { x0: {}, x1: { lcp: y1, mtu: 9000 } }\n",
        "x1 cannot have an MTU of 9000",
    );
    xdp("p1 xdpdrv off");
    xdp(&format!("x1 xdpgeneric obj {object} sec xdp"));
    let x1 = "interfaces: { x0: {}, x1: { lcp: y1, mtu: 1300 } }\n";
    refused(x1, "x1 already has an XDP program (strange)");
    refused(
        "interfaces: { x0: {}, x1: {}, x2: {} }\nports: { x1: { netdev: p1, queues: 200 }, x2: { netdev: p0 } }\n",
        "interface x1: there are packet buffers for ",
    );
    xdp("x1 xdpgeneric off");
    becomes(&router, x1);
    drop((router, netns, alone));
}

/// An IPv6 address is refused beforehand where the kernel has no IPv6: on a device with another
/// mind, with too small an MTU of its own, and where new devices come without.
#[test]
fn ip6_addresses_of_devices_without_ip6_are_refused_at_once() {
    const NAME: &str = "ip6_addresses_of_devices_without_ip6_are_refused_at_once";
    if skipped(NAME, &["ip"]) {
        return;
    }
    let (alone, netns) = alone_with_spare_links();
    let disable = |device: &str, off: u8| {
        let set = format!("echo {off} > /proc/sys/net/ipv6/conf/{device}/disable_ipv6");
        netns.sh(&set).expect("a setting");
    };
    disable("default", 0);
    netns.ip("link set x1 mtu 1200").expect("a small MTU");
    let small = "interfaces: { x0: {}, x1: { addresses: [ 10.10.0.1/24 ] } }\n";
    let router = Router::start(&netns, small);
    let refused = |yaml: &str, what: &str| {
        let before = state(&netns);
        let why = change(&router, yaml).expect_err("it cannot");
        assert!(why.contains(what), "{why}");
        assert!(!why.contains("is unchanged"), "{why}");
        assert_eq!(state(&netns), before);
    };
    let x1 = |rest: &str| {
        format!("interfaces: {{ x0: {{}}, x1: {{ addresses: [ '2001:db8:9::1/64' ]{rest} }} }}\n")
    };
    let too_small = "interface x1: x1 cannot have IPv6 address 2001:db8:9::1/64: its MTU is 1200";
    refused(&x1(""), too_small);
    becomes(&router, "interfaces: { x0: {} }\n");
    refused(&x1(", lcp: y1"), too_small);
    becomes(&router, &x1(", mtu: 1280"));
    assert!(has(
        &netns,
        "address show x1",
        &["2001:db8:9::1/64", "mtu 1280"]
    ));
    // Without its line it would have what it had before.
    refused(&x1(""), too_small);
    disable("x0", 1);
    let off = "cannot have IPv6 address 2001:db8:8::1/64: IPv6 is disabled on it";
    let x0 = "interfaces: { x0: { addresses: [ '2001:db8:8::1/64' ] } }\n";
    refused(x0, off);
    disable("x0", 0);
    becomes(&router, x0);
    disable("default", 1);
    for new in [
        "loopbacks: { loop0: { addresses: [ '2001:db8:8::1/64' ] } }\n",
        "interfaces: { t0: { addresses: [ '2001:db8:8::1/64' ] } }\nports: { t0: { tap: {} } }\n",
    ] {
        refused(new, off);
    }
    disable("default", 0);
    becomes(
        &router,
        "loopbacks: { loop0: { addresses: [ '2001:db8:8::1/64' ] } }\n",
    );
    drop((router, netns, alone));
}

#[test]
fn what_cannot_be_done_is_taken_back() {
    if skipped("what_cannot_be_done_is_taken_back", &["ip"]) {
        return;
    }
    let (alone, netns) = alone_with_spare_links();
    netns
        .ip("route add 16.9.0.0/16 via 10.9.0.7 dev p0 onlink")
        .expect("a foreign route");
    let a = "interfaces:\n  x0: { mtu: 1400, addresses: [ 10.9.0.1/24, 10.9.0.2/24 ] }\n\
             loopbacks: { loop0: { addresses: [ 10.9.9.9/32 ] } }\n\
             routes: [ { prefix: 16.1.0.0/16, via: 10.9.0.9 } ]\n";
    let router = Router::start(&netns, a);
    let before = state(&netns);
    let x0 = "x0: { mac: '02:00:00:00:01:77', mtu: 1300, addresses: [ 10.9.0.2/24, '2001:db8:9::1/64' ], lcp: y0 }";
    for b in [
        // Somebody else's route, a name that is taken, one that is taken by the time it is needed.
        format!("interfaces:\n  {x0}\nroutes: [ {{ prefix: 16.9.0.0/16, via: 10.9.0.9 }} ]\n"),
        "interfaces:\n  x0: { lcp: p1 }\n".to_owned(),
        format!("interfaces:\n  {x0}\n  x1: {{ lcp: p1, addresses: [ 10.10.0.1/24 ] }}\n"),
        format!("interfaces:\n  {x0}\n  t0: {{ lcp: p1 }}\nports: {{ t0: {{ tap: {{}} }} }}\n"),
        "interfaces: { x1: {} }\nloopbacks: { loop1: { lcp: p1 } }\n".to_owned(),
    ] {
        let why = change(&router, &b).expect_err("it cannot");
        assert!(why.contains("the configuration is unchanged"), "{why}");
        let same = until(patience(), || state(&netns) == before);
        assert!(
            same,
            "{b}\n{:#?}\n{before:#?}\n{}",
            state(&netns),
            router.process.log()
        );
    }
    // What it never can is refused before anything is done.
    for (b, what) in [
        (
            "interfaces: { x0: {} }\nsflow: {}\n",
            "sflow has no collector",
        ),
        (
            "workers: { count: 2 }\n",
            "workers: cannot change while the router runs",
        ),
        (
            "tables: { ip6-routes: 1000 }\n",
            "tables: cannot change while the router runs",
        ),
    ] {
        let why = change(&router, b).expect_err("it cannot");
        assert!(why.contains(what), "{why}");
        assert_eq!(state(&netns), before);
    }
    becomes(&router, a);
    drop((router, netns, alone));
}

#[test]
fn what_the_kernel_drops_with_a_link_comes_back() {
    if skipped("what_the_kernel_drops_with_a_link_comes_back", &["ip"]) {
        return;
    }
    let (alone, netns) = alone_with_spare_links();
    let yaml = "interfaces:\n  x0: { addresses: [ 10.9.0.1/24, '2001:db8:9::1/64' ] }\n  x1: { addresses: [ 10.10.0.1/24 ] }\n\
                routes:\n  - { prefix: 16.1.0.0/16, via: [ 10.9.0.9, { address: 10.10.0.9, weight: 3 } ] }\n\
                \x20 - { prefix: 16.2.0.0/16, via: 10.9.0.9, table: 100, metric: 7 }\n\
                \x20 - { prefix: '3fff::/20', via: '2001:db8:9::9' }\n\
                \x20 - { prefix: 16.3.0.0/16, via: 192.0.2.9 }\n\
                \x20 - { prefix: 16.4.0.0/16, via: 198.51.100.9 }\n";
    let yaml = format!("{yaml}loopbacks: {{ loop0: {{ addresses: [ 10.12.0.1/32 ] }} }}\n");
    let router = Router::start(&netns, &yaml);
    let before = state(&netns);
    assert!(has(
        &netns,
        "route show table 100",
        &["16.2.0.0/16 via 10.9.0.9 dev x0"]
    ));
    assert!(
        router
            .process
            .log()
            .contains("route 16.3.0.0/16: waiting: no address or on-link route of an interface that is up reaches next hop")
    );
    for _ in 0..3 {
        netns.ip("link set x0 down").expect("down");
        assert!(!has(&netns, "route show table 100", &["16.2.0.0/16"]));
        netns.ip("link set x0 up").expect("up");
        netns.ip("link del loop0").expect("a loopback");
        let back = until(patience(), || state(&netns) == before);
        assert!(
            back,
            "{:#?}\n{before:#?}\n{}",
            state(&netns),
            router.process.log()
        );
    }
    for (way, comes) in [
        (
            "address add 192.0.2.1/24 dev x1",
            "16.3.0.0/16 via 192.0.2.9 dev x1",
        ),
        (
            "route add 198.51.100.0/24 dev x0",
            "16.4.0.0/16 via 198.51.100.9 dev x0",
        ),
    ] {
        netns.ip(way).expect("a way");
        let there = until(patience(), || has(&netns, "route show", &[comes]));
        assert!(there, "{}", router.process.log());
    }
    drop((router, netns, alone));
}
