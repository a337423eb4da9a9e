//! Whole packets for tests and generators, from their parts.

use crate::eth::{self, Mac};
use crate::{arp, icmp4, ip, ip4, tcp, udp};

/// An ARP packet in a frame from its sender to `dst`, padded.
pub fn arp(packet: &arp::Header, dst: Mac) -> Vec<u8> {
    let ethernet = eth::Header::new(dst, packet.sender_mac, eth::ARP);
    padded([&ethernet.bytes()[..], packet.bytes()].concat())
}

fn padded(mut frame: Vec<u8>) -> Vec<u8> {
    frame.resize(frame.len().max(eth::MIN_FRAME), 0);
    frame
}

/// The payload of an IPv4 packet.
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

/// An Ethernet frame with an IPv4 packet, correct except where a method says otherwise.
#[derive(Debug, Clone)]
pub struct Packet {
    ethernet: eth::Header,
    header: ip4::Header,
    options: Vec<u8>,
    transport: Transport,
    payload: Vec<u8>,
}

impl Packet {
    fn new(src: u32, dst: u32, proto: u8, transport: Transport) -> Self {
        let ethernet = eth::Header::new(Mac([2, 0, 0, 0, 0, 2]), Mac([2, 0, 0, 0, 0, 1]), eth::IP4);
        let header = ip4::Header::new(src, dst, proto, 0);
        Self {
            ethernet,
            header,
            options: Vec::new(),
            transport,
            payload: Vec::new(),
        }
    }

    /// A UDP packet between addresses and ports, with its checksum.
    pub fn udp(src: (u32, u16), dst: (u32, u16)) -> Self {
        let transport = Transport::Udp {
            src_port: src.1,
            dst_port: dst.1,
            checksum: true,
        };
        Self::new(src.0, dst.0, ip::UDP, transport)
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
        Self::new(src.0, dst.0, ip::TCP, transport)
    }

    /// An ICMP message; `rest` is the four bytes after the checksum.
    pub fn icmp(src: u32, dst: u32, kind: u8, code: u8, rest: u32) -> Self {
        Self::new(src, dst, ip::ICMP, Transport::Icmp { kind, code, rest })
    }

    /// An echo request.
    pub fn echo_request(src: u32, dst: u32, id: u16, seq: u16) -> Self {
        Self::icmp(
            src,
            dst,
            icmp4::ECHO_REQUEST,
            0,
            u32::from(id) << 16 | u32::from(seq),
        )
    }

    /// A packet whose payload follows the IPv4 header without a transport header.
    pub fn raw(src: u32, dst: u32, proto: u8) -> Self {
        Self::new(src, dst, proto, Transport::Raw)
    }

    /// Ethernet source and destination; by default 02:00:00:00:00:01 and :02.
    pub fn macs(mut self, src: Mac, dst: Mac) -> Self {
        (self.ethernet.src, self.ethernet.dst) = (src, dst);
        self
    }

    /// Hops left; by default 64.
    pub fn ttl(mut self, ttl: u8) -> Self {
        self.header.ttl = ttl;
        self
    }

    /// Type of service; by default 0.
    pub fn tos(mut self, tos: u8) -> Self {
        self.header.tos = tos;
        self
    }

    /// Identification; by default 0.
    pub fn id(mut self, id: u16) -> Self {
        self.header.set_id(id);
        self
    }

    /// The fragment word (see [`ip4::Header::fragment`]); by default 0.
    pub fn fragment(mut self, word: u16) -> Self {
        self.header.set_fragment(word);
        self
    }

    /// IPv4 options; filled with zeros to whole words, cut after 40 bytes.
    pub fn options(mut self, options: &[u8]) -> Self {
        self.options = options.to_vec();
        self.options.resize(
            options
                .len()
                .next_multiple_of(4)
                .min(ip4::MAX_LEN - ip4::LEN),
            0,
        );
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
        let headers = eth::LEN + ip4::LEN + self.options.len() + self.transport_len();
        self.payload.resize(bytes.saturating_sub(headers), 0);
        self
    }

    /// The IPv4 packet.
    pub fn ip4(&self) -> Vec<u8> {
        let segment = self.segment();
        let mut header = self.header;
        let header_len = ip4::LEN + self.options.len();
        #[expect(
            clippy::cast_possible_truncation,
            reason = "options are cut after 40 bytes"
        )]
        let words = (header_len / 4) as u8;
        header.version_ihl = 0x40 | words;
        header.set_total_len(u16::try_from(header_len + segment.len()).unwrap_or(u16::MAX));
        header.set_checksum(0);
        let covered = [header.bytes(), &self.options[..]].concat();
        header.set_checksum(crate::checksum::of(&covered));
        [header.bytes(), &self.options[..], &segment].concat()
    }

    /// The frame, without its checksum; a short one is padded with zeros to [`eth::MIN_FRAME`].
    pub fn frame(&self) -> Vec<u8> {
        padded([&self.ethernet.bytes()[..], &self.ip4()].concat())
    }

    fn transport_len(&self) -> usize {
        match self.transport {
            Transport::Udp { .. } => udp::LEN,
            Transport::Tcp { .. } => tcp::LEN,
            Transport::Icmp { .. } => icmp4::LEN,
            Transport::Raw => 0,
        }
    }

    /// Transport header and data.
    fn segment(&self) -> Vec<u8> {
        let (src, dst) = (self.header.src(), self.header.dst());
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
                icmp4::seal(&mut message);
                message
            }
            Transport::Raw => self.payload.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum;

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
