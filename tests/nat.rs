//! Address translation between real hosts: TCP, UDP and ICMP of the kernel's through it.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::firewall::{connect, echo};
use crate::harness::topology::{HOST, ROUTER};
use crate::harness::{Hosts, Netns, Router, patience, skipped};
use crate::tcp::exchange;

/// Those on the left are seen as the router on the right, whose port 8080 leads to the left host.
const NAT: &str = "nat:
  source:
    - { interface: r1, to: interface }
  destination:
    - { interface: r1, protocol: tcp, destination-port: 8080, to: 198.18.0.2, to-port: 5003 }
";

/// Hosts that speak, on taps, and a router that translates.
fn translated() -> (Hosts, Router) {
    let (hosts, router) = Hosts::on_taps([1500; 2]);
    for (i, host) in [&hosts.left, &hosts.right].into_iter().enumerate() {
        let (own, gateway) = (HOST[i], ROUTER[i]);
        let lines = format!("addr add {own}/24 dev h{i}\nroute add default via {gateway}\n");
        host.ip_batch(&lines).expect("an address and a route");
    }
    apply(&router, |text| text.to_owned() + NAT);
    (hosts, router)
}

/// Changes the configuration.
fn apply(router: &Router, change: impl FnOnce(&str) -> String) {
    let text = std::fs::read_to_string(router.file()).expect("it is there");
    std::fs::write(router.file(), change(&text)).expect("there is room");
    let file = router.file().display().to_string();
    router.ask(&["apply", "-c", &file]).expect("it is applied");
}

fn listen(host: &Netns, address: Ipv4Addr, port: u16) -> TcpListener {
    let to = (address, port);
    host.inside(|| TcpListener::bind(to).expect("a free port"))
}

fn udp(host: &Netns, address: Ipv4Addr, port: u16) -> UdpSocket {
    let socket = host.inside(|| UdpSocket::bind((address, port)).expect("a free port"));
    let timeout = socket.set_read_timeout(Some(patience()));
    timeout.expect("a timeout above zero");
    socket
}

fn patient(streams: [&TcpStream; 2]) {
    for stream in streams {
        let timeout = stream.set_read_timeout(Some(patience()));
        timeout.expect("a timeout above zero");
    }
}

#[test]
fn hosts_behind_the_router_are_seen_as_the_router() {
    let name = "hosts_behind_the_router_are_seen_as_the_router";
    if skipped(name, &["ip", "ping"]) {
        return;
    }
    let (hosts, router) = translated();
    are_seen_as_the_router(&hosts, &router);
}

