//! A REQ socket: one request, then its answer.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Instant;

use kernel::event::EventFd;

use super::frame::Received;
use super::socket::Socket;
use super::{Error, Limits};

/// A connection to a REP socket.
pub struct Requester(Socket);

impl Requester {
    /// Greets the peer at the other end. What waits ends with [`Error::Stopped`] when `stop` is
    /// signalled.
    ///
    /// # Errors
    /// The peer speaks something else, or not in time.
    pub fn over(stream: TcpStream, stop: Arc<EventFd>, limits: Limits) -> Result<Self, Error> {
        let mut socket = Socket::new(stream, stop, limits)?;
        socket.greet("REQ", &["REP", "ROUTER"])?;
        Ok(Self(socket))
    }

    /// The answer to a request by then.
    ///
    /// # Errors
    /// The connection is over: after any error there is no telling which answer would come next.
    pub fn ask(&mut self, body: &[u8], until: Instant) -> Result<Vec<u8>, Error> {
        self.0.send(&[&[], body], until)?;
        let mut room = self.0.limits.message;
        let (mut is_first, mut answer) = (true, Vec::new());
        loop {
            match self.0.receive(room, until)? {
                Received::Command(name, rest) => self.0.heed(&name, &rest)?,
                Received::Message(frame) if is_first && frame.body.is_empty() && frame.more => {
                    is_first = false;
                }
                Received::Message(frame) if !is_first => {
                    room -= frame.body.len();
                    answer.extend(frame.body);
                    if !frame.more {
                        return Ok(answer);
                    }
                }
                Received::Message(_) => {
                    return Err(Error::Malformed("an answer begins with an empty frame"));
                }
            }
        }
    }
}
