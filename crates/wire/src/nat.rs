//! Translation of the addresses and ports of an IPv4 packet (RFC 3022 section 4.1), and of the packet
//! that an ICMP error quotes (RFC 5508 section 4.2). Checksums follow by what has changed (RFC 1624).

use crate::checksum::Changed;
use crate::{icmp4, ip, ip4, tcp, udp};

/// An end of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Whoever has sent it.
    Source,
    /// Whom it is sent to.
    Destination,
}

impl End {
    /// The other one.
    #[inline(always)]
    pub const fn other(self) -> Self {
        match self {
            End::Source => End::Destination,
            End::Destination => End::Source,
        }
    }
}

/// An address and a port of it; the identifier of an ICMP echo is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Place {
    /// The address.
    pub address: u32,
    /// The port, where the protocol has some.
    pub port: u16,
}

/// True if the ports of a protocol can be translated. SCTP's cannot: its checksum is no sum, so that
/// all of its packet would have to be read (RFC 9260 section 6.8).
#[inline(always)]
pub const fn translates_ports(protocol: u8) -> bool {
    matches!(protocol, ip::TCP | ip::UDP | ip::UDP_LITE | ip::ICMP)
}

/// Where the identifier of an ICMP echo is (RFC 792).
const IDENTIFIER_AT: usize = 4;

/// Writes a word; nothing if it lies beyond the end.
#[inline(always)]
fn set(bytes: &mut [u8], at: usize, word: u16) -> Changed {
    let place = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut());
    let Some(place) = place else {
        return Changed::default();
    };
    let old = u16::from_be_bytes(*place);
    *place = word.to_be_bytes();
    Changed::word(old, word)
}

/// Updates the checksum at a place, if it is there. UDP's 0 says that there is none.
#[inline(always)]
fn update(bytes: &mut [u8], at: usize, is_udp: bool, changed: Changed) -> Changed {
    let place = bytes.get(at..).and_then(|rest| rest.first_chunk());
    let Some(old) = place.map(|place| u16::from_be_bytes(*place)) else {
        return Changed::default();
    };
    if is_udp && old == 0 {
        return Changed::default();
    }
    let new = changed.update(old);
    set(bytes, at, if is_udp && new == 0 { !0 } else { new })
}

/// Gives an end of a packet, whose bytes begin with its header, another address, and another port if
/// its protocol's can be translated ([`translates_ports`]; of ICMP, those of an echo and of its reply) and it
/// is no later fragment. False, with the packet as it was, if its header is cut off.
#[inline]
pub fn translate(packet: &mut [u8], end: End, to: Place) -> bool {
    change(packet, end, to).is_some()
}

/// Translates an ICMP error: `end` gets the address, and so does the other end of the packet that it
/// quotes, with the port. The quote may be cut off anywhere behind its header. False, with the error as
/// it was, if it is cut off before.
#[inline]
pub fn translate_error(packet: &mut [u8], end: End, to: Place) -> bool {
    translate_quote(packet, end.other(), to)
        && change(packet, end, Place { port: 0, ..to }).is_some()
}

/// Translates an end of the packet that an ICMP error quotes, and nothing else. False, with the error
/// as it was, if the quote is cut off before its header ends.
#[inline]
pub fn translate_quote(packet: &mut [u8], end: End, to: Place) -> bool {
    let Some((header, _)) = ip4::Header::parse(packet) else {
        return false;
    };
    let at = header.header_len();
    let quote = packet.get_mut(at.max(ip4::LEN) + icmp4::LEN..);
    let Some(changed) = quote
        .filter(|_| at >= ip4::LEN)
        .and_then(|quote| change(quote, end, to))
    else {
        return false;
    };
    update(packet, at + icmp4::CHECKSUM_AT, false, changed);
    true
}

