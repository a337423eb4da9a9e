//! Finds the stream that a packet belongs to.

use wire::{eth, ip, ip4};

use crate::model::fields::Step;
use crate::model::stream::Stream;

/// The parts of a stream's packets that no router changes, by which they are recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match {
    /// IPv4 total length.
    pub total_length: u16,
    /// IPv4 protocol.
    pub protocol: u8,
    /// First and last source address, in host order.
    pub source: (u32, u32),
    /// First and last destination address, in host order.
    pub destination: (u32, u32),
    /// Source (high) and destination port in one word; None if they vary or the protocol has none.
    pub ports: Option<u32>,
}

/// Offsets in an Ethernet frame with an IPv4 packet (RFC 791) without options.
mod at {
    use wire::{eth, ip4};

    pub const ETHERTYPE: usize = eth::ETHERTYPE_AT;
    pub const VERSION: usize = eth::LEN;
    pub const TOTAL_LENGTH: usize = eth::LEN + ip4::at::TOTAL_LEN;
    pub const PROTOCOL: usize = eth::LEN + ip4::at::PROTO;
    pub const SOURCE: usize = eth::LEN + ip4::at::SRC;
    pub const DESTINATION: usize = eth::LEN + ip4::at::DST;
    pub const PORTS: usize = eth::LEN + ip4::LEN;
    pub const END: usize = PORTS + 4;
}

/// EtherType IPv4, version 4, header of 20 bytes.
const IPV4: [u8; 3] = {
    let [high, low] = eth::IP4.to_be_bytes();
    [high, low, ip4::PLAIN]
};

