//! IPv4 and IPv6 packets, right and wrong. Built here and not with the router's own code, so that a mistake
//! there shows.

use std::net::{Ipv4Addr, Ipv6Addr};

/// An Ethernet address.
pub type Mac = [u8; 6];

/// UDP's protocol number.
pub const UDP: u8 = 17;
/// ICMP's protocol number.
pub const ICMP: u8 = 1;
/// ICMPv6's protocol number.
pub const ICMP6: u8 = 58;
/// Don't fragment, in the flags and offset field.
pub const DF: u16 = 0x4000;
/// More fragments, in the flags and offset field.
pub const MF: u16 = 0x2000;

/// An IPv4 packet; fields that are `None` are computed.
#[derive(Debug, Clone)]
pub struct Ip4 {
    pub version: u8,
    pub header_words: Option<u8>,
    pub tos: u8,
    pub total_length: Option<u16>,
    pub id: u16,
    pub fragment: u16,
    pub ttl: u8,
    pub protocol: u8,
    pub checksum: Option<u16>,
    pub src: Ipv4Addr,
    pub dst: Ipv4Addr,
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
}

impl Ip4 {
    /// A packet that any router forwards, with `length` bytes of UDP (8 at least).
    pub fn udp(src: Ipv4Addr, dst: Ipv4Addr, id: u16, length: usize) -> Self {
        let mut payload: Vec<u8> = (0..length.max(8))
            .map(|i| (i as u8).wrapping_mul(7).wrapping_add(id as u8))
            .collect();
        let udp_length = payload.len() as u16;
        payload[..2].copy_from_slice(&1025u16.to_be_bytes());
        payload[2..4].copy_from_slice(&12u16.to_be_bytes());
        payload[4..6].copy_from_slice(&udp_length.to_be_bytes());
        // Zero: the sender computed none (RFC 768).
        payload[6..8].copy_from_slice(&[0, 0]);
        Self {
            version: 4,
            header_words: None,
            tos: 0,
            total_length: None,
            id,
            fragment: 0,
            ttl: 64,
            protocol: UDP,
            checksum: None,
            src,
            dst,
            options: Vec::new(),
            payload,
        }
    }

    /// An echo request.
    pub fn echo(src: Ipv4Addr, dst: Ipv4Addr, id: u16) -> Self {
        let mut payload = vec![8, 0, 0, 0];
        payload.extend(id.to_be_bytes());
        payload.extend([0, 1]);
        payload.extend([0x55; 24]);
        let sum = checksum(&payload);
        payload[2..4].copy_from_slice(&sum.to_be_bytes());
        Self {
            protocol: ICMP,
            payload,
            ..Self::udp(src, dst, id, 8)
        }
    }

    /// The packet's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let header = 20 + self.options.len();
        let words = self.header_words.unwrap_or((header / 4) as u8);
        let total = self
            .total_length
            .unwrap_or((header + self.payload.len()) as u16);
        let mut bytes = vec![self.version << 4 | words & 15, self.tos];
        bytes.extend(total.to_be_bytes());
        bytes.extend(self.id.to_be_bytes());
        bytes.extend(self.fragment.to_be_bytes());
        bytes.extend([self.ttl, self.protocol, 0, 0]);
        bytes.extend(self.src.octets());
        bytes.extend(self.dst.octets());
        bytes.extend(&self.options);
        let sum = self.checksum.unwrap_or_else(|| checksum(&bytes));
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        bytes.extend(&self.payload);
        bytes
    }

    /// An Ethernet frame with the packet, padded to the least length.
    pub fn frame(&self, src: Mac, dst: Mac) -> Vec<u8> {
        let mut frame = [dst, src].concat();
        frame.extend([0x08, 0x00]);
        frame.extend(self.bytes());
        frame.resize(frame.len().max(60), 0);
        frame
    }
}

/// An IPv6 packet; fields that are `None` are computed.
#[derive(Debug, Clone)]
pub struct Ip6 {
    pub version: u8,
    pub traffic_class: u8,
    pub flow_label: u32,
    pub payload_length: Option<u16>,
    pub next_header: u8,
    pub hop_limit: u8,
    pub src: Ipv6Addr,
    pub dst: Ipv6Addr,
    pub payload: Vec<u8>,
}

impl Ip6 {
    /// A packet that any router forwards, with `length` bytes of UDP (8 at least). Its checksum is
    /// right.
    pub fn udp(src: Ipv6Addr, dst: Ipv6Addr, id: u16, length: usize) -> Self {
        let payload = Ip4::udp(Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED, id, length).payload;
        let mut packet = Self {
            version: 6,
            traffic_class: 0,
            flow_label: 0,
            payload_length: None,
            next_header: UDP,
            hop_limit: 64,
            src,
            dst,
            payload,
        };
        packet.seal(6);
        packet
    }

    /// An echo request.
    pub fn echo(src: Ipv6Addr, dst: Ipv6Addr, id: u16) -> Self {
        let mut payload = vec![128, 0, 0, 0];
        payload.extend(id.to_be_bytes());
        payload.extend([0, 1]);
        payload.extend([0x55; 24]);
        let mut packet = Self {
            next_header: ICMP6,
            payload,
            ..Self::udp(src, dst, id, 8)
        };
        packet.seal(2);
        packet
    }

    /// Makes the checksum right that is at `at` in the payload, which is a whole segment of the
    /// protocol of the next header.
    pub fn seal(&mut self, at: usize) {
        self.payload[at..at + 2].fill(0);
        let mut covered = [self.src.octets(), self.dst.octets()].concat();
        covered.extend((self.payload.len() as u32).to_be_bytes());
        covered.extend([0, 0, 0, self.next_header]);
        covered.extend(&self.payload);
        let sum = checksum(&covered);
        self.payload[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }

    /// Puts an extension header in front of the payload: its number and its bytes behind the first,
    /// which says what follows.
    pub fn extend(&mut self, number: u8, bytes: &[u8]) {
        let mut payload = vec![self.next_header];
        payload.extend(bytes);
        payload.append(&mut self.payload);
        (self.next_header, self.payload) = (number, payload);
    }

    /// The packet's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let class = u32::from(self.traffic_class) << 20;
        let first = u32::from(self.version) << 28 | class | self.flow_label & 0xf_ffff;
        let length = self.payload_length.unwrap_or(self.payload.len() as u16);
        let mut bytes = first.to_be_bytes().to_vec();
        bytes.extend(length.to_be_bytes());
        bytes.extend([self.next_header, self.hop_limit]);
        bytes.extend(self.src.octets());
        bytes.extend(self.dst.octets());
        bytes.extend(&self.payload);
        bytes
    }

    /// An Ethernet frame with the packet, padded to the least length.
    pub fn frame(&self, src: Mac, dst: Mac) -> Vec<u8> {
        let mut frame = [dst, src].concat();
        frame.extend([0x86, 0xdd]);
        frame.extend(self.bytes());
        frame.resize(frame.len().max(60), 0);
        frame
    }
}

/// The Internet checksum (RFC 1071) of bytes whose own checksum field is zero; 0 if it is filled in
/// and right.
pub fn checksum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[test]
fn checksum_of_the_rfc() {
    // RFC 1071 section 3.
    assert_eq!(
        checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]),
        !0xddf2
    );
    let packet = Ip4::udp([192, 0, 2, 1].into(), [198, 51, 100, 1].into(), 7, 30).bytes();
    assert_eq!((packet.len(), checksum(&packet[..20])), (50, 0));
}
