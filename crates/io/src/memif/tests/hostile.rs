//! A peer that lies: on the socket, in the rings, about its memory.

use super::*;
use crate::event;
use crate::memif::handshake;
use crate::memif::message::{AddRing, Init, MODE_ETHERNET, Message, SIZE, VERSION};
use crate::memif::region::Region;
use crate::memif::ring::{self, COOKIE, NEXT, Ring, Slot};
use crate::memif::socket::Channel;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// xorshift: random enough, and the same every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// A client made by hand.
struct Peer {
    channel: Channel,
}

const LOG2: u8 = 6;
const BYTES: u32 = 1 << 20;

impl Peer {
    fn new(path: &str) -> Self {
        let mut channel = None;
        until("the listener", || {
            channel = Channel::connect(path).ok();
            channel.is_some()
        });
        let peer = Self {
            channel: channel.expect("connected"),
        };
        assert!(matches!(peer.hear(), Some(Message::Hello(_))));
        peer
    }

    /// The next message; `None` when the server hung up.
    fn hear(&self) -> Option<Message> {
        let mut buffer = [0; SIZE + 1];
        let mut heard = None;
        until("an answer", || match self.channel.receive(&mut buffer) {
            Ok(None) => false,
            Ok(Some((0, _))) | Err(_) => true,
            Ok(Some((n, _))) => {
                heard =
                    Some(Message::decode(&buffer[..n]).expect("the server's messages are good"));
                true
            }
        });
        heard
    }

    fn say(&self, message: &Message, fd: Option<RawFd>) -> Option<Message> {
        let _ = self.channel.send(&message.encode(), fd);
        self.hear()
    }

    fn init(&self) {
        assert_eq!(self.say(&Message::Init(init()), None), Some(Message::Ack));
    }
}

fn init() -> Init {
    Init {
        version: VERSION,
        id: 0,
        mode: MODE_ETHERNET,
        secret: [0; 24],
        name: "evil".into(),
    }
}

fn refused(answer: Option<Message>) -> bool {
    matches!(answer, None | Some(Message::Disconnect { .. }))
}

/// Where the hand-made client's rings lie: towards the server, back.
const RINGS: [u32; 2] = [0, 4096];

fn ring_message(to_server: bool) -> AddRing {
    AddRing {
        to_server,
        index: 0,
        region: 0,
        offset: RINGS[usize::from(!to_server)],
        log2_size: LOG2,
        private_header: 0,
    }
}

/// Connects properly and returns the rings to play with.
fn connect(path: &str) -> (Peer, Region, [Ring; 2], OwnedFd) {
    let (region, memory) = Region::create(BYTES as usize).expect("memory");
    let signal = event::new().expect("eventfd");
    let (peer, rings) = connect_with(path, &region, &memory, &signal);
    (peer, region, rings, signal)
}

/// Connects with this memory and event counter.
fn connect_with(
    path: &str,
    region: &Region,
    memory: &OwnedFd,
    signal: &OwnedFd,
) -> (Peer, [Ring; 2]) {
    let peer = Peer::new(path);
    peer.init();
    let size = u64::from(BYTES);
    assert_eq!(
        peer.say(
            &Message::AddRegion { index: 0, size },
            Some(memory.as_raw_fd())
        ),
        Some(Message::Ack)
    );
    for to_server in [true, false] {
        let message = Message::AddRing(ring_message(to_server));
        assert_eq!(
            peer.say(&message, Some(signal.as_raw_fd())),
            Some(Message::Ack)
        );
    }
    let rings = RINGS.map(|offset| {
        let base = region.at(offset, ring::bytes(LOG2)).expect("within");
        // SAFETY: within the region, which callers keep beside the rings; page aligned.
        unsafe { Ring::new(base, LOG2) }
    });
    rings.iter().for_each(Ring::init);
    assert!(matches!(
        peer.say(&Message::Connect("evil0".into()), None),
        Some(Message::Connected(_))
    ));
    (peer, rings)
}

fn server() -> (End, String) {
    let path = path();
    (End::new(Config::new("victim", &path, Role::Server)), path)
}

/// The server still serves an honest client.
fn still_serves(server: &mut End, path: &str) {
    until("the liar's end", || !server.up());
    let mut client = End::new(Config::new("honest", path, Role::Client));
    until("an honest link", || server.up() && client.up());
    assert!(server.receive(0).is_empty());
    client.send(0, &[packet(9, 60)]);
    assert_eq!(server.receive(0), [packet(9, 60)]);
    assert_eq!(missing(&server.bufs), 0);
}