#[inline]
fn word(frame: &[u8], at: usize) -> u32 {
    frame
        .get(at..at + 4)
        .map_or(0, |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
}

#[inline]
fn is_plain(frame: &[u8]) -> bool {
    frame.len() >= at::END && frame[at::ETHERTYPE..=at::VERSION] == IPV4
}

impl Match {
    /// The parts that all packets of `stream` share. None if they are not IPv4 without options, or
    /// if a variable changes length or protocol.
    pub fn of(stream: &Stream) -> Option<Self> {
        let frame = stream.frame();
        let protocol = frame[at::PROTOCOL];
        let varies =
            |from: usize, to: usize| stream.steps.iter().any(|s| overlaps(stream, s, from, to));
        if !is_plain(&frame)
            || varies(at::ETHERTYPE, at::VERSION + 1)
            || varies(at::TOTAL_LENGTH, at::TOTAL_LENGTH + 2)
            || varies(at::PROTOCOL, at::PROTOCOL + 1)
        {
            return None;
        }
        let has_ports = matches!(protocol, ip::TCP | ip::UDP) && !varies(at::PORTS, at::END);
        Some(Self {
            total_length: u16::from_be_bytes([
                frame[at::TOTAL_LENGTH],
                frame[at::TOTAL_LENGTH + 1],
            ]),
            protocol,
            source: range(stream, &frame, at::SOURCE),
            destination: range(stream, &frame, at::DESTINATION),
            ports: has_ports.then(|| word(&frame, at::PORTS)),
        })
    }

    /// Whether the Ethernet frame belongs to this stream.
    #[inline]
    pub fn matches(&self, frame: &[u8]) -> bool {
        let within = |value: u32, (first, last): (u32, u32)| first <= value && value <= last;
        is_plain(frame)
            && frame[at::TOTAL_LENGTH..at::TOTAL_LENGTH + 2] == self.total_length.to_be_bytes()
            && frame[at::PROTOCOL] == self.protocol
            && within(word(frame, at::SOURCE), self.source)
            && within(word(frame, at::DESTINATION), self.destination)
            && self
                .ports
                .is_none_or(|ports| word(frame, at::PORTS) == ports)
    }
}

/// Whether `step` writes into the bytes `from..to`, beside checksums.
fn overlaps(stream: &Stream, step: &Step, from: usize, to: usize) -> bool {
    let (offset, size) = match *step {
        Step::Write {
            variable, offset, ..
        } => {
            let variable = stream.variables.get(variable);
            (offset, variable.map_or(0, |v| usize::from(v.size)))
        }
        Step::WriteMasked { offset, size, .. } => (offset, size.into()),
        Step::Trim { .. }
        | Step::Checksum4 { .. }
        | Step::ChecksumTransport { .. }
        | Step::ChecksumIcmp6 { .. } => return false,
    };
    offset < to && offset.saturating_add(size) > from
}

/// First and last value of the address at `at`.
fn range(stream: &Stream, frame: &[u8], at: usize) -> (u32, u32) {
    let fixed = word(frame, at);
    let mut writes = stream
        .steps
        .iter()
        .filter(|s| overlaps(stream, s, at, at + 4));
    match (writes.next(), writes.next()) {
        (None, _) => (fixed, fixed),
        (
            Some(&Step::Write {
                variable,
                offset,
                add,
                big_endian: true,
            }),
            None,
        ) if offset == at => {
            let variable = &stream.variables[variable];
            let written = |value: u64| (value.wrapping_add_signed(add) & 0xffff_ffff) as u32;
            let (min, max) = variable.bounds();
            let (first, last) = (written(min), written(max));
            if variable.size == 4 && first <= last {
                (first, last)
            } else {
                (0, u32::MAX)
            }
        }
        _ => (0, u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::clock::Nanos;
    use crate::model::profile::{self, Tunables, Way};
    use crate::source::fields::Fields;

    fn streams(name: &str, way: Way, tunables: &str) -> Vec<Stream> {
        profile::open(name, way, &Tunables::parse(tunables).unwrap()).unwrap()
    }

    /// The frame after a router: new Ethernet addresses, a lower TTL, a new checksum.
    fn routed(mut frame: Vec<u8>) -> Vec<u8> {
        frame[..12].fill(0xee);
        frame[22] -= 1;
        frame[24..26].fill(0xaa);
        frame
    }

    #[test]
    fn routed_packets_are_of_their_stream_and_of_no_other() {
        let profiles = [
            streams("imix", Way::Out, ""),
            streams("imix", Way::Back, ""),
            streams("bench", Way::Out, "size=imix,vm=var2"),
            streams("bench", Way::Back, "size=imix,vm=random"),
            streams("udp_1pkt_simple", Way::Out, ""),
        ];
        let all: Vec<&Stream> = profiles.iter().flatten().collect();
        let matches: Vec<Match> = all.iter().map(|s| Match::of(s).unwrap()).collect();
        for (i, stream) in all.iter().enumerate() {
            let mut fields = Fields::new(stream, 1, 0);
            for _ in 0..300 {
                let mut frame = vec![0; stream.frame_len()];
                fields.write(Nanos(0), &mut frame);
                let frame = routed(frame);
                let hits: Vec<_> = (0..all.len())
                    .filter(|&m| matches[m].matches(&frame))
                    .collect();
                assert_eq!(hits, [i]);
            }
        }
    }

    #[test]
    fn what_varies_is_not_compared() {
        let mut stream = streams("bench", Way::Out, "vm=var1").remove(0);
        let write = |offset| Step::Write {
            variable: 0,
            offset,
            add: 0,
            big_endian: true,
        };
        assert!(Match::of(&stream).unwrap().ports.is_some());
        stream.steps.push(write(at::PORTS));
        assert_eq!(Match::of(&stream).unwrap().ports, None);
        stream.steps.push(write(at::SOURCE + 1));
        assert_eq!(Match::of(&stream).unwrap().source, (0, u32::MAX));
        stream.steps.push(write(at::PROTOCOL - 3));
        assert_eq!(Match::of(&stream), None);
        let mut other = streams("bench", Way::Out, "").remove(0);
        other.packet[12] = 0x86;
        assert_eq!(Match::of(&other), None);
    }

    proptest! {
        #[test]
        fn a_random_frame_is_of_no_stream(frame in proptest::collection::vec(any::<u8>(), 0..80)) {
            let stream = streams("bench", Way::Out, "vm=var2").remove(0);
            prop_assert!(!Match::of(&stream).unwrap().matches(&frame), "this was never sent");
        }
    }
}