/// All of it.
fn are_seen_as_the_router(hosts: &Hosts, router: &Router) {
    exchange(&hosts.right, HOST[1], &hosts.left, |_| {});
    // A server sees the router.
    let listener = listen(&hosts.right, HOST[1], 5002);
    let mut client = connect(&hosts.left, HOST[1], 5002).expect("it is let out");
    let (mut server, peer) = listener.accept().expect("it has come");
    patient([&client, &server]);
    assert_eq!(peer.ip(), IpAddr::from(ROUTER[1]));
    assert!((10_000..=32767).contains(&peer.port()), "{peer}");
    echo(&mut client, &mut server);
    // A port of the router leads inside, and the server there sees the client.
    let inside = listen(&hosts.left, HOST[0], 5003);
    let mut outer = connect(&hosts.right, ROUTER[1], 8080).expect("it is forwarded");
    let (mut inner, peer) = inside.accept().expect("it has come");
    patient([&outer, &inner]);
    assert_eq!(peer, outer.local_addr().expect("its address"));
    echo(&mut outer, &mut inner);
    // The host's own connections by the same address are its own.
    let mut own = connect(&hosts.router, HOST[1], 5002).expect("the host is reachable");
    let (mut far, peer) = listener.accept().expect("it has come");
    patient([&own, &far]);
    assert_eq!(peer, own.local_addr().expect("its address"));
    echo(&mut own, &mut far);
    // Echoes, datagrams, and errors about them.
    let right = HOST[1].to_string();
    let ping = ["ping", "-n", "-c", "3", "-i", "0.2", "-W", "2", &right];
    hosts.left.exec(&ping).expect("echoes come back");
    let (near, far) = (
        udp(&hosts.left, HOST[0], 5004),
        udp(&hosts.right, HOST[1], 5005),
    );
    near.send_to(b"there", (HOST[1], 5005)).expect("a route");
    let mut bytes = [0; 8];
    let (_, from) = far.recv_from(&mut bytes).expect("it comes");
    assert_eq!(from.ip(), IpAddr::from(ROUTER[1]));
    far.send_to(b"back", from).expect("a route");
    let (_, from) = near.recv_from(&mut bytes).expect("it comes");
    assert_eq!(from, SocketAddr::from((HOST[1], 5005)));
    near.connect((HOST[1], 5006)).expect("a route");
    near.send(b"nobody").expect("a route");
    let refused = near.recv(&mut bytes).expect_err("nobody is there");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "{refused}");
    // What is shown.
    let shown = router.show(&["nat"]);
    assert!(shown["source"][0]["flows"].as_u64() >= Some(5), "{shown}");
    assert_eq!(shown["destination"][0]["flows"], 1, "{shown}");
    let flows = router.show(&["flows", "destination-port", "5003"]);
    let flow = &flows["flows"][0];
    assert_eq!(flow["outside_destination"], ROUTER[1].to_string(), "{flow}");
    assert_eq!(flow["outside_destination_port"], 8080, "{flow}");
    let flows = router.show(&["flows", "destination-port", "5002"]);
    assert_eq!(flows["flows"][0]["outside_source"], ROUTER[1].to_string());
    // Without rules connections through them are over.
    apply(router, |text| text.replace(NAT, ""));
    let direct = connect(&hosts.left, HOST[1], 5002).expect("it is let out");
    let (_, peer) = listener.accept().expect("it has come");
    assert_eq!(peer, direct.local_addr().expect("its address"));
}

/// On network devices the kernel, too, has packets for the addresses that are translated.
#[test]
fn hosts_behind_network_devices_are_seen_as_the_router() {
    let name = "hosts_behind_network_devices_are_seen_as_the_router";
    if skipped(name, &["ip", "ethtool", "ping"]) {
        return;
    }
    let hosts = Hosts::new(1500, true);
    // What comes in by another device than its answer would leave by is dropped.
    let strict = || {
        ["all", "default", "r0", "r1"].iter().try_for_each(|of| {
            std::fs::write(format!("/proc/sys/net/ipv4/conf/{of}/rp_filter"), "1")
        })
    };
    hosts.router.inside(strict).expect("a setting");
    let router = Router::start(
        &hosts.router,
        &format!("interfaces: {{ r0: {{}}, r1: {{}} }}\n{NAT}"),
    );
    let taps = || {
        hosts
            .router
            .ip("-br link")
            .unwrap_or_default()
            .matches("punt")
            .count()
    };
    assert_eq!(taps(), 2);
    // The host's own servers, on ports that are translated, and on others.
    for port in [2222, 12_345, 8081] {
        let listener = listen(&hosts.router, ROUTER[1], port);
        let mut client = connect(&hosts.right, ROUTER[1], port).expect("the host is reachable");
        let (mut server, peer) = listener.accept().expect("it has come");
        patient([&client, &server]);
        assert_eq!(peer, client.local_addr().expect("its address"));
        echo(&mut client, &mut server);
        let (own, far) = (
            udp(&hosts.router, ROUTER[1], port),
            udp(&hosts.right, HOST[1], 5007),
        );
        far.send_to(b"there", (ROUTER[1], port)).expect("a route");
        let mut bytes = [0; 8];
        let (_, from) = own.recv_from(&mut bytes).expect("it comes");
        own.send_to(b"back", from).expect("a route");
        let (_, from) = far.recv_from(&mut bytes).expect("it comes");
        assert_eq!(from, SocketAddr::from((ROUTER[1], port)));
        // Nobody is there: the host says so.
        drop(own);
        far.connect((ROUTER[1], port)).expect("a route");
        far.send(b"nobody").expect("a route");
        let refused = far.recv(&mut bytes).expect_err("nobody is there");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "{refused}");
    }
    // Some identifier is in the range, another is not; what is long comes in fragments.
    let own = ROUTER[1].to_string();
    for (identifier, size) in [("20000", "56"), ("40000", "56"), ("20000", "4000")] {
        let ping = [
            "ping", "-n", "-c", "2", "-i", "0.2", "-W", "2", "-e", identifier, "-s", size, &own,
        ];
        hosts.right.exec(&ping).expect("the host answers");
    }
    are_seen_as_the_router(&hosts, &router);
    assert_eq!(taps(), 0, "nothing is translated");
}

