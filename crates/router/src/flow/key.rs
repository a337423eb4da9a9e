//! The key of a packet's flow: the same for both directions.
//!
//! Two ends, of an address and a port each, stand in their order, the smaller first; whether the
//! source is the second one, the packet says beside its key. Random traffic makes each choice a
//! wrong guess half of the time, so what differs from packet to packet is computed, not branched on.
//!
//! | word | IPv4 | IPv6 |
//! | --- | --- | --- |
//! | 0, 1 | address << 16, port: of the first end, of the second one | address of the first end |
//! | 2, 3 | 0 | address of the second end |
//! | 4 | protocol, family << 8, the type of an ICMP message | these, and the ports << 48 and << 32 |

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tables::flow::Key;
use wire::{icmp4, icmp6, ip, ip4, ip6};

/// Family of a key: IPv4, IPv6.
const V4: u64 = 4 << 8;
const V6: u64 = 6 << 8;
/// The packet is an ICMP message that is neither an echo nor its reply; its type is in the eight
/// bits above. Its ports are 0.
const MESSAGE: u64 = 1 << 16;
const MESSAGE_TYPE: u32 = 17;

/// What a packet carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A segment of TCP: [`super::tcp`] looks further.
    Tcp,
    /// A datagram of UDP, or of UDP-Lite.
    Udp,
    /// An ICMP echo or its reply, which have their identifier as both ports.
    Echo,
    /// An ICMP error: it is of the flow whose packet it quotes ([`quoted4`], [`quoted6`]).
    Error,
    /// A later fragment, which has no ports: 0. Not of the flow of its packet.
    Fragment,
    /// Anything else. SCTP has its ports, others have 0.
    Other,
}

impl Kind {
    /// True if such packets have a port, or an identifier, that can be translated.
    #[inline(always)]
    pub const fn has_port(self) -> bool {
        matches!(self, Kind::Tcp | Kind::Udp | Kind::Echo)
    }
}

/// Why a packet is of no flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// It ends within its headers, or these do not say that it is of this family.
    Truncated,
    /// An ICMP error about an ICMP error (RFC 1122 section 3.2.2, RFC 4443 section 2.4).
    Nested,
    /// An ICMP error about a later fragment, which has no ports.
    Fragment,
}

/// A packet and its flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// The key of the flow.
    pub key: Key,
    /// The source is the second end of the key.
    pub swapped: bool,
    /// What it carries.
    pub kind: Kind,
    /// Where that begins, from the IP header's first byte on.
    pub at: usize,
    /// Bytes of that, without what pads the packet.
    pub len: usize,
}

impl Packet {
    /// What it carries, of the bytes that it was read from.
    pub fn content<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let content = bytes.get(self.at..self.at + self.len);
        content.unwrap_or_default()
    }
}

/// The key of IPv4 packets between these ends, and whether the source is the second one. `ports` is
/// the source's port in the upper half and the destination's in the lower one.
#[inline(always)]
pub fn key4(source: u32, destination: u32, ports: u32, protocol: u8) -> (Key, bool) {
    ends4(source, destination, ports, V4 | u64::from(protocol))
}

/// As [`key4`], for IPv6.
#[inline(always)]
pub fn key6(source: u128, destination: u128, ports: u32, protocol: u8) -> (Key, bool) {
    ends6(source, destination, ports, V6 | u64::from(protocol))
}

#[inline(always)]
fn ends4(source: u32, destination: u32, ports: u32, last: u64) -> (Key, bool) {
    let end = |address: u32, port: u32| u64::from(address) << 16 | u64::from(port & 0xffff);
    let (from, to) = (end(source, ports >> 16), end(destination, ports));
    (Key([from.min(to), from.max(to), 0, 0, last]), from > to)
}

#[inline(always)]
fn ends6(source: u128, destination: u128, ports: u32, last: u64) -> (Key, bool) {
    let is_later = ports >> 16 > ports & 0xffff;
    let swapped = (source > destination) | ((source == destination) & is_later);
    let half = |first: u128, second: u128, shift: u32| {
        let [first, second] = [first, second].map(|address| (address >> shift) as u64);
        if swapped { second } else { first }
    };
    let ports = ports.rotate_left(if swapped { 16 } else { 0 });
    let words = [
        half(source, destination, 64),
        half(source, destination, 0),
        half(destination, source, 64),
        half(destination, source, 0),
        last | u64::from(ports) << 32,
    ];
    (Key(words), swapped)
}

