//! The router in one guest between two others with FRR: routes come by OSPF and BGP over its
//! interfaces, and packets go on while a routing daemon is restarted.
//!
//! `make test-kernels` starts the three. The neighbours' guests carry out what comes to their port
//! 7000, so that everything is written here; each has an address of its own on the wire to the
//! router ([`HOST`]).

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use crate::harness::frr::Frr;
use crate::harness::router::Router;
use crate::harness::topology::{CONFIGURATION, HOST, R0, R1, ROUTER, carries, take_card};
use crate::harness::{Netns, Spawn, alone, patience, until};

/// Where the neighbours listen.
const PORT: u16 = 7000;
/// What the neighbours announce by BGP, and an address of theirs in it.
const BGP: [(&str, &str); 2] = [("16.0.0.0/8", "16.0.0.1"), ("48.0.0.0/8", "48.0.0.1")];
/// What they announce by OSPF.
const OSPF: [&str; 2] = ["10.255.0.1", "10.255.1.1"];

/// A guest beside the router's.
struct Neighbour<'a> {
    /// The router's namespace, from which it is reached.
    router: &'a Netns,
    /// 0 on the left, 1 on the right.
    side: usize,
    frr: Frr,
}

impl<'a> Neighbour<'a> {
    fn new(router: &'a Netns, side: usize) -> Self {
        let frr = Frr::new("/run/parshall-frr");
        Self { router, side, frr }
    }

    /// Runs a script there and returns what it printed, or what went wrong.
    fn sh(&self, script: &str) -> Result<String, String> {
        let address = SocketAddr::from((HOST[self.side], PORT));
        let answer = self.router.inside(|| {
            let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(2))?;
            stream.set_read_timeout(Some(4 * patience()))?;
            stream.write_all(format!("(\n{script}\n) 2>&1\necho \"exit $?\"\n").as_bytes())?;
            stream.shutdown(Shutdown::Write)?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).map(|_| answer)
        });
        let answer: String = answer.map_err(|e: std::io::Error| format!("{address}: {e}"))?;
        match answer.strip_suffix("exit 0\n") {
            Some(printed) => Ok(printed.to_owned()),
            None => Err(format!("{address}: {answer}")),
        }
    }

    /// Starts its routing daemons.
    fn start(&self) {
        let (own, peer) = (HOST[self.side], ROUTER[self.side]);
        let ((prefix, inside), ospf) = (BGP[self.side], OSPF[self.side]);
        let bgpd = format!(
            "router bgp 65002\n bgp router-id {own}\n no bgp ebgp-requires-policy\n\
             bgp graceful-restart\n bgp graceful-restart preserve-fw-state\n no bgp network import-check\n neighbor {peer} remote-as 65001\n\
             neighbor {peer} timers connect 1\n\
             address-family ipv4 unicast\n  network {prefix}\n  neighbor {peer} allowas-in\n \
             exit-address-family\n"
        );
        let device = format!("h{}", self.side);
        let ospfd = ospfd(
            &[&device],
            &own.to_string(),
            " graceful-restart helper enable\n",
        );
        let ospfd = format!("{ospfd} network {ospf}/32 area 0\n");
        let script = self.frr.start(&[("bgpd", &bgpd), ("ospfd", &ospfd)]);
        let address =
            format!("ip addr replace {inside}/32 dev lo; ip addr replace {ospf}/32 dev lo\n");
        self.sh(&(address + &script)).expect("FRR starts");
    }

    fn has_route(&self, prefix: &str) -> bool {
        let shown = self.sh(&format!("ip route show {prefix}"));
        shown.is_ok_and(|text| text.contains("via"))
    }

    /// Asks for this many answers, ten a second; returns how many came.
    fn ping(&self, from: &str, to: &str, count: u32) -> u32 {
        // Its exit code only says whether any came.
        let script = format!("ping -q -n -i 0.1 -W 10 -c {count} -I {from} {to} || true");
        let text = self.sh(&script).expect("it has ping");
        let received = text
            .split(", ")
            .find_map(|part| part.strip_suffix(" received"));
        received
            .and_then(|number| number.parse().ok())
            .unwrap_or_else(|| panic!("{text}"))
    }
}

