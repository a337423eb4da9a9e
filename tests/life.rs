//! Life and death: killed at any moment, stopped, started again; devices that come and go.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::harness::craft::Ip4;
use crate::harness::random::Random;
use crate::harness::router::forwards;
use crate::harness::topology::{CONFIGURATION, H0, R0, ROUTER};
use crate::harness::{
    Directory, Hosts, Netns, PARSHALL, Raw, Router, SetOnDrop, Spawn, command, patience, skipped,
    until,
};

/// Whether an XDP program is on the router's interfaces.
fn has_xdp(hosts: &Hosts) -> bool {
    hosts.router.ip("-d link show").unwrap().contains("xdp")
}

fn forwards_again(hosts: &Hosts, left: &Raw, right: &Raw) {
    let mut router = Router::start(&hosts.router, CONFIGURATION);
    assert!(forwards(left, right), "{}", router.process.log());
    assert!(
        router.process.stop().unwrap().success(),
        "an orderly stop is a success"
    );
}

/// Sends packets all the time that `work` takes.
pub fn under_traffic(left: &Raw, work: impl FnOnce()) {
    let done = AtomicBool::new(false);
    let frame = Ip4::udp([16, 0, 0, 9].into(), [48, 0, 0, 9].into(), 9, 100).frame(H0, R0);
    std::thread::scope(|scope| {
        let _done = SetOnDrop(&done);
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                for _ in 0..50 {
                    left.send(&frame);
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        work();
    });
}

#[test]
fn killed_at_any_moment_it_starts_again() {
    if skipped("killed_at_any_moment_it_starts_again", &["ip", "ethtool"]) {
        return;
    }
    let mut random = Random::new("killed_at_any_moment_it_starts_again");
    let hosts = Hosts::new(1500, false);
    let (left, right) = hosts.raw();
    under_traffic(&left, || {
        let mut router = Router::launch(&hosts.router, CONFIGURATION);
        for _ in 0..6 {
            std::thread::sleep(Duration::from_millis(random.below(400) as u64));
            router.process.kill();
            // Again with the same control socket, which the dead one has left.
            router.relaunch(&hosts.router);
        }
        // And once when it surely forwards.
        router.wait();
        assert!(forwards(&left, &right), "{}", router.process.log());
        router.process.kill();
    });
    let gone = until(patience(), || !has_xdp(&hosts));
    assert!(gone, "an XDP program outlives its router");
    forwards_again(&hosts, &left, &right);
}

#[test]
fn kernel_takes_over_when_it_dies() {
    if skipped("kernel_takes_over_when_it_dies", &["ip", "ethtool"]) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    hosts.router.set_forwarding(true).unwrap();
    let (left, right) = hosts.raw();
    let mut router = Router::start(&hosts.router, CONFIGURATION);
    assert!(forwards(&left, &right));
    router.process.kill();
    assert!(forwards(&left, &right), "the kernel forwards by itself");
    hosts.router.set_forwarding(false).unwrap();
    forwards_again(&hosts, &left, &right);
    assert!(!has_xdp(&hosts), "an orderly stop leaves no XDP program");
}

#[test]
fn cleanup_leaves_the_living_alone() {
    let tools = ["ip", "ethtool", "setpriv", "unshare"];
    if skipped("cleanup_leaves_the_living_alone", &tools) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    let (left, right) = hosts.raw();
    let mut router = Router::start(&hosts.router, &renaming(None));
    hosts.add_routes_in(&hosts.router, ["e0", "e1"]);
    let uses = format!("by another router (pid {})", router.process.pid());
    // As a service it may not look into processes, and in a container it does not even see them.
    let services: [&[&str]; 3] = [
        &[],
        &["setpriv", "--bounding-set", "-sys_ptrace"],
        &["unshare", "--pid", "--fork", "--mount-proc"],
    ];
    for service in services {
        let done = hosts
            .router
            .exec(&[service, &[PARSHALL, "cleanup"]].concat());
        let done = done.expect("it finds nothing that it cannot do");
        for name in ["r0", "r1"] {
            assert!(done.contains(&format!("{name} is in use {uses}")), "{done}");
        }
        assert!(
            hosts.router.ip("link show e0").is_ok(),
            "our namespaces are still there, and the devices have their names"
        );
        assert!(has_xdp(&hosts) && forwards(&left, &right), "{done}");
    }
    assert!(router.process.stop().unwrap().success());
}

/// Fails unless the devices of [`renaming`] are as before: names and addresses in any case, the MTU
/// unless they keep what they were `given`.
fn assert_as_before(hosts: &Hosts, given: bool) {
    let mtu = if !given { "mtu 1500" } else { "mtu 1450" };
    for (name, own) in ["r0", "r1"].into_iter().zip(ROUTER) {
        let shown = hosts
            .router
            .ip(&format!("-d address show dev {name}"))
            .expect("its old name");
        for part in [
            format!("{name}@"),
            format!("{own}/24"),
            mtu.into(),
            ",UP".into(),
        ] {
            assert!(shown.contains(&part), "no `{part}' in {shown}");
        }
        assert!(
            !shown.contains("altname") && !shown.contains("xdp"),
            "{shown}"
        );
    }
}

/// A configuration that gives the devices other names, and puts them into a namespace.
fn renaming(netns: Option<&Netns>) -> String {
    let mut yaml = netns.map_or(String::new(), |netns| format!("netns: {}\n", netns.name()));
    yaml += "interfaces:\n";
    for (i, own) in ROUTER.iter().enumerate() {
        yaml += &format!("  r{i}: {{ lcp: e{i}, mtu: 1450, addresses: [ {own}/24 ] }}\n");
    }
    yaml
}

/// Starts, is killed, starts again and stops; then is killed and its leftovers are removed. After
/// each the devices are what they were.
fn comes_and_goes(netns: Option<&Netns>) {
    let hosts = Hosts::new(1500, false);
    let (left, right) = hosts.raw();
    let yaml = renaming(netns);
    let inner = netns.unwrap_or(&hosts.router);
    let works = |router: &Router| {
        hosts.add_routes_in(inner, ["e0", "e1"]);
        for (new, old) in [("e0", "r0"), ("e1", "r1")] {
            let shown = inner.ip(&format!("link show dev {new}")).unwrap();
            assert!(shown.contains(&format!("altname {old}")), "{shown}");
        }
        assert!(forwards(&left, &right), "{}", router.process.log());
    };
    let mut router = Router::start(&hosts.router, &yaml);
    works(&router);
    router.process.kill();
    router.relaunch(&hosts.router);
    router.wait();
    works(&router);
    assert!(router.process.stop().unwrap().success());
    assert_as_before(&hosts, netns.is_none());

    router.relaunch(&hosts.router);
    router.wait();
    works(&router);
    router.process.kill();
    let done = hosts.router.exec(&[PARSHALL, "cleanup"]).unwrap();
    assert!(
        done.contains("put back device r0, which was called e0"),
        "{done}"
    );
    assert_as_before(&hosts, false);
    // And there is nothing left to do.
    hosts.add_routes();
    forwards_again(&hosts, &left, &right);
}

#[test]
fn devices_are_renamed_and_put_back() {
    if !skipped("devices_are_renamed_and_put_back", &["ip", "ethtool"]) {
        comes_and_goes(None);
    }
}

#[test]
fn devices_are_moved_and_put_back() {
    if !skipped("devices_are_moved_and_put_back", &["ip", "ethtool"]) {
        comes_and_goes(Some(&Netns::create("inner").unwrap()));
    }
}

/// However far it had come with renaming and moving, everything is put back.
#[test]
fn killed_while_it_moves_devices() {
    if skipped("killed_while_it_moves_devices", &["ip", "ethtool"]) {
        return;
    }
    let mut random = Random::new("killed_while_it_moves_devices");
    let hosts = Hosts::new(1500, false);
    let inner = Netns::create("inner").unwrap();
    let mut router = Router::launch(&hosts.router, &renaming(Some(&inner)));
    for round in 0..8 {
        // From the first record of a change on, which ends a few milliseconds later.
        let begun = until(patience(), || {
            let notes = std::fs::read_dir(control::netdev::NOTES);
            let mut texts = notes
                .into_iter()
                .flatten()
                .flatten()
                .filter_map(|note| std::fs::read_to_string(note.path()).ok());
            texts.any(|text| text.contains(inner.name()))
        });
        assert!(begun, "{}", router.process.log());
        std::thread::sleep(Duration::from_micros(random.below(20_000) as u64));
        router.process.kill();
        // The next start may find it half done and go on, too.
        if round % 2 == 0 {
            router.relaunch(&hosts.router);
            router.wait();
            router.process.kill();
        }
        hosts.router.exec(&[PARSHALL, "cleanup"]).unwrap();
        assert_as_before(&hosts, false);
        if round < 7 {
            router.relaunch(&hosts.router);
        }
    }
}

/// A stop in good order takes a router's own notes along, a cleanup those of the dead whose
/// namespaces are gone; a directory that is not there is not made.
#[test]
fn notes_go_with_what_they_are_about() {
    if skipped("notes_go_with_what_they_are_about", &["ip"]) {
        return;
    }
    let netns = Netns::create("notes").unwrap();
    let inode = std::fs::metadata(netns.path()).unwrap().ino();
    let note = Path::new(control::netdev::LOCKS).join(format!("{inode}.lock"));
    let mut router = Router::start(&netns, "interfaces: {}\n");
    let socket = router.socket();
    let files = [
        note.clone(),
        socket.clone().into(),
        format!("{socket}.lock").into(),
    ];
    assert!(files.iter().all(|file| file.exists()), "{files:?}");
    assert!(router.process.stop().unwrap().success());
    assert!(!files.iter().any(|file| file.exists()), "{files:?}");
    router.relaunch(&netns);
    router.wait();
    router.process.kill();
    assert!(note.exists());
    drop(netns);
    let clean = || command::run(&[PARSHALL, "cleanup"]).expect("it cleans up");
    assert!(until(patience(), || {
        clean();
        !note.exists()
    }));

    let directory = Directory::new();
    let deep = directory.path().join("deep");
    let file = router.file().display().to_string();
    let socket = deep.join("a.sock").display().to_string();
    let state = directory.path().join("state").display().to_string();
    let run =
        Spawn::new(PARSHALL).args(["run", "-c", &file, "--socket", &socket, "--state", &state]);
    let output = run.output(patience()).expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("there is no directory"),
        "{said}"
    );
    assert!(!deep.exists());
}

