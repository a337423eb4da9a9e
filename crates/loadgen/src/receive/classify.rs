//! Finds the stream that a packet belongs to.

use wire::{eth, ip, ip4, ip6, vlan};

use crate::model::stream::Stream;

/// A version of IP: IPv4 without options (RFC 791) or IPv6 (RFC 8200), behind up to two VLAN tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// IPv4.
    Ip4,
    /// IPv6.
    Ip6,
}

/// The parts of a stream's packets that no router changes, by which they are recognized. VLAN tags are
/// not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match {
    /// The version of IP.
    pub version: Version,
    /// The length that the header has: IPv4's total length, IPv6's payload length.
    pub length: u16,
    /// IPv4's protocol, IPv6's first next header.
    pub protocol: u8,
    /// First and last source address, in host order; IPv4's are the low 32 bits.
    pub source: (u128, u128),
    /// First and last destination address.
    pub destination: (u128, u128),
    /// Source (high) and destination port in one word; None if they vary or do not follow the
    /// header.
    pub ports: Option<u32>,
}

/// Part of a packet that is compared with matches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    version: Version,
    length: u16,
    protocol: u8,
    source: u128,
    destination: u128,
    /// Bytes that follow the header, if there are so many.
    ports: u32,
}

impl Key {
    /// None if the Ethernet frame has no packet that can be recognized.
    #[inline]
    pub fn of(frame: &[u8]) -> Option<Self> {
        Self::behind_tags(frame).map(|(_, key)| key)
    }

    /// The same, behind the offset of the IP header.
    #[inline]
    fn behind_tags(frame: &[u8]) -> Option<(usize, Self)> {
        let (ethernet, rest) = eth::Header::parse(frame)?;
        let (kind, packet) = vlan::behind_tags(ethernet.ethertype(), rest)?;
        let key = match kind {
            eth::IP4 => Self::ip4(packet),
            eth::IP6 => Self::ip6(packet),
            _ => None,
        };
        Some((frame.len() - packet.len(), key?))
    }

    #[inline]
    fn ip4(packet: &[u8]) -> Option<Self> {
        let (header, rest) = ip4::Header::parse(packet)?;
        header.is_plain().then(|| Self {
            version: Version::Ip4,
            length: header.total_len(),
            protocol: header.proto,
            source: header.src().into(),
            destination: header.dst().into(),
            ports: ports(rest),
        })
    }

    #[inline]
    fn ip6(packet: &[u8]) -> Option<Self> {
        let (header, rest) = ip6::Header::parse(packet)?;
        (header.version() == 6).then(|| Self {
            version: Version::Ip6,
            length: header.payload_len(),
            protocol: header.next_header,
            source: u128::from_be_bytes(header.src),
            destination: u128::from_be_bytes(header.dst),
            ports: ports(rest),
        })
    }
}

#[inline]
fn ports(transport: &[u8]) -> u32 {
    let ports = transport.first_chunk().copied();
    ports.map_or(0, u32::from_be_bytes)
}

/// Offsets of the fields in a packet, in bytes.
struct Offsets {
    length: usize,
    protocol: usize,
    source: usize,
    destination: usize,
    ports: usize,
}

impl Offsets {
    const fn of(version: Version) -> Self {
        match version {
            Version::Ip4 => Self {
                length: ip4::at::TOTAL_LEN,
                protocol: ip4::at::PROTO,
                source: ip4::at::SRC,
                destination: ip4::at::DST,
                ports: ip4::LEN,
            },
            Version::Ip6 => Self {
                length: ip6::at::PAYLOAD_LEN,
                protocol: ip6::at::NEXT_HEADER,
                source: ip6::at::SRC,
                destination: ip6::at::DST,
                ports: ip6::LEN,
            },
        }
    }
}

impl Version {
    /// Bytes of an address.
    const fn address(self) -> usize {
        match self {
            Self::Ip4 => 4,
            Self::Ip6 => 16,
        }
    }
}

