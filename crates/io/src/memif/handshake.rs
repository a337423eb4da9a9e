//! Setting up a connection: who says what, and what becomes of it.
//!
//! ```text
//! server: HELLO                             client: INIT, ADD_REGION.., ADD_RING.., CONNECT
//!         ACK to each, then CONNECTED
//! ```

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kernel::event::EventFd;

use super::link::{Link, RingEnd};
use super::message::{self, AddRing, Hello, Init, MODE_ETHERNET, Message, SIZE, VERSION};
use super::region::{Region, is_eventfd};
use super::ring::{self, Ring};
use super::socket::Channel;
use super::{Config, Role, lost};

/// A handshake that takes longer is given up: both ends are on one machine, where it takes
/// milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);
/// Regions that a client may add. Ours adds one; a limit, since all connections share the places
/// that [`super::lost`] watches.
const MAX_REGIONS: u16 = 64;
/// Our name for ourselves.
const PROGRAM: &str = concat!("parshall ", env!("CARGO_PKG_VERSION"));

/// Reason why a session ends, in words for the peer and the operator.
pub type Reason = String;
/// The peer said nothing more before [`PATIENCE`] was over.
pub const TOO_SLOW: &str = "handshake took too long";
/// The peer said what it may not say now.
pub const UNEXPECTED: &str = "unexpected message";
/// The peer went away without a word.
pub const CLOSED: &str = "closed the connection";

/// A connection from its first message on.
#[derive(Debug)]
pub struct Session {
    channel: Channel,
    role: Role,
    /// Time by which the handshake has to be done.
    pub deadline: Instant,
    /// The client's messages that wait for an acknowledgement of the one before.
    outbox: VecDeque<(Message, Option<OwnedFd>)>,
    regions: Vec<Region>,
    /// Rings by direction and index: towards the server, towards the client.
    rings: [Vec<Option<Offer>>; 2],
    /// The peer's program.
    pub peer: String,
    /// The peer's name for the interface.
    pub peer_interface: String,
}

/// A ring before it is used.
#[derive(Debug)]
struct Offer {
    ring: AddRing,
    event: OwnedFd,
    /// Client: where its buffers start.
    buffers: u32,
}

impl Session {
    /// Client: a session with a server, which will greet.
    pub fn with_server(channel: Channel) -> Self {
        Self::new(channel, Role::Client)
    }

    /// Server: greets a client and offers it `queues` queues.
    pub fn with_client(channel: Channel, queues: u16) -> io::Result<Self> {
        let session = Self::new(channel, Role::Server);
        session.send(&Message::Hello(Hello {
            name: PROGRAM.to_owned(),
            versions: (VERSION, VERSION),
            max_region: MAX_REGIONS - 1,
            max_to_client: queues - 1,
            max_to_server: queues - 1,
            max_log2_ring: ring::MAX_LOG2,
        }))?;
        Ok(session)
    }

    fn new(channel: Channel, role: Role) -> Self {
        Self {
            channel,
            role,
            deadline: Instant::now() + PATIENCE,
            outbox: VecDeque::new(),
            regions: Vec::new(),
            rings: [Vec::new(), Vec::new()],
            peer: String::new(),
            peer_interface: String::new(),
        }
    }

    /// Reason for the end, with the peer's name.
    pub fn blame(&self, reason: &str) -> String {
        let peer = match (self.peer.as_str(), self.role) {
            ("", Role::Server) => "a client",
            ("", Role::Client) => "the server",
            (name, _) => name,
        };
        format!("{peer}: {reason}")
    }

    fn send(&self, message: &Message) -> io::Result<()> {
        self.channel.send(&message.encode(), None)
    }

    /// Says good-bye; it does not matter whether anybody listens.
    pub fn part(&self, reason: &str) {
        let _ = self.send(&Message::Disconnect {
            code: 0,
            reason: reason.to_owned(),
        });
    }

    /// The next message, if one waits.
    pub fn receive(&self) -> Result<Option<(Message, Option<OwnedFd>)>, Reason> {
        // One byte more than a message has, so that a longer one is seen.
        let mut buffer = [0; SIZE + 1];
        match self.channel.receive(&mut buffer) {
            Ok(None) => Ok(None),
            Ok(Some((0, _))) => Err(CLOSED.to_owned()),
            Ok(Some((n, fd))) => match Message::decode(&buffer[..n]) {
                Ok(message) => Ok(Some((message, fd))),
                Err(e) => Err(e.to_string()),
            },
            Err(e) => Err(e.to_string()),
        }
    }

