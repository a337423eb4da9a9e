//! DPDK's testpmd as the memif peer, in both roles. It copies between the shared memory and a veth
//! each: `left veth <-> testpmd <-> memif <-> router <-> memif <-> testpmd <-> right veth`.

use std::time::Duration;

use sandbox::veth::{self, End};

use crate::harness::craft::Ip4;
use crate::harness::router::is_to;
use crate::harness::topology::{H0, H1, HOST, R0, R1, ROUTER, text};
use crate::harness::{Netns, Raw, Router, Spawn, cleanup, patience, skipped, until};

/// The router's configuration with memif ports in one role, and the sockets.
fn configuration(role: &str, sockets: &[String; 2]) -> String {
    let mut yaml = "interfaces:\n".to_owned();
    for (i, mac) in [R0, R1].into_iter().enumerate() {
        yaml += &format!(
            "  r{i}: {{ lcp: r{i}, mac: \"{}\", addresses: [ {}/24 ] }}\n",
            text(mac),
            ROUTER[i]
        );
    }
    yaml += "ports:\n";
    for (i, socket) in sockets.iter().enumerate() {
        yaml += &format!("  r{i}: {{ memif: {{ socket: {socket}, id: 0, role: {role} }} }}\n");
    }
    yaml
}

/// Addresses of the wire's ends: nobody speaks there.
const WIRE: [&str; 2] = ["02:70:73:02:00:01", "02:70:73:02:01:01"];

fn testpmd(netns: &Netns, role: &str, sockets: &[String; 2]) -> Spawn {
    let device = |i: usize| {
        format!(
            "--vdev=net_memif{i},role={role},id=0,socket={},socket-abstract=no",
            sockets[i]
        )
    };
    let packet = |i: usize| format!("--vdev=net_af_packet{i},iface=w{i}");
    // Where DPDK makes a directory for each process; it stays when the process is killed.
    let run = cleanup::directory().display().to_string();
    Spawn::new("dpdk-testpmd")
        .env("RUNTIME_DIRECTORY", run)
        .args([
            "-l",
            "0,1",
            "--no-huge",
            "-m",
            "256",
            "--no-pci",
            "--no-telemetry",
            "--no-shconf",
        ])
        .args([format!("--file-prefix={role}")])
        .args([packet(0), device(0), device(1), packet(1)])
        // Ports are numbered in this order, and neighbors are pairs: each packet port copies to its
        // memif port. With a period for statistics testpmd runs until it is killed; without, until
        // its standard input ends.
        .args([
            "--",
            "--forward-mode=io",
            "--total-num-mbufs=16384",
            "--auto-start",
            "--no-lsc-interrupt",
            "--stats-period=3600",
        ])
        .args(["--port-topology=paired"])
        .inside(netns)
}

/// The veths between the hosts' ends and testpmd.
fn links(ends: &Netns, wire: &Netns) {
    for (i, mac) in [H0, H1].into_iter().enumerate() {
        let (name, wire_name, mac) = (format!("h{i}"), format!("w{i}"), text(mac));
        let end = End {
            netns: ends,
            name: &name,
            mac: &mac,
            address: None,
        };
        let far = End {
            netns: wire,
            name: &wire_name,
            mac: WIRE[i],
            address: None,
        };
        veth::pair(end, far, 1500).unwrap();
        veth::host_end(ends, &name).unwrap();
        wire.ip(&format!("link set {wire_name} promisc on"))
            .unwrap();
    }
}

/// Routes by the host interfaces, once they are there.
fn routes(netns: &Netns, router: &Router) {
    let there = until(patience(), || {
        let link = |name| netns.ip(&format!("link show {name}"));
        ["r0", "r1"].into_iter().all(|name| link(name).is_ok())
    });
    assert!(there, "{}", router.process.log());
    for (i, (host, mac)) in [(HOST[0], H0), (HOST[1], H1)].into_iter().enumerate() {
        let behind = ["16.0.0.0/8", "48.0.0.0/8"][i];
        let lines = format!(
            "neigh replace {host} lladdr {} dev r{i} nud permanent\nroute replace {behind} via {host} dev r{i}\n",
            text(mac)
        );
        netns.ip_batch(&lines).unwrap();
    }
}

