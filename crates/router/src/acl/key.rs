//! What access lists are to know of a packet.

use graph::Pkt;
use tables::acl::{IP4, IP6, Key};
use wire::{ip, ip4, ip6};

/// The key of an IPv4 packet, whose header is good.
#[inline(always)]
pub(crate) fn ip4(p: &Pkt<'_>) -> Key<IP4> {
    let header = p.header::<ip4::Header>(p.l3);
    let content = usize::from(p.l3) + header.header_len();
    let is_first = header.fragment_offset() == 0;
    let ports = is_first.then(|| ports(header.proto, p.bytes().get(content..)?));
    Key::ip4(header.src(), header.dst(), header.proto, ports.flatten())
}

/// The key of an IPv6 packet, whose header is good.
#[inline(always)]
pub(crate) fn ip6(p: &Pkt<'_>) -> Key<IP6> {
    let header = p.header::<ip6::Header>(p.l3);
    let content = p.bytes().get(usize::from(p.l3) + ip6::LEN..);
    let upper = ip6::upper_layer(header.next_header, content.unwrap_or_default());
    let [source, destination] = [header.src, header.dst].map(u128::from_be_bytes);
    let ports = ports(upper.proto, upper.content);
    Key::ip6(source, destination, upper.proto, ports)
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
