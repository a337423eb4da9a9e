//! Random IPv6 packets, right ones and all kinds of wrong ones.

use std::net::Ipv6Addr;

use super::frames::Packet;
use crate::harness::craft::{ICMP6, Ip6, Mac};
use crate::harness::random::Random;
use crate::harness::topology::{H0, HOST6, R0, ROUTER6, ip6};

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;

impl Packet for Ip6 {
    fn plain(random: &mut Random, id: u16) -> Self {
        plain(random, id)
    }
    fn any(random: &mut Random, id: u16, mtu: usize) -> (Self, Mac) {
        packet(random, id, mtu)
    }
    fn flipped(random: &mut Random, id: u16) -> Vec<u8> {
        flipped(random, id)
    }
    fn long(random: &mut Random, mtu: usize) -> usize {
        long(random, mtu)
    }
    fn resize(&mut self, length: usize) {
        resize(self, length);
    }
    fn frame(&self, src: Mac, dst: Mac) -> Vec<u8> {
        Ip6::frame(self, src, dst)
    }
}

/// An address of the network 2001:db8:NET::/48.
fn address(net: u16, low: u32) -> Ipv6Addr {
    let [high, low] = [(low >> 16) as u16, low as u16];
    Ipv6Addr::new(0x2001, 0xdb8, net, 0, 0, 0, high, low)
}

/// A packet that is right. Its sender is its own: devices limit their errors by receiver.
fn plain(random: &mut Random, id: u16) -> Ip6 {
    let src = address(0x1600 + random.below(16) as u16, id.into());
    let bits = random.bits();
    let dst = match random.below(8) {
        // Routes with an MTU of their own, and by several paths.
        0 => address(0x4900, bits as u32),
        1 => address(0x5000, bits as u32),
        2 => address(0x5100, 1),
        _ => address(0x4800 | bits as u16 & 0x7f, (bits >> 16) as u32),
    };
    let length = random.one_of(&[8, 26, 27, 200, 1000, 1239, 1240, 1351, 1352]);
    let mut packet = Ip6 {
        traffic_class: random.one_of(&[0, 0, 0xb8, 3]),
        flow_label: random.one_of(&[0, 0x12345, 0xf_ffff]),
        hop_limit: random.one_of(&[2, 3, 64, 255]),
        ..Ip6::udp(src, dst, id, length)
    };
    packet.seal(6);
    packet
}

/// A good packet with a few bits of its header turned.
fn flipped(random: &mut Random, id: u16) -> Vec<u8> {
    let mut frame = plain(random, id).frame(H0, R0);
    for _ in 0..=random.below(3) {
        // Not the addresses' last bytes: they keep the packets apart from each other and from
        // neighbors that nobody answers for.
        let at = random.one_of(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 24]);
        frame[14 + at] ^= 1 << random.below(8);
    }
    frame
}

/// A packet of any kind, with where its frame goes.
fn packet(random: &mut Random, id: u16, mtu: usize) -> (Ip6, Mac) {
    let mut packet = plain(random, id);
    let mut mac = R0;
    match random.below(20) {
        0 => packet.hop_limit = random.one_of(&[0, 1]),
        1 => packet.version = random.one_of(&[0, 4, 5, 7, 15]),
        2 => packet.payload_length = Some(random.one_of(&[0, 7, 8, 1500, 65535])),
        3 => packet.next_header = random.bits() as u8,
        4 => extension(random, &mut packet),
        5 => fragment(random, &mut packet, id),
        6..=8 => {
            let length = long(random, mtu);
            resize(&mut packet, length);
            packet.hop_limit = random.one_of(&[1, 64, 64]);
        }
        9..=12 => addresses(random, &mut packet),
        13 | 14 => icmp(random, &mut packet),
        15 => packet = Ip6::echo(HOST6[0], random.one_of(&ROUTER6), id),
        // For the host too, though the frame is not a group's.
        16 => packet = Ip6::echo(HOST6[0], Ipv6Addr::from([0xff02, 0, 0, 0, 0, 0, 0, 1]), id),
        17 => packet.dst = random.one_of(&ROUTER6),
        18 => mac = random.one_of(&[[2, 0, 0, 0, 0, 9], [0xff; 6], [0x33, 0x33, 0, 0, 0, 1]]),
        _ => {}
    }
    (packet, mac)
}

/// Length of a payload about as long as the next link takes, or longer.
fn long(random: &mut Random, mtu: usize) -> usize {
    let around = random.one_of(&[1240, 1241, 1260, 1261, 1360, 1361]);
    match random.below(2) {
        0 => around,
        _ => 1240 + random.below(mtu - 40 - 1240 + 1),
    }
}

