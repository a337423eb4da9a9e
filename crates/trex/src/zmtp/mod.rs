//! ZeroMQ's protocol, ZMTP 3.0 (RFC 23) with the NULL mechanism, for sockets of type REP, PUB and REQ.
//!
//! Peers are strangers: nothing is allocated before its length has been compared with the
//! [`Limits`], every message has a time to arrive in, and there are only so many connections.

mod error;
mod frame;
mod greeting;
mod listener;
mod publish;
mod reply;
mod request;
mod socket;

use std::time::Duration;

pub use error::Error;
pub use listener::Listener;
pub use publish::{Publisher, publisher};
pub use reply::{Answer, replier};
pub use request::Requester;

/// What a peer may take of memory, time and connections.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// Bytes of a message at most, all its frames together.
    pub message: usize,
    /// Time for a handshake, for a message from its first byte to its last, and for an answer.
    pub patience: Duration,
    /// How long a connection may lie idle; a client that asks again connects again.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 32,
            message: 1 << 20,
            patience: Duration::from_secs(10),
            idle: Duration::from_secs(120),
        }
    }
}
