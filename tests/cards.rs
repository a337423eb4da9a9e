//! The router on network cards, emulated ones of a guest: what each kind can do, and that nothing
//! that happens to a card stops it.
//!
//! The tests want four cards, which `make test-kernels` gives to its guests. They print what they
//! find out as lines `CARD what: ...`, from which it makes its table.

use std::time::Duration;

use serde_json::Value;

use crate::harness::craft::Ip4;
use crate::harness::router::{forwards, is_to};
use crate::harness::topology::{CONFIGURATION, H0, HOST, R0, R1, ROUTER, carries, take_card, text};
use crate::harness::{Hosts, Netns, PARSHALL, Raw, Router, patience, until};
use crate::life::under_traffic;
use crate::tcp::exchange;

/// Two workers.
const WORKERS: &str = "workers: { count: 2 }\n";

/// Says a fact about the card for the table.
fn tell(what: &str, fact: impl std::fmt::Display) {
    println!("\nCARD {what}: {fact}");
}

/// `ok`, or what a program said.
fn outcome<T>(result: &Result<T, sandbox::Error>) -> String {
    match result {
        Ok(_) => "ok".into(),
        Err(sandbox::Error::Failed { message, .. }) => message.clone(),
        Err(error) => error.to_string(),
    }
}

/// `show hardware` of the interface r0.
fn hardware(router: &Router) -> Value {
    router.show(&["hardware", "r0"])["interfaces"][0].take()
}

/// How many queues a port has, by its description.
fn queues(port: &str) -> usize {
    let number = port.split("queues: ").nth(1).and_then(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit());
        rest[..end.unwrap_or(rest.len())].parse().ok()
    });
    number.expect("the port tells its queues")
}

/// Whether a port takes packets of several buffers, by its description.
fn takes_long_packets(port: &str) -> bool {
    let is = port.split("; refused").next();
    is.is_some_and(|is| is.contains(", multi-buffer"))
}

/// Three packets of this many bytes each, and as many answers.
pub fn ping(from: &Netns, to: std::net::Ipv4Addr, size: usize) -> Result<String, sandbox::Error> {
    let (to, size) = (to.to_string(), size.to_string());
    let count = ["ping", "-n", "-c", "3", "-i", "0.2", "-W", "5", "-M", "do"];
    from.exec(&[&count[..], &["-s", &size, &to]].concat())
}

#[test]
#[ignore = "needs the network cards of a guest: make test-kernels"]
fn what_the_card_can_do() {
    let hosts = Hosts::on_cards(1500);
    let (left, _) = hosts.raw();
    let live = hosts.router.exec(&[
        PARSHALL,
        "send",
        "live:r0",
        "--dst-mac",
        &text(H0),
        "-m",
        "100pps",
        "-d",
        "1s",
    ]);
    let came = left.drain(Duration::from_millis(200));
    let came = came
        .iter()
        .filter(|frame| frame[6..12] == R0 && frame[12..14] == [8, 0]);
    match (came.count(), &live) {
        (0, Ok(_)) => tell("live frames", "sent, but none comes out"),
        (0, Err(_)) => tell("live frames", outcome(&live)),
        _ => tell("live frames", "yes"),
    }
    let router = Router::start(&hosts.router, CONFIGURATION);
    let card = hardware(&router);
    let mode = card["mode"].as_str().expect("it is open");
    assert!(["zero-copy", "copy", "generic"].contains(&mode), "{card}");
    let port = card["port"].as_str().expect("a description");
    tell("driver", card["driver"].as_str().unwrap_or("?"));
    tell("mode", mode);
    tell("queues", queues(port));
    tell(
        "multi-buffer",
        if takes_long_packets(port) {
            "yes"
        } else {
            "no"
        },
    );
    tell("lane", card["lane"].as_str().unwrap_or("?"));
    let refused = port
        .split_once("; refused: ")
        .map_or("nothing", |(_, what)| what);
    tell("refused", refused);
    println!("{}", router.process.log());
}