/// Does it; returns what that does to a checksum over all of it.
#[inline(always)]
fn change(packet: &mut [u8], end: End, to: Place) -> Option<Changed> {
    let (header, _) = ip4::Header::parse(packet)?;
    let (protocol, len) = (header.proto, header.header_len());
    let is_later = header.fragment_offset() != 0;
    if len < ip4::LEN || packet.len() < len {
        return None;
    }
    let at = match end {
        End::Source => ip4::at::SRC,
        End::Destination => ip4::at::DST,
    };
    let [a, b, c, d] = to.address.to_be_bytes();
    let high = set(packet, at, u16::from_be_bytes([a, b]));
    let address = high.and(set(packet, at + 2, u16::from_be_bytes([c, d])));
    let sum = update(packet, ip4::at::CHECKSUM, false, address);
    let changed = address.and(sum);
    if is_later {
        return Some(changed);
    }
    let content = &mut packet[len..];
    let port_at = 2 * usize::from(end == End::Destination);
    Some(changed.and(match protocol {
        ip::TCP => {
            let port = set(content, port_at, to.port);
            port.and(update(content, tcp::CHECKSUM_AT, false, address.and(port)))
        }
        ip::UDP | ip::UDP_LITE => {
            let port = set(content, port_at, to.port);
            port.and(update(content, udp::CHECKSUM_AT, true, address.and(port)))
        }
        ip::ICMP if is_echo(content) => {
            let identifier = set(content, IDENTIFIER_AT, to.port);
            identifier.and(update(content, icmp4::CHECKSUM_AT, false, identifier))
        }
        _ => Changed::default(),
    }))
}

