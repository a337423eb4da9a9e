//! Control messages of the memif protocol, version 2.0.
//!
//! Every message is one packet of 128 bytes on a `SOCK_SEQPACKET` unix socket: a type of 16 bits,
//! then the fields of that type without padding, in host byte order (layout: `memif.h` of VPP and
//! DPDK). A file descriptor may ride along as `SCM_RIGHTS`.

/// Bytes of every control message.
pub const SIZE: usize = 128;

/// Protocol version 2.0, as `major << 8 | minor`.
pub const VERSION: u16 = 0x0200;

/// Interface mode "Ethernet frames"; the only one spoken here.
pub const MODE_ETHERNET: u8 = 0;

/// A ring that carries packets from the client to the server.
const RING_CLIENT_TO_SERVER: u16 = 1;

// Bytes of the messages' fields for names and, below, for the reason of a disconnect.
const NAME: usize = 32;
/// Bytes of a secret at most; the rest of its field is zeros.
pub const SECRET: usize = 24;
const REASON: usize = 96;

/// The server's greeting: what it is willing to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Name of the server's program.
    pub name: String,
    /// Lowest and highest protocol version it speaks.
    pub versions: (u16, u16),
    /// Highest region index it takes.
    pub max_region: u16,
    /// Highest index of a ring towards the client.
    pub max_to_client: u16,
    /// Highest index of a ring towards the server.
    pub max_to_server: u16,
    /// Largest ring, as a power of two.
    pub max_log2_ring: u8,
}

/// The client's choice of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Init {
    /// Protocol version it will speak.
    pub version: u16,
    /// Interface id on this socket.
    pub id: u32,
    /// Kind of packets that the interface carries, see [`MODE_ETHERNET`].
    pub mode: u8,
    /// Shared secret, zero padded; all zeros for none.
    pub secret: [u8; SECRET],
    /// Name of the client's program.
    pub name: String,
}

/// Place of a ring in the client's regions; the ring's interrupt descriptor rides along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddRing {
    /// The ring carries packets from the client to the server (else back).
    pub to_server: bool,
    /// Index among the rings of its direction.
    pub index: u16,
    /// Region that holds it.
    pub region: u16,
    /// Bytes from the start of the region.
    pub offset: u32,
    /// Number of descriptors, as a power of two.
    pub log2_size: u8,
    /// Bytes of private data before each packet; 0 here.
    pub private_header: u16,
}

/// One control message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The last message was taken.
    Ack,
    /// First message, by the server.
    Hello(Hello),
    /// The client's answer to it.
    Init(Init),
    /// The client adds a region of shared memory; its file descriptor rides along.
    AddRegion {
        /// Index of the region, counted from 0 without gaps.
        index: u16,
        /// Bytes.
        size: u64,
    },
    /// The client adds a ring.
    AddRing(AddRing),
    /// The client is done; carries its interface name.
    Connect(String),
    /// The server is done too; carries its interface name.
    Connected(String),
    /// The sender goes away, and why.
    Disconnect {
        /// Error code; 0 if there is none.
        code: u32,
        /// Reason in words.
        reason: String,
    },
}

/// Reason why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Not 128 bytes.
    #[error("a control message of {0} bytes instead of {SIZE}")]
    Size(usize),
    /// Unknown message type.
    #[error("a control message of unknown type {0}")]
    Type(u16),
}

