//! ZeroMQ's protocol over real sockets: what peers may do, and what ends their connection.

mod client;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use testbed::{patience, until};
use trex::zmtp::{Limits, Listener, Publisher, publisher, replier};

use client::{Client, LIMIT, greeting, ready, request};

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// A server that says what it was told, backwards.
fn server(limits: Limits) -> Listener {
    let backwards = |body: &[u8]| body.iter().rev().copied().collect();
    Listener::start(ANY, limits, replier(Arc::new(backwards))).expect("a port")
}

/// For who is not cut off by time.
fn patient() -> Limits {
    Limits {
        patience: Duration::from_secs(3600),
        idle: Duration::from_secs(3600),
        ..Limits::default()
    }
}

/// For who is cut off by time.
fn hasty() -> Limits {
    Limits {
        patience: Duration::from_secs(1),
        idle: Duration::from_secs(1),
        ..Limits::default()
    }
}

#[test]
fn requests_have_answers() {
    let server = server(Limits::default());
    for kind in ["REQ", "DEALER"] {
        let mut client = Client::greeted(server.address(), kind);
        assert_eq!(client.ask(b"ab"), b"ba");
        let long: Vec<u8> = (0..100_000u32).map(|i| i.to_le_bytes()[0]).collect();
        let back: Vec<u8> = long.iter().rev().copied().collect();
        assert_eq!(client.ask(&long), back);
        assert_eq!(client.ask(b""), b"");
    }
    // Who asked for others is told so again.
    let mut client = Client::greeted(server.address(), "DEALER");
    client.write(&[b"\x01\x02id", &request(b"xy")[..]].concat());
    assert_eq!(client.frame(), (1, b"id".to_vec()));
    assert_eq!(client.frame(), (1, Vec::new()));
    assert_eq!(client.frame(), (0, b"yx".to_vec()));
    client.write(b"\x04\x0a\x04PING\x00\x07abc");
    assert_eq!(client.frame(), (4, b"\x04PONGabc".to_vec()));
    assert_eq!(client.ask(b"ab"), b"ba");
}

#[test]
fn peers_of_another_kind_are_sent_away() {
    let server = server(patient());
    let mut old = greeting(b"NULL");
    old[10] = 2;
    let mut other = greeting(b"NULL");
    other[0] = 1;
    for greeting in [
        old,
        other,
        greeting(b"PLAIN"),
        b"GET / HTTP/1.1\r\n".repeat(4),
    ] {
        let mut client = Client::connect(server.address());
        client.write(&greeting);
        assert!(client.closes(), "{greeting:x?}");
    }
    let no_type = b"\x04\x06\x05READY".to_vec();
    let cut = b"\x04\x12\x05READY\x0bSocket-Type".to_vec();
    let beyond = b"\x04\x16\x05READY\x0bSocket-Type\xff\xff\xff\xff".to_vec();
    let message = request(b"{}");
    for first in [ready("SUB"), ready("PULL"), no_type, cut, beyond, message] {
        let mut client = Client::connect(server.address());
        client.write(&greeting(b"NULL"));
        client.write(&first);
        assert!(client.closes(), "{first:x?}");
    }
}

#[test]
fn what_is_announced_must_fit() {
    let limits = Limits {
        message: 1000,
        ..patient()
    };
    let server = server(limits);
    let mut fits = Client::greeted(server.address(), "REQ");
    assert_eq!(fits.ask(&[7; 1000]), [7; 1000]);
    let length = |length: u64| [&[1, 0, 2], &length.to_be_bytes()[..]].concat();
    let many = b"\x01\x01x".repeat(9);
    let sum = [b"\x01\xff".as_slice(), &[1; 255]].concat().repeat(4);
    for wrong in [
        length(1001),
        length(u64::MAX),
        length(1 << 62),
        // More frames than a request has, and more bytes by many frames.
        many,
        sum,
        // Two bodies; no empty frame; an envelope without a body.
        b"\x01\0\x01\x01a\0\x01b".to_vec(),
        b"\0\x01a".to_vec(),
        b"\0\0".to_vec(),
        // Flags that there are not, and a command in parts.
        b"\x08\0".to_vec(),
        b"\x05\0".to_vec(),
        // Commands that are too long, without a name, or a ping of too much.
        b"\x06\0\0\0\0\0\0\x04\x01".to_vec(),
        b"\x04\x01\x05".to_vec(),
        [b"\x04\x18\x04PING\0\0".as_slice(), &[0; 17]].concat(),
    ] {
        let mut client = Client::greeted(server.address(), "REQ");
        client.write(&wrong);
        assert!(client.closes(), "{wrong:x?}");
        // Others are not disturbed.
        assert_eq!(fits.ask(b"ab"), b"ba");
    }
}