#[test]
#[ignore = "needs the network cards of a guest: make test-kernels"]
fn hosts_talk() {
    let hosts = Hosts::on_cards(1500);
    let router = Router::start(&hosts.router, CONFIGURATION);
    for (from, to) in [
        (&hosts.left, HOST[1]),
        (&hosts.right, HOST[0]),
        (&hosts.left, ROUTER[0]),
    ] {
        let answer = ping(from, to, 1472);
        assert!(
            answer.is_ok(),
            "{}\n{}",
            outcome(&answer),
            router.show_text(&["errors"])
        );
    }
    exchange(&hosts.right, HOST[1], &hosts.left, |_| {});
    exchange(&hosts.left, HOST[0], &hosts.right, |_| {});
}

/// Longer packets than a page holds pass, or it is said that they cannot.
#[test]
#[ignore = "needs the network cards of a guest: make test-kernels"]
fn jumbo_frames() {
    let hosts = Hosts::on_cards(1500);
    let ends = [
        (&hosts.left, "h0"),
        (&hosts.router, "r0"),
        (&hosts.router, "r1"),
        (&hosts.right, "h1"),
    ];
    for (netns, name) in ends {
        let set = netns.ip(&format!("link set {name} mtu 9000"));
        if set.is_err() {
            return tell("jumbo", format!("no MTU 9000: {}", outcome(&set)));
        }
    }
    // It makes some cards take their link down and up.
    for (netns, name) in ends {
        assert!(
            until(patience(), || carries(netns, name)),
            "{name} has no carrier"
        );
    }
    if let alone @ Err(_) = ping(&hosts.left, ROUTER[0], 8972) {
        return tell(
            "jumbo",
            format!("not for the kernel either: {}", outcome(&alone)),
        );
    }
    let mut router = Router::launch(&hosts.router, CONFIGURATION);
    let begun = until(patience(), || {
        router.process.log().contains(" ready") || router.process.ended().is_some()
    });
    assert!(begun, "{}", router.process.log());
    if router.process.ended().is_some() {
        let log = router.process.log();
        return tell("jumbo", log.lines().last().expect("it says why"));
    }
    let long = ping(&hosts.left, HOST[1], 8972);
    let warns = until(Duration::from_secs(1), || {
        router.process.log().contains("its MTU of 9000 allows them")
    });
    let card = hardware(&router);
    let chains = card["port"].as_str().is_some_and(takes_long_packets);
    assert_eq!(chains, long.is_ok(), "{card}\n{}", outcome(&long));
    assert_eq!(chains, !warns, "{}", router.process.log());
    tell("jumbo", if chains { "yes" } else { "lost, and said so" });
}

/// Everything that is sent comes out, and is counted once.
#[test]
#[ignore = "needs the network cards of a guest: make test-kernels"]
fn a_load_is_counted_exactly() {
    let hosts = Hosts::on_cards(1500);
    let router = Router::start(&hosts.router, CONFIGURATION);
    // Both hosts' cards in one namespace: the load tester sends by one and counts at the other.
    let lines = format!("link set h1 netns {}", hosts.left.name());
    hosts.right.ip(&lines).expect("a card can be moved");
    hosts.left.ip("link set h1 up").expect("a card");
    let ready = until(patience(), || {
        let seen = router.show(&["interface"]);
        let up = |i: usize| seen["interfaces"][i]["up"] == true;
        up(0) && up(1) && carries(&hosts.left, "h1")
    });
    assert!(ready, "{}", router.show_text(&["interface"]));
    let argv = [
        PARSHALL,
        "loadtest",
        "--tx",
        "af_xdp:h0",
        "--rx",
        "af_xdp:h1",
        "--dst-mac",
        &text(R0),
        "--rate",
        "500pps",
        "--duration",
        "4s",
        "--progress",
        "none",
        "--json",
        "-",
    ];
    let result = hosts.left.exec(&argv).expect("the load test ends well");
    let result: Value = serde_json::from_str(&result).expect("it prints JSON");
    let whole = &result["parshall"]["whole"]["ways"][0];
    let sent = whole["sent"]["packets"].as_u64().expect("a count");
    assert!(sent >= 1500, "{sent} sent in 4 s");
    assert_eq!(whole["received"]["packets"], sent, "{whole}");
    let counted = router.show(&["interface"]);
    let [r0, r1] = [0, 1].map(|i| &counted["interfaces"][i]);
    assert_eq!(
        [&r0["rx_packets"], &r1["tx_packets"]],
        [sent, sent],
        "{counted}"
    );
    tell("exact count", format!("{sent} of {sent}"));
}

