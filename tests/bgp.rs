//! BIRD and FRR, unmodified, in the router's namespace: they learn routes over BGP from neighbours
//! beyond the router, and traffic follows.

use std::fmt::Display;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::harness::craft::{Ip4, Ip6};
use crate::harness::frr::Frr;
use crate::harness::router::{forwards_to, is_to};
use crate::harness::topology::{CONFIGURATION, H0, HOST, HOST6, R0, ROUTER, ROUTER6, ip6};
use crate::harness::{
    Hosts, Netns, Process, Raw, Router, Spawn, cleanup, command, patience, skipped, until,
};

/// The prefix that the neighbour announces, and an address in it.
const PREFIX: &str = "203.0.113.0/24";
const INSIDE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 7);

/// The same of IPv6.
const PREFIX6: &str = "2001:db8:cb00::/40";
const INSIDE6: Ipv6Addr = ip6(0xcb00, 7);

/// The prefix that the daemon beside the router announces to the neighbour.
const OURS: &str = "16.0.0.0/8";

fn write(path: &Path, text: &str) -> String {
    std::fs::write(path, text).expect("root may write to /run");
    path.display().to_string()
}

/// A BIRD with its control socket.
struct Bird {
    process: Process,
    socket: String,
}

impl Bird {
    fn start(netns: &Netns, name: &str, configuration: &str) -> Self {
        let base = cleanup::directory().join(name);
        let file = write(&base.with_extension("conf"), configuration);
        let socket = base.with_extension("ctl").display().to_string();
        let process = Spawn::new("bird")
            .args(["-f", "-c", &file, "-s", &socket])
            .inside(netns)
            .start()
            .unwrap();
        Self { process, socket }
    }

    fn control(&self, words: &str) -> String {
        let argv: Vec<&str> = ["birdc", "-s", &self.socket]
            .into_iter()
            .chain(words.split(' '))
            .collect();
        command::run(&argv).unwrap_or_default()
    }
}

/// The neighbour on the left (0) or right (1) host; the left one's announcement is disabled at
/// first.
fn neighbour(hosts: &Hosts, side: usize) -> Bird {
    let netns = [&hosts.left, &hosts.right][side];
    let configuration = format!(
        "router id {me};\nprotocol device {{}}\n\
         protocol static announced {{ {disabled} ipv4; route {PREFIX} blackhole; }}\n\
         {bgp} ipv4 {{ import all; export all; next hop self; }}; }}\n",
        me = HOST[side],
        disabled = ["disabled;", ""][side],
        bgp = bird_session("peer", (HOST[side], 65002), (ROUTER[side], 65001)),
    );
    Bird::start(netns, &format!("{}-peer", netns.name()), &configuration)
}

/// A session without its channels. It is retried at once and ends without a graceful restart.
fn bird_session(name: &str, me: (impl Display, u32), peer: (impl Display, u32)) -> String {
    format!(
        "protocol bgp {name} {{ local {} as {}; neighbor {} as {};\n\
         connect retry time 1; connect delay time 1; error wait time 1, 2; graceful restart off;",
        me.0, me.1, peer.0, peer.1
    )
}

/// Starts the daemon beside the router: BIRD.
fn bird(hosts: &Hosts) -> Vec<Process> {
    let session = |side: usize| {
        let (me, peer) = ((ROUTER[side], 65001), (HOST[side], 65002));
        bird_session(["left", "right"][side], me, peer)
            + &format!(" ipv4 {{ import all; export where net = {OURS}; next hop self; }}; }}\n")
    };
    let configuration = format!(
        "router id {};\nprotocol device {{}}\nprotocol kernel {{ learn; persist; merge paths on;\n\
         ipv4 {{ import all; export where source = RTS_BGP; }}; }}\n{}{}",
        ROUTER[1],
        session(0),
        session(1)
    );
    let name = format!("{}-own", hosts.router.name());
    vec![Bird::start(&hosts.router, &name, &configuration).process]
}

/// Starts the daemon beside the router: FRR's zebra and bgpd.
fn frr(hosts: &Hosts) -> Vec<Process> {
    let peers: String = HOST
        .iter()
        .map(|peer| {
            format!(" neighbor {peer} remote-as 65002\n neighbor {peer} timers connect 1\n")
        })
        .collect();
    let families = format!(
        " address-family ipv4 unicast\n  network {OURS}\n  maximum-paths 4\n exit-address-family\n"
    );
    frr_with(hosts, &(peers + &families))
}

/// FRR with these neighbours and families.
fn frr_with(hosts: &Hosts, sessions: &str) -> Vec<Process> {
    let bgp = format!(
        "router bgp 65001\n bgp router-id {}\n no bgp ebgp-requires-policy\n no bgp network import-check\n{sessions}",
        ROUTER[1]
    );
    Frr::spawn(&hosts.router, &[("bgpd", &bgp)])
}

