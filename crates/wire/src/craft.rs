//! Whole packets for tests and generators, from their parts.

use std::net::Ipv6Addr;

use crate::eth::{self, Mac};
use crate::{arp, checksum, icmp4, icmp6, ip, ip4, ip6, tcp, udp};

/// An ARP packet in a frame from its sender to `dst`, padded.
pub fn arp(packet: &arp::Header, dst: Mac) -> Vec<u8> {
    let ethernet = eth::Header::new(dst, packet.sender_mac, eth::ARP);
    padded([&ethernet.bytes()[..], packet.bytes()].concat())
}

fn padded(mut frame: Vec<u8>) -> Vec<u8> {
    frame.resize(frame.len().max(eth::MIN_FRAME), 0);
    frame
}

/// The header of the IP packet, and what stands between it and the transport header.
#[derive(Debug, Clone)]
enum Network {
    Ip4 {
        header: ip4::Header,
        options: Vec<u8>,
    },
    Ip6 {
        header: ip6::Header,
        /// The number of each extension, and its bytes behind the first, which says what follows.
        extensions: Vec<(u8, Vec<u8>)>,
    },
}

impl Network {
    /// Bytes in front of the transport header.
    fn len(&self) -> usize {
        match self {
            Network::Ip4 { options, .. } => ip4::LEN + options.len(),
            Network::Ip6 { extensions, .. } => {
                let bytes = |(_, rest): &(u8, Vec<u8>)| 1 + rest.len();
                ip6::LEN + extensions.iter().map(bytes).sum::<usize>()
            }
        }
    }
}

/// A length as a 16-bit field has it.
fn clamped(length: usize) -> u16 {
    u16::try_from(length).unwrap_or(u16::MAX)
}

/// The payload of an IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    Udp {
        src_port: u16,
        dst_port: u16,
        checksum: bool,
    },
    Tcp {
        src_port: u16,
        dst_port: u16,
        flags: u8,
        seq: u32,
        ack: u32,
    },
    Icmp {
        kind: u8,
        code: u8,
        rest: u32,
    },
    Raw,
}

impl Transport {
    fn udp(src_port: u16, dst_port: u16) -> Self {
        Transport::Udp {
            src_port,
            dst_port,
            checksum: true,
        }
    }

    /// Bytes of its header.
    fn len(self) -> usize {
        match self {
            Transport::Udp { .. } => udp::LEN,
            Transport::Tcp { .. } => tcp::LEN,
            // In both families.
            Transport::Icmp { .. } => icmp4::LEN,
            Transport::Raw => 0,
        }
    }
}

/// An Ethernet frame with an IP packet, correct except where a method says otherwise.
#[derive(Debug, Clone)]
pub struct Packet {
    ethernet: eth::Header,
    network: Network,
    transport: Transport,
    payload: Vec<u8>,
}

impl Packet {
    fn new(ethertype: u16, network: Network, transport: Transport) -> Self {
        let (to, from) = (Mac([2, 0, 0, 0, 0, 2]), Mac([2, 0, 0, 0, 0, 1]));
        Self {
            ethernet: eth::Header::new(to, from, ethertype),
            network,
            transport,
            payload: Vec::new(),
        }
    }

    fn new4(src: u32, dst: u32, proto: u8, transport: Transport) -> Self {
        let network = Network::Ip4 {
            header: ip4::Header::new(src, dst, proto, 0),
            options: Vec::new(),
        };
        Self::new(eth::IP4, network, transport)
    }

    fn new6(
        src: impl Into<Ipv6Addr>,
        dst: impl Into<Ipv6Addr>,
        proto: u8,
        transport: Transport,
    ) -> Self {
        let (src, dst) = (src.into().octets(), dst.into().octets());
        let network = Network::Ip6 {
            header: ip6::Header::new(src, dst, proto, 0),
            extensions: Vec::new(),
        };
        Self::new(eth::IP6, network, transport)
    }

    /// A UDP packet between addresses and ports, with its checksum.
    pub fn udp(src: (u32, u16), dst: (u32, u16)) -> Self {
        Self::new4(src.0, dst.0, ip::UDP, Transport::udp(src.1, dst.1))
    }