    /// Server: whether a client that chose our interface may have it.
    pub fn admit(&mut self, config: &Config, init: &Init) -> Result<(), Reason> {
        if init.version != VERSION {
            return Err(format!(
                "memif version {:#06x} instead of {VERSION:#06x}",
                init.version
            ));
        }
        if init.mode != MODE_ETHERNET {
            return Err("only Ethernet mode is supported".to_owned());
        }
        if let Some(secret) = &config.secret
            && !same(&init.secret, &message::secret(secret))
        {
            return Err("wrong secret".to_owned());
        }
        self.send(&Message::Ack).map_err(|e| e.to_string())
    }

    /// Takes one message of the handshake. True: the connection stands.
    pub fn step(
        &mut self,
        config: &Config,
        message: Message,
        fd: Option<OwnedFd>,
    ) -> Result<bool, Reason> {
        let done = match (self.role, message) {
            (_, Message::Disconnect { reason, .. }) => return Err(said(&reason)),
            (Role::Server, Message::AddRegion { index, size }) => {
                self.add_region(index, size, fd)?;
                self.send(&Message::Ack).map(|()| false)
            }
            (Role::Server, Message::AddRing(ring)) => {
                self.add_ring(config, ring, fd)?;
                self.send(&Message::Ack).map(|()| false)
            }
            (Role::Server, Message::Connect(name)) => {
                self.peer_interface = name;
                self.check_rings()?;
                self.send(&Message::Connected(config.name.clone()))
                    .map(|()| true)
            }
            // One greeting: memory is made for it.
            (Role::Client, Message::Hello(hello)) if self.regions.is_empty() => {
                self.prepare(config, hello)?;
                self.send_next().map(|()| false)
            }
            (Role::Client, Message::Ack) => self.send_next().map(|()| false),
            (Role::Client, Message::Connected(name))
                if self.outbox.is_empty() && !self.regions.is_empty() =>
            {
                self.peer_interface = name;
                Ok(true)
            }
            _ => return Err(UNEXPECTED.to_owned()),
        };
        done.map_err(|e| e.to_string())
    }

    fn send_next(&mut self) -> io::Result<()> {
        match self.outbox.pop_front() {
            Some((message, fd)) => self
                .channel
                .send(&message.encode(), fd.as_ref().map(AsFd::as_fd)),
            None => Ok(()),
        }
    }

    fn add_region(&mut self, index: u16, size: u64, fd: Option<OwnedFd>) -> Result<(), Reason> {
        let fd = fd.ok_or("region without a file descriptor")?;
        if usize::from(index) != self.regions.len() || index >= MAX_REGIONS {
            return Err(format!("region index {index} out of turn"));
        }
        let region = Region::map(&fd, size, &self.regions).map_err(|e| e.to_string())?;
        self.regions.push(region);
        Ok(())
    }

    fn add_ring(
        &mut self,
        config: &Config,
        ring: AddRing,
        fd: Option<OwnedFd>,
    ) -> Result<(), Reason> {
        let event = fd.ok_or("ring without a file descriptor")?;
        if !is_eventfd(event.as_fd()) {
            return Err("ring's file descriptor is not an eventfd".to_owned());
        }
        if ring.index >= config.queues {
            return Err(format!(
                "ring {} of an interface with {} queues",
                ring.index, config.queues
            ));
        }
        if ring.private_header != 0 {
            return Err("private headers are not supported".to_owned());
        }
        let rings = &mut self.rings[usize::from(!ring.to_server)];
        let index = ring.index as usize;
        if rings.len() <= index {
            rings.resize_with(index + 1, || None);
        }
        if rings[index].is_some() {
            return Err(format!("ring {index} was added twice"));
        }
        rings[index] = Some(Offer {
            ring,
            event,
            buffers: 0,
        });
        Ok(())
    }

    /// Server: puts the client's rings in order, if they are rings.
    fn check_rings(&self) -> Result<(), Reason> {
        let mut any = false;
        for offer in self.rings.iter().flatten().flatten() {
            let ring = self
                .ring(&offer.ring)
                .ok_or("ring is not within its region")?;
            let cookie = ring.cookie().load(Ordering::Relaxed);
            // Memory that went away reads as zeros: that is another fault than a wrong cookie.
            if self.regions.iter().any(Region::is_lost) {
                return Err(lost::REASON.to_owned());
            }
            if cookie != ring::COOKIE {
                return Err("ring without the cookie".to_owned());
            }
            ring.tail().store(0, Ordering::Release);
            any = true;
        }
        if any {
            Ok(())
        } else {
            Err("no rings".to_owned())
        }
    }