/// Paths of the neighbours' route in the kernel beside the router.
fn paths(hosts: &Hosts) -> usize {
    let route = hosts.router.ip(&format!("route show {PREFIX}"));
    route.map_or(0, |text| text.matches("via").count())
}

/// A packet of a flow to the neighbours' prefix, from the left.
fn packet(flow: u16) -> Vec<u8> {
    let mut packet = Ip4::udp([16, 0, 0, 1].into(), INSIDE, flow, 26);
    packet.payload[..2].copy_from_slice(&(1024 + flow).to_be_bytes());
    packet.frame(H0, R0)
}

/// Sends packets until one arrives on the right.
fn follows(left: &Raw, right: &Raw) -> bool {
    until(patience(), || {
        left.send(&packet(0));
        right
            .expect(Duration::from_millis(1), |frame| is_to(frame, INSIDE))
            .is_some()
    })
}

/// Whether the router answers that there is no route (ICMP destination unreachable: net
/// unreachable, RFC 792).
fn refused(left: &Raw) -> bool {
    left.send(&packet(0));
    let refusal =
        |frame: &[u8]| is_to(frame, [16, 0, 0, 1]) && frame[23] == 1 && frame[34..36] == [3, 0];
    left.expect(Duration::from_millis(5), refusal).is_some()
}

/// Sends one packet of each of many flows; returns how many came out on the left and on the right.
fn spread(left: &Raw, right: &Raw, flows: u16) -> [usize; 2] {
    for side in [left, right] {
        side.drain(Duration::from_millis(20));
    }
    (0..flows).for_each(|flow| left.send(&packet(flow)));
    [left, right].map(|side| {
        let frames = side.drain(Duration::from_millis(300));
        frames.iter().filter(|frame| is_to(frame, INSIDE)).count()
    })
}

fn traffic_follows(name: &str, daemon: fn(&Hosts) -> Vec<Process>) {
    let hosts = Hosts::new(1500, true);
    let (left, right) = hosts.raw();
    let router = Router::start(&hosts.router, CONFIGURATION);
    let (other, peer) = (neighbour(&hosts, 0), neighbour(&hosts, 1));
    let mut own = daemon(&hosts);
    let log = |own: &[Process]| own.iter().map(Process::log).collect::<String>();
    assert!(
        until(patience(), || paths(&hosts) == 1),
        "{name} learned nothing: {}{}",
        log(&own),
        peer.control("show protocols all")
    );
    assert!(follows(&left, &right), "{}", router.process.log());
    let learned = |peer: &Bird| until(patience(), || peer.control("show route").contains(OURS));
    assert!(learned(&peer), "the neighbour learned nothing");
    goes_and_comes(name, &hosts, &peer, (&left, &right));

    // Two neighbours with the same prefix: flows take both ways.
    assert!(learned(&other), "the other neighbour learned nothing");
    other.control("enable announced");
    assert!(until(patience(), || paths(&hosts) == 2), "one path only");
    let flows = 256;
    let both = until(patience(), || {
        let counts = spread(&left, &right, flows);
        counts.iter().sum::<usize>() == usize::from(flows) && counts.iter().all(|n| *n > 64)
    });
    assert!(both, "{:?}", spread(&left, &right, flows));
    other.control("disable announced");
    assert!(until(patience(), || {
        spread(&left, &right, flows) == [0, usize::from(flows)]
    }));

    own.iter_mut().for_each(Process::kill);
    assert!(follows(&left, &right), "the routes of a dead daemon stay");
    assert!(
        until(patience(), || !peer.control("show route").contains(OURS)),
        "the neighbour has not noticed"
    );
    drop(own);
    let again = daemon(&hosts);
    assert!(learned(&peer), "{name} after a restart: {}", log(&again));
    goes_and_comes(name, &hosts, &peer, (&left, &right));
    assert!(
        forwards_to(&left, &right, [48, 0, 0, 1].into()),
        "other routes live on"
    );
}

/// The neighbour withdraws its prefix and announces it again.
fn goes_and_comes(name: &str, hosts: &Hosts, peer: &Bird, (left, right): (&Raw, &Raw)) {
    let start = Instant::now();
    peer.control("disable announced");
    assert!(
        until(patience(), || refused(left)),
        "traffic goes on without a route: {} paths",
        paths(hosts)
    );
    let gone = start.elapsed();
    right.drain(Duration::from_millis(20));
    let start = Instant::now();
    peer.control("enable announced");
    assert!(follows(left, right), "traffic does not come back");
    let back = start.elapsed();
    println!(
        "{name}: traffic was refused {gone:.1?} after the neighbour withdrew its route, \
         and arrived {back:.1?} after it announced it"
    );
}

/// What the neighbour on the right and the daemon say of their session over IPv6, which carries
/// both families: IPv4 routes have an IPv6 next hop (RFC 8950).
const BOTH: &str = "ipv6 { import all; export all; next hop self; };
    ipv4 { import all; export all; next hop self; extended next hop on; }; }";

