//! BIRD and FRR, unmodified, in the router's namespace: they learn routes over BGP from a neighbour beyond the router,
//! and traffic follows.

use std::{net::Ipv4Addr, path::Path, time::Duration};

use crate::harness::{
    Hosts, Netns, PATIENCE, Process, Raw, Router, Spawn,
    craft::Ip4,
    router::{forwards_to, is_to},
    skipped,
    topology::{CONFIGURATION, H0, HOST, R0, ROUTER},
    until,
};

/// What the neighbour announces, and an address in it.
const PREFIX: &str = "203.0.113.0/24";
const INSIDE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 7);

/// What the daemon beside the router announces to the neighbour.
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
        let base = lab::cleanup::directory().join(name);
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
        lab::command::run(&argv).unwrap_or_default()
    }
}

/// The neighbour on the right host.
fn neighbour(hosts: &Hosts) -> Bird {
    let configuration = format!(
        "router id {me};\nprotocol device {{}}\n\
         protocol static announced {{ ipv4; route {PREFIX} blackhole; }}\n\
         protocol bgp peer {{ local {me} as 65002; neighbor {router} as 65001; connect retry time 1;\n\
         connect delay time 1; error wait time 1, 2; ipv4 {{ import all; export all; next hop self; }}; }}\n",
        me = HOST[1],
        router = ROUTER[1]
    );
    Bird::start(
        &hosts.right,
        &format!("{}-peer", hosts.right.name()),
        &configuration,
    )
}

/// Starts the daemon beside the router: BIRD.
fn bird(hosts: &Hosts) -> Vec<Process> {
    let configuration = format!(
        "router id {me};\nprotocol device {{}}\n\
         protocol kernel {{ learn; persist; ipv4 {{ import all; export where source = RTS_BGP; }}; }}\n\
         protocol bgp peer {{ local {me} as 65001; neighbor {peer} as 65002; connect retry time 1;\n\
         connect delay time 1; error wait time 1, 2; ipv4 {{ import all; export where net = {OURS}; next hop self; }}; }}\n",
        me = ROUTER[1],
        peer = HOST[1]
    );
    vec![
        Bird::start(
            &hosts.router,
            &format!("{}-own", hosts.router.name()),
            &configuration,
        )
        .process,
    ]
}

/// Starts the daemon beside the router: FRR's zebra and bgpd.
fn frr(hosts: &Hosts) -> Vec<Process> {
    let directory = lab::cleanup::directory().join(format!("{}-frr", hosts.router.name()));
    std::fs::create_dir_all(&directory).unwrap();
    // FRR's daemons become their own user, and write their sockets here.
    lab::command::run(&["chown", "frr:frrvty", &directory.display().to_string()]).unwrap();
    let path = |name: &str| directory.join(name).display().to_string();
    let zebra = write(&directory.join("zebra.conf"), "hostname zebra\n");
    let bgp = format!(
        "router bgp 65001\n bgp router-id {me}\n no bgp ebgp-requires-policy\n no bgp network import-check\n \
         neighbor {peer} remote-as 65002\n neighbor {peer} timers connect 1\n \
         address-family ipv4 unicast\n  network {OURS}\n exit-address-family\n",
        me = ROUTER[1],
        peer = HOST[1]
    );
    let bgp = write(&directory.join("bgpd.conf"), &bgp);
    let start = |program: &str, file: &str| {
        Spawn::new(format!("/usr/lib/frr/{program}"))
            .args(["-f", file, "-z", &path("zserv.api"), "-i", &path(program)])
            .args(["--vty_socket", &directory.display().to_string(), "-P", "0"])
            .inside(&hosts.router)
            .start()
            .unwrap()
    };
    let zebra = start("zebra", &zebra);
    assert!(
        until(PATIENCE, || directory.join("zserv.api").exists()),
        "zebra: {}",
        zebra.log()
    );
    vec![zebra, start("bgpd", &bgp)]
}

/// Whether the kernel beside the router has the neighbour's route.
fn learned(hosts: &Hosts) -> bool {
    hosts
        .router
        .ip(&format!("route show {PREFIX}"))
        .is_ok_and(|text| text.contains("via"))
}

/// Whether packets to the neighbour's prefix arrive.
fn arrives(left: &Raw, right: &Raw) -> bool {
    right.drain(Duration::from_millis(20));
    left.send(&Ip4::udp([16, 0, 0, 1].into(), INSIDE, 9, 26).frame(H0, R0));
    right
        .expect(Duration::from_millis(300), |frame| is_to(frame, INSIDE))
        .is_some()
}

fn traffic_follows(name: &str, daemon: fn(&Hosts) -> Vec<Process>) {
    let hosts = Hosts::new(1500, true);
    let (left, right) = hosts.raw();
    let router = Router::start(&hosts.router, CONFIGURATION);
    let peer = neighbour(&hosts);
    let mut own = daemon(&hosts);
    let log = |own: &[Process]| own.iter().map(Process::log).collect::<String>();
    assert!(
        until(PATIENCE, || learned(&hosts)),
        "{name} learned nothing: {}{}",
        log(&own),
        peer.control("show protocols all")
    );
    assert!(
        forwards_to(&left, &right, INSIDE),
        "{}",
        router.process.log()
    );
    assert!(
        until(PATIENCE, || peer.control("show route").contains(OURS)),
        "the neighbour learned nothing"
    );

    peer.control("disable announced");
    assert!(
        until(PATIENCE, || !learned(&hosts)),
        "{name} did not withdraw"
    );
    assert!(
        until(PATIENCE, || !arrives(&left, &right)),
        "traffic goes on without a route"
    );
    peer.control("enable announced");
    assert!(
        forwards_to(&left, &right, INSIDE),
        "traffic does not come back"
    );

    own.iter_mut().for_each(Process::kill);
    assert!(
        forwards_to(&left, &right, [48, 0, 0, 1].into()),
        "other routes live on"
    );
    drop(own);
    let again = daemon(&hosts);
    assert!(
        until(PATIENCE, || learned(&hosts)),
        "{name} after a restart: {}",
        log(&again)
    );
    assert!(
        forwards_to(&left, &right, INSIDE),
        "traffic after a restart"
    );
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