#[test]
fn the_silent_and_the_slow_are_dropped() {
    let server = server(hasty());
    assert!(Client::connect(server.address()).closes());
    let greeted = Client::greeted(server.address(), "REQ");
    assert!(greeted.closes(), "idle");
    // One that always has another byte, but never a whole message.
    let mut slow = Client::greeted(server.address(), "REQ");
    slow.write(&request(&[0; 1000])[..20]);
    let dripping = slow.0.try_clone().expect("a descriptor");
    let dripping = std::thread::spawn(move || {
        let mut dripping = Client(dripping);
        until(patience(LIMIT), || {
            std::io::Write::write_all(&mut dripping.0, b"x").is_err()
        })
    });
    assert!(slow.closes());
    assert!(dripping.join().expect("no panic"));
}

/// Who asks and does not read holds a thread, but not for ever.
#[test]
fn who_does_not_read_is_dropped() {
    let limits = Limits {
        message: 1 << 24,
        ..hasty()
    };
    let server = server(limits);
    let mut client = Client::greeted(server.address(), "REQ");
    let large = request(&vec![1; 1 << 24]);
    let stop = until(patience(LIMIT), || {
        std::io::Write::write_all(&mut client.0, &large).is_err()
    });
    assert!(stop);
}

#[test]
fn there_are_so_many_connections() {
    let limits = Limits {
        connections: 2,
        ..patient()
    };
    let server = server(limits);
    let connect = || Client::greeted(server.address(), "REQ");
    let (first, mut second) = (connect(), connect());
    assert!(Client::connect(server.address()).closes());
    assert_eq!(second.ask(b"ab"), b"ba");
    drop(first);
    let again = until(patience(LIMIT), || {
        let mut client = Client::connect(server.address());
        client.write(&greeting(b"NULL"));
        std::io::Read::read(&mut client.0, &mut [0; 64]).is_ok_and(|read| read > 0)
    });
    assert!(again, "a place is free again");
}

#[test]
fn subscribers_are_woken() {
    let voice = Publisher::new(b"{}");
    let server = Listener::start(ANY, patient(), publisher(voice.clone())).expect("a port");
    let subscribe = |frames: &[u8]| {
        let mut client = Client::greeted(server.address(), "SUB");
        client.write(frames);
        client.write(b"\x04\x07\x04PING\0\0");
        // From here on the subscription counts.
        assert_eq!(client.frame(), (4, b"\x04PONG".to_vec()));
        client
    };
    let all = [
        b"\0\x01\x01".as_slice(),
        b"\x04\x0a\x09SUBSCRIBE",
        b"\0\x02\x01{",
    ];
    let mut all = all.map(subscribe);
    let none = [b"".as_slice(), b"\0\x02\x01x", b"\0\x01\x01\0\x01\0"].map(subscribe);
    for _ in 0..3 {
        voice.publish();
        for client in &mut all {
            assert_eq!(client.frame(), (0, b"{}".to_vec()));
        }
    }
    for mut client in none {
        client.write(b"\x04\x08\x04PING\0\0z");
        assert_eq!(client.frame(), (4, b"\x04PONGz".to_vec()), "nothing before");
    }
    let mut wrong = subscribe(b"\0\x01\x01");
    wrong.write(b"\0\x01x");
    assert!(wrong.closes());
    let [one, two, three] = all;
    drop(server);
    for client in [one, two, three] {
        assert!(client.closes(), "the server is gone");
    }
}
