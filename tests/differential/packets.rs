//! Random packets, right ones and all kinds of wrong ones.

use std::net::Ipv4Addr;

use super::frames::Packet;
use crate::harness::craft::{DF, ICMP, Ip4, MF, Mac, checksum};
use crate::harness::random::Random;
use crate::harness::topology::{H0, HOST, R0, ROUTER};

impl Packet for Ip4 {
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
        Ip4::frame(self, src, dst)
    }
}

/// A packet that is right. Its sender is its own: devices limit their errors by receiver.
fn plain(random: &mut Random, id: u16) -> Ip4 {
    let [high, low] = id.to_be_bytes();
    let src = Ipv4Addr::new(16, random.below(16) as u8, high, low);
    let bits = random.bits();
    let dst = match random.below(9) {
        // Routes with an MTU of their own, by IPv6 next hops, and destinations on the link by
        // several paths.
        0 => Ipv4Addr::new(49, 0, 0, bits as u8),
        2 => Ipv4Addr::new(random.one_of(&[52, 53]), 0, 0, bits as u8),
        1 => Ipv4Addr::new(random.one_of(&[50, 51]), 0, 0, 1),
        _ => Ipv4Addr::new(48, bits as u8, (bits >> 8) as u8, (bits >> 16) as u8 & 0x7f),
    };
    let length = random.one_of(&[8, 26, 27, 200, 1000, 1371, 1372]);
    Ip4 {
        tos: random.one_of(&[0, 0, 0xb8, 3]),
        ttl: random.one_of(&[2, 3, 64, 255]),
        ..Ip4::udp(src, dst, id, length)
    }
}

