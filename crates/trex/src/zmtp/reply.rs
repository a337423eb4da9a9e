//! A REP socket: one answer to each request, in turn.

use std::sync::Arc;
use std::time::Instant;

use super::Error;
use super::frame::Received;
use super::listener::Serve;
use super::socket::Socket;

/// Answers the body of a request.
pub type Answer = Arc<dyn Fn(&[u8]) -> Vec<u8> + Send + Sync>;

/// Frames of a request at most: a client's one, and an envelope.
const FRAMES: usize = 8;

/// Serves connections of REQ and DEALER sockets.
pub fn replier(answer: Answer) -> Serve {
    Arc::new(move |socket| reply(socket, &*answer))
}

fn reply(mut socket: Socket, answer: &dyn Fn(&[u8]) -> Vec<u8>) -> Result<(), Error> {
    socket.greet("REP", &["REQ", "DEALER"])?;
    loop {
        let request = message(&mut socket)?;
        // What comes before an empty frame says who asks, and goes back as it came.
        let end = request.iter().position(Vec::is_empty);
        let (envelope, body) = request.split_at(end.map_or(0, |end| end + 1));
        let ([body], [_, ..]) = (body, envelope) else {
            return Err(Error::Malformed("a request is an empty frame and one more"));
        };
        let body = answer(body);
        let frames: Vec<&[u8]> = envelope.iter().chain([&body]).map(Vec::as_slice).collect();
        let until = socket.deadline();
        socket.send(&frames, until)?;
    }
}

/// The frames of the next message.
fn message(socket: &mut Socket) -> Result<Vec<Vec<u8>>, Error> {
    let (mut frames, mut room) = (Vec::new(), socket.limits.message);
    let idle = Instant::now() + socket.limits.idle;
    socket.readable(None, Some(idle))?;
    let mut until = socket.deadline();
    loop {
        match socket.receive(room, until)? {
            Received::Command(name, rest) => {
                socket.heed(&name, &rest)?;
                if frames.is_empty() {
                    socket.readable(None, Some(idle))?;
                    until = socket.deadline();
                }
            }
            Received::Message(frame) => {
                room -= frame.body.len();
                frames.push(frame.body);
                if !frame.more {
                    return Ok(frames);
                }
                if frames.len() == FRAMES {
                    return Err(Error::Malformed("a request of too many frames"));
                }
            }
        }
    }
}
