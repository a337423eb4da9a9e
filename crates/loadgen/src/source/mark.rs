//! Marks packets for the receiver, as T-Rex does for its flow statistics.
//!
//! The identification of IPv4, or the flow label of IPv6, says which counter a packet belongs to.
//! Packets that measure latency all have the same one, and say the rest in a trailer in their last
//! 16 bytes. Those that are not IP are known by their trailer alone.

use wire::{checksum, eth, ip4, ip6};

use crate::model::stream::{ID_BASE, Stream};

/// Identification of the packets that measure latency.
pub const LATENCY: u16 = 0xffff;
/// Counters without latency, at most.
pub const COUNTERS: u16 = LATENCY - ID_BASE;
/// Counters with latency.
pub const LATENCIES: u16 = 128;
/// Bytes of the trailer.
pub const TRAILER: usize = 16;

// First byte of the trailer, as in T-Rex's.
const MAGIC: u8 = 0xab;
/// Sequence numbers begin just below their wrap.
pub const FIRST_SEQUENCE: u32 = u32::MAX - 1;

/// The bit of IPv6's traffic class that says that the flow label is a mark.
const MARKED_IP6: u8 = 1;

/// The end of a packet that measures latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trailer {
    /// Number of the run, so that packets of the run before are not taken for lost ones.
    pub run: u8,
    /// Number of the counter.
    pub counter: u16,
    /// Rises by 1 from packet to packet.
    pub sequence: u32,
    /// Time of sending, in nanoseconds of the sender's clock.
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

    /// Reads it at the end of a packet; None if there is none.
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
        6 if header.len() >= ip6::LEN => Some((at + 2, 6)),
        _ => None,
    }
}

/// The number in the place of a frame's mark, with its IP header where [`network`] says; None if it
/// has none. A receiver has to know which numbers are marks.
#[inline]
pub fn read(frame: &[u8], (at, version): (usize, u8)) -> Option<u16> {
    let packet = frame.get(at..)?;
    match version {
        4 => Some(ip4::Header::parse(packet)?.0.id()),
        _ => {
            let (header, _) = ip6::Header::parse(packet)?;
            let is_marked = header.traffic_class() & MARKED_IP6 != 0;
            let number = u16::try_from(header.flow_label()).ok();
            number.filter(|_| is_marked)
        }
    }
}

/// Writes a mark into a frame, and corrects the checksum of its IPv4 header. False if there is no
/// IP packet in it.
pub fn write(frame: &mut [u8], mark: u16) -> bool {
    let Some((at, version)) = network(frame) else {
        return false;
    };
    let packet = &mut frame[at..];
    if version == 4 {
        if let Some((header, _)) = ip4::Header::parse_mut(packet) {
            let sum = checksum::update(header.checksum(), header.id(), mark);
            header.set_id(mark);
            header.set_checksum(sum);
        }
    } else if let Some((header, _)) = ip6::Header::parse_mut(packet) {
        header.set_traffic_class(header.traffic_class() | MARKED_IP6);
        header.set_flow_label(mark.into());
    }
    true
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

/// First and last number that packets of a stream without a mark have in its place; None if they
/// have none.
fn numbers(stream: &Stream) -> Option<(u16, u16)> {
    let frame = stream.frame();
    let (at, version) = network(&frame)?;
    let number = read(&frame, (at, version));
    match version {
        4 => {
            let (first, last) = stream.values(number?.into(), at + 4, 2);
            Some((u16::try_from(first).ok()?, u16::try_from(last).ok()?))
        }
        _ if stream.writes(at..at + 4) => Some((0, u16::MAX)),
        _ => number.map(|number| (number, number)),
    }
}

/// Name of the field that a stream's packets with a mark are known by and that one of its steps
/// writes; None if they write none of them, or if its packets are not IP.
pub fn overwritten(stream: &Stream) -> Option<&'static str> {
    let (at, version) = network(&stream.frame())?;
    // Each VLAN tag has an EtherType.
    let mut types = (eth::ETHERTYPE_AT..at).step_by(4);
    if types.any(|place| stream.writes(place..place + 2)) {
        return Some("EtherType");
    }
    let fields = match version {
        4 => [(0..1, "version"), (4..6, "identification")],
        _ => [(0..1, "version"), (1..4, "flow label")],
    };
    let fields = fields.into_iter();
    let mut written = fields.filter(|(bytes, _)| stream.writes(at + bytes.start..at + bytes.end));
    written.next().map(|(_, name)| name)
}

/// Has the identifications of a port's streams with counters begin at `base` in place of
/// [`ID_BASE`], for their packets and for who receives them.
///
/// # Errors
/// The first stream whose identification would be [`LATENCY`] or beyond 16 bits, or that has no
/// mark but the identification of another stream's.
pub fn begin_at(base: u16, streams: &mut [Stream]) -> Result<(), String> {
    let mut counters = 0;
    for (stream, counter) in streams.iter().zip(counters_of(&*streams)) {
        let Some(mark) = stream.mark.filter(|mark| !mark.latency) else {
            continue;
        };
        if counter >= LATENCY - base {
            let (name, group, last) = (&stream.name, mark.group, LATENCY - 1);
            return Err(format!(
                "stream `{name}`: flow_stats: the identification of group {group} would be \
                 {base:#06x} + {counter}, beyond {last:#06x}"
            ));
        }
        counters = counters.max(counter + 1);
    }
    for stream in streams.iter().filter(|stream| stream.mark.is_none()) {
        let Some((first, last)) = numbers(stream) else {
            continue;
        };
        if counters > 0 && first < base + counters && base <= last {
            return Err(format!(
                "stream `{}`: it has no flow_stats, but the identification {:#06x}, which \
                 would count it as another stream",
                stream.name,
                first.max(base)
            ));
        }
    }
    streams.iter_mut().for_each(|stream| stream.id_base = base);
    Ok(())
}

