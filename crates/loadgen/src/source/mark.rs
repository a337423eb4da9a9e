//! Marks packets for the receiver, as T-Rex does for its flow statistics.
//!
//! The identification of IPv4, or the flow label of IPv6, says which counter a packet belongs to.
//! Packets that measure latency all have the same one, and say the rest in a trailer in their last
//! 16 bytes.

use wire::{checksum, eth, ip4};

use crate::model::stream::Stream;

/// Identification of the first counter; those of all counters follow.
pub const FIRST: u16 = 0xfc00;
/// Identification of the packets that measure latency.
pub const LATENCY: u16 = 0xffff;
/// Counters without latency.
pub const COUNTERS: u16 = LATENCY - FIRST;
/// Counters with latency.
pub const LATENCIES: u16 = 128;
/// Bytes of the trailer.
pub const TRAILER: usize = 16;

const MAGIC: u8 = 0xab;
/// Sequence numbers begin just below their wrap.
pub const FIRST_SEQUENCE: u32 = u32::MAX - 1;

/// The bit of IPv6's first word that says that the flow label is a mark: the lowest of the traffic
/// class.
const MARKED_IP6: u32 = 1 << 20;

/// The end of a packet that measures latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trailer {
    /// Number of the run, so that packets of the run before are not taken for lost ones.
    pub run: u8,
    /// Which counter.
    pub counter: u16,
    /// Rises by 1 from packet to packet.
    pub sequence: u32,
    /// When it was sent, in nanoseconds of the sender's clock.
    pub nanos: u64,
}

impl Trailer {
    /// As bytes.
    pub fn bytes(&self) -> [u8; TRAILER] {
        let mut bytes = [0; TRAILER];
        (bytes[0], bytes[1]) = (MAGIC, self.run);
        bytes[2..4].copy_from_slice(&self.counter.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[8..].copy_from_slice(&self.nanos.to_le_bytes());
        bytes
    }

    /// Reads it at the end of an IP packet; None if there is none.
    pub fn read(packet: &[u8]) -> Option<Self> {
        let bytes = packet.last_chunk::<TRAILER>()?;
        let [MAGIC, run, c0, c1, s0, s1, s2, s3, nanos @ ..] = *bytes else {
            return None;
        };
        Some(Self {
            run,
            counter: u16::from_le_bytes([c0, c1]),
            sequence: u32::from_le_bytes([s0, s1, s2, s3]),
            nanos: u64::from_le_bytes(nanos),
        })
    }
}

/// Offset of the IP header of an Ethernet frame, behind its VLAN tags, and its version; None if
/// there is none.
pub fn network(frame: &[u8]) -> Option<(usize, u8)> {
    let mut at = eth::ETHERTYPE_AT;
    loop {
        let kind = frame.get(at..at + 2)?;
        match u16::from_be_bytes([kind[0], kind[1]]) {
            eth::IP4 | eth::IP6 => break,
            eth::VLAN | eth::SERVICE_VLAN => at += 4,
            _ => return None,
        }
    }
    let header = frame.get(at + 2..)?;
    match header.first()? >> 4 {
        4 if header.len() >= ip4::LEN => Some((at + 2, 4)),
        6 if header.len() >= IP6_LEN => Some((at + 2, 6)),
        _ => None,
    }
}

/// Bytes of an IPv6 header (RFC 8200 section 3).
const IP6_LEN: usize = 40;
/// Identification and checksum in an IPv4 header (RFC 791).
const ID: std::ops::Range<usize> = 4..6;
const CHECKSUM: std::ops::Range<usize> = 10..12;

/// The mark of a frame; None if it has none.
#[inline]
pub fn read(frame: &[u8]) -> Option<u16> {
    let (at, version) = network(frame)?;
    let word =
        |at: usize| u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
    let mark = match version {
        4 => word(at + ID.start) >> 16,
        _ => Some(word(at)).filter(|w| w & MARKED_IP6 != 0)? & 0xf_ffff,
    };
    u16::try_from(mark).ok().filter(|mark| *mark >= FIRST)
}

/// Writes a mark into a frame, and corrects the checksum of its IPv4 header. False if there is no
/// IP packet in it.
pub fn write(frame: &mut [u8], mark: u16) -> bool {
    match network(frame) {
        Some((at, 4)) => {
            let header = &mut frame[at..at + ip4::LEN];
            let number =
                |header: &[u8], at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
            let old = number(header, ID.start);
            let sum = checksum::update(number(header, CHECKSUM.start), old, mark);
            header[ID].copy_from_slice(&mark.to_be_bytes());
            header[CHECKSUM].copy_from_slice(&sum.to_be_bytes());
            true
        }
        Some((at, _)) => {
            let old = u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
            let new = old & 0xfff0_0000 | MARKED_IP6 | u32::from(mark);
            frame[at..at + 4].copy_from_slice(&new.to_be_bytes());
            true
        }
        None => false,
    }
}

/// The receiver's counter for each stream of a port: those without latency and those with latency
/// count from 0 on their own. Streams of the same group share one; streams without a mark have none,
/// and 0 stands for it.
pub fn counters_of<'a>(streams: impl IntoIterator<Item = &'a Stream>) -> Vec<u16> {
    let mut known: [Vec<u32>; 2] = Default::default();
    let counters = streams.into_iter().map(|stream| {
        let Some(mark) = stream.mark else { return 0 };
        let groups = &mut known[usize::from(mark.latency)];
        let place = groups.iter().position(|g| *g == mark.group);
        let place = place.unwrap_or_else(|| {
            groups.push(mark.group);
            groups.len() - 1
        });
        u16::try_from(place).unwrap_or(u16::MAX)
    });
    counters.collect()
}