fn through_testpmd(role: &str, theirs: &str) {
    let create = |label| Netns::create(label).unwrap();
    let (ends, wire, router_ns) = (create("ends"), create("wire"), create("router"));
    links(&ends, &wire);
    let socket = |i: usize| cleanup::directory().join(format!("{role}{i}.sock"));
    let sockets = [0, 1].map(|i| socket(i).display().to_string());
    let start_peer = || testpmd(&wire, theirs, &sockets).start().unwrap();
    // The listening side goes first. testpmd as the server dies of a client that gives up before
    // its ports run.
    let mut peer = (theirs == "server").then(start_peer);
    if let Some(peer) = &peer {
        let runs = || peer.log().contains("Checking link statuses");
        assert!(until(patience(), runs), "{}", peer.log());
    }
    let router = Router::start(&router_ns, &configuration(role, &sockets));
    let peer = peer.get_or_insert_with(start_peer);
    routes(&router_ns, &router);
    let (left, right) = (Raw::open(&ends, "h0", H0), Raw::open(&ends, "h1", H1));
    let passes = until(patience(), || echo(&left, &right, 0, 26));
    assert!(
        passes,
        "router: {}\ntestpmd: {}",
        router.process.log(),
        peer.log()
    );
    host_is_reached(&ends, &router_ns);
    for number in 1..200u16 {
        let length = 8 + usize::from(number) * 7;
        assert!(
            echo(&left, &right, number, length),
            "packet {number} from left to right"
        );
        assert!(
            echo(&right, &left, number, length),
            "packet {number} from right to left"
        );
    }
}

/// The host beside the router is reached through the port and its host interface: ARP and ping in both
/// directions.
fn host_is_reached(ends: &Netns, router: &Netns) {
    ends.ip(&format!("addr add {}/24 dev h0", HOST[0])).unwrap();
    router.ip(&format!("neigh del {} dev r0", HOST[0])).unwrap();
    let ping = |from: &Netns, to: &str| {
        until(patience(), || {
            from.exec(&["ping", "-c", "3", "-i", "0.1", "-W", "2", to])
                .is_ok()
        })
    };
    assert!(ping(ends, &ROUTER[0].to_string()), "from the neighbour");
    let learned = |netns: &Netns, address: std::net::Ipv4Addr, mac| {
        let line = netns.ip(&format!("neigh show {address}")).unwrap();
        assert!(line.contains(&text(mac)), "{line}");
    };
    learned(ends, ROUTER[0], R0);
    learned(router, HOST[0], H0);
    router.ip("neigh flush dev r0").unwrap();
    assert!(ping(router, &HOST[0].to_string()), "from the router");
}

/// Sends a packet, and says whether it came out with the same content, one hop older.
fn echo(from: &Raw, to: &Raw, number: u16, length: usize) -> bool {
    let forth = from.mac() == H0;
    let (src, dst) = (
        [16, 0, 0, 1].into(),
        [48, 0, (number >> 8) as u8, number as u8].into(),
    );
    let (src, dst, mac) = if forth {
        (src, dst, R0)
    } else {
        (dst, src, R1)
    };
    let packet = Ip4::udp(src, dst, number, length);
    from.send(&packet.frame(from.mac(), mac));
    let Some(frame) = to.expect(Duration::from_secs(1), |frame| is_to(frame, dst)) else {
        return false;
    };
    let expected = Ip4 {
        ttl: packet.ttl - 1,
        ..packet
    }
    .frame(if forth { R1 } else { R0 }, to.mac());
    assert_eq!(frame, expected, "packet {number}");
    true
}

#[test]
fn testpmd_is_client() {
    if !skipped("testpmd_is_client", &["ip", "ping", "dpdk-testpmd"]) {
        through_testpmd("server", "client");
    }
}

#[test]
fn testpmd_is_server() {
    if !skipped("testpmd_is_server", &["ip", "ping", "dpdk-testpmd"]) {
        through_testpmd("client", "server");
    }
}
