//! Our server and our client.

use std::os::unix::net::{UnixListener, UnixStream};

use kernel::event::{poll, pollfd};

use super::*;
use crate::memif::Error;

/// Sends packets of every kind one way and compares what arrives.
fn all_arrive(from: &mut End, to: &mut End, queue: usize) {
    let lengths = [
        14, 15, 31, 32, 33, 60, 63, 64, 65, 128, 511, 513, 1514, 1791, 1792, 1793, 2048, 2049,
        4000, 9216,
    ];
    let mut sent: Vec<Vec<u8>> = Vec::new();
    let mut got: Vec<Vec<u8>> = Vec::new();
    for round in 0..200u32 {
        let batch: Vec<Vec<u8>> = lengths.iter().map(|&len| packet(round, len)).collect();
        let n = from.send(queue, &batch);
        sent.extend_from_slice(&batch[..n]);
        until("packets", || {
            got.extend(to.receive(queue));
            got.len() == sent.len()
        });
    }
    assert_eq!(got.len(), lengths.len() * 200);
    assert!(got == sent);
}

#[test]
fn packets_of_every_length_arrive_both_ways() {
    let (mut server, mut client) = connected(|_| ());
    // A client's buffers are on offer once its worker has looked at the link.
    assert!(client.receive(0).is_empty());
    all_arrive(&mut server, &mut client, 0);
    all_arrive(&mut client, &mut server, 0);
    for end in [&server, &client] {
        assert_eq!(missing(&end.bufs), 0);
        assert_eq!(end.counter(0, "peer-fault"), 0);
    }
}

#[test]
fn every_queue_has_its_own_rings() {
    let (mut server, mut client) = connected(|c| {
        c.queues = 4;
        c.log2_ring = 6;
    });
    assert_eq!(server.interface.status().rings, (4, 4));
    for queue in 0..4u8 {
        assert_eq!(client.send(queue.into(), &[vec![queue; 100]]), 1);
        assert_eq!(server.send(queue.into(), &[vec![queue + 10; 100]]), 1);
    }
    for queue in 0..4u8 {
        assert_eq!(server.receive(queue.into()), [vec![queue; 100]]);
        assert_eq!(client.receive(queue.into()), [vec![queue + 10; 100]]);
    }
}

#[test]
fn a_full_ring_takes_no_more_and_loses_nothing() {
    let (mut server, mut client) = connected(|c| c.log2_ring = 4);
    let batch: Vec<Vec<u8>> = (0..40).map(|i| packet(i, 64)).collect();
    // The rings are in use only when the other side has looked at its link.
    for end in [&mut server, &mut client] {
        assert!(end.receive(0).is_empty());
    }
    assert_eq!(client.send(0, &batch), 16);
    assert_eq!(server.send(0, &batch), 16);
    assert_eq!(server.receive(0), batch[..16]);
    assert_eq!(client.receive(0), batch[..16]);
    assert_eq!(client.send(0, &batch[16..]), 16);
    assert_eq!(server.receive(0), batch[16..32]);
    assert_eq!(missing(&server.bufs) + missing(&client.bufs), 0);
}

/// Not by time, for its client would not try again soon: what counts is that its socket appears.
#[test]
fn a_server_that_comes_late_is_found_at_once() {
    let (there, away) = (path(), path());
    let client = End::new(Config::new("c", &there, Role::Client));
    let other = End::new(Config::new("d", &away, Role::Client));
    for end in [&client, &other] {
        let failed = || end.interface.status().reason.starts_with("no server at");
        until("the first attempt", failed);
        end.interface.rest(Duration::from_secs(3600));
    }
    let server = End::new(Config::new("s", &there, Role::Server));
    until("the link", || client.up() && server.up());
    assert!(!other.up(), "nobody serves it");
}

/// The sender knows of few free descriptors, just as many as some of the packets take; meanwhile
/// all are free.
#[test]
fn long_packets_use_all_the_room_there_is() {
    let (mut server, mut client) = connected(|c| c.log2_ring = 6);
    for end in [&mut server, &mut client] {
        assert!(end.receive(0).is_empty());
    }
    let short: Vec<Vec<u8>> = (0..44).map(|i| packet(i, 60)).collect();
    // Five descriptors of 2048 bytes each.
    let long: Vec<Vec<u8>> = (0..12).map(|i| packet(i, 9014)).collect();
    let exchange = |from: &mut End, to: &mut End| {
        assert_eq!(from.send(0, &short), 44);
        assert_eq!(to.receive(0), short);
        assert_eq!(from.send(0, &long), 12, "60 of 64 descriptors");
        assert_eq!(to.receive(0), long);
        assert_eq!(missing(&from.bufs), 0);
    };
    exchange(&mut client, &mut server);
    exchange(&mut server, &mut client);
}

#[test]
fn a_packet_that_no_ring_can_hold_is_dropped() {
    let (mut server, mut client) = connected(|c| {
        c.log2_ring = 1;
        c.buffer_size = 1024;
    });
    assert!(server.receive(0).is_empty());
    assert_eq!(client.send(0, &[packet(1, 9000), packet(2, 60)]), 2);
    assert_eq!(client.counter(0, "tx-too-long"), 1);
    assert_eq!(server.receive(0), [packet(2, 60)]);
}