#[test]
fn memif_sockets_of_the_dead_are_not_in_the_way() {
    if skipped("memif_sockets_of_the_dead_are_not_in_the_way", &["ip"]) {
        return;
    }
    let netns = Netns::create("memif").unwrap();
    let directory = Directory::new();
    let socket = directory.path().join("dead.sock");
    let yaml = format!(
        "interfaces:\n  m0: {{ lcp: m0, addresses: [ 198.18.2.1/30 ] }}\n\
         ports:\n  m0: {{ memif: {{ socket: {}, id: 0, role: server }} }}\n",
        socket.display()
    );
    let mut router = Router::start(&netns, &yaml);
    for _ in 0..3 {
        assert!(socket.exists() && netns.ip("link show m0").is_ok());
        router.process.kill();
        assert!(socket.exists(), "this is what the test is about");
        assert!(until(patience(), || netns.ip("link show m0").is_err()));
        router.relaunch(&netns);
        router.wait();
    }
    assert!(router.process.stop().unwrap().success());
    assert!(!socket.exists(), "an orderly stop leaves no socket");
}

#[test]
fn devices_come_and_go() {
    if skipped("devices_come_and_go", &["ip", "ethtool"]) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    hosts.right.ip("link del h1").unwrap();
    // Not there at the start.
    let router = Router::start(&hosts.router, CONFIGURATION);
    for _ in 0..3 {
        hosts.link_right(1500);
        hosts.add_routes();
        let (left, right) = hosts.raw();
        assert!(
            forwards(&left, &right),
            "it was not picked up: {}",
            router.process.log()
        );
        under_traffic(&left, || {
            hosts.right.ip("link del h1").unwrap();
            let seen = until(patience(), || {
                let shown = router.show(&["hardware", "r1"]);
                shown["interfaces"][0]["port"]
                    .as_str()
                    .unwrap()
                    .contains("waiting")
            });
            assert!(seen, "nobody noticed: {}", router.process.log());
        });
    }
}