/// The two ends of an IPv4 key: address and port each.
pub fn between4(Key([a, b, ..]): &Key) -> [(u32, u16); 2] {
    [*a, *b].map(|end| ((end >> 16) as u32, end as u16))
}

/// As [`between4`], of an IPv6 key.
pub fn between6(Key([a, b, c, d, last]): &Key) -> [(u128, u16); 2] {
    let address = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
    [
        (address(*a, *b), (last >> 48) as u16),
        (address(*c, *d), (last >> 32) as u16),
    ]
}

/// The protocol of a key.
pub const fn protocol(key: &Key) -> u8 {
    key.0[4] as u8
}

/// What a key stands for, as it is shown: its ends, the first one first, and the protocol.
pub fn ends(key: &Key) -> ([SocketAddr; 2], u8) {
    let ends = if key.0[4] & V6 == V6 {
        between6(key).map(|(address, port)| (IpAddr::V6(Ipv6Addr::from_bits(address)), port))
    } else {
        between4(key).map(|(address, port)| (IpAddr::V4(Ipv4Addr::from_bits(address)), port))
    };
    (ends.map(SocketAddr::from), protocol(key))
}

/// The type of the ICMP message that opens a flow with this key, if one does.
pub fn message(key: &Key) -> Option<u8> {
    let last = key.0[4];
    let icmp = if last & V6 == V6 { ICMP6 } else { ICMP4 };
    let message = if last & MESSAGE == 0 {
        icmp.echo
    } else {
        (last >> MESSAGE_TYPE) as u8
    };
    (protocol(key) == icmp.protocol).then_some(message)
}

/// What of a packet's content is part of its key.
struct Upper {
    kind: Kind,
    ports: u32,
    /// [`MESSAGE`] and the type, or 0.
    message: u64,
}

/// What differs between ICMP of the two families.
struct Icmp {
    protocol: u8,
    echo: u8,
    reply: u8,
    is_error: fn(u8) -> bool,
}

const ICMP4: Icmp = Icmp {
    protocol: ip::ICMP,
    echo: icmp4::ECHO_REQUEST,
    reply: icmp4::ECHO_REPLY,
    is_error: icmp4::is_error,
};

const ICMP6: Icmp = Icmp {
    protocol: ip::ICMP6,
    echo: icmp6::ECHO_REQUEST,
    reply: icmp6::ECHO_REPLY,
    is_error: icmp6::is_error,
};

/// Bytes of a content that keys are made of. All that have ports or an identifier are longer.
const FIRST: usize = 8;

/// What a protocol carries, and the bits of its first word that are ports. A table: which of TCP and
/// UDP a packet has is random. ICMP is told apart by its messages.
static PROTOCOLS: [(u32, Kind); 256] = {
    let mut all = [(0, Kind::Other); 256];
    let mut protocol = 0;
    while protocol < all.len() {
        if ip::has_ports(protocol as u8) {
            all[protocol].0 = u32::MAX;
        }
        protocol += 1;
    }
    all[ip::TCP as usize].1 = Kind::Tcp;
    all[ip::UDP as usize].1 = Kind::Udp;
    all[ip::UDP_LITE as usize].1 = Kind::Udp;
    all
};

#[inline(always)]
fn upper(protocol: u8, content: &[u8], icmp: Icmp) -> Result<Upper, Malformed> {
    let (ports, kind) = PROTOCOLS[protocol as usize];
    let is_icmp = protocol == icmp.protocol;
    let Some(first) = content.first_chunk::<FIRST>() else {
        return if ports != 0 || is_icmp {
            Err(Malformed::Truncated)
        } else {
            let (kind, ports, message) = (Kind::Other, 0, 0);
            Ok(Upper {
                kind,
                ports,
                message,
            })
        };
    };
    let first = u64::from_be_bytes(*first);
    if is_icmp {
        return Ok(icmp_upper(first, icmp));
    }
    Ok(Upper {
        kind,
        ports: (first >> 32) as u32 & ports,
        message: 0,
    })
}

