//! DPDK's testpmd as the memif peer, in both roles. It copies between the shared memory and a veth
//! each: `left veth <-> testpmd <-> memif <-> router <-> memif <-> testpmd <-> right veth`.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use io::memif;
use lab::veth::{self, End};

use crate::harness::{
    Directory, Netns, Raw, Router, SetOnDrop, Spawn, cleanup,
    craft::Ip4,
    patience,
    router::is_to,
    skipped,
    topology::{H0, H1, HOST, R0, R1, ROUTER, text},
    until,
};

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

fn through_testpmd(role: &str, theirs: &str) {
    let create = |label| Netns::create(label).unwrap();
    let (ends, wire, router_ns) = (create("ends"), create("wire"), create("router"));
    for (i, mac) in [H0, H1].into_iter().enumerate() {
        let (name, wire_name, mac) = (format!("h{i}"), format!("w{i}"), text(mac));
        let end = End {
            netns: &ends,
            name: &name,
            mac: &mac,
            address: None,
        };
        let far = End {
            netns: &wire,
            name: &wire_name,
            mac: WIRE[i],
            address: None,
        };
        veth::pair(end, far, 1500).unwrap();
        veth::host_end(&ends, &name).unwrap();
        wire.ip(&format!("link set {wire_name} promisc on"))
            .unwrap();
    }
    let directory = cleanup::directory();
    let sockets = [0, 1].map(|i| {
        directory
            .join(format!("{role}{i}.sock"))
            .display()
            .to_string()
    });
    let start_peer = || testpmd(&wire, theirs, &sockets).start().unwrap();
    // The listening side goes first; the other finds it. testpmd's dies of a client that gives up
    // before its ports run.
    let mut peer = (theirs == "server").then(start_peer);
    if let Some(peer) = &peer {
        let runs = || peer.log().contains("Checking link statuses");
        assert!(until(patience(), runs), "{}", peer.log());
    }
    let router = Router::start(&router_ns, &configuration(role, &sockets));
    let peer = peer.get_or_insert_with(start_peer);
    let twins = until(patience(), || {
        ["r0", "r1"]
            .iter()
            .all(|twin| router_ns.ip(&format!("link show {twin}")).is_ok())
    });
    assert!(twins, "{}", router.process.log());
    for (i, (host, mac)) in [(HOST[0], H0), (HOST[1], H1)].into_iter().enumerate() {
        router_ns
            .ip(&format!(
                "neigh replace {host} lladdr {} dev r{i} nud permanent",
                text(mac)
            ))
            .unwrap();
        let behind = ["16.0.0.0/8", "48.0.0.0/8"][i];
        router_ns
            .ip(&format!("route replace {behind} via {host} dev r{i}"))
            .unwrap();
    }
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

/// The host beside the router is reached through the port and its twin: ARP and ping in both
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
fn a_refused_client_is_told_of_once_and_port_and_twin_have_names() {
    const NAME: &str = "a_refused_client_is_told_of_once_and_port_and_twin_have_names";
    if skipped(NAME, &["ip"]) {
        return;
    }
    let netns = Netns::create("router").unwrap();
    let directory = Directory::new();
    let socket = directory.path().join("m0.sock").display().to_string();
    let yaml = format!(
        "interfaces:\n  m0: {{ lcp: m0 }}\n\
         ports:\n  m0: {{ memif: {{ socket: {socket}, role: server, secret: sesame }} }}\n"
    );
    let router = Router::start(&netns, &yaml);
    let control = memif::Control::start().unwrap();
    let client = |secret: &str| {
        let config = memif::Config {
            secret: Some(secret.to_owned()),
            queues: 4,
            ..memif::Config::new("theirs", &socket, memif::Role::Client)
        };
        control.add(config).unwrap()
    };
    let port = || {
        let hardware = router.show(&["hardware", "m0"]);
        hardware["interfaces"][0]["port"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let stranger = client("open");
    assert!(
        until(patience(), || port().contains("wrong secret")),
        "{}",
        port()
    );
    // Its client comes back several times a second.
    std::thread::sleep(Duration::from_secs(1));
    let told = router.process.log().matches("wrong secret").count();
    assert_eq!(told, 1, "{}", router.process.log());
    assert!(
        router
            .process
            .log()
            .contains("interface m0: memif: parshall")
    );
    drop(stranger);
    let (interface, _queues) = client("sesame");
    assert!(until(patience(), || interface.status().up));
    assert!(until(patience(), || port().contains("connected to theirs")));
    assert!(port().contains("rings: rx 1, tx 1"), "{}", port());

    let shown = router.show(&["interface"]);
    let names = shown["interfaces"].as_array().unwrap().iter();
    let names = names.map(|i| i["name"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["m0", "m0-host"]);
    for config in [
        router.show_text(&["config"]),
        router.show(&["config"]).to_string(),
    ] {
        assert!(config.contains("hidden") && !config.contains("sesame"));
    }
}

/// Whether the host answers an ARP request that comes in by the tap port `t0-port`, within a
/// second.
fn host_answers(netns: &Netns) -> bool {
    let shown = netns.ip("link show dev t0-port up");
    if !shown.is_ok_and(|shown| shown.contains("t0-port")) {
        return false;
    }
    let port = Raw::open(netns, "t0-port", H1);
    let (asker, own) = ([10, 9, 1, 2], [10, 9, 1, 1]);
    let mut request = [&[0xff; 6][..], &H1, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &H1].concat();
    request.extend([&asker[..], &[0; 6], &own].concat());
    request.resize(60, 0);
    port.send(&request);
    port.expect(Duration::from_secs(1), |frame| {
        frame[12..14] == [8, 6] && frame[20..22] == [0, 2] && frame[28..32] == own
    })
    .is_some()
}

#[test]
fn a_tap_that_somebody_deletes_is_made_again() {
    if skipped("a_tap_that_somebody_deletes_is_made_again", &["ip"]) {
        return;
    }
    let netns = Netns::create("router").unwrap();
    let directory = Directory::new();
    let socket = directory.path().join("m0.sock").display().to_string();
    let yaml = format!(
        "interfaces:\n  m0: {{ lcp: m0, addresses: [ 10.9.0.1/24 ] }}\n  t0: {{ lcp: t0, addresses: [ 10.9.1.1/24 ] }}\n\
         ports:\n  m0: {{ memif: {{ socket: {socket}, role: server }} }}\n  t0: {{ tap: {{ name: t0-port }} }}\n"
    );
    let router = Router::start(&netns, &yaml);
    let control = memif::Control::start().unwrap();
    let config = memif::Config::new("theirs", &socket, memif::Role::Client);
    let (interface, _queues) = control.add(config).unwrap();
    assert!(until(patience(), || interface.status().up));
    assert!(until(patience(), || host_answers(&netns)));

    // The host's end of a port: the port itself stays as it is.
    let index = |name: &str| netns.ip(&format!("-o link show dev {name}")).unwrap();
    let has_address = |name: &str, address: &str| {
        until(patience(), || {
            let shown = netns.ip(&format!("-4 address show dev {name} up"));
            shown.is_ok_and(|shown| shown.contains(address))
        })
    };
    for (name, address) in [("m0", "10.9.0.1/24"), ("t0", "10.9.1.1/24")] {
        let before = index(name);
        netns.ip(&format!("link del {name}")).unwrap();
        assert!(has_address(name, address), "{}", router.process.log());
        assert_ne!(before, index(name));
    }
    assert!(interface.status().up);
    assert!(!router.process.log().contains("interface m0: link down"));
    assert!(
        until(patience(), || host_answers(&netns)),
        "{}",
        router.process.log()
    );

    // The tap that is the port.
    netns.ip("link del t0-port").unwrap();
    assert!(
        until(patience(), || host_answers(&netns)),
        "{}",
        router.process.log()
    );

    // Another device takes the name: the port waits until it is free.
    router.process.signal(rustix::process::Signal::STOP);
    netns.ip("link del m0").unwrap();
    netns.ip("link add m0 type veth peer name other").unwrap();
    router.process.signal(rustix::process::Signal::CONT);
    let port = || {
        let hardware = router.show(&["hardware", "m0"]);
        hardware["interfaces"][0]["port"].to_string()
    };
    assert!(
        until(patience(), || port().contains("waiting: making tap m0")),
        "{}",
        port()
    );
    assert!(until(patience(), || !interface.status().up));
    netns.ip("link del m0").unwrap();
    assert!(until(patience(), || interface.status().up), "{}", port());
    assert!(
        until(patience(), || port().contains("connected to theirs")),
        "{}",
        port()
    );
    assert!(has_address("m0", "10.9.0.1/24"));
}

/// A peer comes and goes without end, while routes pour in and everybody asks about the port: the
/// router answers, and it ends when it is told to.
#[test]
fn a_peer_that_comes_and_goes_holds_nobody_up() {
    if skipped("a_peer_that_comes_and_goes_holds_nobody_up", &["ip"]) {
        return;
    }
    let netns = Netns::create("router").unwrap();
    let directory = Directory::new();
    let socket = directory.path().join("m0.sock").display().to_string();
    let yaml = format!(
        "interfaces:\n  m0: {{ lcp: m0, addresses: [ 10.9.0.1/24 ] }}\n\
         ports:\n  m0: {{ memif: {{ socket: {socket}, role: server }} }}\n"
    );
    let mut router = Router::start(&netns, &yaml);
    assert!(until(patience(), || netns.ip("link set m0 up").is_ok()));
    let routes = |verb: &str| -> String {
        let line = |i| {
            format!(
                "route {verb} 20.{}.{}.0/24 via 10.9.0.2\n",
                i / 256,
                i % 256
            )
        };
        (0..10_000).map(line).collect()
    };
    let (over, changes) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let _over = SetOnDrop(&over);
        scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                let control = memif::Control::start().unwrap();
                let config = memif::Config::new("theirs", &socket, memif::Role::Client);
                let (interface, _queues) = control.add(config).unwrap();
                until(Duration::from_millis(500), || interface.status().up);
                changes.fetch_add(u32::from(interface.status().up), Ordering::Relaxed);
            }
        });
        for _ in 0..4 {
            netns.ip_batch(&routes("replace")).unwrap();
            for _ in 0..10 {
                router.show(&["hardware", "m0"]);
            }
            netns.ip_batch(&routes("delete")).unwrap();
        }
        netns.ip_batch(&routes("replace")).unwrap();
        let status = router.process.stop().expect("it ends");
        assert!(status.success(), "{status}");
    });
    let changes = changes.into_inner();
    assert!(changes > 10, "the peer came {changes} times only");
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