    /// As [`udp`](Self::udp), over IPv6.
    pub fn udp6(src: (impl Into<Ipv6Addr>, u16), dst: (impl Into<Ipv6Addr>, u16)) -> Self {
        Self::new6(src.0, dst.0, ip::UDP, Transport::udp(src.1, dst.1))
    }

    /// A TCP segment between addresses and ports.
    pub fn tcp(src: (u32, u16), dst: (u32, u16), flags: u8, seq: u32, ack: u32) -> Self {
        let transport = Transport::Tcp {
            src_port: src.1,
            dst_port: dst.1,
            flags,
            seq,
            ack,
        };
        Self::new4(src.0, dst.0, ip::TCP, transport)
    }

    /// As [`tcp`](Self::tcp), over IPv6.
    pub fn tcp6(
        src: (impl Into<Ipv6Addr>, u16),
        dst: (impl Into<Ipv6Addr>, u16),
        flags: u8,
        seq: u32,
        ack: u32,
    ) -> Self {
        let transport = Transport::Tcp {
            src_port: src.1,
            dst_port: dst.1,
            flags,
            seq,
            ack,
        };
        Self::new6(src.0, dst.0, ip::TCP, transport)
    }

    /// An ICMP message; `rest` is the four bytes after the checksum.
    pub fn icmp(src: u32, dst: u32, kind: u8, code: u8, rest: u32) -> Self {
        Self::new4(src, dst, ip::ICMP, Transport::Icmp { kind, code, rest })
    }

    /// As [`icmp`](Self::icmp), of ICMP for IPv6.
    pub fn icmp6(
        src: impl Into<Ipv6Addr>,
        dst: impl Into<Ipv6Addr>,
        kind: u8,
        code: u8,
        rest: u32,
    ) -> Self {
        Self::new6(src, dst, ip::ICMP6, Transport::Icmp { kind, code, rest })
    }

    /// An echo request.
    pub fn echo_request(src: u32, dst: u32, id: u16, seq: u16) -> Self {
        let rest = u32::from(id) << 16 | u32::from(seq);
        Self::icmp(src, dst, icmp4::ECHO_REQUEST, 0, rest)
    }

    /// As [`echo_request`](Self::echo_request), over IPv6.
    pub fn echo_request6(
        src: impl Into<Ipv6Addr>,
        dst: impl Into<Ipv6Addr>,
        id: u16,
        seq: u16,
    ) -> Self {
        let rest = u32::from(id) << 16 | u32::from(seq);
        Self::icmp6(src, dst, icmp6::ECHO_REQUEST, 0, rest)
    }

    /// A packet whose payload follows the IPv4 header without a transport header.
    pub fn raw(src: u32, dst: u32, proto: u8) -> Self {
        Self::new4(src, dst, proto, Transport::Raw)
    }

    /// As [`raw`](Self::raw), over IPv6.
    pub fn raw6(src: impl Into<Ipv6Addr>, dst: impl Into<Ipv6Addr>, proto: u8) -> Self {
        Self::new6(src, dst, proto, Transport::Raw)
    }

    /// Ethernet source and destination; by default 02:00:00:00:00:01 and :02.
    pub fn macs(mut self, src: Mac, dst: Mac) -> Self {
        (self.ethernet.src, self.ethernet.dst) = (src, dst);
        self
    }

    /// Hops left; by default 64.
    pub fn ttl(mut self, ttl: u8) -> Self {
        match &mut self.network {
            Network::Ip4 { header, .. } => header.ttl = ttl,
            Network::Ip6 { header, .. } => header.hop_limit = ttl,
        }
        self
    }

    /// Type of service, or traffic class; by default 0.
    pub fn tos(mut self, tos: u8) -> Self {
        match &mut self.network {
            Network::Ip4 { header, .. } => header.tos = tos,
            Network::Ip6 { header, .. } => header.set_traffic_class(tos),
        }
        self
    }

    /// Identification of an IPv4 packet; by default 0.
    pub fn id(mut self, id: u16) -> Self {
        if let Network::Ip4 { header, .. } = &mut self.network {
            header.set_id(id);
        }
        self
    }

    /// The fragment word of an IPv4 packet (see [`ip4::Header::fragment`]); by default 0.
    pub fn fragment(mut self, word: u16) -> Self {
        if let Network::Ip4 { header, .. } = &mut self.network {
            header.set_fragment(word);
        }
        self
    }

