//! Classic capture files (draft-ietf-opsawg-pcap): microseconds or nanoseconds, either byte order.

use std::fmt;
use std::io::{self, Read, Write};

/// Link type of Ethernet.
pub const ETHERNET: u32 = 1;

/// More captured bytes than this (or than the file's own limit, if that is more) are a broken file.
pub const MAX_LEN: u32 = 262_144;

// The magic numbers of the two formats. The order of their bytes tells that of all numbers.
const MICROS: u32 = 0xa1b2_c3d4;
const NANOS: u32 = 0xa1b2_3c4d;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A captured packet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Packet {
    /// Time of capture, in nanoseconds since 1970.
    pub nanos: u64,
    /// Length it had on the wire, in bytes; at least `bytes.len()` unless the file says otherwise.
    pub wire_len: u32,
    /// The captured bytes.
    pub bytes: Vec<u8>,
}

/// Reason why reading stops.
#[derive(Debug)]
pub enum Error {
    /// Reading failed.
    Io(io::Error),
    /// It does not begin like a capture file.
    NotPcap {
        /// The first four bytes.
        magic: [u8; 4],
    },
    /// It ends in the middle of a packet (or of the file's header).
    Truncated,
    /// A packet claims to be longer than packets are.
    TooLong {
        /// Bytes claimed.
        len: u32,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::NotPcap {
                magic: [0x0a, 0x0d, 0x0d, 0x0a],
            } => f.write_str("a pcapng file; convert it to pcap (editcap -F pcap)"),
            Self::NotPcap { magic } => write!(f, "not a pcap file: begins with {magic:02x?}"),
            Self::Truncated => f.write_str("the pcap file ends in the middle of a packet"),
            Self::TooLong { len } => write!(f, "the pcap file is broken: a packet of {len} bytes"),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Truncated,
            _ => Self::Io(error),
        }
    }
}