/// Its checksum has no pseudo-header.
#[inline(always)]
fn is_echo(content: &[u8]) -> bool {
    matches!(
        content.first(),
        Some(&(icmp4::ECHO_REQUEST | icmp4::ECHO_REPLY))
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::checksum;

    fn header(source: u32, destination: u32, protocol: u8, content: &[u8]) -> Vec<u8> {
        let header = ip4::Header::new(source, destination, protocol, content.len());
        [zerocopy::IntoBytes::as_bytes(&header), content].concat()
    }

    /// A packet between two places, all of whose checksums are right.
    fn packet(protocol: u8, from: Place, to: Place, payload: &[u8]) -> Vec<u8> {
        let ports = [from.port, to.port].map(u16::to_be_bytes);
        let mut content = match protocol {
            ip::TCP => [
                ports.as_flattened(),
                &[0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 9, 9, 0, 0, 0, 0],
            ]
            .concat(),
            ip::UDP => {
                let length = (udp::LEN + payload.len()) as u16;
                [ports.as_flattened(), &length.to_be_bytes(), &[0, 0]].concat()
            }
            ip::ICMP => [&[8, 0, 0, 0][..], &from.port.to_be_bytes(), &[0, 7]].concat(),
            _ => ports.as_flattened().to_vec(),
        };
        content.extend(payload);
        let sum = checksum::transport(from.address, to.address, protocol, &content);
        match protocol {
            ip::TCP => content[16..18].copy_from_slice(&sum.to_be_bytes()),
            ip::UDP => {
                let sum = if sum == 0 { !0 } else { sum };
                content[6..8].copy_from_slice(&sum.to_be_bytes());
            }
            ip::ICMP => icmp4::seal(&mut content),
            _ => {}
        }
        header(from.address, to.address, protocol, &content)
    }

    /// The same sum has two forms.
    fn is_right(packet: &[u8]) -> bool {
        let (header, content) = packet.split_at(ip4::LEN);
        let (source, destination) = (word(&header[12..16]), word(&header[16..20]));
        let sum = match header[9] {
            ip::ICMP => checksum::of(content),
            ip::TCP | ip::UDP => checksum::transport(source, destination, header[9], content),
            _ => 0,
        };
        checksum::of(header) == 0 && sum == 0
    }

    fn word(bytes: &[u8]) -> u32 {
        u32::from_be_bytes(bytes.try_into().unwrap())
    }

    fn place() -> impl Strategy<Value = Place> {
        (any::<u32>(), any::<u16>()).prop_map(|(address, port)| Place { address, port })
    }

    proptest! {
        #[test]
        fn a_packet_is_as_if_it_were_from_or_to_there(
            protocol in prop::sample::select(vec![ip::TCP, ip::UDP, ip::ICMP, ip::SCTP, 47]),
            (from, to, other) in (place(), place(), place()),
            payload in prop::collection::vec(any::<u8>(), 0..50),
        ) {
            for end in [End::Source, End::Destination] {
                // The identifier of an echo belongs to both ends, and other protocols keep theirs.
                let mut port = [from.port, to.port];
                match protocol {
                    ip::ICMP => port = [other.port; 2],
                    protocol if translates_ports(protocol) => port[end as usize] = other.port,
                    _ => {}
                }
                let mut ends = [from.address, to.address];
                ends[end as usize] = other.address;
                let at = |n: usize| Place { address: ends[n], port: port[n] };
                let want = packet(protocol, at(0), at(1), &payload);
                let mut got = packet(protocol, from, to, &payload);
                prop_assert!(translate(&mut got, end, other));
                prop_assert!(is_right(&got), "{:02x?}", got);
                // But for the checksums, of which 0 and its complement are the same.
                let plain = |packet: &[u8]| {
                    let mut plain = packet.to_vec();
                    let at = match protocol {
                        ip::TCP => Some(36),
                        ip::UDP => Some(26),
                        ip::ICMP => Some(22),
                        _ => None,
                    };
                    for at in at.into_iter().chain([10]) {
                        plain[at..at + 2].fill(0);
                    }
                    plain
                };
                prop_assert_eq!(plain(&got), plain(&want));
            }
        }

        #[test]
        fn an_error_is_about_the_packet_as_it_was_sent(
            protocol in prop::sample::select(vec![ip::TCP, ip::UDP, ip::ICMP]),
            (from, to, other) in (place(), place(), place()),
            reporter in any::<u32>(),
            cut in 0usize..60,
        ) {
            // From outside, about a packet that had the other place as its source.
            let quoted = packet(protocol, other, to, &[1, 2, 3]);
            let quoted = &quoted[..quoted.len().min(ip4::LEN + 8 + cut)];
            let error = |quoted: &[u8], destination: u32| {
                let mut content = [&[11, 0, 0, 0, 0, 0, 0, 0][..], quoted].concat();
                icmp4::seal(&mut content);
                header(reporter, destination, ip::ICMP, &content)
            };
            let mut got = error(quoted, other.address);
            prop_assert!(translate_error(&mut got, End::Destination, from));
            prop_assert!(is_right(&got), "{:02x?}", got);
            prop_assert_eq!(word(&got[16..20]), from.address);
            let mut inner = quoted.to_vec();
            translate(&mut inner, End::Source, from);
            prop_assert_eq!(&got[28..], &inner[..]);
            if quoted.len() == packet(protocol, other, to, &[1, 2, 3]).len() {
                prop_assert!(is_right(&inner));
            }
        }

        #[test]
        fn any_bytes_are_translated_or_left(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let to = Place { address: 1, port: 2 };
            for end in [End::Source, End::Destination] {
                let mut got = bytes.clone();
                prop_assert!(translate(&mut got, end, to) || got == bytes);
                let mut got = bytes.clone();
                prop_assert!(translate_error(&mut got, end, to) || got == bytes);
            }
        }
    }

    #[test]
    fn a_later_fragment_has_no_port_and_udp_may_have_no_checksum() {
        let places = [1, 2, 3].map(|n| Place {
            address: 0x0a00_0000 + n,
            port: 1000 + n as u16,
        });
        let mut later = packet(ip::UDP, places[0], places[1], &[5; 20]);
        later[6..8].copy_from_slice(&[0, 1]);
        let before = later.clone();
        assert!(translate(&mut later, End::Source, places[2]));
        assert_eq!(word(&later[12..16]), places[2].address);
        assert_eq!(later[16..], before[16..]);
        let mut bare = packet(ip::UDP, places[0], places[1], &[5; 20]);
        bare[26..28].fill(0);
        assert!(translate(&mut bare, End::Source, places[2]));
        assert_eq!(bare[26..28], [0, 0]);
    }
}