/// A good packet with a few bits of its IP header turned, with a checksum that fits or not.
fn flipped(random: &mut Random, id: u16) -> Vec<u8> {
    let mut frame = plain(random, id).frame(H0, R0);
    for _ in 0..=random.below(3) {
        // Not the identification and not the addresses' last bytes: they keep the packets apart
        // from each other and from neighbors that nobody answers for.
        let at = random.one_of(&[0, 1, 2, 3, 6, 7, 8, 9, 12, 16]);
        frame[14 + at] ^= 1 << random.below(8);
    }
    if random.below(4) > 0 {
        let header = (usize::from(frame[14] & 15) * 4).clamp(20, frame.len() - 14);
        frame[24..26].fill(0);
        let sum = checksum(&frame[14..14 + header]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
    }
    frame
}

/// A packet of any kind, with where its frame goes.
fn packet(random: &mut Random, id: u16, mtu: usize) -> (Ip4, Mac) {
    let mut packet = plain(random, id);
    let mut mac = R0;
    match random.below(20) {
        0 => packet.ttl = random.one_of(&[0, 1]),
        1 => packet.version = random.one_of(&[0, 3, 5, 6, 15]),
        2 => packet.header_words = Some(random.one_of(&[0, 1, 4, 6, 15])),
        3 => packet.total_length = Some(random.one_of(&[0, 19, 20, 27, 28, 1500, 65535])),
        4 => packet.checksum = Some(random.bits() as u16),
        5 => packet.options = options(random),
        6 => packet.fragment = random.one_of(&[MF, MF | 1, 100, 0x1fff, DF | MF, 0x8000]),
        7 => {
            packet.fragment = DF;
            let length = long(random, mtu);
            resize(&mut packet, length);
        }
        8 => {
            packet.fragment = random.one_of(&[0, 0, MF, MF | 100, 200]);
            let length = long(random, mtu);
            resize(&mut packet, length);
            packet.ttl = random.one_of(&[1, 64, 64]);
        }
        9..=11 => addresses(random, &mut packet),
        12 => icmp(random, &mut packet),
        13 => packet = Ip4::echo(HOST[0], random.one_of(&ROUTER), id),
        // For the host too, though the frame is not a group's.
        17 => packet = Ip4::echo(HOST[0], random.one_of(&GROUPS).into(), id),
        14 => packet.dst = random.one_of(&ROUTER),
        15 => packet.protocol = random.bits() as u8,
        16 => mac = random.one_of(&[[2, 0, 0, 0, 0, 9], [0xff; 6], [1, 0, 0x5e, 0, 0, 5]]),
        _ => {}
    }
    (packet, mac)
}

/// All hosts on the link, by multicast and by limited and directed broadcast.
const GROUPS: [[u8; 4]; 3] = [[224, 0, 0, 1], [255; 4], [198, 18, 0, 255]];

/// Length of a payload about as long as the next link takes, or longer.
fn long(random: &mut Random, mtu: usize) -> usize {
    let around = random.one_of(&[1380, 1381, 1388, 1400, 1480]);
    match random.below(2) {
        0 => around,
        _ => 1380 + random.below(mtu - 20 - 1380 + 1),
    }
}

/// A payload of `length` bytes.
fn resize(packet: &mut Ip4, length: usize) {
    packet.payload.resize(length, 0x77);
    // UDP's own length, so that who looks at it is content.
    packet.payload[4..6].copy_from_slice(&(length as u16).to_be_bytes());
}

/// Addresses that are special, or that lead nowhere.
fn addresses(random: &mut Random, packet: &mut Ip4) {
    const DESTINATIONS: [[u8; 4]; 16] = [
        [198, 18, 1, 255],
        [198, 18, 0, 255],
        [255; 4],
        [127, 0, 0, 1],
        [0; 4],
        [0, 1, 2, 3],
        [224, 0, 0, 5],
        [239, 1, 2, 3],
        [240, 0, 0, 1],
        [16, 9, 9, 9],
        [198, 18, 0, 2],
        [60, 0, 0, 1],
        [61, 0, 0, 1],
        [62, 0, 0, 1],
        [99, 9, 9, 9],
        [198, 18, 1, 2],
    ];
    // Not a broadcast address: Linux sends errors there, which RFC 1812 section 4.3.2.7 forbids.
    const SOURCES: [[u8; 4]; 10] = [
        [127, 0, 0, 1],
        [0; 4],
        [0, 1, 2, 3],
        [224, 0, 0, 1],
        [255; 4],
        [240, 1, 1, 1],
        [99, 9, 9, 9],
        [48, 1, 1, 1],
        [17, 1, 1, 1],
        [18, 1, 1, 1],
    ];
    if random.below(3) > 0 {
        packet.dst = random.one_of(&DESTINATIONS).into();
    }
    if random.below(3) == 0 {
        let own = packet.src.octets();
        let mut src = random.one_of(&SOURCES);
        if [17, 18, 48].contains(&src[0]) {
            // Behind a host, which then gets errors: Linux sends each receiver five at once, then
            // one a second.
            src[2..].copy_from_slice(&own[2..]);
        }
        packet.src = src.into();
        packet.ttl = random.one_of(&[1, 64]);
    }
}

/// ICMP of any type, to be forwarded or to bring an error back, which is allowed about some of them
/// only.
fn icmp(random: &mut Random, packet: &mut Ip4) {
    packet.protocol = ICMP;
    packet.payload[..4].copy_from_slice(&[random.below(24) as u8, 0, 0, 0]);
    let sum = checksum(&packet.payload);
    packet.payload[2..4].copy_from_slice(&sum.to_be_bytes());
    packet.ttl = random.one_of(&[1, 64]);
    if random.below(4) == 0 {
        packet.payload.clear();
    }
}

/// Options: none that matters, record route, time stamp (full: only its overflow counts up, the
/// time is nobody's to compare), router alert, a list that is wrong.
fn options(random: &mut Random) -> Vec<u8> {
    let lists: [&[u8]; 5] = [
        &[1, 1, 1, 0],
        &[7, 7, 4, 0, 0, 0, 0, 0],
        &[68, 8, 9, 0, 0, 0, 0, 0],
        &[148, 4, 0, 0],
        &[7, 200, 4, 0],
    ];
    random.one_of(&lists).to_vec()
}
