//! The server: a socket that answers, and one that wakes.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use session::Session;

use crate::local::Local;
use crate::rpc;
use crate::state::PortFacts;
use crate::zmtp::{Limits, Listener, Publisher, publisher, replier};

/// Where to listen. Nobody has to say who he is: only those who may do everything should be able
/// to connect.
#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    /// For requests; T-Rex's port is 4501.
    pub requests: SocketAddr,
    /// For events; T-Rex's port is 4500.
    pub events: SocketAddr,
}

/// A running server. Dropping it ends its connections, stops all ports and closes them.
pub struct Server {
    // Connections end before what they ask.
    requests: Listener,
    events: Listener,
    _tester: Local,
}

impl Server {
    /// Serves the ports of a session, described in their order.
    ///
    /// # Errors
    /// An address cannot be had, or a thread cannot be started.
    pub fn start(
        session: Session,
        facts: Vec<PortFacts>,
        addresses: Addresses,
        limits: Limits,
    ) -> io::Result<Self> {
        let voice = Publisher::new(b"{}");
        let tester = Local::with(session, facts, voice.clone())?;
        let run = tester.answerer();
        let answer = move |message: &[u8]| {
            let until = Instant::now() + limits.patience;
            rpc::answer(message, until, &mut |method, params| run(method, params))
        };
        let requests = Listener::start(addresses.requests, limits, replier(Arc::new(answer)))?;
        let events = Listener::start(addresses.events, limits, publisher(voice))?;
        Ok(Self {
            requests,
            events,
            _tester: tester,
        })
    }

    /// Where it listens.
    pub fn addresses(&self) -> Addresses {
        Addresses {
            requests: self.requests.address(),
            events: self.events.address(),
        }
    }
}