/// Sends a packet of each of many flows, which must all come out, and returns how many each worker
/// received of them.
fn spread_over_workers(router: &Router, left: &Raw, right: &Raw) -> Vec<u64> {
    const FLOWS: usize = 256;
    // A queue is a worker's: with one queue the second worker receives nothing.
    let received = || -> Vec<u64> {
        let runtime = router.show(&["runtime"]);
        let threads = runtime["threads"].as_array().expect("a list").iter();
        let rows = |thread: &Value| thread["nodes"].as_array().cloned().unwrap_or_default();
        let of = |thread| {
            rows(thread)
                .into_iter()
                .filter(|row| row["name"] == "r0-rx")
        };
        let sum = |thread| of(thread).filter_map(|row| row["vectors"].as_u64()).sum();
        threads.map(sum).collect()
    };
    let before = received();
    right.drain(Duration::from_millis(20));
    let dst = [48, 0, 0, 2].into();
    for flow in 0..FLOWS as u16 {
        let mut packet = Ip4::udp([16, 0, 0, 1].into(), dst, flow, 26);
        packet.payload[..2].copy_from_slice(&(1024 + flow).to_be_bytes());
        left.send(&packet.frame(H0, R0));
    }
    let came = right.drain(Duration::from_millis(500));
    let came = came.iter().filter(|frame| is_to(frame, dst)).count();
    assert_eq!(came, FLOWS, "{}", router.show_text(&["errors"]));
    let now = received();
    now.iter()
        .zip(before)
        .map(|(now, before)| now - before)
        .collect()
}

/// Flows are spread over a card's queues, queues over workers, and none is left out.
#[test]
#[ignore = "needs the network cards of a guest: make test-kernels"]
fn all_queues_are_served() {
    let hosts = Hosts::on_cards(1500);
    let (left, right) = hosts.raw();
    let router = Router::start(&hosts.router, &format!("{WORKERS}{CONFIGURATION}"));
    assert!(forwards(&left, &right), "{}", router.process.log());
    let received = spread_over_workers(&router, &left, &right);
    let card = hardware(&router);
    let queues = queues(card["port"].as_str().unwrap_or_default());
    // QEMU's vmxnet3 was seen to receive by its first queue only.
    let spreads = queues > 1 && card["driver"] != "vmxnet3";
    assert!(!spreads || !received.contains(&0), "{received:?}");
    tell(
        "packets by worker",
        format!("{received:?} of {queues} queues"),
    );
}

/// A queue gets nothing for a while, and then packets again: the card's table of flows
/// (`ethtool -X`) leaves it out. Nothing is lost with those that go to others meanwhile.
#[test]
#[ignore = "needs the network cards of a guest: make test-kernels"]
fn a_queue_rests() {
    let hosts = Hosts::on_cards(1500);
    let (left, right) = hosts.raw();
    let set = |to: &[&str]| hosts.router.exec(&[&["ethtool", "-X", "r0"], to].concat());
    let router = Router::start(&hosts.router, &format!("{WORKERS}{CONFIGURATION}"));
    let used = queues(hardware(&router)["port"].as_str().unwrap_or_default());
    assert!(forwards(&left, &right), "{}", router.process.log());
    if used == 1 {
        return tell("queue rests", "it has only one");
    }
    if let refused @ Err(_) = set(&["equal", "1"]) {
        return tell("queue rests", outcome(&refused));
    }
    let alone = spread_over_workers(&router, &left, &right);
    assert!(alone.contains(&0), "all to the first queue: {alone:?}");
    set(&["equal", &used.to_string()]).expect("it took a table before");
    let all = spread_over_workers(&router, &left, &right);
    assert!(!all.contains(&0), "to all queues again: {all:?}");
    tell("queue rests", format!("{alone:?} by worker, then {all:?}"));
}

#[test]
#[ignore = "needs the network cards of a guest: make test-kernels"]
fn a_link_goes_down_and_up() {
    let hosts = Hosts::on_cards(1500);
    let (left, right) = hosts.raw();
    let router = Router::start(&hosts.router, CONFIGURATION);
    assert!(forwards(&left, &right), "{}", router.process.log());
    under_traffic(&left, || {
        for _ in 0..3 {
            hosts.router.ip("link set r1 down").expect("a link");
            std::thread::sleep(Duration::from_millis(300));
            hosts.router.ip("link set r1 up").expect("a link");
            let again = until(patience(), || carries(&hosts.router, "r1"));
            assert!(again, "no carrier");
            hosts.add_routes();
            assert!(forwards(&left, &right), "{}", router.process.log());
        }
    });
}

