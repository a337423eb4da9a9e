//! The firewall between real hosts: real TCP through policies, as they change.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};

use crate::harness::topology::{CONFIGURATION, HOST, HOST6};
use crate::harness::{Hosts, Netns, Router, patience, skipped};
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
fn connect(client: &Netns, address: impl Into<IpAddr>, port: u16) -> std::io::Result<TcpStream> {
    let to = SocketAddr::from((address.into(), port));
    client.inside(|| TcpStream::connect_timeout(&to, patience()))
}

/// A line there, and the same line back.
fn echo(client: &mut TcpStream, server: &mut TcpStream) {
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
