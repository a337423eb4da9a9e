//! A peer that lies: on the socket, in the rings.

use std::os::fd::{AsFd, BorrowedFd};

use kernel::event::EventFd;
use tables::random::Random;

use super::peer::*;
use super::*;
use crate::memif::doorbell::{self, Doorbell};
use crate::memif::message::{AddRing, Message, SIZE};
use crate::memif::region::Region;
use crate::memif::ring::{COOKIE, NEXT, Slot};

#[test]
fn random_bytes_on_the_socket() {
    let (mut server, path) = server();
    let mut random = Random::new(7);
    for round in 0..300u32 {
        let peer = Peer::new(&path);
        if round % 2 == 0 {
            peer.init();
        }
        for _ in 0..3 {
            let mut bytes = [0u8; SIZE];
            bytes.iter_mut().for_each(|b| *b = random.bits() as u8);
            bytes[..2].copy_from_slice(&((random.bits() % 10) as u16).to_ne_bytes());
            let fd = EventFd::new().expect("eventfd");
            let _ = peer.channel.send(
                &bytes,
                random.bits().is_multiple_of(2).then_some(fd.as_fd()),
            );
        }
        drop(peer);
        until("its end", || !server.up());
    }
    still_serves(&mut server, &path);
}

#[test]
fn messages_out_of_turn_or_range() {
    let (mut server, path) = server();
    let (_region, memory) = Region::create(BYTES.into()).expect("memory");
    let signal = EventFd::new().expect("eventfd");
    let file = std::fs::File::open("/proc/self/exe").expect("a file");
    let size = u64::from(BYTES);
    let good = Message::AddRegion { index: 0, size };
    let ring = |f: fn(&mut AddRing)| {
        let mut ring = ring_message(true);
        f(&mut ring);
        Message::AddRing(ring)
    };
    let (m, s, f) = (
        Some(memory.as_fd()),
        Some(signal.as_fd()),
        Some(file.as_fd()),
    );
    let bad: Vec<(Message, Option<BorrowedFd<'_>>)> = vec![
        (Message::Connect("no rings".into()), None),
        (Message::AddRegion { index: 1, size }, m),
        (
            Message::AddRegion {
                index: 0,
                size: size + 1,
            },
            m,
        ),
        (
            Message::AddRegion {
                index: 0,
                size: u64::MAX,
            },
            m,
        ),
        (Message::AddRegion { index: 0, size: 0 }, m),
        (good.clone(), None),
        (good.clone(), f),
        (good.clone(), s),
        (ring(|_| ()), None),
        (ring(|_| ()), m),
        (ring(|r| r.index = 1), s),
        (ring(|r| r.index = u16::MAX), s),
        (ring(|r| r.private_header = 1), s),
        (Message::Connected("me".into()), None),
        (
            Message::Hello(crate::memif::message::Hello {
                name: String::new(),
                versions: (0, u16::MAX),
                max_region: 0,
                max_to_client: 0,
                max_to_server: 0,
                max_log2_ring: 0,
            }),
            None,
        ),
    ];
    for (message, fd) in bad {
        let peer = Peer::new(&path);
        peer.init();
        assert!(refused(peer.say(&message, fd)), "{message:?}");
    }
    // Rings that are found bad only when all is said.
    let late: [fn(&mut AddRing); 5] = [
        |r| r.region = 1,
        |r| r.offset = BYTES - 64,
        |r| r.offset = 8,
        |r| r.log2_size = 15,
        |r| r.log2_size = 255,
    ];
    for change in late {
        let peer = Peer::new(&path);
        peer.init();
        assert_eq!(peer.say(&good, m), Some(Message::Ack));
        assert_eq!(peer.say(&ring(change), s), Some(Message::Ack));
        assert!(refused(peer.say(&Message::Connect("x".into()), None)));
    }
    still_serves(&mut server, &path);
}

#[test]
fn a_full_event_counter_holds_nobody() {
    let (mut server, path) = server();
    let (region, memory) = Region::create(BYTES.into()).expect("memory");
    // One more than write(2) can: now poll(2) calls it ready, and still nobody can write.
    let full = doorbell::tests::blocking(u64::MAX - 1);
    Doorbell::new().expect("AIO").ring(&full);
    let (_peer, rings) = connect_with(&path, &region, &memory, &full);
    until("the link", || server.up());
    for at in 0..32 {
        rings[1].write(
            at,
            Slot {
                flags: 0,
                region: 0,
                length: 2048,
                offset: 8192 + u32::from(at) * 2048,
            },
        );
    }
    rings[1].head().store(32, Ordering::Release);
    rings[1].flags().store(0, Ordering::Release);
    let (done, end) = std::sync::mpsc::channel();
    thread::spawn(move || {
        for n in 0..32 {
            assert_eq!(server.send(0, &[packet(n, 60)]), 1);
        }
        drop(server);
        done.send(()).expect("a listener");
    });
    end.recv_timeout(patience(Duration::from_secs(10)))
        .expect("the worker hangs in the peer's event counter");
}

