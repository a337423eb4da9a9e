//! Packets as text: several lines for traces, one line for lists.
//!
//! Any bytes are accepted; the text says what is cut off or makes no sense. A text of several lines
//! has no newline at its end, and its inner lines are indented from the first by two spaces a
//! level.

use std::fmt::{self, Display, Formatter};
use std::net::Ipv4Addr;

use crate::eth::{self, Mac};
use crate::{arp, checksum, icmp4, ip, ip4, tcp, udp};

/// An Ethernet frame. `{}` gives one line, `{:#}` several.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a>(pub &'a [u8]);

/// An IPv4 packet. `{}` gives one line, `{:#}` several.
#[derive(Debug, Clone, Copy)]
pub struct Ip4<'a>(pub &'a [u8]);

impl Display for Frame<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some((header, rest)) = eth::Header::parse(self.0) else {
            return write!(f, "a frame cut off after {} bytes", self.0.len());
        };
        match (header.ethertype(), f.alternate()) {
            (eth::IP4, false) => Ip4(rest).fmt(f),
            (eth::IP4, true) => write!(f, "{}\n{:#}", Link(header), Ip4(rest)),
            (eth::ARP, false) => write!(f, "{}", Arp(rest)),
            (eth::ARP, true) => write!(f, "{}\n{}", Link(header), Arp(rest)),
            _ => write!(f, "{}, {} bytes", Link(header), self.0.len()),
        }
    }
}

impl Display for Ip4<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some((header, _)) = ip4::Header::parse(self.0) else {
            return write!(f, "an IPv4 header cut off after {} bytes", self.0.len());
        };
        if f.alternate() {
            details(f, header, self.0)
        } else {
            line(f, header, self.segment(header))
        }
    }
}

impl Ip4<'_> {
    /// The payload after header and options, without link padding; empty in all fragments but the
    /// first.
    fn segment(&self, header: &ip4::Header) -> &[u8] {
        let end = self.0.len().min(usize::from(header.total_len()));
        if header.fragment_offset() > 0 {
            return &[];
        }
        self.0
            .get(header.header_len().max(ip4::LEN)..end)
            .unwrap_or_default()
    }
}

/// `IP4: 02:00:00:00:00:01 -> 02:00:00:00:00:02`
struct Link<'a>(&'a eth::Header);

impl Display for Link<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let eth::Header { src, dst, .. } = self.0;
        match self.0.ethertype() {
            eth::IP4 => f.write_str("IP4")?,
            eth::ARP => f.write_str("ARP")?,
            eth::IP6 => f.write_str("IP6")?,
            eth::VLAN => f.write_str("VLAN")?,
            other => write!(f, "{other:#06x}")?,
        }
        write!(f, ": {src} -> {dst}")
    }
}

/// `ARP request: 02:00:00:00:00:01/10.0.0.1 -> 00:00:00:00:00:00/10.0.0.2`
struct Arp<'a>(&'a [u8]);

impl Display for Arp<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some((packet, _)) = arp::Header::parse(self.0) else {
            return write!(f, "an ARP packet cut off after {} bytes", self.0.len());
        };
        if !packet.is_ip4_over_ethernet() {
            return f.write_str("ARP of other than IPv4 over Ethernet");
        }
        match packet.operation() {
            arp::REQUEST => f.write_str("ARP request: ")?,
            arp::REPLY => f.write_str("ARP reply: ")?,
            other => write!(f, "ARP operation {other}: ")?,
        }
        let end = |mac: Mac, address| format!("{mac}/{}", Ipv4Addr::from_bits(address));
        let target = end(packet.target_mac, packet.target());
        write!(f, "{} -> {target}", end(packet.sender_mac, packet.sender()))
    }
}