#[test]
fn packets_for_a_link_that_is_down_are_counted() {
    let mut server = End::new(Config::new("server", &path(), Role::Server));
    assert_eq!(server.send(0, &[packet(1, 60), packet(2, 3000)]), 2);
    assert!(server.receive(0).is_empty());
    assert_eq!(server.counter(0, "tx-link-down"), 2);
    assert_eq!(missing(&server.bufs), 0);
}

#[test]
fn both_roles_reconnect() {
    let path = path();
    let mut server = End::new(Config::new("s", &path, Role::Server));
    for round in 0..3 {
        let mut client = End::new(Config::new("c", &path, Role::Client));
        until("the client", || client.up() && server.up());
        assert!(server.receive(0).is_empty() && client.receive(0).is_empty());
        assert_eq!(client.send(0, &[packet(round, 60)]), 1);
        assert_eq!(server.receive(0), [packet(round, 60)]);
        drop(client);
        until("the end of the client", || !server.up());
    }
    drop(server);
    let client = End::new(Config::new("c", &path, Role::Client));
    for _ in 0..3 {
        let server = End::new(Config::new("s", &path, Role::Server));
        until("the server", || client.up() && server.up());
        drop(server);
        until("the end of the server", || !client.up());
    }
}

#[test]
fn a_sleeping_worker_is_woken_by_a_packet_and_by_the_link() {
    let (mut server, mut client) = connected(|_| ());
    assert!(server.receive(0).is_empty() && client.receive(0).is_empty());
    for (from, to) in [(0, 1), (1, 0), (0, 1)] {
        let ends = [&mut server, &mut client];
        assert!(ends[to].queues[0].arm());
        let queue = &mut ends[to].queues[0];
        queue.disarm();
        assert!(queue.arm(), "nothing has come yet");
        let fd = queue.fd().expect("a descriptor");
        let mut wait = [pollfd(&fd, libc::POLLIN)];
        assert!(!poll(&mut wait, Some(Duration::ZERO)), "woken for nothing");
        assert_eq!(ends[from].send(0, &[packet(5, 60)]), 1);
        assert!(poll(&mut wait, Some(Duration::from_secs(10))), "not woken");
        ends[to].queues[0].disarm();
        assert!(!ends[to].queues[0].arm(), "a packet waits");
        assert_eq!(ends[to].receive(0).len(), 1);
        ends[to].queues[0].disarm();
    }
    assert!(server.queues[0].arm());
    let fd = server.queues[0].fd().expect("a descriptor");
    drop(client);
    let mut wait = [pollfd(&fd, libc::POLLIN)];
    assert!(
        poll(&mut wait, Some(Duration::from_secs(10))),
        "not woken by the link"
    );
}

#[test]
fn a_socket_in_use_is_an_error_and_a_stale_one_is_replaced() {
    let path = path();
    let first = Control::start().expect("thread");
    let interface = first
        .add(Config::new("a", &path, Role::Server))
        .expect("interface");
    let second = Control::start().expect("thread");
    let again = second.add(Config::new("b", &path, Role::Server));
    assert!(matches!(again, Err(Error::InUse(_))), "{again:?}");
    let twice = first.add(Config::new("b", &path, Role::Server));
    assert!(matches!(twice, Err(Error::DuplicateId { .. })), "{twice:?}");
    drop(interface);
    assert!(!Path::new(&*path).exists());

    drop(UnixListener::bind(&path).expect("a listener that leaves its file"));
    // A process that another test starts shares the listener until it becomes its program.
    until("its end", || UnixStream::connect(&path).is_err());
    second
        .add(Config::new("b", &path, Role::Server))
        .expect("replaces a stale file");
    std::fs::write(&path, "a file").expect("write");
    let file = second.add(Config::new("c", &path, Role::Server));
    assert!(matches!(file, Err(Error::NotASocket(_))), "{file:?}");
    std::fs::remove_file(&path).expect("remove");
}

#[test]
fn interfaces_share_a_socket_and_secrets_are_checked() {
    let path = path();
    let server = Control::start().expect("thread");
    let config = |id: u32, role: Role, secret: &str| Config {
        id,
        secret: Some(secret.to_owned()),
        ..Config::new(&format!("{role}{id}"), &path, role)
    };
    let (one, _q1) = server.add(config(1, Role::Server, "x")).expect("one");
    let (two, _q2) = server.add(config(2, Role::Server, "y")).expect("two");
    let client = Control::start().expect("thread");
    let (c1, _q3) = client.add(config(1, Role::Client, "x")).expect("client");
    let (c2, _q4) = client
        .add(config(2, Role::Client, "wrong"))
        .expect("client");
    let (c3, _q5) = client.add(config(3, Role::Client, "x")).expect("client");
    until("one", || one.status().up && c1.status().up);
    assert_eq!(one.status().peer_interface, "client1");
    until("refusals", || {
        c2.status().reason.contains("secret") && c3.status().reason.contains("id")
    });
    assert!(!two.status().up);
}

#[test]
#[ignore = "a measurement"]
fn loopback_rate() {
    let (mut server, mut client) = connected(|_| ());
    let (ours, theirs) = rate::cycles(&mut server, &mut client);
    println!("receive and send, one thread: client {ours:.1}, server {theirs:.1} cycles a packet");
    let rate = rate::echo(&mut server, &mut client, Duration::from_secs(2));
    println!("memif echo by two threads: {:.1} Mpps", rate / 1e6);
}
