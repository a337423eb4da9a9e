//! What a memif peer writes to shared memory, while both sides use it: counters, descriptors, a
//! file that is cut short.
//!
//! The input is a script for the peer, see [`Peer::act`]. Its first byte says which side the peer
//! is and how long the rings are.
#![cfg_attr(fuzzing, no_main)]

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::{pread, pwrite};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept, bind,
    connect, listen, recvmsg, sendmsg, socket_with,
};

use graph::pool::{MAX_PACKET, STRIDE};
use graph::{Buffers, FRAME, Frame, Pool, Port};
use io::memif::message::{AddRing, Hello, Init, MODE_ETHERNET, Message, SIZE, VERSION};
use io::memif::{Config, Control, Interface, Queue, Role, SECRET};

/// Marks a ring.
const COOKIE: u32 = 0x03E3_1F20;
/// Where its counters and descriptors lie.
const HEAD: u64 = 6;
const TAIL: u64 = 64;
const DESCRIPTORS: u64 = 128;
/// Memory that the peer brings where it is the client, its rings in there and its buffers.
const BYTES: u64 = 64 << 10;
const RINGS: [u32; 2] = [0, 1024];
const BUFFERS: u32 = 2048;
const BUFFER: u32 = 1024;
/// Packet buffers of the side that is tested.
const POOL: u32 = 256;

/// Whatever the peer does: packets have a possible length, none is lost without being counted, no
/// buffer is lost, whoever breaks the rules is disconnected, and the next peer finds everything in
/// order.
pub fn check(script: &[u8]) {
    let mut script = Script(script);
    let first = script.byte();
    let role = match first & 1 {
        0 => Role::Server,
        _ => Role::Client,
    };
    let log2 = 1 + (first >> 1) % 5;
    let mut victim = Victim::new(role, log2);
    let mut peer = match role {
        Role::Server => Peer::client(&victim.name, log2),
        Role::Client => Peer::server(victim.listener.take().expect("a listener")),
    };
    until("the link", || victim.interface.status().up);
    peer.is_served(&mut victim);
    while !script.0.is_empty() {
        peer.act(&mut script, &mut victim);
    }
    if victim.counter("peer-fault") > 0 {
        until("the end of the link", || !victim.interface.status().up);
    }
    drop(peer);
    victim.finish();
}

/// The peer's script: bytes, zeros when they are used up.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    fn long(&mut self) -> u32 {
        u32::from(self.word()) | u32::from(self.word()) << 16
    }
}

/// Waits until `done`; what hangs fails after a while.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "waited in vain for {what}"
        );
        thread::yield_now();
    }
}

/// The side that is tested.
struct Victim {
    name: String,
    /// Where the peer listens, if it is the server.
    listener: Option<OwnedFd>,
    interface: Interface,
    queue: Queue,
    bufs: Buffers,
    /// Packets that it was given to send, and that the port took.
    given: u64,
}

impl Victim {
    fn new(role: Role, log2: u8) -> Self {
        static CONTROL: OnceLock<Control> = OnceLock::new();
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("rings-{}-{number}", std::process::id());
        let listener = (role == Role::Client).then(|| {
            let listener = unix();
            bind(&listener, &address(&name)).expect("an address");
            listen(&listener, 1).expect("listening");
            listener
        });
        let config = Config {
            log2_ring: log2,
            buffer_size: BUFFER,
            ..Config::new("victim", &format!("@{name}"), role)
        };
        let control = CONTROL.get_or_init(|| Control::start().expect("a thread"));
        let (interface, queues) = control.add(config).expect("an interface");
        Victim {
            name,
            listener,
            interface,
            queue: queues.into_iter().next().expect("a queue"),
            bufs: Buffers::new(Pool::new(POOL, STRIDE).expect("memory")),
            given: 0,
        }
    }

    fn counter(&self, name: &str) -> u64 {
        let counters = self.queue.counters();
        let found = counters.iter().find(|(n, _)| *n == name);
        found.expect("a counter").1
    }

    fn receive(&mut self) -> Vec<Vec<u8>> {
        let mut frame = Frame::default();
        self.queue.rx(&mut self.bufs, &mut frame);
        let take = |d| {
            let bytes = self.bufs.pool().to_vec(&d);
            self.bufs.free(d);
            assert!((1..=MAX_PACKET).contains(&bytes.len()), "{}", bytes.len());
            bytes
        };
        frame.drain().map(take).collect()
    }

    /// Sends packets of this length; returns how many the port took.
    fn send(&mut self, count: usize, len: usize) -> usize {
        let mut frame = Frame::default();
        let packet: Vec<u8> = (0..len).map(|i| i as u8).collect();
        for _ in 0..count.min(FRAME) {
            let Some(d) = self.bufs.copy_in(&packet) else {
                break;
            };
            frame.push(d).expect("room");
        }
        let took = frame.send(&mut self.queue, &mut self.bufs);
        self.queue.flush(&mut self.bufs);
        frame.drain().for_each(|d| self.bufs.free(d));
        self.given += took as u64;
        took
    }

