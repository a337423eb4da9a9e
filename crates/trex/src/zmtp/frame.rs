//! Frames: a flag byte, a length of one or eight bytes, a body.

use std::time::Instant;

use super::Error;
use super::socket::Socket;

const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// Longest command: a READY with a long identity, or a subscription.
const LONGEST_COMMAND: usize = 1024;

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Whether another one of the same message follows.
    pub more: bool,
    pub body: Vec<u8>,
}

/// What a peer sends.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    Message(Frame),
    /// Name and the rest.
    Command(Vec<u8>, Vec<u8>),
}

impl Socket {
    /// Reads a frame by then, whose body has at most `room` bytes if it is part of a message.
    pub fn receive(&mut self, room: usize, until: Instant) -> Result<Received, Error> {
        let mut flags = [0];
        self.read(&mut flags, until)?;
        let [flags] = flags;
        let is_command = flags & COMMAND != 0;
        if flags & !(MORE | LONG | COMMAND) != 0 || (is_command && flags & MORE != 0) {
            return Err(Error::Malformed("no frame begins with such flags"));
        }
        let mut length = [0; 8];
        let short = if flags & LONG != 0 { 0 } else { 7 };
        self.read(&mut length[short..], until)?;
        let announced = u64::from_be_bytes(length);
        let most = if is_command { LONGEST_COMMAND } else { room };
        let length = usize::try_from(announced).ok().filter(|n| *n <= most);
        let mut body = vec![0; length.ok_or(Error::TooLong { announced, most })?];
        self.read(&mut body, until)?;
        match is_command {
            false => Ok(Received::Message(Frame {
                more: flags & MORE != 0,
                body,
            })),
            true => {
                let (name, rest) = part(&body).ok_or(Error::Malformed("a command has a name"))?;
                Ok(Received::Command(name.to_vec(), rest.to_vec()))
            }
        }
    }

    /// Sends the frames of a message by then.
    pub fn send(&mut self, frames: &[&[u8]], until: Instant) -> Result<(), Error> {
        let mut bytes = Vec::with_capacity(frames.iter().map(|body| body.len() + 9).sum());
        for (place, body) in frames.iter().enumerate() {
            let more = if place + 1 < frames.len() { MORE } else { 0 };
            put(&mut bytes, more, body);
        }
        self.write(&bytes, until)
    }

    /// Sends a command by then.
    pub fn command(&mut self, name: &str, rest: &[u8], until: Instant) -> Result<(), Error> {
        let mut body = vec![u8::try_from(name.len()).unwrap_or(u8::MAX)];
        body.extend([name.as_bytes(), rest].concat());
        let mut bytes = Vec::new();
        put(&mut bytes, COMMAND, &body);
        self.write(&bytes, until)
    }

    /// Answers a command that may come at any time: who is asked for a sign of life gives one.
    pub fn heed(&mut self, name: &[u8], rest: &[u8]) -> Result<(), Error> {
        match (name, rest) {
            // A time to live, then what is to be sent back, of 16 bytes at most.
            (b"PING", [_, _, context @ ..]) if context.len() <= 16 => {
                let (context, until) = (context.to_vec(), self.deadline());
                self.command("PONG", &context, until)
            }
            (b"PING", _) => Err(Error::Malformed(
                "a ping has a time to live and 16 bytes at most",
            )),
            (b"ERROR", _) => Err(Error::Malformed("the peer reports an error")),
            _ => Ok(()),
        }
    }
}

fn put(bytes: &mut Vec<u8>, flags: u8, body: &[u8]) {
    match u8::try_from(body.len()) {
        Ok(short) => bytes.extend([flags, short]),
        Err(_) => {
            bytes.push(flags | LONG);
            bytes.extend((body.len() as u64).to_be_bytes());
        }
    }
    bytes.extend(body);
}

/// What a length of one byte says, and what follows.
pub fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*length))
}
