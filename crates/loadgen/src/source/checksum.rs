//! Checksums in packets that were varied.

use wire::checksum::{self, Sum};
use wire::{ip, ip4, ip6, tcp, udp};

/// Sets the checksum of the IPv4 header at `header`. One that does not lie within the packet stays;
/// a header length beyond the packet is cut to it.
pub fn ip4_header(packet: &mut [u8], header: usize) {
    let Some(packet) = packet.get_mut(header..).filter(|p| p.len() >= ip4::LEN) else {
        return;
    };
    let len = (usize::from(packet[0] & 0xf) * 4).clamp(ip4::LEN, packet.len());
    packet[10..12].fill(0);
    let checksum = checksum::of(&packet[..len]);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Sets the checksum of the segment at `transport` in the packet at `network`, and that of an IPv4
/// header. `protocol` is that of the segment; None: only the header.
pub fn transport(packet: &mut [u8], network: usize, transport: usize, protocol: Option<u8>) {
    let is_ip4 = packet.get(network).is_some_and(|first| first >> 4 == 4);
    if is_ip4 {
        ip4_header(packet, network);
    }
    let Some(protocol) = protocol else { return };
    let at = match protocol {
        ip::TCP => tcp::CHECKSUM_AT,
        ip::ICMP6 => ICMP6_CHECKSUM_AT,
        _ => udp::CHECKSUM_AT,
    };
    let Some((end, addresses)) = extent(packet, network, is_ip4) else {
        return;
    };
    let addresses = Sum::default().with(&packet[addresses]);
    let Some(segment) = packet.get_mut(transport..end).filter(|s| s.len() >= at + 2) else {
        return;
    };
    segment[at..at + 2].fill(0);
    // The pseudo-headers of IPv4 and IPv6 sum the same (RFC 8200 section 8.1).
    let len = u32::try_from(segment.len()).unwrap_or(u32::MAX);
    let sum = addresses.with_u32(len).with_u16(protocol.into());
    let checksum = match sum.with(segment).checksum() {
        0 if protocol == ip::UDP => 0xffff,
        checksum => checksum,
    };
    segment[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
}

/// Offset of the checksum in an ICMPv6 message (RFC 4443 section 2.1).
const ICMP6_CHECKSUM_AT: usize = 2;

/// Where the IP packet ends by its own length, and where its addresses are.
fn extent(packet: &[u8], network: usize, is_ip4: bool) -> Option<(usize, std::ops::Range<usize>)> {
    let (len, addresses, length_at, more) = match is_ip4 {
        true => (ip4::LEN, ip4::at::SRC..ip4::LEN, ip4::at::TOTAL_LEN, 0),
        false => (ip6::LEN, IP6_ADDRESSES, IP6_LENGTH_AT, ip6::LEN),
    };
    let header = packet.get(network..network.checked_add(len)?)?;
    let length = u16::from_be_bytes([header[length_at], header[length_at + 1]]);
    let end = (network + usize::from(length) + more).min(packet.len());
    Some((end, network + addresses.start..network + addresses.end))
}

/// Source and destination in an IPv6 header (RFC 8200 section 3).
const IP6_ADDRESSES: std::ops::Range<usize> = 8..40;
/// Payload length in an IPv6 header.
const IP6_LENGTH_AT: usize = 4;