/// OSPF on these devices, all of them broadcast links of area 0.
fn ospfd(devices: &[&str], id: &str, more: &str) -> String {
    let timers = |device: &&str| {
        format!("interface {device}\n ip ospf hello-interval 1\n ip ospf dead-interval 20\n!\n")
    };
    let timers: String = devices.iter().map(timers).collect();
    format!(
        "{timers}router ospf\n ospf router-id {id}\n capability opaque\n network 198.18.0.0/15 area 0\n{more}"
    )
}

/// The guest with the router.
struct Middle {
    netns: Netns,
    frr: Frr,
    bgpd: String,
    ospfd: String,
}

impl Middle {
    fn new() -> Self {
        let netns = Netns::create("router").expect("root may make namespaces");
        for (i, (name, mac)) in [("r0", R0), ("r1", R1)].into_iter().enumerate() {
            take_card(&netns, name, mac);
            let lines = format!("addr add {}/24 dev {name}\nlink set {name} up\n", ROUTER[i]);
            netns.ip_batch(&lines).expect("a card");
        }
        for name in ["r0", "r1"] {
            assert!(until(patience(), || carries(&netns, name)), "{name}");
        }
        let peers = HOST.map(|peer| {
            format!(" neighbor {peer} remote-as 65002\n neighbor {peer} timers connect 1\n")
        });
        let bgpd = format!(
            "router bgp 65001\n bgp router-id {}\n no bgp ebgp-requires-policy\n\
             bgp graceful-restart\n bgp graceful-restart preserve-fw-state\n\
             bgp graceful-restart select-defer-time 0\n update-delay 30\n{}",
            ROUTER[0],
            peers.concat()
        );
        let id = ROUTER[1].to_string();
        Self {
            frr: Frr::new(format!("/run/{}-frr", netns.name())),
            ospfd: ospfd(&["r0", "r1"], &id, " graceful-restart grace-period 120\n"),
            bgpd,
            netns,
        }
    }

    fn start(&self) {
        let script = self
            .frr
            .start(&[("bgpd", &self.bgpd), ("ospfd", &self.ospfd)]);
        self.netns.sh(&script).expect("FRR starts");
    }

    fn vtysh(&self, daemon: &str, commands: &[&str]) -> String {
        self.netns
            .sh(&self.frr.vtysh(daemon, commands))
            .unwrap_or_default()
    }

    /// The kernel's routes, from BGP and OSPF both.
    fn has_routes(&self) -> bool {
        let routes = self.netns.ip("route show").unwrap_or_default();
        let from = |prefix: &str, protocol: &str| {
            let mut lines = routes.lines();
            lines.any(|line| line.starts_with(prefix) && line.contains(protocol))
        };
        BGP.iter().all(|(prefix, _)| from(prefix, "proto bgp"))
            && OSPF.iter().all(|address| from(address, "proto ospf"))
    }

    /// Whether sessions with both neighbours are up.
    fn is_settled(&self) -> bool {
        let bgp = self.vtysh("bgpd", &["show bgp neighbors"]);
        let ospf = self.vtysh("ospfd", &["show ip ospf neighbor"]);
        bgp.matches("BGP state = Established").count() == 2 && ospf.matches("Full/").count() == 2
    }

    fn log(&self) -> String {
        self.netns.sh(&self.frr.log()).unwrap_or_default()
    }
}

fn received(router: &Router) -> u64 {
    router.show(&["interface", "r0"])["interfaces"][0]["rx_packets"]
        .as_u64()
        .unwrap_or(0)
}