/// `UDP: 16.0.0.1 -> 48.0.0.1` and, below, what else is in the headers.
fn details(f: &mut Formatter<'_>, header: &ip4::Header, packet: &[u8]) -> fmt::Result {
    let (src, dst) = (
        Ipv4Addr::from_bits(header.src()),
        Ipv4Addr::from_bits(header.dst()),
    );
    writeln!(f, "{}: {src} -> {dst}", Proto(header.proto))?;
    let (tos, ttl, length) = (header.tos, header.ttl, header.total_len());
    write!(
        f,
        "  tos {tos:#04x}, ttl {ttl}, length {length}, checksum {:#06x}",
        header.checksum()
    )?;
    if let Some(right) = corrected(header, packet) {
        write!(f, " (should be {right:#06x})")?;
    }
    writeln!(
        f,
        " dscp {} ecn {}",
        Dscp(header.dscp()),
        ECN[usize::from(header.ecn())]
    )?;
    write!(f, "  fragment id {:#06x}", header.id())?;
    if header.is_fragment() {
        write!(f, " offset {}", header.fragment_offset())?;
    }
    let flags = names(header.fragment(), &FRAGMENT_FLAGS);
    if !flags.is_empty() {
        write!(f, ", flags {flags}")?;
    }
    if header.version() != 4 {
        write!(f, ", version {}", header.version())?;
    }
    if header.header_len() != ip4::LEN {
        write!(f, ", header {} bytes", header.header_len())?;
    }
    transport(f, header.proto, Ip4(packet).segment(header))
}

/// The lines of the header in `segment`, if all of it is there.
fn transport(f: &mut Formatter<'_>, proto: u8, segment: &[u8]) -> fmt::Result {
    match proto {
        ip::UDP => udp::Header::parse(segment).map_or(Ok(()), |(header, _)| udp_lines(f, header)),
        ip::TCP => tcp::Header::parse(segment).map_or(Ok(()), |(header, _)| tcp_lines(f, header)),
        ip::ICMP => icmp4::Header::parse(segment).map_or(Ok(()), |(header, _)| {
            let checksum = header.checksum();
            write!(f, "\nICMP {}, checksum {checksum:#06x}", Icmp(header))
        }),
        _ => Ok(()),
    }
}

fn udp_lines(f: &mut Formatter<'_>, header: &udp::Header) -> fmt::Result {
    let (length, checksum) = (header.length(), header.checksum());
    writeln!(f, "\nUDP: {} -> {}", header.src_port(), header.dst_port())?;
    write!(f, "  length {length}, checksum {checksum:#06x}")
}

fn tcp_lines(f: &mut Formatter<'_>, header: &tcp::Header) -> fmt::Result {
    let (seq, ack, flags) = (header.seq(), header.ack(), header.flags);
    let (names, header_len) = (names(flags.into(), &TCP_FLAGS), header.header_len());
    let (window, checksum) = (header.window(), header.checksum());
    writeln!(f, "\nTCP: {} -> {}", header.src_port(), header.dst_port())?;
    writeln!(f, "  seq. {seq:#010x} ack {ack:#010x}")?;
    writeln!(
        f,
        "  flags {flags:#04x} {names}, header: {header_len} bytes"
    )?;
    write!(f, "  window {window}, checksum {checksum:#06x}")
}

/// `UDP 16.0.0.1:1025 -> 48.0.0.1:12, length 46, ttl 64`
fn line(f: &mut Formatter<'_>, header: &ip4::Header, segment: &[u8]) -> fmt::Result {
    let ports = match header.proto {
        ip::UDP => udp::Header::parse(segment).map(|(udp, _)| (udp.src_port(), udp.dst_port())),
        ip::TCP => tcp::Header::parse(segment).map(|(tcp, _)| (tcp.src_port(), tcp.dst_port())),
        _ => None,
    };
    let (src, dst) = (
        Ipv4Addr::from_bits(header.src()),
        Ipv4Addr::from_bits(header.dst()),
    );
    write!(f, "{} ", Proto(header.proto))?;
    match ports {
        Some((from, to)) => write!(f, "{src}:{from} -> {dst}:{to}")?,
        None => write!(f, "{src} -> {dst}")?,
    }
    if let (ip::ICMP, Some((icmp, _))) = (header.proto, icmp4::Header::parse(segment)) {
        write!(f, " {}", Icmp(icmp))?;
    }
    if header.is_fragment() {
        write!(
            f,
            ", fragment {:#06x} at {}",
            header.id(),
            header.fragment_offset()
        )?;
    }
    write!(f, ", length {}, ttl {}", header.total_len(), header.ttl)
}

/// The checksum that a header should have, if it has another. One that is cut off is not judged.
fn corrected(header: &ip4::Header, packet: &[u8]) -> Option<u16> {
    let covered = packet.get(..header.header_len().max(ip4::LEN))?;
    // The sum without the field's own share.
    let right = checksum::Sum::default()
        .with(covered)
        .with_u16(!header.checksum())
        .checksum();
    (checksum::of(covered) != 0).then_some(right)
}