    /// Options of an IPv4 packet; filled with zeros to whole words, cut after 40 bytes.
    pub fn options(mut self, given: &[u8]) -> Self {
        if let Network::Ip4 { options, .. } = &mut self.network {
            let length = given.len().next_multiple_of(4);
            *options = given.to_vec();
            options.resize(length.min(ip4::MAX_LEN - ip4::LEN), 0);
        }
        self
    }

    /// The flow label of an IPv6 packet, 20 bits; by default 0.
    pub fn flow_label(mut self, label: u32) -> Self {
        if let Network::Ip6 { header, .. } = &mut self.network {
            header.set_flow_label(label);
        }
        self
    }

    /// One more extension header of an IPv6 packet, behind those it has: its number and its bytes
    /// behind the first, which says what follows. Nothing is corrected.
    pub fn extension(mut self, number: u8, bytes: &[u8]) -> Self {
        if let Network::Ip6 { extensions, .. } = &mut self.network {
            extensions.push((number, bytes.to_vec()));
        }
        self
    }

    /// Leaves out the checksum of a UDP packet.
    pub fn without_udp_checksum(mut self) -> Self {
        if let Transport::Udp { checksum, .. } = &mut self.transport {
            *checksum = false;
        }
        self
    }

    /// The data.
    pub fn payload(mut self, payload: &[u8]) -> Self {
        self.payload = payload.to_vec();
        self
    }

    /// Cuts the data or fills it with zeros so that the frame has `bytes` bytes without its
    /// checksum (a "64 byte packet" has 60). It is never shorter than its headers.
    pub fn frame_len(mut self, bytes: usize) -> Self {
        let headers = eth::LEN + self.network.len() + self.transport.len();
        self.payload.resize(bytes.saturating_sub(headers), 0);
        self
    }