#[test]
fn a_chain_without_end_is_a_fault() {
    let (mut server, mut client) = connected(|c| c.log2_ring = 10);
    server.receive(0);
    client.receive(0);
    let link = client.queues[0].link().expect("a link");
    let end = link.tx.as_ref().expect("a ring");
    for at in 0..600 {
        end.ring.write(at, link.own(end, at, 0, NEXT));
    }
    end.ring.head().store(200, Ordering::Release);
    assert!(server.receive(0).is_empty());
    assert_eq!(server.counter(0, "peer-fault"), 0, "the rest may come yet");
    end.ring.head().store(600, Ordering::Release);
    assert!(server.receive(0).is_empty());
    assert_eq!(server.counter(0, "peer-fault"), 1);
}

#[test]
fn wild_counters_are_faults() {
    for (ring, value) in [(0, 65), (0, u16::MAX), (0, 0x8000), (1, 65), (1, u16::MAX)] {
        let (mut server, path) = server();
        let (peer, _region, rings, _signal) = connect(&path);
        until("the link", || server.up());
        rings[ring].head().store(value, Ordering::Release);
        let got = server.receive(0);
        server.send(0, &[packet(1, 60)]);
        assert!(got.is_empty());
        assert_eq!(server.counter(0, "peer-fault"), 1);
        until("the end", || {
            matches!(peer.hear(), None | Some(Message::Disconnect { .. }))
        });
        still_serves(&mut server, &path);
    }
}

#[test]
fn wild_descriptors_never_reach_outside() {
    let mut random = Random::new(99);
    for _ in 0..40 {
        let (mut server, path) = server();
        let (_peer, _region, rings, _signal) = connect(&path);
        until("the link", || server.up());
        server.receive(0);
        for _ in 0..50 {
            for ring in &rings {
                let start = ring.head().load(Ordering::Relaxed);
                for at in 0..8u16 {
                    // Mostly plausible, so that it gets far.
                    let odd = random.bits().is_multiple_of(40);
                    let slot = Slot {
                        flags: if random.bits().is_multiple_of(4) {
                            NEXT
                        } else {
                            0
                        },
                        region: if odd { random.bits() as u16 } else { 0 },
                        length: if odd {
                            random.bits() as u32
                        } else {
                            random.bits() as u32 % 2049
                        },
                        offset: if odd {
                            random.bits() as u32
                        } else {
                            8192 + random.bits() as u32 % 65536
                        },
                    };
                    ring.write(start.wrapping_add(at), slot);
                }
                let lag = start.wrapping_sub(ring.tail().load(Ordering::Relaxed));
                if lag <= 48 {
                    ring.head().store(start.wrapping_add(8), Ordering::Release);
                }
            }
            server.receive(0);
            server.send(0, &[packet(1, 60), packet(2, 1500), packet(3, 9000)]);
        }
        assert_eq!(missing(&server.bufs), 0);
    }
}

#[test]
fn the_clients_own_rings_may_be_scribbled_on() {
    let (mut server, mut client) = connected(|c| c.log2_ring = 5);
    server.receive(0);
    client.receive(0);
    // The server's mapping of the client's memory, as a hostile server has it.
    let link = server.queues[0].link().expect("a link");
    let mut random = Random::new(3);
    for round in 0..2000u32 {
        for end in [&link.rx, &link.tx].into_iter().flatten() {
            let slot = Slot {
                flags: random.bits() as u16 & NEXT,
                region: random.bits() as u16,
                length: random.bits() as u32 % 4096,
                offset: random.bits() as u32,
            };
            end.ring.write(random.bits() as u16, slot);
            end.ring
                .flags()
                .store(random.bits() as u16, Ordering::Relaxed);
            if round % 50 == 49 {
                end.ring
                    .tail()
                    .store(random.bits() as u16, Ordering::Release);
                end.ring
                    .head()
                    .store(random.bits() as u16, Ordering::Release);
            }
        }
        client.send(0, &[packet(round, 60), packet(round, 5000)]);
        client.receive(0);
    }
    drop(link);
    assert_eq!(missing(&client.bufs), 0);
    assert!(client.counter(0, "peer-fault") > 0);
    until("a new link", || client.up() && server.up());
}

#[test]
fn a_ring_without_the_cookie_is_none() {
    let (_server, path) = server();
    let peer = Peer::new(&path);
    peer.init();
    let (region, memory) = Region::create(BYTES.into()).expect("memory");
    let add = Message::AddRegion {
        index: 0,
        size: u64::from(BYTES),
    };
    assert_eq!(peer.say(&add, Some(memory.as_fd())), Some(Message::Ack));
    let signal = EventFd::new().expect("eventfd");
    let add = Message::AddRing(ring_message(true));
    assert_eq!(peer.say(&add, Some(signal.as_fd())), Some(Message::Ack));
    assert_ne!(COOKIE, 0);
    assert!(refused(peer.say(&Message::Connect("x".into()), None)));
    drop(region);
}
