//! Sub-interfaces with addresses: the router on a stick.
//!
//! A second router stands for the switch at the other end of its link: it has a port for each
//! station, and puts that port's tags on what comes in there.

use std::time::Duration;

use crate::cards::ping;
use crate::harness::craft::Mac;
use crate::harness::frr::Frr;
use crate::harness::{Directory, Netns, Raw, Router, patience, skipped, until};

/// What the router has on its link, one tag and two.
const ROUTER: &str = "interfaces:
  trunk:
    lcp: trunk
    sub-interfaces:
      100: { lcp: v100, addresses: [ 10.1.0.1/24, '2001:db8:1::1/64' ] }
      200: { lcp: v200 }
      210: { lcp: v210, addresses: [ 10.2.0.1/24, '2001:db8:2::1/64' ], encapsulation: { dot1q: 200, inner-dot1q: 10, exact-match: true } }
";
const SWITCH: &str = "interfaces:
  a: { l2xc: trunk.100 }
  b: { l2xc: trunk.210 }
  trunk:
    sub-interfaces:
      100: { l2xc: a }
      210: { l2xc: b, encapsulation: { dot1q: 200, inner-dot1q: 10, exact-match: true } }
";

/// A router, the switch, and a station behind each VLAN.
struct Lab {
    router: Router,
    switch: Router,
    stations: [Netns; 2],
    beside: Netns,
    directory: Directory,
    _switch: Netns,
}

/// The port at either end of the link, and those of the stations.
fn ports(directory: &Directory, role: &str, more: &str) -> String {
    let socket = directory.path().join("trunk.sock");
    let socket = socket.display();
    format!("ports:\n  trunk: {{ memif: {{ socket: {socket}, role: {role} }} }}\n{more}")
}

/// A namespace with a port's outer end, which has the second address of these networks and routes by
/// the first.
fn station(switch: &Netns, port: &str, network: u8) -> Netns {
    let netns = Netns::with_ipv6(port).expect("root may");
    let device = format!("{port}-port");
    let moved = || switch.ip(&format!("link set {device} netns {}", netns.name()));
    assert!(until(patience(), || moved().is_ok()));
    let lines = format!(
        "addr add 10.{network}.0.2/24 dev {device}\n\
         addr add 2001:db8:{network}::2/64 dev {device} nodad\n\
         link set {device} up\n\
         route add default via 10.{network}.0.1\n\
         route add ::/0 via 2001:db8:{network}::1\n"
    );
    netns.ip_batch(&lines).expect("a device");
    netns
}

impl Lab {
    fn start() -> Self {
        let directory = Directory::new();
        let beside = Netns::with_ipv6("router").expect("root may");
        let yaml = format!("{ROUTER}{}", ports(&directory, "server", ""));
        let router = Router::start(&beside, &yaml);
        let netns = Netns::create("switch").expect("root may");
        let taps = "  a: { tap: {} }\n  b: { tap: {} }\n";
        let yaml = format!("{SWITCH}{}", ports(&directory, "client", taps));
        let switch = Router::start(&netns, &yaml);
        let stations = [("a", 1), ("b", 2)].map(|(port, network)| station(&netns, port, network));
        Lab {
            router,
            switch,
            stations,
            beside,
            directory,
            _switch: netns,
        }
    }

    /// What both routers have dropped.
    fn errors(&self) -> String {
        let all = [&self.router, &self.switch].map(|router| router.show_text(&["errors"]));
        all.join("\n") + &self.router.process.log()
    }

    fn answers(&self, from: usize, to: &str, size: usize) {
        let answer = || ping(&self.stations[from], to.parse().expect("an address"), size);
        let so = until(patience(), || answer().is_ok());
        assert!(so, "{to}: {:?}\n{}", answer(), self.errors());
    }

    /// Pings until what it says has this in it, whether or not an answer comes.
    fn says(&self, from: usize, ping: &str, wanted: &str) {
        let said = || {
            let netns = &self.stations[from];
            let said = netns.sh(&format!("ping -n -c 1 -W 2 {ping} || true"));
            said.expect("it has ping")
        };
        let so = until(patience(), || said().contains(wanted));
        assert!(so, "{ping}: {}\n{}", said(), self.errors());
    }