#[cfg(test)]
mod tests {
    use wire::craft::Packet;

    use super::*;
    use crate::model::fields::{Step, Variable};
    use crate::model::stream::{Mark, StreamRate};
    use crate::model::units::Pps;

    /// Streams of these groups, with latency or not; None: without a mark.
    fn streams(groups: &[Option<(u32, bool)>]) -> Vec<Stream> {
        let streams = groups.iter().map(|group| {
            let frame = Packet::udp((1, 1), (2, 2));
            let frame = frame.frame_len(100).frame().as_slice().to_vec();
            let mark = group.map(|(group, latency)| Mark { group, latency });
            let rate = StreamRate::Packets(Pps(1.0));
            Stream {
                mark,
                ..Stream::new("s", frame, rate)
            }
        });
        streams.collect()
    }

    #[test]
    fn identifications_end_below_that_of_latency() {
        let two = [Some((7, false)), Some((9, false)), Some((7, false))];
        for (base, groups, refused) in [
            (0xfffd, &two[..], None),
            (0xfffe, &two[..], Some("group 9 would be 0xfffe + 1")),
            (0xffff, &two[..], Some("group 7 would be 0xffff + 0")),
            (0xffff, &[Some((7, true)), None][..], None),
        ] {
            let result = begin_at(base, &mut streams(groups));
            let why = result.as_ref().err().map(String::as_str);
            let is_right = match (why, refused) {
                (Some(why), Some(part)) => why.contains(part),
                (why, part) => why == part,
            };
            assert!(is_right, "{base:#x}: {result:?}");
        }
    }

    /// A variable from `min` to `max` in the two bytes at `offset`.
    fn vary(stream: &mut Stream, offset: usize, min: u64, max: u64) {
        stream.variables.push(Variable::range("v", 2, min, max));
        stream.steps.push(Step::Write {
            variable: 0,
            offset,
            add: 0,
            big_endian: true,
        });
    }

    /// Nor may it vary into one.
    #[test]
    fn another_streams_identification_is_not_reached() {
        for (offset, min, max, is_free) in [
            (18, 0, 0xfff, true),
            (18, 0, 0x1000, false),
            (18, 0x1001, 0xffff, false),
            (18, 0x1002, 0xffff, true),
            (19, 0, 7, true),
            (40, 0x1000, 0x1001, true),
        ] {
            let mut streams = streams(&[Some((7, false)), Some((9, false)), None]);
            vary(&mut streams[2], offset, min, max);
            let result = begin_at(0x1000, &mut streams);
            assert_eq!(result.is_ok(), is_free, "{offset} {min:#x} {max:#x}");
            assert_eq!(begin_at(0x1000, &mut streams[2..]), Ok(()));
        }
    }

    /// By these fields a receiver knows a packet with a mark.
    #[test]
    fn a_mark_is_not_overwritten() {
        for (offset, field) in [
            (11, Some("EtherType")),
            (13, Some("EtherType")),
            (15, None),
            (16, None),
            (17, Some("identification")),
            (19, Some("identification")),
            (20, None),
        ] {
            let mut stream = streams(&[Some((7, true))]).remove(0);
            vary(&mut stream, offset, 0, 9);
            assert_eq!(overwritten(&stream), field, "{offset}");
            // Behind a VLAN tag everything is 4 bytes further.
            stream.packet.splice(12..12, [0x81, 0x00, 0, 9]);
            let Some(Step::Write { offset: place, .. }) = stream.steps.last_mut() else {
                panic!()
            };
            *place += 4;
            assert_eq!(overwritten(&stream), field, "{offset}");
        }
        let local = std::net::Ipv6Addr::LOCALHOST;
        let frame = Packet::udp6((local, 1), (local, 2)).frame_len(100);
        for (offset, field) in [(14, Some("version")), (17, Some("flow label")), (18, None)] {
            let rate = StreamRate::Packets(Pps(1.0));
            let mut stream = Stream::new("s", frame.frame().as_slice().to_vec(), rate);
            vary(&mut stream, offset, 0, 9);
            assert_eq!(overwritten(&stream), field, "{offset}");
        }
    }

    #[test]
    fn another_streams_identification_is_refused() {
        let mut streams = streams(&[Some((7, false)), Some((9, false)), None]);
        assert!(write(&mut streams[2].packet, 0x1001));
        for (base, is_free) in [
            (0xfff, true),
            (0x1000, false),
            (0x1001, false),
            (0x1002, true),
        ] {
            let result = begin_at(base, &mut streams);
            assert_eq!(result.is_ok(), is_free, "{base:#x}: {result:?}");
        }
    }
}
