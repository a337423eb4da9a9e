//! A client made by hand, to do what clients do not.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use kernel::event::EventFd;

use super::*;
use crate::memif::message::{AddRing, Init, MODE_ETHERNET, Message, SIZE, VERSION};
use crate::memif::region::Region;
use crate::memif::ring::{self, Ring};
use crate::memif::socket::Channel;

/// A client made by hand.
pub struct Peer {
    pub channel: Channel,
}

pub const LOG2: u8 = 6;
pub const BYTES: u32 = 1 << 20;

impl Peer {
    pub fn new(path: &str) -> Self {
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
    pub fn hear(&self) -> Option<Message> {
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

    pub fn say(&self, message: &Message, fd: Option<BorrowedFd<'_>>) -> Option<Message> {
        let _ = self.channel.send(&message.encode(), fd);
        self.hear()
    }

    pub fn init(&self) {
        assert_eq!(self.say(&Message::Init(init()), None), Some(Message::Ack));
    }
}

pub fn init() -> Init {
    Init {
        version: VERSION,
        id: 0,
        mode: MODE_ETHERNET,
        secret: [0; 24],
        name: "evil".into(),
    }
}

pub fn refused(answer: Option<Message>) -> bool {
    matches!(answer, None | Some(Message::Disconnect { .. }))
}

/// Offsets of the hand-made client's rings: towards the server, back.
pub const RINGS: [u32; 2] = [0, 4096];

pub fn ring_message(to_server: bool) -> AddRing {
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
pub fn connect(path: &str) -> (Peer, Region, [Ring; 2], EventFd) {
    let (region, memory) = Region::create(BYTES.into()).expect("memory");
    let signal = EventFd::new().expect("eventfd");
    let (peer, rings) = connect_with(path, &region, &memory, &signal);
    (peer, region, rings, signal)
}

/// Connects with this memory and event counter.
pub fn connect_with(
    path: &str,
    region: &Region,
    memory: &OwnedFd,
    signal: &impl AsFd,
) -> (Peer, [Ring; 2]) {
    let peer = Peer::new(path);
    peer.init();
    let size = u64::from(BYTES);
    assert_eq!(
        peer.say(&Message::AddRegion { index: 0, size }, Some(memory.as_fd())),
        Some(Message::Ack)
    );
    for to_server in [true, false] {
        let message = Message::AddRing(ring_message(to_server));
        assert_eq!(peer.say(&message, Some(signal.as_fd())), Some(Message::Ack));
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

pub fn server() -> (End, Socket) {
    let path = path();
    (End::new(Config::new("victim", &path, Role::Server)), path)
}

/// The server still serves an honest client.
pub fn still_serves(server: &mut End, path: &str) {
    until("the liar's end", || !server.up());
    let mut client = End::new(Config::new("honest", path, Role::Client));
    until("an honest link", || server.up() && client.up());
    assert!(server.receive(0).is_empty());
    client.send(0, &[packet(9, 60)]);
    assert_eq!(server.receive(0), [packet(9, 60)]);
    assert_eq!(missing(&server.bufs), 0);
}

/// Connects up to where the server looks at the ring.
pub fn offer(path: &str, memory: &OwnedFd, size: u64) -> Peer {
    let peer = Peer::new(path);
    peer.init();
    let add = Message::AddRegion { index: 0, size };
    assert_eq!(peer.say(&add, Some(memory.as_fd())), Some(Message::Ack));
    let signal = EventFd::new().expect("eventfd");
    let ring = Message::AddRing(ring_message(true));
    assert_eq!(peer.say(&ring, Some(signal.as_fd())), Some(Message::Ack));
    peer
}