    fn finish(mut self) {
        until("the end", || !self.interface.status().up);
        assert!(self.receive().is_empty(), "packets from nobody");
        let before = self.counter("tx-link-down");
        assert_eq!(self.send(1, 60), 1);
        assert_eq!(self.counter("tx-link-down"), before + 1);
        let dropped = self.counter("tx-link-down") + self.counter("tx-too-long");
        assert!(dropped <= self.given);
        let pool = self.bufs.pool();
        assert_eq!(pool.available() + self.bufs.cached() as u32, POOL);
    }
}

/// A ring of the peer's memory.
#[derive(Clone, Copy)]
struct Ring {
    base: u64,
    size: u16,
}

impl Ring {
    fn descriptor(&self, at: u16) -> u64 {
        self.base + DESCRIPTORS + 16 * u64::from(at & (self.size - 1))
    }
}

/// The other side, which does as it is told.
struct Peer {
    channel: OwnedFd,
    memory: OwnedFd,
    role: Role,
    /// What it sends by, and receives by.
    rings: [Ring; 2],
    /// Its counter of each.
    counters: [u16; 2],
}

impl Peer {
    /// A client, connected, with all its buffers on offer.
    fn client(name: &str, log2: u8) -> Self {
        let channel = unix();
        connect(&channel, &address(name)).expect("the server listens");
        let memory = memfd_create("rings", MemfdFlags::CLOEXEC).expect("memory");
        ftruncate(&memory, BYTES).expect("memory");
        let size = 1 << log2;
        let rings = RINGS.map(|base| Ring {
            base: base.into(),
            size,
        });
        let peer = Peer {
            channel,
            memory,
            role: Role::Client,
            rings,
            counters: [0, size],
        };
        for ring in rings {
            peer.write(ring.base, &COOKIE.to_ne_bytes());
        }
        for at in 0..size {
            let offset = BUFFERS + (32 + u32::from(at)) * BUFFER / 2;
            peer.describe(1, at, 0, BUFFER / 2, offset);
        }
        peer.publish(1);
        assert!(matches!(peer.hear().0, Message::Hello(_)));
        peer.say(Message::Init(Init {
            version: VERSION,
            id: 0,
            mode: MODE_ETHERNET,
            secret: [0; SECRET],
            name: "peer".into(),
        }));
        let region = Message::AddRegion {
            index: 0,
            size: BYTES,
        };
        peer.say_with(region, Some(&peer.memory));
        let signal = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("eventfd");
        for (to_server, offset) in [true, false].into_iter().zip(RINGS) {
            let ring = AddRing {
                to_server,
                index: 0,
                region: 0,
                offset,
                log2_size: log2,
                private_header: 0,
            };
            peer.say_with(Message::AddRing(ring), Some(&signal));
        }
        peer.say(Message::Connect("peer0".into()));
        for _ in 0..4 {
            assert_eq!(peer.hear().0, Message::Ack);
        }
        assert!(matches!(peer.hear().0, Message::Connected(_)));
        peer
    }

    /// A server, connected to the client that comes to this listener.
    fn server(listener: OwnedFd) -> Self {
        let channel = accept(&listener).expect("a client");
        let nothing = Ring { base: 0, size: 1 };
        let memory = memfd_create("none", MemfdFlags::CLOEXEC).expect("memory");
        let mut peer = Peer {
            channel,
            memory,
            role: Role::Server,
            rings: [nothing; 2],
            counters: [0; 2],
        };
        peer.say(Message::Hello(Hello {
            name: "peer".into(),
            versions: (VERSION, VERSION),
            max_region: 255,
            max_to_client: 0,
            max_to_server: 0,
            max_log2_ring: 14,
        }));
        loop {
            match peer.hear() {
                (Message::AddRegion { .. }, memory) => peer.memory = memory.expect("memory"),
                (Message::AddRing(ring), _) => {
                    peer.rings[usize::from(ring.to_server)] = Ring {
                        base: ring.offset.into(),
                        size: 1 << ring.log2_size,
                    };
                }
                (Message::Connect(_), _) => break,
                (message, _) => assert!(matches!(message, Message::Init(_)), "{message:?}"),
            }
            peer.say(Message::Ack);
        }
        peer.say(Message::Connected("peer0".into()));
        peer
    }

    fn say(&self, message: Message) {
        self.say_with(message, None);
    }

