//! memif, the shared memory packet interface of VPP and DPDK (protocol version 2.0), in both roles.
//!
//! The server listens on a unix socket; a client connects, brings the shared memory, and both move
//! packets through rings of descriptors in it. One [`Control`] thread for all interfaces does the
//! socket's part; workers own [`Queue`]s and learn of connects and disconnects by one atomic load a
//! call.
//!
//! The peer is a stranger. What it says on the socket is checked before use; what it writes to
//! shared memory is read once and checked; memory that it takes away reads as zeros; waking it
//! never waits for it. A peer that breaks the rules is disconnected and counted, and may come back.
//! The interface keeps reconnecting.
//!
//! A server offers its clients as many queues as it has; where several interfaces share a socket,
//! as many as every one of them has, for a client is greeted before it says which it wants. A queue
//! that has no counterpart receives nothing, and drops and counts what it is given: so both sides
//! should have the same number.

mod control;
mod copy;
mod cursor;
mod doorbell;
mod endpoint;
mod handshake;
mod link;
mod lost;
pub mod message;
mod queue;
mod region;
mod retry;
mod ring;
mod socket;
#[cfg(test)]
mod tests;
mod transfer;

use std::fmt;
use std::io;

pub use control::{Control, Interface};
pub use message::SECRET;
pub use queue::Queue;

/// Queue pairs of an interface at most.
pub const QUEUES: u16 = 256;

/// Our side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Listens ("master" in older texts).
    Server,
    /// Connects and owns the memory ("slave" in older texts).
    Client,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Server => "server",
            Role::Client => "client",
        })
    }
}

/// An interface to be added.
#[derive(Clone, Debug)]
pub struct Config {
    /// Our name for it, which the peer gets to know.
    pub name: String,
    /// Path of the unix socket; `@name` is in the abstract namespace.
    pub socket: String,
    /// Id of the interface on that socket.
    pub id: u32,
    /// Our side.
    pub role: Role,
    /// Queue pairs, 1 to [`QUEUES`]. The peer may have more or fewer: what both have is used.
    pub queues: u16,
    /// Descriptors of a ring as a power of two, 1 to 14 (client; a server takes the client's).
    pub log2_ring: u8,
    /// Bytes of a buffer, a multiple of 64 from 64 to 65,536 (client). DPDK expects at least its
    /// own: 2048.
    pub buffer_size: u32,
    /// Shared secret of at most [`SECRET`] bytes.
    pub secret: Option<String>,
}

impl Config {
    /// One queue pair, rings of 1024, buffers of 2048 bytes, id 0.
    pub fn new(name: &str, socket: &str, role: Role) -> Self {
        Self {
            name: name.to_owned(),
            socket: socket.to_owned(),
            id: 0,
            role,
            queues: 1,
            log2_ring: 10,
            buffer_size: 2048,
            secret: None,
        }
    }

    fn check(&self) -> Result<(), Error> {
        let size = self.buffer_size;
        if self.queues == 0 || self.queues > QUEUES {
            Err(Error::Config("queues must be 1 to 256"))
        } else if self.log2_ring == 0 || self.log2_ring > ring::MAX_LOG2 {
            Err(Error::Config("ring size must be 2 to 16384"))
        } else if !(64..=65536).contains(&size) || !size.is_multiple_of(64) {
            Err(Error::Config(
                "buffer size must be a multiple of 64 from 64 to 65536",
            ))
        } else if self.secret.as_ref().is_some_and(|s| s.len() > SECRET) {
            Err(Error::Config("secret must have at most 24 bytes"))
        } else if self.memory() > u64::from(u32::MAX) {
            Err(Error::Config("rings and buffers must fit into 4 GiB"))
        } else {
            Ok(())
        }
    }

    /// Distance of two buffers of a client, in bytes: an odd number of cache lines, so that the
    /// first lines of packets spread over all sets of a cache.
    fn stride(&self) -> u32 {
        self.buffer_size
            + if self.buffer_size.is_multiple_of(128) {
                64
            } else {
                0
            }
    }

    /// Bytes of a client's region.
    fn memory(&self) -> u64 {
        let ring =
            u64::from(ring::bytes(self.log2_ring)) + (u64::from(self.stride()) << self.log2_ring);
        2 * u64::from(self.queues) * ring + 64
    }
}

/// The state of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Connected.
    pub up: bool,
    /// The peer's program, as it calls itself.
    pub peer: String,
    /// The peer's name of the interface.
    pub peer_interface: String,
    /// Receive and transmit rings in use.
    pub rings: (u16, u16),
    /// The last thing that went wrong, with the peer's name: why it is down, or whom it has refused
    /// since it came up. Empty if nothing did.
    pub reason: String,
}

/// Reason why an interface cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value out of range.
    #[error("{0}")]
    Config(&'static str),
    /// Somebody alive listens there.
    #[error("socket {0} is in use by another process: stop it or choose another path")]
    InUse(String),
    /// The id is taken on that socket.
    #[error("memif id {id} on socket {socket} is already configured")]
    DuplicateId {
        /// Path of the socket.
        socket: String,
        /// The id.
        id: u32,
    },
    /// There is something else at that path.
    #[error("{0} exists and is not a socket: remove it or choose another path")]
    NotASocket(String),
    /// Unix sockets take 107 bytes.
    #[error("socket path {0} is longer than 107 bytes")]
    PathTooLong(String),
    /// The operating system's.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<rustix::io::Errno> for Error {
    fn from(error: rustix::io::Errno) -> Self {
        Error::Io(error.into())
    }
}