/// A payload of `length` bytes, with its length and checksum.
fn resize(packet: &mut Ip6, length: usize) {
    packet.payload.resize(length, 0x77);
    packet.payload[4..6].copy_from_slice(&(length as u16).to_be_bytes());
    packet.seal(6);
}

/// Extension headers: some that are the destination's own business, and hop-by-hop options: none
/// that matters, unknown ones of all four kinds (RFC 8200 section 4.2), one that is cut off.
fn extension(random: &mut Random, packet: &mut Ip6) {
    let option = |kind| [0, kind, 4, 0, 0, 0, 0];
    match random.below(8) {
        0 => packet.extend(ROUTING, &[0, 0, 1, 0, 0, 0, 0]),
        1 => packet.extend(DESTINATION_OPTIONS, &option(0x1e)),
        2 => packet.extend(HOP_BY_HOP, &option(1)),
        3 => packet.extend(HOP_BY_HOP, &option(0x1e)),
        4 => packet.extend(HOP_BY_HOP, &option(0x5e)),
        5 => packet.extend(HOP_BY_HOP, &option(0x9e)),
        6 => packet.extend(HOP_BY_HOP, &option(0xde)),
        _ => packet.extend(HOP_BY_HOP, &[200, 1, 4, 0, 0, 0, 0]),
    }
    packet.hop_limit = random.one_of(&[1, 64, 64]);
}

/// A first fragment, a later one, or a packet that is one whole fragment.
fn fragment(random: &mut Random, packet: &mut Ip6, id: u16) {
    let word: u16 = random.one_of(&[1, 8 << 3 | 1, 1000 << 3, 0]);
    let ([high, low], [a, b]) = (word.to_be_bytes(), id.to_be_bytes());
    packet.extend(FRAGMENT, &[0, high, low, 0, 0, a, b]);
    packet.hop_limit = random.one_of(&[1, 64, 64]);
}

/// Addresses that are special, or that lead nowhere.
fn addresses(random: &mut Random, packet: &mut Ip6) {
    const DESTINATIONS: [&str; 17] = [
        "::1",
        "::ffff:1.2.3.4",
        "64:ff9b::1.2.3.4",
        "ff01::1",
        "ff02::5",
        "ff0e::1:2:3",
        "ff00::1",
        "fec0::1",
        "fc00::1",
        "2001:db8:0::2",
        "2001:db8:1::2",
        "2001:db8:6000::1",
        "2001:db8:6100::1",
        "2001:db8:6200::1",
        "2001:db8:9900::1",
        "2001:db8:1600:9::9",
        "2001:db8:1::",
    ];
    const SOURCES: [&str; 9] = [
        "::1",
        "ff02::1",
        "::ffff:1.2.3.4",
        "fec0::1",
        "fd00::1",
        "2001:db8:9900::1",
        "2001:db8:4800::1",
        "2001:db8:1700::1",
        "2001:db8:1800::1",
    ];
    if random.below(3) > 0 {
        packet.dst = random.one_of(&DESTINATIONS).parse().expect("an address");
    }
    if random.below(3) == 0 {
        let src: Ipv6Addr = random.one_of(&SOURCES).parse().expect("an address");
        let behind = [0x1700, 0x1800, 0x4800].contains(&src.segments()[2]);
        let own = u128::from(packet.src.segments()[7]);
        // Behind a host, which then gets errors: Linux limits them by receiver.
        packet.src = if behind {
            (src.to_bits() & !0xffff | own).into()
        } else {
            src
        };
        packet.hop_limit = random.one_of(&[1, 64]);
    }
    packet.seal(6);
}

/// ICMPv6 of any type, to be forwarded or to bring an error back, which is allowed about some of
/// them only.
fn icmp(random: &mut Random, packet: &mut Ip6) {
    packet.next_header = ICMP6;
    let kind = random.one_of(&[0, 1, 2, 3, 4, 5, 127, 128, 129, 138, 140, 200, 255]);
    packet.payload[..2].copy_from_slice(&[kind, 0]);
    packet.seal(2);
    packet.hop_limit = random.one_of(&[1, 64]);
    if random.below(4) == 0 {
        packet.payload.clear();
    }
}

/// The kinds of errors that a run must have seen, as type and code: no route, prohibited, port
/// unreachable, packet too big, hop limit exceeded, wrong option.
pub const ERRORS: [(u8, u8); 6] = [(1, 0), (1, 1), (1, 4), (2, 0), (3, 0), (4, 2)];

/// A packet from a link-local address that would have to leave its link.
pub fn beyond_scope(id: u16) -> Vec<u8> {
    let src = Ipv6Addr::from([0xfe80, 0, 0, 0, 0, 0, 0, 2]);
    Ip6::udp(src, ip6(0x4800, id), id, 26).frame(H0, R0)
}
