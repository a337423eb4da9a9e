//! Receive-side scaling: the hash by which cards choose a queue for a packet (Toeplitz, as in
//! Microsoft's specification of it for network drivers).

use std::net::Ipv4Addr;

use crate::{eth, ip, ip4, ip6, vlan};

/// Bytes of a key. There are longer ones; what is hashed here has no use for the rest.
pub const KEY_LEN: usize = 40;

/// The key of the specification's examples, which is that of many drivers, too.
pub const KEY: [u8; KEY_LEN] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
    0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
    0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// Bytes of what a frame is hashed by: two addresses and two ports.
const MOST: usize = 36;

/// The hash of up to 36 bytes: for each bit that is set, the 32 bits of the key from that place on,
/// added without carry.
pub fn toeplitz(key: &[u8; KEY_LEN], input: &[u8]) -> u32 {
    let [a, b, c, d, following @ ..] = *key;
    let mut window = u32::from_be_bytes([a, b, c, d]);
    let mut hash = 0;
    for (byte, next) in input.iter().zip(following) {
        for bit in (0..8).rev() {
            if byte >> bit & 1 == 1 {
                hash ^= window;
            }
            window = window << 1 | u32::from(next >> bit & 1);
        }
    }
    hash
}

/// What a frame is hashed by.
struct Input {
    bytes: [u8; MOST],
    len: usize,
}

impl Input {
    fn of(parts: &[&[u8]]) -> Self {
        let (mut bytes, mut len) = ([0; MOST], 0);
        for part in parts {
            bytes[len..len + part.len()].copy_from_slice(part);
            len += part.len();
        }
        Self { bytes, len }
    }
}

/// The hash of a frame, with up to two VLAN tags: by its addresses, and the ports of TCP and, with
/// `udp_ports`, of UDP. Fragments are hashed by addresses alone. None for other than IP.
pub fn of_frame(key: &[u8; KEY_LEN], frame: &[u8], udp_ports: bool) -> Option<u32> {
    let (header, payload) = eth::Header::parse(frame)?;
    let (ethertype, packet) = vlan::behind_tags(header.ethertype(), payload)?;
    let input = match ethertype {
        eth::IP4 => of_ip4(packet, udp_ports),
        eth::IP6 => of_ip6(packet, udp_ports),
        _ => None,
    }?;
    Some(toeplitz(key, &input.bytes[..input.len]))
}

fn of_ip4(packet: &[u8], udp_ports: bool) -> Option<Input> {
    let (header, _) = ip4::Header::parse(packet)?;
    let content = packet.get(header.header_len()..)?;
    let [src, dst] = [header.src(), header.dst()].map(|a| Ipv4Addr::from(a).octets());
    let ports = ports(header.proto, content, header.is_fragment(), udp_ports);
    Some(Input::of(&[&src, &dst, ports]))
}

fn of_ip6(packet: &[u8], udp_ports: bool) -> Option<Input> {
    let (header, rest) = ip6::Header::parse(packet)?;
    let upper = ip6::upper_layer(header.next_header, rest);
    let is_fragment = upper.fragment.is_some();
    let ports = ports(upper.proto, upper.content, is_fragment, udp_ports);
    Some(Input::of(&[&header.src, &header.dst, ports]))
}