impl Message {
    /// The 128 bytes that go on the socket. Strings that are too long are cut.
    pub fn encode(&self) -> [u8; SIZE] {
        let mut w = Writer::default();
        match self {
            Self::Ack => w.u16(1),
            Self::Hello(h) => {
                w.u16(2);
                w.text(&h.name, NAME);
                w.u16(h.versions.0);
                w.u16(h.versions.1);
                w.u16(h.max_region);
                w.u16(h.max_to_client);
                w.u16(h.max_to_server);
                w.bytes(&[h.max_log2_ring]);
            }
            Self::Init(i) => {
                w.u16(3);
                w.u16(i.version);
                w.bytes(&i.id.to_ne_bytes());
                w.bytes(&[i.mode]);
                w.bytes(&i.secret);
                w.text(&i.name, NAME);
            }
            Self::AddRegion { index, size } => {
                w.u16(4);
                w.u16(*index);
                w.bytes(&size.to_ne_bytes());
            }
            Self::AddRing(r) => {
                w.u16(5);
                w.u16(if r.to_server {
                    RING_CLIENT_TO_SERVER
                } else {
                    0
                });
                w.u16(r.index);
                w.u16(r.region);
                w.bytes(&r.offset.to_ne_bytes());
                w.bytes(&[r.log2_size]);
                w.u16(r.private_header);
            }
            Self::Connect(name) => {
                w.u16(6);
                w.text(name, NAME);
            }
            Self::Connected(name) => {
                w.u16(7);
                w.text(name, NAME);
            }
            Self::Disconnect { code, reason } => {
                w.u16(8);
                w.bytes(&code.to_ne_bytes());
                w.text(reason, REASON);
            }
        }
        w.out
    }

    /// Reads a message as it came from the socket. Its values are the peer's word, nothing more.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.len() != SIZE {
            return Err(Malformed::Size(bytes.len()));
        }
        let mut r = Reader(bytes);
        Ok(match r.u16() {
            1 => Self::Ack,
            2 => Self::Hello(Hello {
                name: r.text::<NAME>(),
                versions: (r.u16(), r.u16()),
                max_region: r.u16(),
                max_to_client: r.u16(),
                max_to_server: r.u16(),
                max_log2_ring: r.u8(),
            }),
            3 => Self::Init(Init {
                version: r.u16(),
                id: r.u32(),
                mode: r.u8(),
                secret: r.take(),
                name: r.text::<NAME>(),
            }),
            4 => Self::AddRegion {
                index: r.u16(),
                size: u64::from_ne_bytes(r.take()),
            },
            5 => Self::AddRing(AddRing {
                to_server: r.u16() & RING_CLIENT_TO_SERVER != 0,
                index: r.u16(),
                region: r.u16(),
                offset: r.u32(),
                log2_size: r.u8(),
                private_header: r.u16(),
            }),
            6 => Self::Connect(r.text::<NAME>()),
            7 => Self::Connected(r.text::<NAME>()),
            8 => Self::Disconnect {
                code: r.u32(),
                reason: r.text::<REASON>(),
            },
            other => return Err(Malformed::Type(other)),
        })
    }
}

/// A secret as it stands in [`Init`]: zero padded, and cut at [`SECRET`] bytes.
pub fn secret(text: &str) -> [u8; SECRET] {
    let mut out = [0; SECRET];
    let n = text.len().min(SECRET);
    out[..n].copy_from_slice(&text.as_bytes()[..n]);
    out
}

/// The longest beginning of a string that fits into a field of `room` bytes before its zero.
fn fitting(text: &str, room: usize) -> &str {
    &text[..text.floor_char_boundary(room - 1)]
}

struct Writer {
    out: [u8; SIZE],
    at: usize,
}

impl Default for Writer {
    fn default() -> Self {
        Self {
            out: [0; SIZE],
            at: 0,
        }
    }
}

