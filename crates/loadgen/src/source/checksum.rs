//! Checksums in packets that were varied.

use wire::checksum::{self, Sum};
use wire::{icmp6, ip, ip4, ip6, tcp, udp};

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
        ip::ICMP6 => icmp6::CHECKSUM_AT,
        _ => udp::CHECKSUM_AT,
    };
    let Some((end, addresses)) = extent(packet, network) else {
        return;
    };
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

/// End of the IP packet at `network` by its own length, and the sum of its addresses.
fn extent(packet: &[u8], network: usize) -> Option<(usize, Sum)> {
    let bytes = packet.get(network..)?;
    let (length, addresses) = match bytes.first()? >> 4 {
        4 => {
            let (header, _) = ip4::Header::parse(bytes)?;
            let addresses = Sum::default().with_u32(header.src());
            (header.total_len().into(), addresses.with_u32(header.dst()))
        }
        _ => {
            let (header, _) = ip6::Header::parse(bytes)?;
            let addresses = Sum::default().with(&header.src).with(&header.dst);
            (header.total_len(), addresses)
        }
    };
    Some(((network + length).min(packet.len()), addresses))
}