struct Proto(u8);

impl Display for Proto {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            ip::ICMP => f.write_str("ICMP"),
            ip::TCP => f.write_str("TCP"),
            ip::UDP => f.write_str("UDP"),
            ip::IGMP => f.write_str("IGMP"),
            ip::IP4 => f.write_str("IP_IN_IP"),
            ip::IP6 => f.write_str("IP6_IN_IP4"),
            ip::GRE => f.write_str("GRE"),
            ip::ESP => f.write_str("ESP"),
            ip::AH => f.write_str("AH"),
            ip::OSPF => f.write_str("OSPF"),
            ip::VRRP => f.write_str("VRRP"),
            ip::SCTP => f.write_str("SCTP"),
            other => write!(f, "protocol {other}"),
        }
    }
}

/// A code point's name (RFC 4594 section 2.3, RFC 5865, RFC 8622) or number.
struct Dscp(u8);

impl Display for Dscp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (class, drop) = (self.0 >> 3, (self.0 & 7) >> 1);
        match self.0 {
            1 => f.write_str("LE"),
            44 => f.write_str("VA"),
            46 => f.write_str("EF"),
            _ if self.0 & 7 == 0 => write!(f, "CS{class}"),
            _ if self.0 & 1 == 0 && (1..=4).contains(&class) => write!(f, "AF{class}{drop}"),
            other => write!(f, "{other}"),
        }
    }
}

struct Icmp<'a>(&'a icmp4::Header);

impl Display for Icmp<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (rest, code) = (self.0.rest(), self.0.code);
        let echo = |f: &mut Formatter<'_>, name| {
            write!(f, "{name} id {} seq {}", rest >> 16, rest & 0xffff)
        };
        match (self.0.kind, code) {
            (icmp4::ECHO_REQUEST, 0) => echo(f, "echo_request"),
            (icmp4::ECHO_REPLY, 0) => echo(f, "echo_reply"),
            (icmp4::UNREACHABLE, icmp4::NET) => f.write_str("network_unreachable"),
            (icmp4::UNREACHABLE, icmp4::HOST) => f.write_str("host_unreachable"),
            (icmp4::UNREACHABLE, icmp4::PROTOCOL) => f.write_str("protocol_unreachable"),
            (icmp4::UNREACHABLE, icmp4::PORT) => f.write_str("port_unreachable"),
            (icmp4::UNREACHABLE, icmp4::FRAGMENTATION_NEEDED) => {
                write!(f, "fragmentation_needed mtu {}", rest & 0xffff)
            }
            (icmp4::UNREACHABLE, icmp4::PROHIBITED) => f.write_str("administratively_prohibited"),
            (icmp4::TIME_EXCEEDED, icmp4::IN_TRANSIT) => f.write_str("ttl_exceeded"),
            (icmp4::PARAMETER_PROBLEM, 0) => write!(f, "parameter_problem at {}", rest >> 24),
            (kind, code) => write!(f, "type {kind} code {code}"),
        }
    }
}

const ECN: [&str; 4] = ["NON_ECN", "ECT_1", "ECT_0", "CE"];

const FRAGMENT_FLAGS: [(u16, &str); 3] = [
    (0x8000, "RESERVED"),
    (ip4::DONT_FRAGMENT, "DONT_FRAGMENT"),
    (ip4::MORE_FRAGMENTS, "MORE_FRAGMENTS"),
];

const TCP_FLAGS: [(u16, &str); 8] = [
    (0x80, "CWR"),
    (0x40, "ECE"),
    (0x20, "URG"),
    (tcp::ACK as u16, "ACK"),
    (tcp::PSH as u16, "PSH"),
    (tcp::RST as u16, "RST"),
    (tcp::SYN as u16, "SYN"),
    (tcp::FIN as u16, "FIN"),
];

