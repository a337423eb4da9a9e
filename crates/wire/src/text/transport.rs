//! Text that IPv4 and IPv6 packets have in common: protocols, code points, transport headers.

use std::fmt::{self, Display, Formatter};
use std::net::{IpAddr, SocketAddr};

use crate::{icmp4, icmp6, ip, tcp, udp};

/// `UDP 16.0.0.1:1025 -> 48.0.0.1:12`
pub(super) fn line(
    f: &mut Formatter<'_>,
    proto: u8,
    [src, dst]: [IpAddr; 2],
    segment: &[u8],
) -> fmt::Result {
    let ports = match proto {
        ip::UDP => udp::Header::parse(segment).map(|(udp, _)| (udp.src_port(), udp.dst_port())),
        ip::TCP => tcp::Header::parse(segment).map(|(tcp, _)| (tcp.src_port(), tcp.dst_port())),
        _ => None,
    };
    write!(f, "{} ", Proto(proto))?;
    match ports {
        Some((from, to)) => {
            let (src, dst) = (SocketAddr::new(src, from), SocketAddr::new(dst, to));
            write!(f, "{src} -> {dst}")
        }
        None => write!(f, "{src} -> {dst}"),
    }?;
    match message(proto, segment) {
        Some(message) => write!(f, " {message}"),
        None => Ok(()),
    }
}

/// The lines of the header in `segment`, if all of it is there.
pub(super) fn lines(f: &mut Formatter<'_>, proto: u8, segment: &[u8]) -> fmt::Result {
    match proto {
        ip::UDP => udp::Header::parse(segment).map_or(Ok(()), |(header, _)| udp_lines(f, header)),
        ip::TCP => tcp::Header::parse(segment).map_or(Ok(()), |(header, _)| tcp_lines(f, header)),
        _ => message(proto, segment).map_or(Ok(()), |message| {
            let checksum = message.header.checksum();
            write!(f, "\n{} {message}, checksum {checksum:#06x}", Proto(proto))
        }),
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

/// A protocol's name or number.
pub(super) struct Proto(pub u8);

impl Display for Proto {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            ip::ICMP => f.write_str("ICMP"),
            ip::TCP => f.write_str("TCP"),
            ip::UDP => f.write_str("UDP"),
            ip::IGMP => f.write_str("IGMP"),
            ip::IP4 => f.write_str("IP_IN_IP"),
            ip::IP6 => f.write_str("IP6_IN_IP"),
            ip::ICMP6 => f.write_str("ICMP6"),
            ip::HOP_BY_HOP => f.write_str("HOP_BY_HOP"),
            ip::ROUTING => f.write_str("ROUTING"),
            ip::FRAGMENT => f.write_str("FRAGMENT"),
            ip::DESTINATION_OPTIONS => f.write_str("DESTINATION_OPTIONS"),
            ip::NO_NEXT_HEADER => f.write_str("NO_NEXT_HEADER"),
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
pub(super) struct Dscp(pub u8);

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

/// An ICMP message of either family.
struct Message<'a> {
    proto: u8,
    header: &'a icmp4::Header,
}

/// The ICMP message that a segment begins with.
fn message(proto: u8, segment: &[u8]) -> Option<Message<'_>> {
    let (header, _) = icmp4::Header::parse(segment)?;
    let is_icmp = matches!(proto, ip::ICMP | ip::ICMP6);
    is_icmp.then_some(Message { proto, header })
}

impl Display for Message<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.proto {
            ip::ICMP => icmp4_text(f, self.header),
            _ => icmp6_text(f, self.header),
        }
    }
}

fn echo(f: &mut Formatter<'_>, name: &str, rest: u32) -> fmt::Result {
    write!(f, "{name} id {} seq {}", rest >> 16, rest & 0xffff)
}

fn icmp4_text(f: &mut Formatter<'_>, header: &icmp4::Header) -> fmt::Result {
    let rest = header.rest();
    match (header.kind, header.code) {
        (icmp4::ECHO_REQUEST, 0) => echo(f, "echo_request", rest),
        (icmp4::ECHO_REPLY, 0) => echo(f, "echo_reply", rest),
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

fn icmp6_text(f: &mut Formatter<'_>, header: &icmp6::Header) -> fmt::Result {
    let rest = header.rest();
    match (header.kind, header.code) {
        (icmp6::ECHO_REQUEST, 0) => echo(f, "echo_request", rest),
        (icmp6::ECHO_REPLY, 0) => echo(f, "echo_reply", rest),
        (icmp6::UNREACHABLE, icmp6::NO_ROUTE) => f.write_str("no_route"),
        (icmp6::UNREACHABLE, icmp6::PROHIBITED) => f.write_str("administratively_prohibited"),
        (icmp6::UNREACHABLE, icmp6::BEYOND_SCOPE) => f.write_str("beyond_scope"),
        (icmp6::UNREACHABLE, icmp6::ADDRESS) => f.write_str("address_unreachable"),
        (icmp6::UNREACHABLE, icmp6::PORT) => f.write_str("port_unreachable"),
        (icmp6::TOO_BIG, 0) => write!(f, "packet_too_big mtu {rest}"),
        (icmp6::TIME_EXCEEDED, icmp6::IN_TRANSIT) => f.write_str("hop_limit_exceeded"),
        (icmp6::PARAMETER_PROBLEM, _) => write!(f, "parameter_problem at {rest}"),
        (icmp6::ROUTER_SOLICITATION, 0) => f.write_str("router_solicitation"),
        (icmp6::ROUTER_ADVERTISEMENT, 0) => f.write_str("router_advertisement"),
        (icmp6::NEIGHBOR_SOLICITATION, 0) => f.write_str("neighbor_solicitation"),
        (icmp6::NEIGHBOR_ADVERTISEMENT, 0) => f.write_str("neighbor_advertisement"),
        (icmp6::REDIRECT, 0) => f.write_str("redirect"),
        (kind, code) => write!(f, "type {kind} code {code}"),
    }
}

/// The names of the congestion notifications.
pub(super) const ECN: [&str; 4] = ["NON_ECN", "ECT_1", "ECT_0", "CE"];

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
pub(super) fn names(bits: u16, of: &[(u16, &str)]) -> String {
    let set: Vec<_> = of
        .iter()
        .filter(|(bit, _)| bits & bit != 0)
        .map(|(_, name)| *name)
        .collect();
    set.join(" ")
}
