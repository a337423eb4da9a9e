//! Checksums left to hardware (checksum offload).

use crate::{checksum, ip, ip4, tcp, udp};

/// Whether the sender of a TCP or UDP packet left its checksum to hardware that never saw it: the
/// field holds the sum of the pseudo-header alone (Linux, include/linux/skbuff.h:
/// `CHECKSUM_PARTIAL`) and is not right by chance.
///
/// `packet` starts with its IPv4 header; if its end is missing, the field alone decides. Fragments
/// are never judged.
pub fn unfinished(packet: &[u8]) -> bool {
    let Some((h, _)) = ip4::Header::parse(packet) else {
        return false;
    };
    let header = h.header_len();
    let field = match h.proto {
        ip::TCP => header + tcp::CHECKSUM_AT,
        ip::UDP => header + udp::CHECKSUM_AT,
        _ => return false,
    };
    let total = usize::from(h.total_len());
    if h.version() != 4 || header < ip4::LEN || total < field + 2 || h.is_fragment() {
        return false;
    }
    let (src, dst, length) = (h.src(), h.dst(), total - header);
    let partial = checksum::pseudo_header(src, dst, h.proto, length).fold();
    packet.get(field..field + 2) == Some(&partial.to_be_bytes())
        && packet
            .get(header..total)
            .is_none_or(|segment| checksum::transport(src, dst, h.proto, segment) != 0)
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
        assert!(!unfinished(&[0x45; 19]));
        assert!(!unfinished(&[0x40; 60]));
    }
}