/// The Ethernet address of each interface, and of the host's end of a TAP.
fn own_addresses(router: &Router, host: &Netns) -> Vec<String> {
    let shown = router.show(&["interface"]);
    let all = shown["interfaces"].as_array().expect("interfaces");
    let own = all.iter().filter(|one| one["host_of"].is_null());
    let macs = own.map(|one| format!("{} {}", one["name"], one["mac"]));
    let link = host.ip("-j link show vm1").expect("a TAP");
    let link: serde_json::Value = serde_json::from_str(&link).expect("JSON");
    macs.chain([format!("vm1 {}", link[0]["address"])])
        .collect()
}

/// Routers with equal files have Ethernet addresses of their own, which a restart keeps unless what
/// they are made of is lost.
#[test]
fn own_addresses_are_a_routers() {
    if skipped("own_addresses_are_a_routers", &["ip"]) {
        return;
    }
    let yaml = "interfaces: { m1: {}, tap1: {}, BondEthernet0: {} }
loopbacks: { loop0: { lcp: lo0 }, loop1: { lcp: bvi1 } }
bondethernets: { BondEthernet0: {} }
bridgedomains: { bd1: { bvi: loop1, interfaces: [ tap1 ] } }
taps: { tap1: { host: { name: vm1 } } }
ports: { m1: { null: {} } }
";
    let hosts = ["one", "two"].map(|name| Netns::create(name).expect("root may"));
    let mut routers = [0, 1].map(|at| Router::start(&hosts[at], yaml));
    let all = |routers: &[Router; 2]| [0, 1].map(|at| own_addresses(&routers[at], &hosts[at]));
    let first = all(&routers);
    assert_eq!(first[0].len(), 6, "{first:?}");
    let shared = first[0].iter().find(|one| first[1].contains(one));
    assert_eq!(shared, None);
    let addresses = |all: &[String]| -> std::collections::BTreeSet<String> {
        let address = |one: &String| one.rsplit(' ').next().map(str::to_owned);
        all.iter().filter_map(address).collect()
    };
    assert_eq!(addresses(&first[0]).len(), 6, "{first:?}");

    let seed = routers[1].file().with_extension("state").join("seed");
    for (router, host) in routers.iter_mut().zip(&hosts) {
        assert!(router.process.stop().unwrap().success());
        router.relaunch(host);
        router.wait();
    }
    assert_eq!(all(&routers), first);

    assert!(routers[1].process.stop().unwrap().success());
    std::fs::write(&seed, "?").expect("written");
    routers[1].relaunch(&hosts[1]);
    routers[1].wait();
    let log = routers[1].process.log();
    assert!(log.contains("seed is damaged"), "{log}");
    let after = all(&routers);
    assert_eq!(after[0], first[0]);
    assert!(!after[1].iter().any(|one| first[1].contains(one)));
}
