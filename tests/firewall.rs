//! The firewall between real hosts: real TCP through policies, as they change.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::topology::{CONFIGURATION, HOST, HOST6};
use crate::harness::{Hosts, Netns, Router, patience, skipped, until};
use crate::tcp::exchange;

/// The left hosts may begin connections, the right ones may not, and hear so.
const POLICIES: &str = "interfaces:
  r0: {}
  r1: { firewall: { in: from-outside } }
policies:
  from-outside:
    default: reject
    rules:
      - { action: accept, state: [ established, related ] }
      - { action: drop, state: invalid }
      - { action: accept, protocol: tcp, destination-port: 5002 }
";

/// A connection from a host to a port of another.
pub fn connect(
    client: &Netns,
    address: impl Into<IpAddr>,
    port: u16,
) -> std::io::Result<TcpStream> {
    let to = SocketAddr::from((address.into(), port));
    client.inside(|| TcpStream::connect_timeout(&to, patience()))
}

/// A line there, and the same line back.
pub fn echo(client: &mut TcpStream, server: &mut TcpStream) {
    let mut line = [0; 6];
    client.write_all(b"there\n").expect("the connection lives");
    server
        .read_exact(&mut line)
        .expect("the line comes in time");
    server.write_all(&line).expect("the connection lives");
    client
        .read_exact(&mut line)
        .expect("the line comes back in time");
    assert_eq!(&line, b"there\n");
}

#[test]
fn policies_let_answers_pass_and_change_under_connections() {
    let name = "policies_let_answers_pass_and_change_under_connections";
    if skipped(name, &["ip", "ethtool", "ping"]) {
        return;
    }
    let hosts = Hosts::new(1500, true);
    hosts.speak_ip6();
    let router = Router::start(&hosts.router, POLICIES);
    exchange(&hosts.right, HOST[1], &hosts.left, |_| {});
    exchange(&hosts.right, HOST6[1], &hosts.left, |_| {});
    let left = IpAddr::from(HOST[0]);
    let refused = |address: IpAddr| {
        let error = connect(&hosts.right, address, 5001).expect_err("a policy rejects it");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
    };
    refused(left);
    refused(HOST6[0].into());
    let pings = |from: &Netns, to: IpAddr| {
        let to = to.to_string();
        let answered = || {
            from.exec(&["ping", "-n", "-c", "1", "-W", "1", &to])
                .is_ok()
        };
        // The first may be lost while a neighbor is asked for.
        answered() || answered()
    };
    assert!(pings(&hosts.left, HOST[1].into()), "there and back");
    assert!(!pings(&hosts.right, left), "nobody may begin there");
    // The router's own addresses are the kernel's to guard.
    let listener = hosts
        .left
        .inside(|| TcpListener::bind((left, 5002)).expect("a free port"));
    let mut client = connect(&hosts.right, left, 5002).expect("a rule accepts it");
    let (mut server, _) = listener.accept().expect("it has come");
    for stream in [&client, &server] {
        stream
            .set_read_timeout(Some(patience()))
            .expect("a timeout above zero");
    }
    echo(&mut client, &mut server);
    // The connection goes on while policies come, and are gone.
    let apply = |text: &str| {
        std::fs::write(router.file(), text).expect("there is room");
        let file = router.file().display().to_string();
        router.ask(&["apply", "-c", &file]).expect("it is applied");
    };
    apply(&POLICIES.replace("default: reject", "default: drop"));
    echo(&mut client, &mut server);
    let shown = router.show(&["policy", "from-outside"]);
    assert_eq!(shown["policies"][0]["default"], "drop", "{shown}");
    assert!(shown["policies"][0]["rules"][0]["hits"].as_u64() > Some(0));
    apply(CONFIGURATION);
    echo(&mut client, &mut server);
    assert!(pings(&hosts.right, left), "there is no policy anymore");
}

/// The flows to port 5002, once there are so many.
fn flows(router: &Router, count: usize) -> Value {
    let mut shown = Value::Null;
    let there = until(patience(), || {
        shown = router.show(&["flows", "destination-port", "5002"]);
        shown["matching"] == count
    });
    assert!(there, "{shown}");
    assert_eq!(shown["flows"].as_array().map(Vec::len), Some(count));
    shown["flows"].clone()
}