    fn apply(&self, interfaces: &str) {
        let file = self.directory.path().join("next.yaml");
        let yaml = format!("{interfaces}{}", ports(&self.directory, "server", ""));
        std::fs::write(&file, yaml).expect("written");
        let said = self
            .router
            .ask(&["apply", "-c", &file.display().to_string()]);
        said.unwrap_or_else(|error| panic!("{error}\n{}", self.router.process.log()));
    }

    /// Between the stations, and to the router.
    fn routes(&self) {
        for (from, to) in [
            (0, "10.1.0.1"),
            (1, "10.2.0.1"),
            (0, "10.2.0.2"),
            (1, "10.1.0.2"),
        ] {
            self.answers(from, to, 1472);
        }
    }
}

#[test]
fn a_router_on_a_stick_routes_between_vlans() {
    const NAME: &str = "a_router_on_a_stick_routes_between_vlans";
    if skipped(NAME, &["ip", "ping"]) {
        return;
    }
    let lab = Lab::start();
    lab.routes();
    for (from, to) in [
        (0, "2001:db8:1::1"),
        (1, "2001:db8:2::1"),
        (0, "2001:db8:2::2"),
    ] {
        lab.says(from, to, " 0% packet loss");
    }
    // Errors come from the sub-interface that the packet came in by.
    lab.says(0, "-t 1 10.2.0.2", "From 10.1.0.1");
    lab.says(1, "-t 1 10.1.0.2", "From 10.2.0.1");
    lab.says(1, "-t 1 2001:db8:1::2", "From 2001:db8:2::1");

    // Another name and a smaller MTU while packets go on; then no VLAN 100, and back.
    let small = "lcp: w100, mtu: 1400, addresses";
    lab.apply(&ROUTER.replacen("lcp: v100, addresses", small, 1));
    lab.says(1, "-s 1472 -M do 10.1.0.2", "mtu = 1400");
    lab.answers(1, "10.1.0.2", 1372);
    let others: Vec<_> = ROUTER
        .lines()
        .filter(|line| !line.contains("100:"))
        .collect();
    lab.apply(&(others.join("\n") + "\n"));
    lab.answers(1, "10.2.0.1", 1472);
    assert!(ping(&lab.stations[0], [10, 1, 0, 1].into(), 100).is_err());
    lab.router.ask(&["rollback"]).expect("it goes back");
    lab.answers(0, "10.2.0.2", 1372);
}

#[test]
fn ospf_runs_over_a_sub_interface() {
    const NAME: &str = "ospf_runs_over_a_sub_interface";
    if skipped(NAME, &["ip", "zebra", "ospfd"]) {
        return;
    }
    let lab = Lab::start();
    lab.routes();
    let inside = "10.255.0.2";
    let far = &lab.stations[1];
    far.ip(&format!("addr add {inside}/32 dev lo")).expect("lo");
    let networks = ["10.2.0.0/24", &format!("{inside}/32")];
    let ospfd = |device, id| Frr::ospf(device, id, &networks);
    let _own = Frr::spawn(&lab.beside, &[("ospfd", &ospfd("v210", "10.2.0.1"))]);
    let _theirs = Frr::spawn(far, &[("ospfd", &ospfd("b-port", "10.2.0.2"))]);
    // Hellos, and the database.
    let learned = || {
        let route = lab.beside.ip(&format!("route show {inside}"));
        route.is_ok_and(|route| route.contains("via 10.2.0.2 dev v210"))
    };
    assert!(until(patience(), learned), "{}", lab.errors());
    lab.answers(0, inside, 1472);
}

/// A host with this address, as the router sees it by two tags.
const HOST: Mac = [2, 0, 0, 0, 0xa, 1];
const EVERYBODY: Mac = [0xff; 6];