/// The ports that are hashed: four bytes, or none.
fn ports(proto: u8, content: &[u8], is_fragment: bool, udp_ports: bool) -> &[u8] {
    let has_ports = proto == ip::TCP || (proto == ip::UDP && udp_ports);
    let ports = content.get(..4).filter(|_| has_ports && !is_fragment);
    ports.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use proptest::prelude::*;

    use super::*;
    use crate::craft::Packet;
    use crate::tcp::SYN;

    /// The examples of the specification: destination, source, and the hashes of addresses alone
    /// and with the ports of TCP.
    #[test]
    fn the_published_examples_for_ip4() {
        for (dst, src, alone, with_ports) in [
            (
                ("161.142.100.80", 1766),
                ("66.9.149.187", 2794),
                0x323e_8fc2,
                0x51cc_c178,
            ),
            (
                ("65.69.140.83", 4739),
                ("199.92.111.2", 14230),
                0xd718_262a,
                0xc626_b0ea,
            ),
            (
                ("12.22.207.184", 38024),
                ("24.19.198.95", 12898),
                0xd2d0_a5de,
                0x5c2b_394a,
            ),
            (
                ("209.142.163.6", 2217),
                ("38.27.205.30", 48228),
                0x8298_9176,
                0xafc7_327f,
            ),
            (
                ("202.188.127.2", 1303),
                ("153.39.163.191", 44251),
                0x5d18_09c5,
                0x10e8_28a2,
            ),
        ] {
            let [src, dst] = [src, dst].map(|(address, port): (&str, u16)| {
                (u32::from(address.parse::<Ipv4Addr>().unwrap()), port)
            });
            let tcp = Packet::tcp(src, dst, SYN, 0, 0);
            let udp = Packet::udp(src, dst).frame();
            let hash = |frame: &[u8], udp_ports| of_frame(&KEY, frame, udp_ports);
            assert_eq!(hash(&tcp.clone().frame(), false), Some(with_ports));
            assert_eq!(
                hash(&tcp.clone().options(&[1; 4]).frame(), false),
                Some(with_ports)
            );
            assert_eq!(hash(&tcp.fragment(0x2000).frame(), true), Some(alone));
            assert_eq!(hash(&udp, true), Some(with_ports));
            assert_eq!(hash(&udp, false), Some(alone));
            let tag = [0x88, 0xa8, 0, 1, 0x81, 0, 0, 7];
            let tagged = [&udp[..12], &tag, &udp[12..]].concat();
            assert_eq!(hash(&tagged, true), Some(with_ports));
        }
    }

    #[test]
    fn the_published_examples_for_ip6() {
        let shared = "3ffe:1900:4545:3:200:f8ff:fe21:67cf";
        for (dst, src, alone, with_ports) in [
            (
                ("3ffe:2501:200:3::1", 1766),
                ("3ffe:2501:200:1fff::7", 2794),
                0x2cc1_8cd5,
                0x4020_7d3d,
            ),
            (
                ("ff02::1", 4739),
                ("3ffe:501:8::260:97ff:fe40:efab", 14230),
                0x0f0c_461c,
                0xdde5_1bbf,
            ),
            (
                ("fe80::200:f8ff:fe21:67cf", 38024),
                (shared, 44251),
                0x4b61_e985,
                0x02d1_feef,
            ),
        ] {
            let [src, dst] = [src, dst]
                .map(|(address, port): (&str, u16)| (address.parse::<Ipv6Addr>().unwrap(), port));
            let tcp = Packet::tcp6(src, dst, SYN, 0, 0);
            let udp = Packet::udp6(src, dst).frame();
            let hash = |frame: &[u8], udp_ports| of_frame(&KEY, frame, udp_ports);
            assert_eq!(hash(&tcp.frame(), false), Some(with_ports));
            assert_eq!(hash(&udp, true), Some(with_ports));
            assert_eq!(hash(&udp, false), Some(alone));
        }
    }

    #[test]
    fn other_frames_have_no_hash() {
        let udp = Packet::udp((1, 2), (3, 4)).frame();
        for frame in [&udp[..13], &udp[..33], &[0; 60]] {
            assert_eq!(of_frame(&KEY, frame, true), None);
        }
    }

    /// The same, bit by bit.
    fn slowly(key: &[u8], input: &[u8]) -> u32 {
        let bit = |bytes: &[u8], at: usize| u32::from(bytes[at / 8] >> (7 - at % 8) & 1);
        let set = (0..input.len() * 8).filter(|&at| bit(input, at) == 1);
        let window = |at| (at..at + 32).fold(0, |all, at| all << 1 | bit(key, at));
        set.fold(0, |hash, at| hash ^ window(at))
    }

    proptest! {
        #[test]
        fn as_bit_by_bit(low: [u8; 20], high: [u8; 20], input in prop::collection::vec(any::<u8>(), 0..=MOST)) {
            let key: [u8; KEY_LEN] = std::array::from_fn(|i| if i < 20 { low[i] } else { high[i - 20] });
            prop_assert_eq!(toeplitz(&key, &input), slowly(&key, &input));
        }

        #[test]
        fn any_bytes_can_be_hashed(mut frame in prop::collection::vec(any::<u8>(), 14..120), kind in 0..4_usize) {
            frame[12..14].copy_from_slice(&[eth::IP4, eth::IP6, eth::VLAN, 0][kind].to_be_bytes());
            of_frame(&KEY, &frame, true);
        }
    }
}
