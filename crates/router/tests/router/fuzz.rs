//! Random packets through the graph: nothing panics, nothing leaks, all that leaves is well-formed.
//!
//! `PARSHALL_FUZZ_ROUNDS` and `PARSHALL_FUZZ_SEED` make a run longer or another one.

use crate::harness::*;
use router::{Change, Interface, Kind, Route};
use std::collections::HashMap;
use tables::random::Random;
use wire::craft::Packet;
use wire::eth::Mac;

fn number(variable: &str, default: u64) -> u64 {
    let value = std::env::var(variable).ok();
    value.and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// Good packets to begin with.
fn corpus() -> Vec<Vec<u8>> {
    let from = addr(1, 2);
    let to_us = |p: Packet| p.macs(Mac(host_mac(1, 2)), Mac(own_mac(1)));
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
    for length in [
        60, 61, 64, 128, 590, 1514, 1515, 1870, 1871, 3000, 9230, 9500,
    ] {
        packets.push(udp(FAR).id(length as u16).frame_len(length).frame());
        packets.push(udp(FAR).fragment(0x4000).frame_len(length).frame());
    }
    packets
}

fn lab() -> Lab {
    let mut lab = Lab::new();
    lab.plug(4, 0);
    let ecmp = Route::Forward(vec![via(2, 2), via(3, 2)]);
    lab.apply(vec![
        Change::InterfaceSet(Interface {
            kind: Kind::Twin { of: 1 },
            ..interface(4)
        }),
        Change::InterfaceSet(Interface {
            kind: Kind::Routed { twin: Some(4) },
            ..interface(1)
        }),
        Change::InterfaceSet(Interface {
            mtu: 576,
            ..interface(3)
        }),
        route("60.0.0.0/8", Route::Blackhole),
        route("61.0.0.0/8", Route::Prohibit),
        route("62.0.0.0/8", ecmp),
    ]);
    lab
}

fn mutate(random: &mut Random, frame: &mut Vec<u8>) {
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
    if frame.len() >= 34 && random.below(4) > 0 {
        seal(frame);
    }
    frame.truncate(graph::pool::MAX_PACKET);
}

/// What goes in, by what stays the same on the way: addresses, identification, protocol.
fn key(ip: &[u8]) -> Vec<u8> {
    [&ip[4..6], &ip[9..10], &ip[12..20]].concat()
}

/// The TTLs that went in with each key.
type Seen = HashMap<Vec<u8>, Vec<u8>>;

/// A frame that left by a routed interface.
fn check(frame: &[u8], interface: u16, mtu: usize, seen: &Seen) {
    assert!(frame.len() >= 34, "{frame:02x?}");
    assert_eq!(frame[6..12], own_mac(interface));
    assert!(frame[0] & 1 == 0 && frame[12..14] == [8, 0]);
    let ip = &frame[14..];
    let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    assert_eq!(ip[0], 0x45);
    assert!((20..=ip.len()).contains(&total) && total <= mtu, "{total}");
    assert!(
        ip.len() == total || frame.len() <= 60,
        "{} bytes",
        frame.len()
    );
    assert_eq!(wire::checksum::of(&ip[..20]), 0);
    let ours = ip[9] == 1 && ip[8] == 64 && [3, 11].contains(&ip[20]);
    if ours && wire::checksum::of(&ip[20..total]) == 0 && total >= 48 {
        return;
    }
    let ttls = &seen[&key(ip)];
    assert!(ttls.contains(&(ip[8] + 1)), "ttl {} of {ttls:?}", ip[8]);
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
    for round in 0..rounds {
        let mut seen = Seen::new();
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
            if frame.len() >= 34 {
                seen.entry(key(&frame[14..])).or_default().push(frame[22]);
            }
            received.push(frame);
        }
        if round % 50 == 0 {
            lab.cables[&2].set_room(random.below(300) as usize);
        } else {
            lab.cables[&2].set_room(usize::MAX);
        }
        let from = if random.below(10) == 0 { 4 } else { 1 };
        let count = received.len();
        lab.receive(from, received.clone());
        let (straight, back) = (lab.sent(1), lab.sent(4));
        if from == 4 {
            let whole: Vec<_> = received.into_iter().filter(|f| f.len() >= 14).collect();
            assert_eq!(straight, whole, "the host's packets leave as they are");
        } else {
            straight.iter().for_each(|f| check(f, 1, 1500, &seen));
            assert!(
                back.iter()
                    .all(|f| received.iter().any(|r| r.starts_with(f)))
            );
        }
        lab.sent(2).iter().for_each(|f| check(f, 2, 1500, &seen));
        lab.sent(3).iter().for_each(|f| check(f, 3, 576, &seen));
        assert_eq!(lab.cables[&from].waiting(), 0, "{count} packets");
        // The neighbor that packets wait for comes and goes.
        lab.apply(vec![neighbor(2, 9)]);
        lab.sent(2).iter().for_each(|f| check(f, 2, 1500, &seen));
        let gone = |host: u8| Change::NeighborDelete {
            interface: 2,
            address: addr(2, host).into(),
        };
        lab.apply(vec![gone(9)]);
        let held = held(&lab);
        lab.check_buffers(held);
    }
}

/// Packets that wait for a neighbor.
fn held(lab: &Lab) -> usize {
    let nodes = &lab.router.workers[0].nodes;
    let (_, counters) = nodes.iter().find(|(name, _)| *name == "ip4-arp").unwrap();
    let left: u64 = counters.edges.iter().map(|e| e.get()).sum();
    (counters.packets.get() - left) as usize
}
