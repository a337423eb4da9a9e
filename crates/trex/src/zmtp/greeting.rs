//! The beginning of a connection: who speaks what, and which kind of socket.

use super::Error;
use super::frame::{Received, part};
use super::socket::Socket;

const GREETING: usize = 64;
const MECHANISM: std::ops::Range<usize> = 12..32;

/// What we say: signature, version 3.0 (a peer of 3.1 speaks as one of 3.0 then), no security.
fn greeting() -> [u8; GREETING] {
    let mut greeting = [0; GREETING];
    (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
    greeting[MECHANISM][..4].copy_from_slice(b"NULL");
    greeting
}

impl Socket {
    /// Greets, and says that this is a socket of type `ours`, for peers that are one of `theirs`.
    pub fn greet(&mut self, ours: &str, theirs: &[&str]) -> Result<(), Error> {
        let until = self.deadline();
        let (us, mut them) = (greeting(), [0; GREETING]);
        self.write(&us, until)?;
        self.read(&mut them, until)?;
        if (them[0], them[9]) != (us[0], us[9]) || them[10] < us[10] {
            return Err(Error::Malformed("no ZMTP of version 3"));
        }
        if them[MECHANISM] != us[MECHANISM] {
            return Err(Error::Malformed(
                "there is no security mechanism here but NULL",
            ));
        }
        let kind = u32::try_from(ours.len()).unwrap_or(0).to_be_bytes();
        let ready = [b"\x0bSocket-Type", &kind[..], ours.as_bytes()].concat();
        self.command("READY", &ready, until)?;
        let Received::Command(name, properties) = self.receive(0, until)? else {
            return Err(Error::Malformed("a message before READY"));
        };
        let kind = socket_type(&properties).filter(|_| name == b"READY");
        match kind.is_some_and(|kind| theirs.iter().any(|their| their.as_bytes() == kind)) {
            true => Ok(()),
            false => Err(Error::Malformed(
                "a socket of such a type is not served here",
            )),
        }
    }
}

/// The type of a peer's socket.
fn socket_type(mut properties: &[u8]) -> Option<&[u8]> {
    loop {
        let (name, rest) = part(properties)?;
        let (length, rest) = rest.split_first_chunk()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (value, rest) = rest.split_at_checked(length)?;
        // Names are not case-sensitive.
        if name.eq_ignore_ascii_case(b"Socket-Type") {
            return Some(value);
        }
        properties = rest;
    }
}
