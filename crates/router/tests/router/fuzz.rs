//! Random packets through the graph: nothing panics, nothing leaks, all that leaves is well-formed.
//!
//! `PARSHALL_FUZZ_ROUNDS` and `PARSHALL_FUZZ_SEED` make a run longer, or a different one.

use std::net::Ipv6Addr;

use tables::random::Random;
use wire::craft::Packet;
use wire::ip;

use crate::harness::*;
use crate::sound::{self, BRIDGED, CROSSED, LACP_MEMBER, VNI, WAITING, XOR_MEMBERS, lab, round};

fn number(variable: &str, default: u64) -> u64 {
    let value = std::env::var(variable).ok();
    value.and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// Good packets of both families to begin with.
pub fn corpus() -> Vec<Vec<u8>> {
    let mut packets = corpus4();
    packets.extend(corpus6());
    packets.extend(tunneled());
    packets.extend(lacpdus());
    let at_bridge = [packets.clone(), stations()].concat();
    packets.extend(at_bridge.iter().map(|frame| tagged(frame)));
    let crossing = |end| {
        stations()
            .into_iter()
            .map(move |f| sound::crossing(&f, end))
    };
    packets.extend([0, 1].into_iter().flat_map(crossing));
    packets.extend(stations());
    packets
}

/// Packets of the tunnels with the host on interface 1.
pub fn tunneled() -> Vec<Vec<u8>> {
    let [near, own]: [Ipv6Addr; 2] =
        ["2001:db8:1::2", "2001:db8:1::1"].map(|text| text.parse().unwrap());
    let mut inner: Vec<_> = (0..4).map(|ecn| udp(FAR).tos(ecn).frame()).collect();
    inner.extend(corpus6().into_iter().take(4));
    inner.extend([66, 590, 1400, 1514].map(|length| udp(FAR).frame_len(length).frame()));
    inner.extend([0x3f00_0001, addr(1, 1), 0x4600_0001].map(|to| udp(to).frame()));
    inner.push(udp(FAR).ttl(1).frame());
    let packets = inner.iter().zip((0..=3).cycle()).flat_map(|(inner, ecn)| {
        let header = wire::vxlan::Header::new(VNI);
        let content = [&header.bytes()[..], inner].concat();
        [
            Packet::udp((addr(1, 2), 50000), (addr(1, 1), 4789)),
            Packet::udp6((near, 50000), (own, 4789)),
        ]
        .map(|packet| {
            let packet = packet.macs(host_mac(1, 2), own_mac(1)).tos(ecn);
            packet.payload(&content).frame()
        })
    });
    packets.collect()
}

/// The frame with the tag of the bridge's sub-interface.
fn tagged(frame: &[u8]) -> Vec<u8> {
    let tag = [0x8100u16, sound::BRIDGED_TAG].map(u16::to_be_bytes);
    [&frame[..12], tag.as_flattened(), &frame[12..]].concat()
}

/// What stations say to each other, and ask.
fn stations() -> Vec<Vec<u8>> {
    let station = |n| (host_mac(42, n), addr(42, n));
    let all = [(3, 4), (4, 3), (4, 5), (5, 3)];
    let frames = all.into_iter().flat_map(|(from, to)| {
        let (from, to) = (station(from), station(to));
        let request = wire::arp::Header::request(from, to.1);
        let packet = Packet::udp((from.1, 1025), (to.1, 12)).macs(from.0, to.0);
        let to_us = Packet::udp((from.1, 1025), (FAR, 12)).macs(from.0, own_mac(1));
        [
            wire::craft::arp(&request, wire::eth::Mac([0xff; 6])),
            packet.frame(),
            to_us.frame(),
        ]
    });
    frames.collect()
}

/// LACPDUs and markers.
fn lacpdus() -> Vec<Vec<u8>> {
    let said = wire::lacp::Header::new(Default::default(), Default::default());
    let lacpdu = sound::answer(&said);
    let mut marker = lacpdu.clone();
    marker[14..18].copy_from_slice(&[2, 1, 1, 16]);
    vec![lacpdu, marker]
}

/// IPv6 destinations of every kind: forwarded, to be resolved, own, spread, decisions, none.
const DESTINATIONS6: [&str; 12] = [
    "2001:db8:4800::1",
    WAITING,
    "2001:db8:1::1",
    "2001:db8:6200::7",
    "2001:db8:6000::1",
    "2001:db8:6100::1",
    "2001:db8:9900::1",
    "fe80::2",
    "2001:db8:6300::1",
    "2001:db8:6400::1",
    "2001:db8:6700::1",
    "2001:db8:6800::1",
];

fn corpus6() -> Vec<Vec<u8>> {
    let address = |text: &str| text.parse::<Ipv6Addr>().unwrap();
    let (from, far) = (address("2001:db8:1::2"), address(DESTINATIONS6[0]));
    let to_us = |p: Packet| p.macs(host_mac(1, 2), own_mac(1));
    let udp = |to: Ipv6Addr| to_us(Packet::udp6((from, 1025), (to, 12)));
    let mut packets: Vec<_> = DESTINATIONS6.iter().map(|to| udp(address(to))).collect();
    packets.extend([
        to_us(Packet::tcp6((from, 40000), (far, 80), 2, 7, 0)),
        to_us(Packet::echo_request6(from, far, 1, 2)),
        to_us(Packet::raw6(from, far, 47).payload(&[7; 100])),
        udp(far).ttl(1),
        udp(far).extension(ip::HOP_BY_HOP, &[0, 1, 4, 0, 0, 0, 0]),
        udp(far).extension(ip::DESTINATION_OPTIONS, &[0, 1, 4, 0, 0, 0, 0]),
        udp(far).extension(ip::FRAGMENT, &[0, 5, 1, 0, 0, 0, 9]),
    ]);
    packets.extend([66, 590, 591, 1294, 1514, 1515, 3000, 9230].map(|n| udp(far).frame_len(n)));
    packets.into_iter().map(|packet| packet.frame()).collect()
}

fn corpus4() -> Vec<Vec<u8>> {
    let from = addr(1, 2);
    let to_us = |p: Packet| p.macs(host_mac(1, 2), own_mac(1));
    let mut packets = vec![
        to_us(Packet::tcp((from, 40000), (FAR, 80), 2, 7, 0)).frame(),
        to_us(Packet::echo_request(from, FAR, 1, 2)).frame(),
        to_us(Packet::raw(from, FAR, 47).payload(&[7; 100])).frame(),
        udp(FAR).options(&[7, 3, 4, 0]).frame(),
        udp(FAR).ttl(1).frame(),
        udp(addr(1, 1)).frame(),
        udp(addr(2, 9)).frame(),
        udp(0x3c00_0001).frame(),
        udp(0x3d00_0001).frame(),
        udp(0x3e00_0001).frame(),
        udp(0x4600_0001).frame(),
    ];
    // By tunnels and bonds.
    packets.extend((63..=68).map(|net| udp(net << 24 | 1).frame()));
    packets.extend([1414, 1415, 3000].map(|length| udp(0x3f00_0001).frame_len(length).frame()));
    for length in [
        60, 61, 64, 128, 590, 1514, 1515, 1870, 1871, 3000, 9230, 9500,
    ] {
        packets.push(udp(FAR).id(length as u16).frame_len(length).frame());
        packets.push(udp(FAR).fragment(0x4000).frame_len(length).frame());
    }
    packets
}

pub fn mutate(random: &mut Random, frame: &mut Vec<u8>) {
    for _ in 0..random.below(4) {
        let bytes = frame.len() as u32;
        if bytes == 0 {
            return;
        }
        match random.below(6) {
            0 => frame[random.below(bytes) as usize] = random.word() as u8,
            // Headers more often than the rest.
            1 | 2 => frame[random.below(bytes.min(54)) as usize] ^= 1 << random.below(8),
            3 => frame.truncate(random.below(bytes + 1) as usize),
            4 => frame.extend((0..random.below(200)).map(|i| i as u8)),
            _ if frame.get(12) == Some(&0x86) => {
                let to = DESTINATIONS6[random.below(12) as usize].parse::<Ipv6Addr>();
                if let (Some(place), Ok(to)) = (frame.get_mut(38..54), to) {
                    place.copy_from_slice(&to.octets());
                    place[15] ^= random.below(4) as u8;
                }
            }
            _ => {
                let to = [
                    FAR,
                    addr(2, 9),
                    addr(3, 2),
                    0x3e00_0001 + random.below(99),
                    random.word(),
                ];
                if let Some(place) = frame.get_mut(30..34) {
                    place.copy_from_slice(&to[random.below(5) as usize].to_be_bytes());
                }
            }
        }
    }
    let is_ip4 = frame.len() >= 34 && frame[14] >> 4 == 4;
    if is_ip4 && random.below(4) > 0 {
        seal(frame);
    }
    frame.truncate(graph::pool::MAX_PACKET);
}

#[test]
fn random_packets_through_the_graph() {
    let (seed, rounds) = (
        number("PARSHALL_FUZZ_SEED", 1),
        number("PARSHALL_FUZZ_ROUNDS", 1500),
    );
    println!("seed {seed}, {rounds} rounds of up to 300 packets");
    let mut random = Random::new(seed);
    let (mut lab, corpus) = (lab(), corpus());
    for number in 0..rounds {
        let mut received = Vec::new();
        for _ in 0..1 + random.below(300) {
            let mut frame = if random.below(20) == 0 {
                (0..random.below(101))
                    .map(|_| random.word() as u8)
                    .collect()
            } else {
                corpus[random.below(corpus.len() as u32) as usize].clone()
            };
            mutate(&mut random, &mut frame);
            received.push(frame);
        }
        if number % 50 == 0 {
            lab.cables[&2].set_room(random.below(300) as usize);
        } else {
            lab.cables[&2].set_room(usize::MAX);
        }
        let from = match random.below(10) {
            0 => 4,
            1 => XOR_MEMBERS[0],
            2 => LACP_MEMBER,
            3 => BRIDGED,
            4 => CROSSED,
            _ => 1,
        };
        lab.advance(std::time::Duration::from_millis(1));
        round(&mut lab, from, received);
    }
    for node in ["icmp4-error", "icmp6-error"] {
        assert!(lab.edge(node, "Lookup") > 0, "{node} was not reached");
    }
    for (node, edge) in [
        ("vxlan-encap", "Ip4"),
        ("vxlan-encap", "Ip6"),
        ("vxlan-input", "Frame"),
        ("vxlan-input", "Congested"),
        ("bond-input", "Bond"),
        ("bond-output", "Member"),
        ("lacp-exchange", "Member"),
        ("lacp-exchange", "Length"),
        ("l2-forward", "Member"),
        ("l2-forward", "Bvi"),
        ("l2-forward", "ArpReply"),
        ("l2-forward", "Flood"),
        ("vlan-input", "CrossConnect"),
    ] {
        assert!(lab.edge(node, edge) > 0, "{node} {edge} was not reached");
    }
}