impl Writer {
    fn bytes(&mut self, bytes: &[u8]) {
        self.out[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    fn u16(&mut self, value: u16) {
        self.bytes(&value.to_ne_bytes());
    }

    /// A zero-terminated string in a field of `room` bytes.
    fn text(&mut self, text: &str, room: usize) {
        let text = fitting(text, room).as_bytes();
        self.out[self.at..self.at + text.len()].copy_from_slice(text);
        self.at += room;
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    /// The next `N` bytes; zeros past the end, which no field of a message reaches.
    fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk::<N>() {
            Some((head, rest)) => {
                self.0 = rest;
                *head
            }
            None => [0; N],
        }
    }

    fn u8(&mut self) -> u8 {
        u8::from_ne_bytes(self.take())
    }

    fn u16(&mut self) -> u16 {
        u16::from_ne_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    /// A zero-terminated string of a stranger: made printable, because it ends up in logs and on
    /// terminals, and no longer than what we would write.
    fn text<const N: usize>(&mut self) -> String {
        let bytes = self.take::<N>();
        let end = bytes.iter().position(|&b| b == 0).unwrap_or(N);
        let printable: String = String::from_utf8_lossy(&bytes[..end])
            .chars()
            .map(|c| if c.is_control() { '?' } else { c })
            .collect();
        fitting(&printable, N).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use tables::random::Random;

    use super::*;

    fn samples() -> Vec<Message> {
        vec![
            Message::Ack,
            Message::Hello(Hello {
                name: "DPDK 22.11".into(),
                versions: (VERSION, VERSION),
                max_region: 255,
                max_to_client: 7,
                max_to_server: 9,
                max_log2_ring: 14,
            }),
            Message::Init(Init {
                version: VERSION,
                id: 0x0102_0304,
                mode: MODE_ETHERNET,
                secret: secret("open sesame"),
                name: "parshall".into(),
            }),
            Message::AddRegion {
                index: 3,
                size: 0x0001_0203_0405,
            },
            Message::AddRing(AddRing {
                to_server: true,
                index: 2,
                region: 1,
                offset: 0x8000,
                log2_size: 10,
                private_header: 6,
            }),
            Message::Connect("memif0/0".into()),
            Message::Connected("memif1/0".into()),
            Message::Disconnect {
                code: 7,
                reason: "wrong ring".into(),
            },
        ]
    }

    #[test]
    fn every_message_survives_the_round_trip() {
        for message in samples() {
            assert_eq!(Message::decode(&message.encode()), Ok(message));
        }
    }

    #[test]
    fn fields_lie_where_the_protocol_puts_them() {
        let bytes = samples()[4].encode();
        assert_eq!(bytes[0..2], 5u16.to_ne_bytes());
        assert_eq!(bytes[2..4], 1u16.to_ne_bytes(), "flags");
        assert_eq!(bytes[4..6], 2u16.to_ne_bytes(), "index");
        assert_eq!(bytes[6..8], 1u16.to_ne_bytes(), "region");
        assert_eq!(bytes[8..12], 0x8000u32.to_ne_bytes(), "offset");
        assert_eq!(bytes[12], 10, "log2 size");
        assert_eq!(bytes[13..15], 6u16.to_ne_bytes(), "private header");
        let init = samples()[2].encode();
        assert_eq!(init[4..8], 0x0102_0304u32.to_ne_bytes());
        assert_eq!(&init[9..13], b"open");
        assert_eq!(&init[33..41], b"parshall");
    }

    #[test]
    fn wrong_sizes_and_types_are_refused() {
        assert_eq!(Message::decode(&[0; 127]), Err(Malformed::Size(127)));
        assert_eq!(Message::decode(&[0; SIZE]), Err(Malformed::Type(0)));
        assert_eq!(Message::decode(&[9; SIZE]), Err(Malformed::Type(0x0909)));
    }

    #[test]
    fn long_and_unprintable_strings_are_tamed() {
        let long = "x".repeat(200);
        let Ok(Message::Connect(name)) = Message::decode(&Message::Connect(long).encode()) else {
            panic!("not a connect");
        };
        assert_eq!(name.len(), 31);
        let mut bytes = Message::Connect("a".into()).encode();
        bytes[3..6].copy_from_slice(&[0x1b, 0xff, b'b']);
        let Ok(Message::Connect(name)) = Message::decode(&bytes) else {
            panic!("not a connect");
        };
        assert_eq!(name, "a?\u{fffd}b");
    }

    #[test]
    fn any_bytes_decode_or_are_refused() {
        let mut random = Random::new(1);
        for round in 0..20_000u32 {
            let mut bytes = [0u8; SIZE];
            bytes.iter_mut().for_each(|b| *b = random.bits() as u8);
            bytes[0..2].copy_from_slice(&((round % 10) as u16).to_ne_bytes());
            if let Ok(message) = Message::decode(&bytes) {
                assert_eq!(Message::decode(&message.encode()), Ok(message));
            }
        }
    }
}