/// The names of the bits that are set.
fn names(bits: u16, of: &[(u16, &str)]) -> String {
    let set: Vec<_> = of
        .iter()
        .filter(|(bit, _)| bits & bit != 0)
        .map(|(_, name)| *name)
        .collect();
    set.join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::craft::{self, Packet};

    const A: u32 = 0x1000_0001;
    const B: u32 = 0x3000_0001;

    #[test]
    fn a_udp_packet() {
        let frame = Packet::udp((A, 1025), (B, 12))
            .without_udp_checksum()
            .frame_len(60)
            .frame();
        let expected = "\
IP4: 02:00:00:00:00:01 -> 02:00:00:00:00:02
UDP: 16.0.0.1 -> 48.0.0.1
  tos 0x00, ttl 64, length 46, checksum 0x3abe dscp CS0 ecn NON_ECN
  fragment id 0x0000
UDP: 1025 -> 12
  length 26, checksum 0x0000";
        assert_eq!(format!("{:#}", Frame(&frame)), expected);
        assert_eq!(
            Frame(&frame).to_string(),
            "UDP 16.0.0.1:1025 -> 48.0.0.1:12, length 46, ttl 64"
        );
    }

    #[test]
    fn a_tcp_fragment_with_a_wrong_checksum() {
        let packet = Packet::tcp((A, 1), (B, 2), tcp::SYN | tcp::ACK, 7, 8)
            .fragment(0x6000)
            .id(9)
            .tos(0xb9);
        let mut bytes = packet.options(&[1; 4]).ip4();
        let right = u16::from_be_bytes([bytes[10], bytes[11]]);
        bytes[10] ^= 0xff;
        let text = format!("{:#}", Ip4(&bytes));
        assert!(
            text.contains(&format!("(should be {right:#06x}) dscp EF ecn ECT_1")),
            "{text}"
        );
        assert!(text.contains("id 0x0009 offset 0, flags DONT_FRAGMENT MORE_FRAGMENTS, header 24 bytes\nTCP: 1 -> 2"), "{text}");
        assert!(
            text.contains("seq. 0x00000007 ack 0x00000008\n  flags 0x12 ACK SYN, header: 20 bytes"),
            "{text}"
        );
        assert!(
            Ip4(&bytes)
                .to_string()
                .starts_with("TCP 16.0.0.1:1 -> 48.0.0.1:2, fragment 0x0009 at 0")
        );
    }

    #[test]
    fn others() {
        let ping = Packet::echo_request(A, B, 3, 4).frame();
        assert_eq!(
            Frame(&ping).to_string(),
            "ICMP 16.0.0.1 -> 48.0.0.1 echo_request id 3 seq 4, length 28, ttl 64"
        );
        let asker = (Mac([2, 0, 0, 0, 0, 1]), A);
        let request = craft::arp(&arp::Header::request(asker, B), Mac::BROADCAST);
        let text = Frame(&request).to_string();
        assert_eq!(
            text,
            "ARP request: 02:00:00:00:00:01/16.0.0.1 -> 00:00:00:00:00:00/48.0.0.1"
        );
        assert_eq!(
            Frame(&[0; 20]).to_string(),
            "0x0000: 00:00:00:00:00:00 -> 00:00:00:00:00:00, 20 bytes"
        );
        assert_eq!(
            Frame(&ping[..5]).to_string(),
            "a frame cut off after 5 bytes"
        );
        assert_eq!(
            format!("{:#}", Frame(&ping[..20])).lines().last(),
            Some("an IPv4 header cut off after 6 bytes")
        );
        let names: Vec<_> = [0, 10, 14, 38, 40, 46, 3]
            .map(|code| Dscp(code).to_string())
            .into();
        assert_eq!(names.join(" "), "CS0 AF11 AF13 AF43 CS5 EF 3");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        /// Any bytes, and packets damaged in a few places, which get further in.
        #[test]
        fn any_bytes(
            bytes in prop::collection::vec(any::<u8>(), 0..100),
            damage in prop::collection::vec((0usize..80, any::<u8>()), 0..4),
            cut in 0usize..100,
            kind in 0u32..4,
        ) {
            let mut frame = match kind {
                0 => Packet::udp((A, 1), (B, 2)),
                1 => Packet::tcp((A, 1), (B, 2), 0xff, 0, 0),
                2 => Packet::icmp(A, B, bytes.len() as u8, 0, 0),
                _ => Packet::raw(A, B, bytes.len() as u8),
            }.payload(&bytes).options(&bytes).frame();
            damage.iter().for_each(|&(at, byte)| if let Some(old) = frame.get_mut(at) { *old = byte });
            frame.truncate(cut);
            for bytes in [&frame, &bytes] {
                for text in [format!("{0}\n{0:#}", Frame(bytes)), format!("{0}\n{0:#}", Ip4(bytes))] {
                    prop_assert!(text.lines().all(|line| !line.is_empty()), "{text:?}");
                    prop_assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
                }
            }
        }
    }
}