    /// The IP packet.
    pub fn packet(&self) -> Vec<u8> {
        match &self.network {
            Network::Ip4 { header, options } => {
                let segment = self.segment(header.src(), header.dst());
                let mut header = *header;
                let header_len = ip4::LEN + options.len();
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "options are cut after 40 bytes"
                )]
                let words = (header_len / 4) as u8;
                header.version_ihl = 0x40 | words;
                header.set_total_len(clamped(header_len + segment.len()));
                header.set_checksum(0);
                let covered = [header.bytes(), &options[..]].concat();
                header.set_checksum(checksum::of(&covered));
                [header.bytes(), &options[..], &segment].concat()
            }
            Network::Ip6 { header, extensions } => {
                let segment = self.segment(header.src, header.dst);
                let mut header = *header;
                let mut chain = Vec::new();
                let mut next = header.next_header;
                for (number, bytes) in extensions.iter().rev() {
                    chain.splice(..0, [&[next][..], bytes].concat());
                    next = *number;
                }
                header.next_header = next;
                header.set_payload_len(clamped(chain.len() + segment.len()));
                [&header.bytes()[..], &chain, &segment].concat()
            }
        }
    }

    /// The frame, without its checksum; a short one is padded with zeros to [`eth::MIN_FRAME`].
    pub fn frame(&self) -> Vec<u8> {
        padded([&self.ethernet.bytes()[..], &self.packet()].concat())
    }

    /// Transport header and data.
    fn segment<A: checksum::Address>(&self, src: A, dst: A) -> Vec<u8> {
        let with = |header: &[u8]| [header, &self.payload].concat();
        match self.transport {
            Transport::Udp {
                src_port,
                dst_port,
                checksum,
            } => {
                let mut segment =
                    with(udp::Header::new(src_port, dst_port, self.payload.len()).bytes());
                if checksum {
                    udp::seal(src, dst, &mut segment);
                }
                segment
            }
            Transport::Tcp {
                src_port,
                dst_port,
                flags,
                seq,
                ack,
            } => {
                let mut segment =
                    with(tcp::Header::new(src_port, dst_port, flags, seq, ack).bytes());
                tcp::seal(src, dst, &mut segment);
                segment
            }
            Transport::Icmp { kind, code, rest } => {
                let mut message = with(icmp4::Header::new(kind, code, rest).bytes());
                match &self.network {
                    Network::Ip4 { .. } => icmp4::seal(&mut message),
                    Network::Ip6 { header, .. } => {
                        icmp6::seal(header.src, header.dst, &mut message);
                    }
                }
                message
            }
            Transport::Raw => self.payload.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const A: u32 = 0x1000_0001;
    const B: u32 = 0x3000_0001;

    #[test]
    fn every_kind_is_right() {
        let packets = [
            Packet::udp((A, 1025), (B, 12)),
            Packet::tcp((A, 1025), (B, 80), tcp::SYN, 1, 0),
            Packet::echo_request(A, B, 1, 2),
            Packet::raw(A, B, 47),
        ];
        for packet in packets {
            let frame = packet
                .clone()
                .payload(b"some data")
                .options(&[7, 3, 4])
                .ttl(3)
                .frame();
            let (ethernet, rest) = eth::Header::parse(&frame).unwrap();
            let (header, after) = ip4::Header::parse(rest).unwrap();
            assert_eq!(
                (ethernet.ethertype(), header.header_len(), header.ttl),
                (eth::IP4, 24, 3)
            );
            assert_eq!(checksum::of(&rest[..24]), 0);
            let segment = &after[4..usize::from(header.total_len()) - ip4::LEN];
            assert!(segment.ends_with(b"some data"));
            match header.proto {
                ip::ICMP => assert_eq!(checksum::of(segment), 0),
                ip::UDP | ip::TCP => {
                    assert_eq!(checksum::transport(A, B, header.proto, segment), 0)
                }
                _ => assert_eq!(segment, b"some data"),
            }
            assert_eq!(packet.clone().frame_len(1514).frame().len(), 1514);
            assert_eq!(packet.frame_len(0).frame().len(), 60);
        }
    }

    #[test]
    fn every_kind_is_right_over_ip6() {
        let (a, b) = (
            Ipv6Addr::from_bits(0x2001_0db8 << 96 | 1),
            Ipv6Addr::LOCALHOST,
        );
        let packets = [
            Packet::udp6((a, 1025), (b, 12)),
            Packet::tcp6((a, 1025), (b, 80), tcp::SYN, 1, 0),
            Packet::echo_request6(a, b, 1, 2),
            Packet::raw6(a, b, 47),
        ];
        for packet in packets {
            let crafted = packet
                .clone()
                .payload(b"some data")
                .extension(ip::HOP_BY_HOP, &[0, 1, 4, 0, 0, 0, 0])
                .extension(ip::FRAGMENT, &[0, 0, 0, 0, 0, 0, 9])
                .ttl(3)
                .tos(0xb8)
                .flow_label(7);
            let frame = crafted.frame();
            let (ethernet, rest) = eth::Header::parse(&frame).unwrap();
            let (header, content) = ip6::Header::parse(rest).unwrap();
            assert_eq!((ethernet.ethertype(), header.hop_limit), (eth::IP6, 3));
            assert_eq!((header.traffic_class(), header.flow_label()), (0xb8, 7));
            assert_eq!(rest.len(), header.total_len());
            let upper = ip6::upper_layer(header.next_header, content);
            assert_eq!(upper.fragment, Some((0, false)));
            assert!(upper.content.ends_with(b"some data"));
            match upper.proto {
                47 => assert_eq!(upper.content, b"some data"),
                proto => {
                    let sum = checksum::transport(header.src, header.dst, proto, upper.content);
                    assert_eq!(sum, 0);
                }
            }
            assert_eq!(crafted.frame_len(1514).frame().len(), 1514);
            let least = 60.max(eth::LEN + ip6::LEN + packet.transport.len());
            assert_eq!(packet.frame_len(0).frame().len(), least);
        }
    }

    #[test]
    fn a_known_packet() {
        let packet = Packet::udp((A, 1025), (B, 12))
            .without_udp_checksum()
            .frame_len(60)
            .frame();
        let header = ip4::Header::parse(&packet[14..]).unwrap().0;
        assert_eq!((header.total_len(), header.checksum()), (46, 0x3abe));
        assert_eq!(packet[34..42], [4, 1, 0, 12, 0, 26, 0, 0]);
    }
}