/// All of it, since three guests and their daemons take their time to come up: routes, packets,
/// a withdrawn prefix, and a restart of FRR.
#[test]
#[ignore = "needs guests with FRR beside its own: make test-kernels ARGS=frr"]
fn frr_on_both_sides() {
    let _alone = alone();
    let middle = Middle::new();
    let (left, right) = (
        Neighbour::new(&middle.netns, 0),
        Neighbour::new(&middle.netns, 1),
    );
    for neighbour in [&left, &right] {
        let there = until(4 * patience(), || neighbour.sh("true").is_ok());
        assert!(there, "no guest answers at {}", HOST[neighbour.side]);
        neighbour.start();
    }
    let router = Router::start(&middle.netns, CONFIGURATION);
    middle.start();

    let learned = || {
        middle.has_routes()
            && left.has_route(BGP[1].0)
            && left.has_route(OSPF[1])
            && right.has_route(BGP[0].0)
            && right.has_route(OSPF[0])
    };
    assert!(until(4 * patience(), learned), "{}", middle.log());
    assert!(
        until(patience(), || middle.is_settled()),
        "{}",
        middle.log()
    );

    // Packets go by the router, not by the kernel behind it.
    let before = received(&router);
    for (from, to) in [(BGP[0].1, BGP[1].1), (OSPF[0], OSPF[1])] {
        assert_eq!(
            left.ping(from, to, 40),
            40,
            "from {from} to {to}\n{}",
            router.show_text(&["errors"])
        );
    }
    let by_router = received(&router) - before;
    assert!(by_router >= 80, "{by_router} of 80 packets by the router");

    // A prefix that is withdrawn, and comes back.
    let announce = |word: &str| {
        let network = format!("{word}network {}", BGP[1].0);
        let words = [
            "configure terminal",
            "router bgp 65002",
            "address-family ipv4 unicast",
            &network,
        ];
        right.sh(&right.frr.vtysh("bgpd", &words)).expect("vtysh");
    };
    announce("no ");
    let gone = || !left.has_route(BGP[1].0) && !middle.has_routes();
    assert!(until(patience(), gone), "{}", middle.log());
    announce("");
    assert!(until(2 * patience(), learned), "{}", middle.log());
    println!("GUESTS routes and packets: ok, {by_router} packets by the router");

    restart(&middle, &left, &router);
    assert!(learned(), "{}", middle.log());
    println!("{}", router.show_text(&["interface"]));
}

/// Ends FRR beside the router while packets go by its routes, and starts it again (RFC 4724, RFC
/// 3623): the kernel's routes stay, and the router forwards all that it gets. FRR 8.4 as a neighbour
/// was seen to be without the route for a moment when its session comes back.
fn restart(middle: &Middle, left: &Neighbour, router: &Router) {
    const PINGS: u32 = 600;
    let routes = Spawn::new("ip").args(["monitor", "route"]);
    let routes = routes.inside(&middle.netns).start().expect("ip runs");
    std::thread::scope(|scope| {
        let ways = [(BGP[0].1, BGP[1].1), (OSPF[0], OSPF[1])];
        let pings = ways.map(|(from, to)| scope.spawn(move || left.ping(from, to, PINGS)));
        std::thread::sleep(Duration::from_secs(2));
        // OSPF has to tell its neighbours before.
        let said = middle.vtysh("ospfd", &["graceful-restart prepare ip ospf"]);
        assert_eq!(said, "");
        std::thread::sleep(Duration::from_secs(1));
        // Zebra first, which would take the others' routes with them.
        for daemon in ["zebra", "bgpd", "ospfd"] {
            middle.netns.sh(&middle.frr.kill(daemon)).expect("it runs");
        }
        std::thread::sleep(Duration::from_secs(3));
        assert!(
            middle.has_routes(),
            "the kernel keeps the routes: {}",
            middle.log()
        );
        middle.start();
        assert!(
            until(2 * patience(), || middle.is_settled()),
            "{}",
            middle.log()
        );
        assert!(
            !pings.iter().all(|ping| ping.is_finished()),
            "packets went on meanwhile"
        );
        for (ping, protocol) in pings.into_iter().zip(["BGP", "OSPF"]) {
            let came = ping.join().expect("it ends");
            println!("GUESTS FRR restarted: {came} of {PINGS} answers by routes of {protocol}");
            assert!(came >= PINGS / 100 * 98, "{protocol}: {}", middle.log());
        }
    });
    assert!(!routes.log().contains("Deleted"), "{}", routes.log());
    let shown = router.show(&["interface"]);
    let count = |i: usize, what: &str| shown["interfaces"][i][what].as_u64().expect("a count");
    let (right, left) = (count(0, "rx_packets"), count(1, "rx_packets"));
    assert_eq!(
        [count(1, "tx_packets"), count(0, "tx_packets")],
        [right, left],
        "what comes in goes out: {}",
        router.show_text(&["errors"])
    );
    println!("GUESTS {right} packets to the right and {left} to the left, none lost in the router");
}