impl Match {
    /// The parts that all packets of `stream` share. None if they are neither IPv4 without options
    /// nor IPv6, or if a variable changes length or protocol.
    pub fn of(stream: &Stream) -> Option<Self> {
        let frame = stream.frame();
        let (ip, key) = Key::behind_tags(&frame)?;
        let Key {
            version,
            length,
            protocol,
            source,
            destination,
            ports,
        } = key;
        let at = Offsets::of(version);
        // Which VLAN a tag names may vary, its type and those of what follows may not.
        let types = (eth::ETHERTYPE_AT..ip).step_by(vlan::LEN);
        let varies = |from: usize, to: usize| stream.writes(ip + from..ip + to);
        if types.into_iter().any(|kind| stream.writes(kind..kind + 2))
            || varies(0, 1)
            || varies(at.length, at.length + 2)
            || varies(at.protocol, at.protocol + 1)
        {
            return None;
        }
        let has_ports = matches!(protocol, ip::TCP | ip::UDP) && !varies(at.ports, at.ports + 4);
        let range = |address, at: usize| stream.values(address, ip + at, version.address());
        Some(Self {
            version,
            length,
            protocol,
            source: range(source, at.source),
            destination: range(destination, at.destination),
            ports: has_ports.then_some(ports),
        })
    }

