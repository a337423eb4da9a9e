//! A configured interface on the control thread: its phase, its connection, its status.

use std::sync::Arc;
use std::time::Instant;

use super::handshake::{self, Reason, Session};
use super::link::{Link, LinkSlot};
use super::message::Message;
use super::retry::{Arrivals, Retry};
use super::socket::Channel;
use super::{Config, Role, Status};

/// Messages taken from one session in one turn, so that none keeps the thread from the others.
const MAX_MESSAGES: usize = 64;

/// A configured interface.
pub struct Endpoint {
    /// Its handle's key.
    pub key: u64,
    /// As it was configured.
    pub config: Config,
    /// By queue.
    slots: Vec<Arc<LinkSlot>>,
    /// Phase of its connection.
    pub phase: Phase,
    /// Time of a client's next try.
    pub retry: Retry,
    /// As its handle reports it.
    pub status: Status,
}

/// Phase of a connection.
#[derive(Debug)]
pub enum Phase {
    /// Not connected.
    Waiting,
    /// Being set up.
    Handshake(Session),
    /// Connected.
    Up(Session),
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Endpoint({}, {:?})", self.config.name, self.phase)
    }
}

impl Endpoint {
    /// Not connected; a client tries at once.
    pub fn new(key: u64, config: Config, slots: Vec<Arc<LinkSlot>>) -> Self {
        Self {
            key,
            config,
            slots,
            phase: Phase::Waiting,
            retry: Retry::new(Instant::now()),
            status: Status::default(),
        }
    }

    /// True if it is there for the clients of this socket.
    pub fn serves(&self, path: &str) -> bool {
        self.config.role == Role::Server && self.config.socket == path
    }

    /// Looks after it once.
    pub fn turn(&mut self, now: Instant, arrivals: &Arrivals, retired: &mut Vec<Arc<Link>>) {
        if let Phase::Waiting = self.phase {
            if self.config.role == Role::Client && self.retry.is_due(now) {
                self.connect(now, arrivals);
            }
        } else if let Err(reason) = self.serve(now, retired) {
            self.end(&reason, retired);
        }
    }

    fn connect(&mut self, now: Instant, arrivals: &Arrivals) {
        match Channel::connect(&self.config.socket) {
            Ok(channel) => self.phase = Phase::Handshake(Session::with_server(channel)),
            Err(e) => {
                self.status.reason = format!("no server at {}: {e}", self.config.socket);
                self.retry.failed(now);
                // Its directory may be there by now.
                arrivals.watch(&self.config.socket);
            }
        }
    }

    /// Hears the peer, and the workers' complaints about it.
    fn serve(&mut self, now: Instant, retired: &mut Vec<Arc<Link>>) -> Result<(), Reason> {
        if let Some(complaint) = self.slots.iter().find_map(|s| s.complaint()) {
            return Err(complaint.to_owned());
        }
        for _ in 0..MAX_MESSAGES {
            match &mut self.phase {
                Phase::Waiting => return Ok(()),
                Phase::Up(session) => match session.receive()? {
                    None => return Ok(()),
                    Some((Message::Disconnect { reason, .. }, _)) => {
                        return Err(handshake::said(&reason));
                    }
                    Some(_) => return Err(handshake::UNEXPECTED.to_owned()),
                },
                Phase::Handshake(session) => match session.receive()? {
                    None if now >= session.deadline => {
                        return Err(handshake::TOO_SLOW.to_owned());
                    }
                    None => return Ok(()),
                    Some((message, fd)) => {
                        if session.step(&self.config, message, fd)? {
                            self.up(retired);
                        }
                    }
                },
            }
        }
        Ok(())
    }

    /// Hands the finished connection to the workers.
    fn up(&mut self, retired: &mut Vec<Arc<Link>>) {
        let Phase::Handshake(mut session) = std::mem::replace(&mut self.phase, Phase::Waiting)
        else {
            return;
        };
        self.retry.succeeded();
        let (links, rings) = session.links(&self.config);
        for (slot, link) in self.slots.iter().zip(links) {
            retired.extend(slot.plug(Some(link)));
        }
        self.status = Status {
            up: true,
            peer: session.peer.clone(),
            peer_interface: session.peer_interface.clone(),
            rings,
            reason: String::new(),
        };
        self.phase = Phase::Up(session);
    }

    /// Ends the session, if there is one, and takes the link from the workers.
    pub fn end(&mut self, reason: &str, retired: &mut Vec<Arc<Link>>) {
        let (Phase::Handshake(session) | Phase::Up(session)) =
            std::mem::replace(&mut self.phase, Phase::Waiting)
        else {
            return;
        };
        self.retry.failed(Instant::now());
        session.part(reason);
        for slot in &self.slots {
            retired.extend(slot.plug(None));
        }
        self.status = Status {
            reason: session.blame(reason),
            ..Status::default()
        };
    }
}
