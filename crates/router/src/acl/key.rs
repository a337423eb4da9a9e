//! What access lists are to know of a packet.

use graph::Pkt;
use tables::acl::{IP4, IP6, Key};
use wire::{ip, ip4, ip6};

/// The key of an IPv4 packet, whose header is good.
#[inline(always)]
pub(crate) fn ip4(p: &Pkt<'_>) -> Key<IP4> {
    let l3 = usize::from(p.l3);
    ip4_of(p.header(p.l3), |at| p.bytes().get(l3 + at..))
}

/// The key of an IPv4 packet with this header; `content` is what lies behind so many bytes.
#[inline(always)]
fn ip4_of<'a>(header: &ip4::Header, content: impl FnOnce(usize) -> Option<&'a [u8]>) -> Key<IP4> {
    let is_first = header.fragment_offset() == 0;
    let ports = is_first.then(|| ports(header.proto, content(header.header_len())?));
    Key::ip4(header.src(), header.dst(), header.proto, ports.flatten())
}

/// The key of an IPv6 packet, whose header is good.
#[inline(always)]
pub(crate) fn ip6(p: &Pkt<'_>) -> Key<IP6> {
    let content = p.bytes().get(usize::from(p.l3) + ip6::LEN..);
    ip6_of(p.header(p.l3), content)
}

#[inline(always)]
fn ip6_of(header: &ip6::Header, content: Option<&[u8]>) -> Key<IP6> {
    let upper = ip6::upper_layer(header.next_header, content.unwrap_or_default());
    let [source, destination] = [header.src, header.dst].map(u128::from_be_bytes);
    let ports = ports(upper.proto, upper.content);
    Key::ip6(source, destination, upper.proto, ports)
}

/// The key of an IPv4 packet, as its nodes have it; `None`: there is none.
pub(crate) fn ip4_bytes(packet: &[u8]) -> Option<Key<IP4>> {
    let (header, _) = ip4::Header::parse(packet)?;
    Some(ip4_of(header, |at| packet.get(at..)))
}

/// The same of an IPv6 packet.
pub(crate) fn ip6_bytes(packet: &[u8]) -> Option<Key<IP6>> {
    let (header, content) = ip6::Header::parse(packet)?;
    Some(ip6_of(header, Some(content)))
}

/// The ports at the beginning of a packet of this protocol, or its ICMP type and code.
#[inline(always)]
fn ports(protocol: u8, content: &[u8]) -> Option<(u16, u16)> {
    if matches!(protocol, ip::ICMP | ip::ICMP6) {
        let (&kind, &code) = (content.first()?, content.get(1)?);
        return Some((kind.into(), code.into()));
    }
    if !ip::has_ports(protocol) {
        return None;
    }
    let (source, rest) = content.split_first_chunk()?;
    let destination = rest.first_chunk()?;
    Some((
        u16::from_be_bytes(*source),
        u16::from_be_bytes(*destination),
    ))
}