/// Reads packets; give it a buffered source. After an error it ends.
#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    swapped: bool,
    nanos_per_tick: u64,
    link_type: u32,
    max_len: u32,
    failed: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the file's header.
    ///
    /// # Errors
    /// [`Error::NotPcap`], [`Error::Truncated`], [`Error::Io`].
    pub fn new(mut from: R) -> Result<Self, Error> {
        let mut magic = [0; 4];
        from.read_exact(&mut magic)?;
        let number = u32::from_le_bytes(magic);
        let (swapped, nanos_per_tick) = match (number, number.swap_bytes()) {
            (MICROS, _) => (false, 1000),
            (NANOS, _) => (false, 1),
            (_, MICROS) => (true, 1000),
            (_, NANOS) => (true, 1),
            _ => return Err(Error::NotPcap { magic }),
        };
        let mut this = Self {
            from,
            swapped,
            nanos_per_tick,
            link_type: 0,
            max_len: 0,
            failed: false,
        };
        // Version, time zone, accuracy; then the longest packet and the link type, above which lie
        // flags.
        let [_, _, _, max_len, link_type] = this.numbers()?;
        (this.link_type, this.max_len) = (link_type & 0xffff, max_len.clamp(MAX_LEN, MAX_LEN * 16));
        Ok(this)
    }

    /// Type of the header that packets begin with; usually [`ETHERNET`].
    pub fn link_type(&self) -> u32 {
        self.link_type
    }

    fn numbers<const N: usize>(&mut self) -> Result<[u32; N], Error> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            let mut bytes = [0; 4];
            self.from.read_exact(&mut bytes)?;
            *number = if self.swapped {
                u32::from_be_bytes(bytes)
            } else {
                u32::from_le_bytes(bytes)
            };
        }
        Ok(numbers)
    }

    fn packet(&mut self) -> Result<Option<Packet>, Error> {
        let mut first = [0; 1];
        loop {
            match self.from.read(&mut first) {
                Ok(0) => return Ok(None),
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut rest = [0; 3];
        self.from.read_exact(&mut rest)?;
        let seconds = [first[0], rest[0], rest[1], rest[2]];
        let seconds = if self.swapped {
            u32::from_be_bytes(seconds)
        } else {
            u32::from_le_bytes(seconds)
        };
        let [ticks, len, wire_len] = self.numbers()?;
        if len > self.max_len {
            return Err(Error::TooLong { len });
        }
        let mut bytes = vec![0; len as usize];
        self.from.read_exact(&mut bytes)?;
        let nanos = u64::from(seconds) * NANOS_PER_SECOND + u64::from(ticks) * self.nanos_per_tick;
        Ok(Some(Packet {
            nanos,
            wire_len,
            bytes,
        }))
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Packet, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.packet().transpose();
        self.failed = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Writes packets, little-endian; give it a buffered sink and flush that in the end.
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
    nanos_per_tick: u64,
}

impl<W: Write> Writer<W> {
    /// Writes the header of a file with times in nanoseconds.
    ///
    /// # Errors
    /// The error of writing.
    pub fn new(to: W, link_type: u32) -> io::Result<Self> {
        Self::begin(to, link_type, NANOS, 1)
    }

    /// Writes the header of a file with times in microseconds, which every program reads.
    ///
    /// # Errors
    /// The error of writing.
    pub fn with_micros(to: W, link_type: u32) -> io::Result<Self> {
        Self::begin(to, link_type, MICROS, 1000)
    }

    fn begin(mut to: W, link_type: u32, magic: u32, nanos_per_tick: u64) -> io::Result<Self> {
        // Version 2.4: two 16-bit numbers.
        for number in [magic, 2 | 4 << 16, 0, 0, MAX_LEN, link_type] {
            to.write_all(&number.to_le_bytes())?;
        }
        Ok(Self { to, nanos_per_tick })
    }

    /// Writes a packet seen at `nanos` since 1970, of which `bytes` were captured. More than
    /// [`MAX_LEN`] bytes are cut; the seconds wrap in 2106.
    ///
    /// # Errors
    /// The error of writing.
    pub fn write(&mut self, nanos: u64, wire_len: u32, bytes: &[u8]) -> io::Result<()> {
        let seconds = ((nanos / NANOS_PER_SECOND) & 0xffff_ffff) as u32;
        let rest = (nanos % NANOS_PER_SECOND / self.nanos_per_tick) as u32;
        let len = u32::try_from(bytes.len()).map_or(MAX_LEN, |len| len.min(MAX_LEN));
        for number in [seconds, rest, len, wire_len] {
            self.to.write_all(&number.to_le_bytes())?;
        }
        self.to.write_all(&bytes[..len as usize])
    }

    /// The sink.
    pub fn into_inner(self) -> W {
        self.to
    }

    /// Flushes the sink.
    ///
    /// # Errors
    /// The error of flushing.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(file: &[u8]) -> Result<Vec<Packet>, Error> {
        Reader::new(file)?.collect()
    }

    /// A file as another machine might have written it.
    fn foreign(magic: u32, big: bool, packets: &[(u32, u32, &[u8])]) -> Vec<u8> {
        let order = |number: u32| {
            if big {
                number.to_be_bytes()
            } else {
                number.to_le_bytes()
            }
        };
        let mut file: Vec<u8> = [magic, 0, 0, 0, 65_535, 0xf000_0001]
            .into_iter()
            .flat_map(order)
            .collect();
        for (seconds, ticks, bytes) in packets {
            let len = bytes.len() as u32;
            file.extend([*seconds, *ticks, len, len + 5].into_iter().flat_map(order));
            file.extend(*bytes);
        }
        file
    }

    #[test]
    fn all_four_kinds_of_files() {
        for (magic, big, nanos) in [
            (MICROS, false, 7_000),
            (MICROS, true, 7_000),
            (NANOS, false, 7),
            (NANOS, true, 7),
        ] {
            let file = foreign(magic, big, &[(3, 7, b"abc"), (4, 0, b"")]);
            let packets = read(&file).unwrap();
            let first = Packet {
                nanos: 3 * NANOS_PER_SECOND + nanos,
                wire_len: 8,
                bytes: b"abc".into(),
            };
            assert_eq!((packets.len(), &packets[0]), (2, &first));
            assert_eq!(Reader::new(&file[..]).unwrap().link_type(), ETHERNET);
        }
    }

    #[test]
    fn broken_files() {
        assert!(matches!(read(b""), Err(Error::Truncated)));
        assert!(matches!(
            read(b"\x0a\x0d\x0d\x0a more"),
            Err(Error::NotPcap { .. })
        ));
        let file = foreign(MICROS, false, &[(3, 7, b"abc")]);
        for len in 0..file.len() {
            let expected = if len == 24 { Ok(0) } else { Err(()) };
            assert_eq!(
                read(&file[..len])
                    .map(|packets| packets.len())
                    .map_err(|_| ()),
                expected,
                "{len}"
            );
        }
        let mut long = file;
        long[24 + 8..24 + 12].fill(0xff);
        assert!(matches!(read(&long), Err(Error::TooLong { len: u32::MAX })));
        assert_eq!(
            Reader::new(&long[..]).unwrap().count(),
            1,
            "the end follows an error"
        );
    }

    proptest! {
        #[test]
        fn round_trip(packets: Vec<(u32, u32, Vec<u8>)>, micros: bool) {
            let mut writer = if micros {
                Writer::with_micros(Vec::new(), ETHERNET).unwrap()
            } else {
                Writer::new(Vec::new(), ETHERNET).unwrap()
            };
            let packets: Vec<_> = packets.into_iter().map(|(nanos, wire_len, bytes)| {
                Packet { nanos: u64::from(nanos) * 1_000, wire_len, bytes }
            }).collect();
            for packet in &packets {
                writer.write(packet.nanos, packet.wire_len, &packet.bytes).unwrap();
            }
            writer.flush().unwrap();
            prop_assert_eq!(read(&writer.to).unwrap(), packets);
        }

        #[test]
        fn any_bytes(mut bytes in prop::collection::vec(any::<u8>(), 0..200), nanos: bool) {
            let magic = if nanos { NANOS } else { MICROS };
            for magic in [&[][..], &magic.to_le_bytes()] {
                bytes.splice(0..0, magic.iter().copied());
                // Everything read is in the file.
                let packets = read(&bytes).unwrap_or_default();
                let sum: usize = packets.iter().map(|packet| 16 + packet.bytes.len()).sum();
                prop_assert!(sum <= bytes.len());
            }
        }
    }
}