    /// True if there is a packet that belongs to both streams.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let meet = |a: (u128, u128), b: (u128, u128)| a.0 <= b.1 && b.0 <= a.1;
        (self.version, self.length, self.protocol) == (other.version, other.length, other.protocol)
            && meet(self.source, other.source)
            && meet(self.destination, other.destination)
            && (self.ports.is_none() || other.ports.is_none() || self.ports == other.ports)
    }

    /// True if a packet belongs to this stream.
    #[inline]
    pub(super) fn matches(&self, packet: &Key) -> bool {
        let within = |value: u128, (first, last): (u128, u128)| first <= value && value <= last;
        packet.version == self.version
            && packet.length == self.length
            && packet.protocol == self.protocol
            && within(packet.source, self.source)
            && within(packet.destination, self.destination)
            && self.ports.is_none_or(|ports| packet.ports == ports)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use proptest::prelude::*;
    use wire::craft::Packet;

    use super::*;
    use crate::clock::Nanos;
    use crate::model::fields::{Op, Step, Variable};
    use crate::model::profile::{self, Tunables, Way};
    use crate::model::stream::StreamRate;
    use crate::model::units::Pps;
    use crate::source::fields::Fields;

    const IP4: Offsets = Offsets::of(Version::Ip4);
    const IP6: Offsets = Offsets::of(Version::Ip6);

    fn streams(name: &str, way: Way, tunables: &str) -> Vec<Stream> {
        profile::open(name, way, &Tunables::parse(tunables).unwrap()).unwrap()
    }

    /// The frame after a router: new Ethernet addresses, a lower TTL or hop limit, a new checksum.
    fn routed(mut frame: Vec<u8>) -> Vec<u8> {
        frame[..12].fill(0xee);
        if frame[12..14] == eth::IP6.to_be_bytes() {
            frame[21] -= 1;
        } else {
            frame[22] -= 1;
            frame[24..26].fill(0xaa);
        }
        frame
    }

    /// Packets from 2001:db8::1 to 2001:db8::/96, whose last four bytes are `steps` from
    /// `first`.
    fn ip6(frame_len: usize, dst_port: u16, variable: Variable) -> Stream {
        let [source, destination] = ["2001:db8::1", "2001:db8::"].map(|text| {
            let address: Ipv6Addr = text.parse().unwrap();
            address
        });
        let frame = Packet::udp6((source, 1025), (destination, dst_port)).frame_len(frame_len);
        let mut stream = Stream::new("ip6", frame.frame(), StreamRate::Packets(Pps(1.0)));
        stream.variables.push(variable);
        stream.steps.push(Step::Write {
            variable: 0,
            offset: eth::LEN + IP6.destination + 12,
            add: 0,
            big_endian: true,
        });
        stream
    }

    #[test]
    fn routed_packets_are_of_their_stream_and_of_no_other() {
        let profiles = [
            streams("imix", Way::Out, ""),
            streams("imix", Way::Back, ""),
            streams("bench", Way::Out, "size=imix,vm=var2"),
            streams("bench", Way::Back, "size=imix,vm=random"),
            streams("udp_1pkt_simple", Way::Out, ""),
            vec![
                ip6(62, 12, Variable::range("", 4, 4, 254)),
                ip6(62, 12, Variable::range("", 4, 255, 300)),
                ip6(62, 13, random(0, u32::MAX)),
                ip6(700, 12, random(5, 9)),
            ],
        ];
        let all: Vec<&Stream> = profiles.iter().flatten().collect();
        let matches: Vec<Match> = all.iter().map(|s| Match::of(s).unwrap()).collect();
        for (i, stream) in all.iter().enumerate() {
            let mut fields = Fields::new(stream, 1, 0);
            for _ in 0..300 {
                let mut frame = vec![0; stream.frame_len()];
                fields.write(Nanos(0), &mut frame);
                let packet = Key::of(&routed(frame)).unwrap();
                let hits: Vec<_> = (0..all.len())
                    .filter(|&m| matches[m].matches(&packet))
                    .collect();
                assert_eq!(hits, [i]);
            }
        }
    }

    fn random(min: u32, max: u32) -> Variable {
        Variable {
            op: Op::Random,
            ..Variable::range("", 4, min.into(), max.into())
        }
    }

    #[test]
    fn tags_do_not_matter_but_what_they_are_may_not_vary() {
        let untagged = streams("bench", Way::Out, "vm=var2,size=100").remove(0);
        let tagged = streams("bench", Way::Out, "vm=var2,size=104,vlan=10").remove(0);
        let known = Match::of(&untagged).unwrap();
        assert_eq!(Match::of(&tagged), Some(known));
        let frame = tagged.frame();
        assert!(known.matches(&Key::of(&frame).unwrap()));
        let second = [&frame[..12], &[0x88, 0xa8, 0, 7], &frame[12..]].concat();
        assert!(known.matches(&Key::of(&second).unwrap()));
        let third = [&second[..12], &[0x88, 0xa8, 0, 7], &second[12..]].concat();
        assert!(Key::of(&third).is_none() && Key::of(&frame[..17]).is_none());
        for (at, width, is_known) in [
            (14, 2, true),
            (12, 2, false),
            (16, 1, false),
            (17, 2, false),
        ] {
            let mut stream = tagged.clone();
            stream.variables.push(Variable::range("", width, 1, 9));
            stream.steps.push(Step::Write {
                variable: stream.variables.len() - 1,
                offset: at,
                add: 0,
                big_endian: true,
            });
            assert_eq!(Match::of(&stream).is_some(), is_known, "{at}");
        }
    }

    #[test]
    fn the_rest_of_an_address_is_fixed() {
        let low = |bits: u128, stream: &Stream| {
            let (first, last) = Match::of(stream).unwrap().destination;
            assert_eq!(first >> bits, last >> bits);
            let bits = (1 << bits) - 1;
            (first & bits, last & bits)
        };
        let mut stream = ip6(62, 12, Variable::range("", 4, 4, 254));
        assert_eq!(low(32, &stream), (4, 254));
        // A number above the interface identifier, and one that reaches beyond the address.
        let mut at = |offset: usize| {
            let Some(Step::Write { offset: place, .. }) = stream.steps.last_mut() else {
                panic!()
            };
            *place = offset;
            low(64 + 32, &stream)
        };
        assert_eq!(at(eth::LEN + IP6.destination + 4), (4 << 64, 254 << 64));
        assert_eq!(at(eth::LEN + IP6.destination + 14), (0, 0xffff));
        // What wraps takes all values.
        stream = ip6(62, 12, Variable::range("", 1, 250, 255));
        if let Some(Step::Write { add, offset, .. }) = stream.steps.last_mut() {
            (*add, *offset) = (3, eth::LEN + IP6.destination + 15);
        }
        assert_eq!(low(8, &stream), (0, 0xff));
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
        stream.steps.push(write(eth::LEN + IP4.ports));
        assert_eq!(Match::of(&stream).unwrap().ports, None);
        stream.steps.push(write(eth::LEN + IP4.source + 1));
        assert_eq!(Match::of(&stream).unwrap().source, (0, u32::MAX.into()));
        stream.steps.push(write(eth::LEN + IP4.protocol - 3));
        assert_eq!(Match::of(&stream), None);
        let mut other = streams("bench", Way::Out, "").remove(0);
        other.packet[12] = 0x86;
        assert_eq!(Match::of(&other), None);
    }

    proptest! {
        #[test]
        fn a_random_frame_is_of_no_stream(frame in proptest::collection::vec(any::<u8>(), 0..80)) {
            let stream = streams("bench", Way::Out, "vm=var2").remove(0);
            let matches = |packet: Key| Match::of(&stream).unwrap().matches(&packet);
            prop_assert!(!Key::of(&frame).is_some_and(matches), "this was never sent");
        }
    }
}