/// Frames are tagged as others tag them: the kernel sees them on a tap.
#[test]
fn a_sub_interface_answers_with_its_tags() {
    const NAME: &str = "a_sub_interface_answers_with_its_tags";
    if skipped(NAME, &["ip"]) {
        return;
    }
    let netns = Netns::create("router").expect("root may");
    let _router = Router::start(
        &netns,
        "interfaces:
  a:
    mac: 02:00:00:00:00:01
    sub-interfaces:
      5: { addresses: [ 10.5.0.1/24 ], encapsulation: { dot1ad: 5, inner-dot1q: 7, exact-match: true } }
ports: { a: { tap: {} } }
",
    );
    let is_up = || netns.ip("link show dev a-port up");
    assert!(until(patience(), || is_up()
        .is_ok_and(|text| text.contains("a-port"))));
    let wire = Raw::open(&netns, "a-port", HOST);
    let own: Mac = [2, 0, 0, 0, 0, 1];
    let arp = |operation: u8, from: (Mac, u8), to: (Mac, u8)| {
        let head = [0, 1, 8, 0, 6, 4, 0, operation];
        let [from, to] = [from, to].map(|(mac, last)| [&mac[..], &[10, 5, 0, last]].concat());
        [&head[..], &from, &to].concat()
    };
    let tags = [[0x88, 0xa8, 0, 5], [0x81, 0, 0, 7]];
    let ask = arp(1, (HOST, 2), ([0; 6], 1));
    let ask = [&EVERYBODY[..], &HOST, &tags.concat(), &[8, 6], &ask].concat();
    // The kernel has taken the first tag from what the socket sees.
    let said = arp(2, (own, 1), (HOST, 2));
    let said = [&HOST[..], &own, &tags[1], &[8, 6], &said].concat();
    let answered = || {
        wire.send(&ask);
        let is_it = |frame: &[u8]| frame.starts_with(&said);
        wire.expect(Duration::from_millis(200), is_it).is_some()
    };
    assert!(until(patience(), answered));
}

/// Milliseconds that each of so many echoes took, one every so many seconds; those that never came
/// are missing.
fn echoes(from: &Netns, to: &str, count: usize, every: f64) -> Vec<f64> {
    let said = from.sh(&format!("ping -n -c {count} -i {every} -W 5 {to} || true"));
    let said = said.expect("it has ping");
    let times = said
        .lines()
        .filter_map(|line| line.split_once("time=")?.1.split(' ').next());
    times.map(|time| time.parse().expect("a number")).collect()
}

/// Workers sleep 100 ms at most, and between these echoes they do. A wake-up that is lost costs an
/// echo as much at each end of its four ways through a router.
#[test]
fn changes_lose_no_wake_up() {
    const NAME: &str = "changes_lose_no_wake_up";
    const NAP: f64 = 100.0;
    if skipped(NAME, &["ip", "ping"]) {
        return;
    }
    let lab = Lab::start();
    lab.routes();
    let sub = "      300: { lcp: v300, addresses: [ 10.3.0.1/24 ] }\n";
    let tap = "taps: { tap1: { host: { name: guest } } }\n";
    let mtu = sub.replacen("lcp: v300", "lcp: v300, mtu: 1400", 1);
    let others = [
        format!("{ROUTER}{sub}"),
        ROUTER.to_owned(),
        format!("{ROUTER}{sub}{tap}"),
        format!("{ROUTER}{mtu}{tap}"),
        format!("{ROUTER}loopbacks: {{ loop1: {{ addresses: [ 10.4.0.1/24 ] }} }}\n"),
    ];
    for _ in 0..2 {
        let meanwhile = std::thread::scope(|scope| {
            let changes = scope.spawn(|| {
                for yaml in others.iter().cycle().take(100) {
                    lab.apply(yaml);
                }
            });
            let mut times = Vec::new();
            while !changes.is_finished() {
                let some = echoes(&lab.stations[0], "10.2.0.2", 50, 0.02);
                assert_eq!(some.len(), 50, "echoes were lost: {}", lab.errors());
                times.extend(some);
            }
            changes.join().expect("all are made");
            times
        });
        let afterwards = echoes(&lab.stations[0], "10.2.0.2", 20, 0.2);
        for (when, mut times) in [("meanwhile", meanwhile), ("afterwards", afterwards)] {
            times.sort_by(f64::total_cmp);
            let (middle, last) = (times[times.len() / 2], times[times.len() - 1]);
            println!(
                "{when}: {} echoes, {middle} ms, {last} ms at most",
                times.len()
            );
            assert!(middle < NAP / 2.0 && last < 10.0 * NAP, "{when}: {times:?}");
        }
    }
}