/// What an ICMP message that begins with these bytes is.
fn icmp_upper(first: u64, icmp: Icmp) -> Upper {
    let (message, identifier) = ((first >> 56) as u8, (first >> 16) as u16);
    if message == icmp.echo || message == icmp.reply {
        return Upper {
            kind: Kind::Echo,
            ports: u32::from(identifier) * 0x1_0001,
            message: 0,
        };
    }
    let is_error = (icmp.is_error)(message);
    Upper {
        kind: if is_error { Kind::Error } else { Kind::Other },
        ports: 0,
        message: MESSAGE | u64::from(message) << MESSAGE_TYPE,
    }
}

/// A later fragment of a packet: it begins anywhere.
const LATER: Upper = Upper {
    kind: Kind::Fragment,
    ports: 0,
    message: 0,
};

/// The flow of an IPv4 packet, whose bytes begin with its header.
///
/// # Errors
/// [`Malformed::Truncated`].
#[inline(always)]
pub fn ip4(bytes: &[u8]) -> Result<Packet, Malformed> {
    let (header, _) = ip4::Header::parse(bytes).ok_or(Malformed::Truncated)?;
    let end = bytes.len().min(header.total_len().into());
    let content = bytes.get(header.header_len()..end);
    let content = content.ok_or(Malformed::Truncated)?;
    if header.version() != 4 || header.header_len() < ip4::LEN {
        return Err(Malformed::Truncated);
    }
    let upper = if header.fragment_offset() == 0 {
        upper(header.proto, content, ICMP4)?
    } else {
        LATER
    };
    let last = V4 | u64::from(header.proto) | upper.message;
    let (key, swapped) = ends4(header.src(), header.dst(), upper.ports, last);
    Ok(Packet {
        key,
        swapped,
        kind: upper.kind,
        at: header.header_len(),
        len: content.len(),
    })
}

/// The flow of an IPv6 packet, whose bytes begin with its header. Its protocol is the one behind the
/// extension headers.
///
/// # Errors
/// [`Malformed::Truncated`].
#[inline(always)]
pub fn ip6(bytes: &[u8]) -> Result<Packet, Malformed> {
    let (header, _) = ip6::Header::parse(bytes).ok_or(Malformed::Truncated)?;
    if header.version() != 6 {
        return Err(Malformed::Truncated);
    }
    let end = bytes.len().min(header.total_len());
    let rest = bytes.get(ip6::LEN..end).unwrap_or_default();
    let found = ip6::upper_layer(header.next_header, rest);
    let upper = if matches!(found.fragment, Some((1.., _))) {
        LATER
    } else {
        upper(found.proto, found.content, ICMP6)?
    };
    let last = V6 | u64::from(found.proto) | upper.message;
    let [source, destination] = [header.src, header.dst].map(u128::from_be_bytes);
    let (key, swapped) = ends6(source, destination, upper.ports, last);
    // What follows the extension headers goes to the end; of a later fragment, nothing is left.
    let len = found.content.len();
    Ok(Packet {
        key,
        swapped,
        kind: upper.kind,
        at: end.max(len) - len,
        len,
    })
}

/// The packet that an ICMP error for IPv4 quotes, of which mostly little is left; `content` is the
/// error from its ICMP header on. The flow is that packet's, and `swapped` tells the direction in
/// which that one went.
///
/// # Errors
/// Each of [`Malformed`].
pub fn quoted4(content: &[u8]) -> Result<Packet, Malformed> {
    let quote = content.get(icmp4::LEN..).unwrap_or_default();
    of_a_flow(ip4(quote)?)
}

/// As [`quoted4`], for IPv6.
///
/// # Errors
/// Each of [`Malformed`].
pub fn quoted6(content: &[u8]) -> Result<Packet, Malformed> {
    let quote = content.get(icmp6::LEN..).unwrap_or_default();
    of_a_flow(ip6(quote)?)
}

fn of_a_flow(packet: Packet) -> Result<Packet, Malformed> {
    match packet.kind {
        Kind::Error => Err(Malformed::Nested),
        Kind::Fragment => Err(Malformed::Fragment),
        _ => Ok(packet),
    }
}