/// The card is taken from its driver and given back under traffic: it is a new device then.
#[test]
#[ignore = "needs the network cards of a guest: make test-kernels"]
fn a_driver_leaves_and_comes_back() {
    let hosts = Hosts::on_cards(1500);
    use_all_queues(&hosts.router, "r1");
    let (left, right) = hosts.raw();
    let router = Router::start(&hosts.router, CONFIGURATION);
    assert!(forwards(&left, &right), "{}", router.process.log());
    let script = "cd /sys/class/net/r1/device; basename $(readlink -f .); readlink -f driver";
    let device = hosts.router.sh(script).expect("a card has a driver");
    let (device, driver) = device.trim().split_once('\n').expect("two lines");
    let write = |file: &str| std::fs::write(format!("{driver}/{file}"), device);
    under_traffic(&left, || {
        write("unbind").expect("the driver lets go of it");
        let seen = until(patience(), || {
            router.process.log().contains("its device r1 is gone")
        });
        assert!(seen, "{}", router.process.log());
        write("bind").expect("the driver takes it again");
        take_card(&hosts.router, "r1", R1);
        let lines = format!("addr add {}/24 dev r1\nlink set r1 up\n", ROUTER[1]);
        hosts.router.ip_batch(&lines).expect("a card");
        assert!(
            until(patience(), || carries(&hosts.router, "r1")),
            "no carrier"
        );
        hosts.add_routes();
        assert!(forwards(&left, &right), "{}", router.process.log());
    });
}

/// Whatever the driver allows: afterwards the router forwards.
#[test]
#[ignore = "needs the network cards of a guest: make test-kernels"]
fn settings_change_under_traffic() {
    let hosts = Hosts::on_cards(1500);
    let (left, right) = hosts.raw();
    let router = Router::start(&hosts.router, CONFIGURATION);
    assert!(forwards(&left, &right), "{}", router.process.log());
    let queues = hardware(&router)["rx_queues"][1].as_u64().unwrap_or(1);
    under_traffic(&left, || {
        let set = |what: &str, done: Result<String, sandbox::Error>| {
            tell(what, outcome(&done));
            let again = until(patience(), || carries(&hosts.router, "r1"));
            assert!(again, "no carrier");
            hosts.add_routes();
            assert!(
                forwards(&left, &right),
                "after {what}: {}",
                router.process.log()
            );
        };
        for mtu in ["1400", "1500"] {
            set(
                &format!("MTU {mtu}"),
                hosts.router.ip(&format!("link set r1 mtu {mtu}")),
            );
        }
        if queues > 1 {
            for count in [1, queues] {
                let count = count.to_string();
                let done = hosts
                    .router
                    .exec(&["ethtool", "-L", "r1", "combined", &count]);
                set(&format!("{count} queues"), done);
            }
        }
    });
}

#[test]
#[ignore = "needs the network cards of a guest: make test-kernels"]
fn killed_it_starts_again() {
    let hosts = Hosts::on_cards(1500);
    let (left, right) = hosts.raw();
    under_traffic(&left, || {
        let mut router = Router::start(&hosts.router, CONFIGURATION);
        for _ in 0..3 {
            assert!(forwards(&left, &right), "{}", router.process.log());
            router.process.kill();
            router.relaunch(&hosts.router);
            router.wait();
            assert!(
                until(patience(), || carries(&hosts.router, "r1")),
                "no carrier"
            );
            hosts.add_routes();
        }
        assert!(forwards(&left, &right), "{}", router.process.log());
        assert!(router.process.stop().expect("it ends").success());
    });
}

/// Gives a card all the queues that it has, if it has several.
///
/// A virtio-net with fewer gets more to receive from with an XDP program (one for each processor).
/// Up to Linux 6.12 at least the kernel does not free those when the device goes while the program
/// is on it, and waits forever.
fn use_all_queues(netns: &Netns, name: &str) {
    let script = format!(
        "most=$(ethtool -l {name} 2>/dev/null | awk '/^Combined/ {{ print $2; exit }}')
         case $most in ''|n/a|1) ;; *) ethtool -L {name} combined $most || true ;; esac"
    );
    netns.sh(&script).expect("a shell");
}