#[test]
fn flows_are_shown_and_one_that_is_cleared_is_refused() {
    let name = "flows_are_shown_and_one_that_is_cleared_is_refused";
    if skipped(name, &["ip", "ethtool"]) {
        return;
    }
    let hosts = Hosts::new(1500, true);
    let router = Router::start(&hosts.router, POLICIES);
    let [left, right] = HOST.map(IpAddr::from);
    let (here, there) = ((left, 5002), (right, 5002));
    let listener = hosts
        .right
        .inside(|| TcpListener::bind(there).expect("a free port"));
    let mut client = connect(&hosts.left, right, 5002).expect("who is inside may begin");
    let (mut server, _) = listener.accept().expect("it has come");
    let [at_left, at_right] =
        [(&hosts.left, here), (&hosts.right, there)].map(|(netns, address)| {
            let socket = netns.inside(|| UdpSocket::bind(address).expect("a free port"));
            let timeout = socket.set_read_timeout(Some(patience()));
            timeout.expect("a timeout above zero");
            socket
        });
    for stream in [&client, &server] {
        let timeout = stream.set_read_timeout(Some(patience()));
        timeout.expect("a timeout above zero");
    }
    echo(&mut client, &mut server);
    at_left.send_to(b"there", there).expect("a route");
    let mut bytes = [0; 8];
    assert_eq!(at_right.recv(&mut bytes).expect("it comes"), 5);
    let shown = flows(&router, 2);
    let of = |protocol: u8| {
        let mut rows = shown.as_array().expect("rows").iter();
        rows.find(|row| row["protocol"] == protocol).expect("a row")
    };
    let (tcp, udp) = (of(6), of(17));
    assert_eq!(
        (&tcp["state"], &udp["state"]),
        (&json!("established"), &json!("udp"))
    );
    assert_eq!(tcp["source"], left.to_string());
    assert_eq!(
        tcp["source_port"],
        client.local_addr().expect("its address").port()
    );
    assert_eq!(
        (&tcp["destination"], &tcp["destination_port"]),
        (&json!(right.to_string()), &json!(5002))
    );
    assert_eq!(
        (&tcp["input"], &tcp["output"]),
        (&json!("r0"), &json!("r1"))
    );
    assert_eq!(
        (&udp["packets"], &udp["bytes"], &udp["reply_packets"]),
        (&json!(1), &json!(33), &json!(0))
    );
    assert!(
        tcp["packets"].as_u64() >= Some(3) && tcp["reply_packets"].as_u64() >= Some(2),
        "{tcp}"
    );
    let top = router.show(&["flows", "top", "1"]);
    assert_eq!(
        (&top["flows"][0]["protocol"], &top["matching"]),
        (&json!(6), &json!(2))
    );
    let counted = router.show(&["flows", "summary"]);
    let sum = |key: &str| -> u64 {
        let workers = counted["workers"].as_array().expect("workers").iter();
        workers
            .map(|worker| worker[key].as_u64().expect("a number"))
            .sum()
    };
    assert_eq!(
        (sum("flows"), sum("begun"), sum("refused")),
        (2, 2, 0),
        "{counted}"
    );
    // Whoever only answers may not begin: without its flow the connection stands still.
    let removed = router.ask(&["clear", "flows", "protocol", "tcp"]);
    assert_eq!(removed.expect("it may"), "1 flow is removed\n");
    assert_eq!(flows(&router, 1)[0]["protocol"], 17);
    server.write_all(b"lost\n").expect("the socket takes it");
    let short = client.set_read_timeout(Some(Duration::from_millis(500)));
    short.expect("a timeout above zero");
    let lost = client.read(&mut bytes).expect_err("nothing comes");
    assert_eq!(lost.kind(), ErrorKind::WouldBlock, "{lost}");
    // The datagrams' flow is still there.
    at_right.send_to(b"back", here).expect("a route");
    assert_eq!(at_left.recv(&mut bytes).expect("it comes"), 4);
    assert_eq!(flows(&router, 1)[0]["state"], "udp-replied");
    let removed = router.ask(&["clear", "flows", "all"]);
    assert_eq!(removed.expect("it may"), "1 flow is removed\n");
    at_right.send_to(b"back", here).expect("a route");
    let short = at_left.set_read_timeout(Some(Duration::from_millis(500)));
    short.expect("a timeout above zero");
    let refused = at_left.recv(&mut bytes).expect_err("nothing comes");
    assert_eq!(refused.kind(), ErrorKind::WouldBlock, "{refused}");
    flows(&router, 0);
}
