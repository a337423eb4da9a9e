//! Admission: the clients that are let in, on how many queues, and the reasons given to the others.

use std::path::Path;

use super::peer::*;
use super::*;
use crate::memif::SECRET;
use crate::memif::message::{Init, Message};
use crate::memif::socket::{Channel, Listener};

fn queues(config: Config, queues: u16) -> Config {
    Config { queues, ..config }
}

#[test]
fn a_client_with_more_queues_is_served_on_those_we_have() {
    let path = path();
    let mut server = End::new(queues(Config::new("s", &path, Role::Server), 2));
    let mut client = End::new(queues(Config::new("c", &path, Role::Client), 4));
    until("the link", || server.up() && client.up());
    assert_eq!(server.interface.status().rings, (2, 2));
    assert_eq!(client.interface.status().rings, (2, 2));
    for queue in 0..2 {
        assert!(server.receive(queue).is_empty() && client.receive(queue).is_empty());
        assert_eq!(client.send(queue, &[packet(1, 60)]), 1);
        assert_eq!(server.receive(queue), [packet(1, 60)]);
        assert_eq!(server.send(queue, &[packet(2, 60)]), 1);
        assert_eq!(client.receive(queue), [packet(2, 60)]);
    }
}

#[test]
fn what_is_offered_suits_every_interface_of_the_socket() {
    let path = path();
    let server = Control::start().expect("thread");
    let interface = |id, queues, role: Role| Config {
        id,
        queues,
        ..Config::new(&format!("{role}{id}"), &path, role)
    };
    let (many, _q1) = server.add(interface(1, 4, Role::Server)).expect("many");
    let (few, _q2) = server.add(interface(2, 2, Role::Server)).expect("few");
    let client = Control::start().expect("thread");
    let (_c1, _q3) = client.add(interface(1, 4, Role::Client)).expect("client");
    let (_c2, _q4) = client.add(interface(2, 4, Role::Client)).expect("client");
    until("both", || many.status().up && few.status().up);
    assert_eq!(many.status().rings, (2, 2));
    assert_eq!(few.status().rings, (2, 2));
}

#[test]
fn who_is_refused_is_named_with_the_reason() {
    let path = path();
    let secret = Some("sesame".to_owned());
    let server = End::new(Config {
        secret,
        ..Config::new("s", &path, Role::Server)
    });
    let after = |message: Message| {
        assert!(refused(Peer::new(&path).say(&message, None)));
        server.interface.status().reason
    };
    let wrong_id = Init { id: 9, ..init() };
    assert_eq!(
        after(Message::Init(wrong_id)),
        "evil: no interface has id 9"
    );
    assert_eq!(after(Message::Init(init())), "evil: wrong secret");
    assert_eq!(after(Message::Ack), "a client: unexpected message");
    let client = End::new(Config {
        secret: Some("sesame".to_owned()),
        ..Config::new("c", &path, Role::Client)
    });
    until("the link", || server.up() && client.up());
    assert_eq!(server.interface.status().reason, "");
    assert_eq!(after(Message::Init(init())), "evil: already connected");
    assert!(server.up());
}

#[test]
fn a_secret_may_fill_its_field_and_counts_to_its_end() {
    let path = path();
    let end = |role, last: &str| {
        End::new(Config {
            secret: Some("x".repeat(SECRET - 1) + last),
            ..Config::new("m", &path, role)
        })
    };
    let server = end(Role::Server, "a");
    let other = end(Role::Client, "b");
    until("the refusal", || {
        other.interface.status().reason.contains("wrong secret")
    });
    drop(other);
    let client = end(Role::Client, "a");
    until("the link", || server.up() && client.up());
}

#[test]
fn silent_clients_keep_nobody_out() {
    let (server, path) = server();
    // Each could keep a place for the 5 s that a handshake may take, and there are not 100 places.
    let start = Instant::now();
    let silent: Vec<Peer> = (0..100).map(|_| Peer::new(&path)).collect();
    let client = End::new(Config::new("c", &path, Role::Client));
    until("the link", || server.up() && client.up());
    assert!(start.elapsed() < Duration::from_secs(10), "kept waiting");
    drop(silent);
}

#[test]
fn a_path_that_somebody_took_over_is_left_to_him() {
    let path = path();
    let first = Listener::bind(&path).expect("a listener");
    std::fs::remove_file(&path).expect("remove");
    let second = Listener::bind(&path).expect("another");
    drop(first);
    assert!(Channel::connect(&path).is_ok(), "its file is gone");
    drop(second);
    assert!(!Path::new(&*path).exists());
}