/// Connections at once.
const CONNECTIONS: usize = 10_000;

/// A process of its own, which may have so many open files: answers each message with itself, and
/// the port that it has come from.
const SERVER: &str = r#"
import resource, selectors, socket, sys
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
listener = socket.create_server((sys.argv[1], 5002), backlog=1024)
selector = selectors.DefaultSelector()
selector.register(listener, selectors.EVENT_READ)
print("ready", flush=True)
while True:
    for key, _ in selector.select():
        if key.fileobj is listener:
            selector.register(listener.accept()[0], selectors.EVENT_READ)
            continue
        message = key.fileobj.recv(8)
        if message:
            key.fileobj.sendall(message + key.fileobj.getpeername()[1].to_bytes(2, "big"))
        else:
            selector.unregister(key.fileobj)
            key.fileobj.close()
"#;

#[test]
fn ten_thousand_connections_to_one_server_share_an_address() {
    let name = "ten_thousand_connections_to_one_server_share_an_address";
    if skipped(name, &["ip", "python3"]) {
        return;
    }
    let before = getrlimit(Resource::Nofile);
    let least = CONNECTIONS as u64 + 1000;
    if before.maximum.is_some_and(|most| most < least) {
        println!(
            "SKIP {name}: a process may have no more than {:?} files",
            before.maximum
        );
        return;
    }
    let all = Rlimit {
        current: before.maximum,
        ..before
    };
    setrlimit(Resource::Nofile, all).expect("it is allowed");
    let (hosts, router) = translated();
    let address = HOST[1].to_string();
    let spawned = hosts.right.inside(|| {
        let mut python = Command::new("python3");
        python.args(["-c", SERVER, &address]).stdout(Stdio::piped());
        python.spawn()
    });
    let mut server = spawned.expect("python");
    let mut ready = [0; 6];
    let output = server.stdout.as_mut().expect("it is a pipe");
    output.read_exact(&mut ready).expect("it listens");
    let mut clients = Vec::new();
    for at in 0..CONNECTIONS {
        let client = connect(&hosts.left, HOST[1], 5002);
        let client = client.unwrap_or_else(|e| panic!("connection {at}: {e}"));
        let timeout = client.set_read_timeout(Some(patience()));
        timeout.expect("a timeout above zero");
        clients.push(client);
    }
    let established = ["flows", "destination-port", "5002", "state", "established"];
    let matching = router.show(&established)["matching"].clone();
    assert_eq!(matching, CONNECTIONS);
    for (at, client) in clients.iter_mut().enumerate() {
        let sent = client.write_all(&at.to_be_bytes());
        sent.expect("the connection lives");
    }
    let mut ports = BTreeSet::new();
    for (at, client) in clients.iter_mut().enumerate() {
        let mut answer = [0; 10];
        client.read_exact(&mut answer).expect("it comes back");
        let [number @ .., high, low] = answer;
        assert_eq!(usize::from_be_bytes(number), at);
        let port = u16::from_be_bytes([high, low]);
        assert!(ports.insert(port), "port {port} is there twice");
    }
    server.kill().expect("it runs");
    server.wait().expect("it has ended");
}