    fn say_with(&self, message: Message, fd: Option<&OwnedFd>) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let fds = fd.map(|fd| [fd.as_fd()]);
        if let Some(fds) = &fds {
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(fds)));
        }
        let bytes = message.encode();
        let sent = sendmsg(
            &self.channel,
            &[IoSlice::new(&bytes)],
            &mut ancillary,
            SendFlags::NOSIGNAL,
        );
        assert_eq!(sent, Ok(SIZE));
    }

    fn hear(&self) -> (Message, Option<OwnedFd>) {
        let mut bytes = [0; SIZE];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let into = &mut [IoSliceMut::new(&mut bytes)];
        let heard = recvmsg(&self.channel, into, &mut ancillary, RecvFlags::CMSG_CLOEXEC);
        let heard = heard.expect("a message").bytes;
        let fd = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        });
        (Message::decode(&bytes[..heard]).expect("a message"), fd)
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        assert_eq!(pwrite(&self.memory, bytes, at), Ok(bytes.len()));
    }

    fn read<const N: usize>(&self, at: u64) -> [u8; N] {
        let mut bytes = [0; N];
        let _ = pread(&self.memory, &mut bytes, at);
        bytes
    }

    /// Writes the descriptor at a counter's value, of region 0.
    fn describe(&self, ring: usize, at: u16, flags: u16, length: u32, offset: u32) {
        let mut bytes = [0; 12];
        bytes[..2].copy_from_slice(&flags.to_ne_bytes());
        bytes[4..8].copy_from_slice(&length.to_ne_bytes());
        bytes[8..].copy_from_slice(&offset.to_ne_bytes());
        self.write(self.rings[ring].descriptor(at), &bytes);
    }

    /// Length and offset in a descriptor.
    fn described(&self, ring: usize, at: u16) -> (u32, u32) {
        let bytes: [u8; 8] = self.read(self.rings[ring].descriptor(at) + 4);
        let number = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
        (number(0), number(4))
    }

    /// Shows the other side its counter: of what it sent, or of the buffers it offers and of what
    /// it took.
    fn publish(&self, ring: usize) {
        let place = match self.role {
            Role::Client => HEAD,
            Role::Server => TAIL,
        };
        let counter = self.counters[ring].to_ne_bytes();
        self.write(self.rings[ring].base + place, &counter);
    }

    /// Sends a part of a packet as it should.
    fn deliver(&mut self, flags: u16, length: u32) {
        let at = self.counters[0];
        let offset = match self.role {
            Role::Client => BUFFERS + u32::from(at % self.rings[0].size) * BUFFER / 2,
            Role::Server => self.described(0, at).1,
        };
        self.describe(0, at, flags, length, offset);
        self.counters[0] = at.wrapping_add(1);
        self.publish(0);
    }

    /// A packet arrives as it was sent, in both directions.
    fn is_served(&mut self, victim: &mut Victim) {
        assert!(victim.receive().is_empty(), "there are no packets yet");
        let at = match self.role {
            Role::Client => BUFFERS,
            Role::Server => self.described(0, 0).1,
        };
        let packet: Vec<u8> = (0..60).map(|i| 200 - i).collect();
        self.write(at.into(), &packet);
        self.deliver(0, 60);
        assert_eq!(victim.receive(), [packet]);
        assert_eq!(victim.send(1, 60), 1);
        let (length, offset) = self.described(1, 0);
        assert_eq!(length, 60);
        let received: [u8; 60] = self.read(offset.into());
        assert!(
            received
                .iter()
                .enumerate()
                .all(|(i, &byte)| byte == i as u8)
        );
        self.counters[1] = self.counters[1].wrapping_add(1);
        self.publish(1);
    }

    /// Does what the script says next, or lets the other side do something.
    fn act(&mut self, script: &mut Script<'_>, victim: &mut Victim) {
        let action = script.byte();
        let ring = usize::from(action >> 7);
        match action & 0x7f {
            // Any two bytes of the ring's head.
            0 => {
                let place = u64::from(script.byte()) % DESCRIPTORS;
                let value = script.word();
                self.write(self.rings[ring].base + place, &value.to_ne_bytes());
            }
            // Its counter, right or wrong.
            1 => {
                let by = i16::from(script.byte() as i8);
                self.counters[ring] = self.counters[ring].wrapping_add_signed(by);
                self.publish(ring);
            }
            // Any descriptor.
            2 => {
                let at = self.rings[ring].descriptor(script.byte().into());
                let bytes: [u8; 12] = std::array::from_fn(|_| script.byte());
                self.write(at, &bytes);
            }
            // A descriptor that may be good.
            3 => {
                let at = script.byte().into();
                let (flags, length) = (script.byte().into(), script.word().into());
                let offset = script.long();
                self.describe(ring, at, flags, length, offset);
            }
            // Packets, or parts of them.
            4 => {
                let flags = u16::from(script.byte());
                let length = script.word();
                self.deliver(flags, length.into());
            }
            // Any byte of all its memory.
            5 => {
                let (place, value) = (script.word(), script.byte());
                self.write(place.into(), &[value]);
            }
            6 => {
                let bytes = u64::from(script.word());
                ftruncate(&self.memory, bytes).expect("it is not sealed");
            }
            7 => {
                victim.receive();
            }
            8 => {
                let (count, len) = (script.byte(), usize::from(script.word()));
                victim.send(count.into(), 1 + len % MAX_PACKET);
            }
            9 => {
                victim.queue.arm();
                victim.queue.disarm();
            }
            _ => {}
        }
    }
}

fn unix() -> OwnedFd {
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    socket_with(family, kind, SocketFlags::CLOEXEC, None).expect("a socket")
}

fn address(name: &str) -> SocketAddrUnix {
    SocketAddrUnix::new_abstract_name(name.as_bytes()).expect("short enough")
}

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check(bytes));
