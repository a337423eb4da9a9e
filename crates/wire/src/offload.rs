//! Checksums left to hardware (checksum offload).

use crate::checksum::{self, Address};
use crate::{ip, ip4, ip6, tcp, udp};

/// True if the sender of a TCP or UDP packet left its checksum to hardware that never saw it: the
/// field holds the sum of the pseudo-header alone (Linux, include/linux/skbuff.h:
/// `CHECKSUM_PARTIAL`) and is not right by chance.
///
/// `packet` starts with its IPv4 or IPv6 header; if its end is missing, the field alone decides.
/// Fragments are never judged.
pub fn unfinished(packet: &[u8]) -> bool {
    let partial = match packet.first().map(|first| first >> 4) {
        Some(4) => unfinished4(packet),
        Some(6) => unfinished6(packet),
        _ => None,
    };
    partial.unwrap_or(false)
}

fn unfinished4(packet: &[u8]) -> Option<bool> {
    let (h, _) = ip4::Header::parse(packet)?;
    let header = h.header_len();
    let length = usize::from(h.total_len()).checked_sub(header)?;
    if header < ip4::LEN || h.is_fragment() {
        return None;
    }
    is_partial(h.src(), h.dst(), h.proto, packet.get(header..)?, length)
}

fn unfinished6(packet: &[u8]) -> Option<bool> {
    let (h, content) = ip6::Header::parse(packet)?;
    let upper = ip6::upper_layer(h.next_header, content);
    let extensions = content.len() - upper.content.len();
    let length = usize::from(h.payload_len()).checked_sub(extensions)?;
    if upper.fragment.is_some() {
        return None;
    }
    is_partial(h.src, h.dst, upper.proto, upper.content, length)
}

/// The same of a segment of `length` bytes, of which `bytes` is the beginning. `None` if it has no
/// such field.
fn is_partial<A: Address>(src: A, dst: A, proto: u8, bytes: &[u8], length: usize) -> Option<bool> {
    let at = match proto {
        ip::TCP => tcp::CHECKSUM_AT,
        ip::UDP => udp::CHECKSUM_AT,
        _ => return None,
    };
    let field = bytes.get(..length.min(bytes.len()))?.get(at..at + 2)?;
    let partial = checksum::pseudo_header(src, dst, proto, length).fold();
    let whole = bytes.get(..length);
    let right = whole.is_some_and(|whole| checksum::transport(src, dst, proto, whole) == 0);
    Some(field == partial.to_be_bytes() && !right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_left_to_hardware_is_recognized() {
        let (src, dst) = (0x0a00_0001, 0x0a00_0002);
        for (proto, field) in [(6, 16), (17, 6)] {
            let mut packet = vec![0x45, 0, 0, 60, 0, 1, 0x40, 0, 64, proto, 0, 0];
            packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
            packet.extend((0..40).map(|i| i * 3));
            let put = |packet: &mut Vec<u8>, sum: u16| {
                packet[20 + field..22 + field].copy_from_slice(&sum.to_be_bytes());
            };
            let partial = checksum::pseudo_header(src, dst, proto, 40).fold();
            put(&mut packet, partial);
            assert!(unfinished(&packet));
            assert!(unfinished(&packet[..22 + field]), "only its beginning");
            assert!(!unfinished(&packet[..21 + field]));
            let mut fragment = packet.clone();
            fragment[6] = 0x20;
            assert!(!unfinished(&fragment));
            put(&mut packet, 0);
            let right = checksum::transport(src, dst, proto, &packet[20..]);
            put(&mut packet, right);
            assert!(!unfinished(&packet));
            put(&mut packet, right ^ 1);
            assert!(!unfinished(&packet), "wrong in another way");
        }
        let (src, dst) = ([0x20; 16], [0x30; 16]);
        for (proto, field) in [(6, 16), (17, 6)] {
            let mut packet = vec![0x60, 0, 0, 0, 0, 48, ip::DESTINATION_OPTIONS, 64];
            packet.extend([src, dst].concat());
            packet.extend([proto, 0, 1, 4, 0, 0, 0, 0]);
            packet.extend((0..40).map(|i| i * 3));
            let put = |packet: &mut Vec<u8>, sum: u16| {
                packet[48 + field..50 + field].copy_from_slice(&sum.to_be_bytes());
            };
            let partial = checksum::pseudo_header(src, dst, proto, 40).fold();
            put(&mut packet, partial);
            assert!(unfinished(&packet));
            assert!(unfinished(&packet[..50 + field]), "only its beginning");
            assert!(!unfinished(&packet[..49 + field]));
            put(&mut packet, 0);
            let right = checksum::transport(src, dst, proto, &packet[48..]);
            put(&mut packet, right);
            assert!(!unfinished(&packet));
            packet[6] = ip::FRAGMENT;
            put(&mut packet, partial);
            assert!(!unfinished(&packet));
        }
        assert!(!unfinished(&[0x45; 19]));
        assert!(!unfinished(&[0x40; 60]));
    }
}
