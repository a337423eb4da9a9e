//! A client that speaks ZMTP byte by byte.
#![allow(dead_code, reason = "not every test uses all of it")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use testbed::patience;

/// How long a server may take before a test fails.
pub const LIMIT: Duration = Duration::from_secs(30);

/// A greeting of version 3.1, as libzmq sends it.
pub fn greeting(mechanism: &[u8]) -> Vec<u8> {
    let mut greeting = vec![0; 64];
    (greeting[0], greeting[8], greeting[9]) = (0xff, 1, 0x7f);
    (greeting[10], greeting[11]) = (3, 1);
    greeting[12..12 + mechanism.len()].copy_from_slice(mechanism);
    greeting
}

/// A READY of a socket of that type, without identity.
pub fn ready(kind: &str) -> Vec<u8> {
    let mut body = b"\x05READY\x0bSocket-Type".to_vec();
    body.extend(u32::try_from(kind.len()).expect("short").to_be_bytes());
    body.extend(kind.as_bytes());
    body.extend(b"\x08Identity\0\0\0\0");
    [&[4, u8::try_from(body.len()).expect("short")], &body[..]].concat()
}

/// A request as a REQ socket frames it.
pub fn request(body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u64).to_be_bytes();
    [&[1, 0, 2], &length[..], body].concat()
}

pub struct Client(pub TcpStream);

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("it listens");
        stream
            .set_read_timeout(Some(patience(LIMIT)))
            .expect("a time");
        Self(stream)
    }

    /// One that is past the handshake.
    pub fn greeted(address: SocketAddr, kind: &str) -> Self {
        let mut client = Self::connect(address);
        client.write(&greeting(b"NULL"));
        let theirs = client.read(64);
        assert_eq!(&theirs[10..16], b"\x03\0NULL");
        client.write(&ready(kind));
        let (flags, body) = client.frame();
        assert_eq!((flags, &body[..6]), (4, &b"\x05READY"[..]));
        client
    }

    pub fn write(&mut self, bytes: &[u8]) {
        // A server that has seen enough may be gone.
        let _ = self.0.write_all(bytes);
    }

    pub fn read(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes).expect("an answer");
        bytes
    }

    /// Flags and body of the next frame.
    pub fn frame(&mut self) -> (u8, Vec<u8>) {
        let flags = self.read(1)[0];
        let length = match flags & 2 {
            0 => usize::from(self.read(1)[0]),
            _ => {
                let length = self.read(8).try_into().expect("eight");
                u64::from_be_bytes(length).try_into().expect("memory")
            }
        };
        (flags & !2, self.read(length))
    }

    /// The answer to a request.
    pub fn ask(&mut self, body: &[u8]) -> Vec<u8> {
        self.write(&request(body));
        assert_eq!(self.frame(), (1, Vec::new()));
        let (flags, body) = self.frame();
        assert_eq!(flags, 0);
        body
    }

    /// Awaits that the server closes, whatever it says before.
    pub fn closes(mut self) -> bool {
        // A reset is as good an end.
        let ended = self.0.read_to_end(&mut Vec::new());
        !ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    }
}