#[test]
fn random_bytes_on_the_socket() {
    let (mut server, path) = server();
    let mut random = Random(7);
    for round in 0..300u32 {
        let peer = Peer::new(&path);
        if round % 2 == 0 {
            peer.init();
        }
        for _ in 0..3 {
            let mut bytes = [0u8; SIZE];
            bytes.iter_mut().for_each(|b| *b = random.next() as u8);
            bytes[..2].copy_from_slice(&((random.next() % 10) as u16).to_ne_bytes());
            let fd = event::new().expect("eventfd");
            let _ = peer.channel.send(
                &bytes,
                random.next().is_multiple_of(2).then_some(fd.as_raw_fd()),
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
    let (_region, memory) = Region::create(BYTES as usize).expect("memory");
    let signal = event::new().expect("eventfd");
    let file = std::fs::File::open("/proc/self/exe").expect("a file");
    let size = u64::from(BYTES);
    let good = Message::AddRegion { index: 0, size };
    let ring = |f: fn(&mut AddRing)| {
        let mut ring = ring_message(true);
        f(&mut ring);
        Message::AddRing(ring)
    };
    let (m, s, f) = (
        Some(memory.as_raw_fd()),
        Some(signal.as_raw_fd()),
        Some(file.as_raw_fd()),
    );
    let bad: Vec<(Message, Option<RawFd>)> = vec![
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

/// Memory without a name, as `memfd_create` makes it with these flags; `None` where the kernel has no huge pages.
fn memory(bytes: u64, flags: libc::c_uint) -> Option<OwnedFd> {
    // SAFETY: the name is a zero-terminated string; the descriptor is ours.
    unsafe {
        let fd = libc::memfd_create(c"peer".as_ptr(), flags);
        if fd < 0 || libc::ftruncate(fd, bytes as i64) != 0 {
            return None;
        }
        Some(<OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(fd))
    }
}

fn empty(memory: &OwnedFd) {
    // SAFETY: a plain system call.
    assert_eq!(unsafe { libc::ftruncate(memory.as_raw_fd(), 0) }, 0);
}

/// Ends a connection by taking the memory away; the server is to say so and to live on.
fn take_away(flags: libc::c_uint, bytes: u64) {
    let memory = memory(bytes, flags).expect("memory");
    for idle in [false, true] {
        let (mut server, path) = server();
        let signal = event::new().expect("eventfd");
        // SAFETY: a plain system call.
        let sized = unsafe { libc::ftruncate(memory.as_raw_fd(), bytes as i64) };
        assert_eq!(sized, 0);
        let region = Region::map(&memory, bytes, &[]).expect("a mapping");
        let (peer, rings) = connect_with(&path, &region, &memory, &signal);
        until("the link", || server.up());
        rings[0].write(
            0,
            Slot {
                flags: 0,
                region: 0,
                length: 60,
                offset: 8192,
            },
        );
        rings[0].head().store(1, Ordering::Release);
        assert_eq!(server.receive(0).len(), 1);
        empty(&memory);
        if idle {
            // It looks before it lies down, and when it gets up.
            server.queues[0].arm();
            server.queues[0].disarm();
            assert!(server.receive(0).is_empty());
        } else {
            server.send(0, &[packet(1, 60)]);
        }
        server.receive(0);
        until("the end", || !server.up());
        assert_eq!(server.interface.status().reason, handshake::LOST);
        drop((peer, rings, region));
        still_serves(&mut server, &path);
    }
}

#[test]
fn memory_that_is_cut_short_ends_the_connection() {
    // It needs no seals: those that cannot be sealed are as good.
    take_away(0, u64::from(BYTES));
    take_away(libc::MFD_ALLOW_SEALING, u64::from(BYTES));
}

#[test]
fn memory_that_is_not_there_when_the_rings_are_looked_at() {
    let (mut server, path) = server();
    let memory = memory(u64::from(BYTES), 0).expect("memory");
    let peer = offer(&path, &memory, BYTES.into());
    empty(&memory);
    assert!(refused(peer.say(&Message::Connect("x".into()), None)));
    assert_eq!(server.interface.status().reason, handshake::LOST);
    still_serves(&mut server, &path);
}

/// Connects up to where the server looks at the ring.
fn offer(path: &str, memory: &OwnedFd, size: u64) -> Peer {
    let peer = Peer::new(path);
    peer.init();
    let add = Message::AddRegion { index: 0, size };
    assert_eq!(peer.say(&add, Some(memory.as_raw_fd())), Some(Message::Ack));
    let signal = event::new().expect("eventfd");
    let ring = Message::AddRing(ring_message(true));
    assert_eq!(
        peer.say(&ring, Some(signal.as_raw_fd())),
        Some(Message::Ack)
    );
    peer
}

#[test]
fn huge_pages_that_go_away_end_the_connection() {
    const HUGE: u64 = 2 << 20;
    let Some(memory) = memory(HUGE, libc::MFD_HUGETLB) else {
        println!("SKIP huge_pages_that_go_away_end_the_connection: the kernel has no huge pages");
        return;
    };
    let region = Region::map(&memory, HUGE, &[]).expect("a mapping");
    let first = region.at(0, 1).expect("within");
    // SAFETY: one byte within the region.
    unsafe { first.write_volatile(0) };
    if !region.is_lost() {
        drop((region, memory));
        return take_away(libc::MFD_HUGETLB, HUGE);
    }
    // None is free, so it has gone away already.
    let (mut server, path) = server();
    let peer = offer(&path, &memory, HUGE);
    assert!(refused(peer.say(&Message::Connect("x".into()), None)));
    assert_eq!(server.interface.status().reason, handshake::LOST);
    still_serves(&mut server, &path);
}

#[test]
fn more_memory_than_rings_need() {
    let (mut server, path) = server();
    let memory = memory(700 << 20, 0).expect("memory");
    let add = |index| Message::AddRegion {
        index,
        size: 700 << 20,
    };
    let peer = Peer::new(&path);
    peer.init();
    let fd = Some(memory.as_raw_fd());
    assert_eq!(peer.say(&add(0), fd), Some(Message::Ack));
    assert!(refused(peer.say(&add(1), fd)));
    still_serves(&mut server, &path);
}

#[test]
fn a_full_event_counter_holds_nobody() {
    let (mut server, path) = server();
    let (region, memory) = Region::create(BYTES as usize).expect("memory");
    // SAFETY: plain system calls; the descriptor is ours. It blocks who writes.
    let full = unsafe {
        let fd = libc::eventfd(0, 0);
        let most = u64::MAX - 1;
        assert_eq!(libc::write(fd, (&raw const most).cast(), 8), 8);
        <OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(fd)
    };
    // One more than write(2) can: now poll(2) calls it ready, and still nobody can write.
    crate::memif::doorbell::Doorbell::new()
        .expect("AIO")
        .ring(&full);
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
    end.recv_timeout(Duration::from_secs(10))
        .expect("the worker hangs in the peer's event counter");
}

#[test]
fn a_chain_without_end_is_a_fault() {
    let (mut server, mut client) = connected(|c| c.log2_ring = 10);
    server.receive(0);
    client.receive(0);
    let link = client.queues[0].link().expect("a link");
    let lane = link.tx.as_ref().expect("a ring");
    for at in 0..600 {
        lane.ring.write(at, link.own(lane, at, 0, NEXT));
    }
    lane.ring.head().store(200, Ordering::Release);
    assert!(server.receive(0).is_empty());
    assert_eq!(server.counter(0, "peer-fault"), 0, "the rest may come yet");
    lane.ring.head().store(600, Ordering::Release);
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
    let mut random = Random(99);
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
                    let odd = random.next().is_multiple_of(40);
                    let slot = Slot {
                        flags: if random.next().is_multiple_of(4) {
                            NEXT
                        } else {
                            0
                        },
                        region: if odd { random.next() as u16 } else { 0 },
                        length: if odd {
                            random.next() as u32
                        } else {
                            random.next() as u32 % 2049
                        },
                        offset: if odd {
                            random.next() as u32
                        } else {
                            8192 + random.next() as u32 % 65536
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
    let mut random = Random(3);
    for round in 0..2000u32 {
        for lane in [&link.rx, &link.tx].into_iter().flatten() {
            let slot = Slot {
                flags: random.next() as u16 & NEXT,
                region: random.next() as u16,
                length: random.next() as u32 % 4096,
                offset: random.next() as u32,
            };
            lane.ring.write(random.next() as u16, slot);
            lane.ring
                .flags()
                .store(random.next() as u16, Ordering::Relaxed);
            if round % 50 == 49 {
                lane.ring
                    .tail()
                    .store(random.next() as u16, Ordering::Release);
                lane.ring
                    .head()
                    .store(random.next() as u16, Ordering::Release);
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
    let (region, memory) = Region::create(BYTES as usize).expect("memory");
    let add = Message::AddRegion {
        index: 0,
        size: u64::from(BYTES),
    };
    assert_eq!(peer.say(&add, Some(memory.as_raw_fd())), Some(Message::Ack));
    let signal = event::new().expect("eventfd");
    let add = Message::AddRing(ring_message(true));
    assert_eq!(peer.say(&add, Some(signal.as_raw_fd())), Some(Message::Ack));
    assert_ne!(COOKIE, 0);
    assert!(refused(peer.say(&Message::Connect("x".into()), None)));
    drop(region);
}