    #[allow(unsafe_code)]
    fn ring(&self, ring: &AddRing) -> Option<Ring> {
        if ring.log2_size > ring::MAX_LOG2 || !ring.offset.is_multiple_of(16) {
            return None;
        }
        let region = self.regions.get(ring.region as usize)?;
        let base = region.at(ring.offset, ring::bytes(ring.log2_size))?;
        // SAFETY: the ring's bytes are mapped, as `at` found; every Link keeps the regions alive
        // beside its rings; mappings start on a page, so a multiple of 16 is aligned to 16.
        Some(unsafe { Ring::new(base, ring.log2_size) })
    }

    /// Client: makes the shared memory and the messages that describe it.
    fn prepare(&mut self, config: &Config, hello: Hello) -> Result<(), Reason> {
        if hello.versions.0 > VERSION || hello.versions.1 < VERSION {
            return Err(format!(
                "server speaks memif {:#06x} to {:#06x}",
                hello.versions.0, hello.versions.1
            ));
        }
        self.peer = hello.name;
        let log2 = config.log2_ring.min(hello.max_log2_ring).max(1);
        let size = config.memory();
        let (region, fd) = Region::create(size).map_err(|e| e.to_string())?;
        self.regions.push(region);
        self.outbox.push_back((
            Message::Init(Init {
                version: VERSION,
                id: config.id,
                mode: MODE_ETHERNET,
                secret: config.secret.as_deref().map_or([0; 24], message::secret),
                name: PROGRAM.to_owned(),
            }),
            None,
        ));
        self.outbox
            .push_back((Message::AddRegion { index: 0, size }, Some(fd)));
        let mut offset = 0;
        for (to_server, max) in [(true, hello.max_to_server), (false, hello.max_to_client)] {
            for index in 0..config.queues.min(max.saturating_add(1)) {
                self.offer(index, to_server, log2, &mut offset)
                    .map_err(|e| e.to_string())?;
            }
        }
        // Buffers begin on a cache line.
        let mut buffers = offset.next_multiple_of(64);
        for offer in self.rings.iter_mut().flatten().flatten() {
            offer.buffers = buffers;
            buffers += config.stride() << log2;
        }
        self.outbox
            .push_back((Message::Connect(config.name.clone()), None));
        Ok(())
    }

    /// Client: makes one ring at `offset` and moves `offset` behind it.
    fn offer(&mut self, index: u16, to_server: bool, log2: u8, offset: &mut u32) -> io::Result<()> {
        let ring = AddRing {
            to_server,
            index,
            region: 0,
            offset: *offset,
            log2_size: log2,
            private_header: 0,
        };
        *offset += ring::bytes(log2);
        if let Some(ring) = self.ring(&ring) {
            ring.init();
        }
        let event = OwnedFd::from(EventFd::new()?);
        self.outbox
            .push_back((Message::AddRing(ring), Some(event.try_clone()?)));
        self.rings[usize::from(!to_server)].push(Some(Offer {
            ring,
            event,
            buffers: 0,
        }));
        Ok(())
    }

    /// Turns what was agreed on into a link for each queue, and the number of receive and transmit
    /// rings.
    pub fn links(&mut self, config: &Config) -> (Vec<Arc<Link>>, (u16, u16)) {
        let mut ends = [0, 1].map(|direction| {
            let offers = std::mem::take(&mut self.rings[direction]);
            let mut ends: Vec<Option<RingEnd>> =
                offers.into_iter().map(|o| self.ring_end(o?)).collect();
            ends.resize_with(config.queues as usize, || None);
            ends
        });
        if self.role == Role::Client {
            ends.swap(0, 1);
        }
        let count = |ends: &[Option<RingEnd>]| ends.iter().flatten().map(|_| 1u16).sum();
        let rings = (count(&ends[0]), count(&ends[1]));
        let regions: Arc<[Region]> = std::mem::take(&mut self.regions).into();
        let [rx, tx] = ends;
        let links = rx.into_iter().zip(tx).map(|(rx, tx)| {
            Arc::new(Link {
                role: self.role,
                regions: regions.clone(),
                rx,
                tx,
                buffer_size: config.buffer_size,
                stride: config.stride(),
            })
        });
        (links.collect(), rings)
    }

    fn ring_end(&self, offer: Offer) -> Option<RingEnd> {
        Some(RingEnd {
            ring: self.ring(&offer.ring)?,
            event: offer.event,
            buffers: offer.buffers,
        })
    }
}

/// The reason when the peer ends it.
pub fn said(reason: &str) -> Reason {
    format!("disconnected, saying \"{reason}\"")
}

/// Compares secrets in a time that does not tell how much of one is right.
fn same(a: &[u8; message::SECRET], b: &[u8; message::SECRET]) -> bool {
    let different = a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b));
    std::hint::black_box(different) == 0
}

impl AsRawFd for Session {
    fn as_raw_fd(&self) -> i32 {
        self.channel.as_raw_fd()
    }
}