/// The neighbour on the right with a session over IPv6.
fn neighbour6(hosts: &Hosts) -> Bird {
    let configuration = format!(
        "router id {};\nprotocol device {{}}\n\
         protocol static announced {{ ipv4; route {PREFIX} blackhole; }}\n\
         protocol static announced6 {{ ipv6; route {PREFIX6} blackhole; }}\n{} {BOTH}\n",
        HOST[1],
        bird_session("peer", (HOST6[1], 65002), (ROUTER6[1], 65001)),
    );
    let name = format!("{}-peer6", hosts.right.name());
    Bird::start(&hosts.right, &name, &configuration)
}

/// The daemon beside the router with a session over IPv6: BIRD.
fn bird6(hosts: &Hosts) -> Vec<Process> {
    let configuration = format!(
        "router id {};\nprotocol device {{}}\n\
         protocol kernel {{ ipv4 {{ export where source = RTS_BGP; }}; }}\n\
         protocol kernel {{ ipv6 {{ export where source = RTS_BGP; }}; }}\n{} {BOTH}\n",
        ROUTER[1],
        bird_session("right", (ROUTER6[1], 65001), (HOST6[1], 65002)),
    );
    let name = format!("{}-own6", hosts.router.name());
    vec![Bird::start(&hosts.router, &name, &configuration).process]
}

/// The same: FRR.
fn frr6(hosts: &Hosts) -> Vec<Process> {
    let peer = HOST6[1];
    let activate = |family: &str| {
        format!(
            " address-family {family} unicast\n  neighbor {peer} activate\n exit-address-family\n"
        )
    };
    let sessions = format!(
        " neighbor {peer} remote-as 65002\n neighbor {peer} timers connect 1\n \
         neighbor {peer} capability extended-nexthop\n{}{}",
        activate("ipv4"),
        activate("ipv6")
    );
    frr_with(hosts, &sessions)
}

/// Whether packets of both families to the neighbour's prefixes arrive on the right.
fn both_arrive(left: &Raw, right: &Raw) -> bool {
    right.drain(Duration::from_millis(20));
    left.send(&packet(0));
    left.send(&Ip6::udp(ip6(0x1600, 1), INSIDE6, 1, 26).frame(H0, R0));
    let arrives = |to_it: &dyn Fn(&[u8]) -> bool| {
        right
            .expect(Duration::from_millis(100), |frame| to_it(frame))
            .is_some()
    };
    arrives(&|frame| is_to(frame, INSIDE))
        && arrives(&|frame| frame[12..14] == [0x86, 0xdd] && frame[38..54] == INSIDE6.octets())
}

fn both_families_follow(name: &str, daemon: fn(&Hosts) -> Vec<Process>) {
    let hosts = Hosts::new(1500, true);
    hosts.speak_ip6();
    let (left, right) = hosts.raw();
    let router = Router::start(&hosts.router, CONFIGURATION);
    let peer = neighbour6(&hosts);
    let own = daemon(&hosts);
    let log = || own.iter().map(Process::log).collect::<String>();
    let learned = until(patience(), || {
        let [ip4, ip6] = [("", PREFIX), ("-6 ", PREFIX6)].map(|(family, prefix)| {
            let shown = hosts.router.ip(&format!("{family}route show {prefix}"));
            shown.unwrap_or_default()
        });
        ip4.contains("via inet6") && ip6.contains("via")
    });
    assert!(
        learned,
        "{name} learned not both: {}{}",
        log(),
        peer.control("show protocols all")
    );
    let arrive = || until(patience(), || both_arrive(&left, &right));
    assert!(arrive(), "{}", router.process.log());
    for of in ["announced", "announced6"] {
        peer.control(&format!("disable {of}"));
        let gone = until(patience(), || !both_arrive(&left, &right));
        assert!(gone, "{name}: traffic goes on without the route of {of}");
        peer.control(&format!("enable {of}"));
        assert!(arrive(), "{name}: {of} does not come back");
    }
}

#[test]
fn both_families_follow_bird() {
    let test = "both_families_follow_bird";
    if !skipped(test, &["ip", "ethtool", "bird", "birdc"]) {
        both_families_follow("bird", bird6);
    }
}

#[test]
fn both_families_follow_frr() {
    let needs = ["ip", "ethtool", "bird", "birdc", "zebra", "bgpd"];
    if !skipped("both_families_follow_frr", &needs) {
        both_families_follow("frr", frr6);
    }
}

#[test]
fn traffic_follows_bird() {
    if !skipped("traffic_follows_bird", &["ip", "ethtool", "bird", "birdc"]) {
        traffic_follows("bird", bird);
    }
}

#[test]
fn traffic_follows_frr() {
    if !skipped(
        "traffic_follows_frr",
        &["ip", "ethtool", "bird", "birdc", "zebra", "bgpd"],
    ) {
        traffic_follows("frr", frr);
    }
}
