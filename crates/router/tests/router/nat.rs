//! Translation of addresses: what becomes of the packets of flows, in both directions.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use router::nat::{Blocks, DestinationRule, Rules, SourceRule, Static, To};
use router::{Change, Route};
use tables::acl::Rule as Match;
use tables::prefix::Prefix;
use wire::craft::Packet;
use wire::tcp::{ACK, SYN};
use wire::{checksum, icmp4, ip};

use crate::firewall::ANY;
use crate::harness::*;

/// Source, destination and their ports, or the identifier of an echo as both.
type Ends = ((u32, u16), (u32, u16));

fn all() -> Match<u32> {
    Match {
        source: Prefix::DEFAULT,
        destination: Prefix::DEFAULT,
        protocol: None,
        source_ports: ANY,
        destination_ports: ANY,
    }
}

fn from(network: u32, len: u8) -> Match<u32> {
    Match {
        source: Prefix::cut(network, len),
        ..all()
    }
}

fn source(interface: u16, packets: Match<u32>, to: To) -> SourceRule {
    SourceRule {
        interface: Some(format!("eth{interface}")),
        packets: vec![packets],
        to,
    }
}

fn masquerade(ports: RangeInclusive<u16>) -> Rules {
    Rules {
        source: vec![source(2, all(), To::Interface { ports })],
        ..Rules::default()
    }
}

/// What comes to a port of interface 2 goes to port 80 of 10.0.1.2.
fn forward(port: u16) -> DestinationRule {
    DestinationRule {
        interface: Some("eth2".to_owned()),
        packets: vec![Match {
            protocol: Some(ip::TCP),
            destination_ports: port..=port,
            ..all()
        }],
        own: true,
        to: Ipv4Addr::from_bits(addr(1, 2)),
        port: Some(80),
    }
}

fn lab(workers: usize, rules: Rules) -> Lab {
    let mut lab = Lab::sized(workers, 64).wired();
    lab.apply(vec![neighbor(1, 3), Change::NatSet(rules)]);
    lab
}

/// From host `.host` of interface `id`, or by it.
fn by(packet: Packet, id: u16, host: u8) -> Packet {
    packet.macs(host_mac(id, host), own_mac(id))
}

/// Receives a packet; what leaves by an interface for it.
fn passed(lab: &mut Lab, from: u16, packet: &Packet, to: u16) -> Option<Vec<u8>> {
    lab.receive(from, [packet.frame()]);
    lab.check_buffers(0);
    let sent = lab.sent(to);
    assert!(sent.len() <= 1);
    sent.into_iter().next().inspect(|frame| sound(frame))
}

/// Checks all checksums of a frame.
fn sound(frame: &[u8]) {
    let (header, content) = frame[14..].split_at(20);
    assert_eq!(checksum::of(header), 0);
    let end = usize::from(u16::from_be_bytes([header[2], header[3]])) - 20;
    let content = &content[..end];
    let word = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().unwrap());
    match header[9] {
        ip::ICMP => assert_eq!(checksum::of(content), 0),
        ip::TCP | ip::UDP => {
            let sum = checksum::transport(word(12), word(16), header[9], content);
            assert_eq!(sum, 0);
        }
        _ => {}
    }
}

/// The ends of an IPv4 packet, which is not cut off.
fn ends_of(packet: &[u8]) -> Ends {
    let word = |at: usize| u32::from_be_bytes(packet[at..at + 4].try_into().unwrap());
    let port = |at: usize| u16::from_be_bytes(packet[at..at + 2].try_into().unwrap());
    let ports = match packet[9] {
        ip::ICMP => [port(24); 2],
        ip::TCP | ip::UDP | ip::SCTP => [port(20), port(22)],
        _ => [0; 2],
    };
    ((word(12), ports[0]), (word(16), ports[1]))
}

fn ends(frame: &[u8]) -> Ends {
    ends_of(&frame[14..])
}

const OUTSIDE: u32 = 0x0a00_0201;

#[test]
fn a_source_is_seen_as_the_interface_and_answers_come_back_to_it() {
    for workers in 1..=3 {
        let mut lab = lab(workers, masquerade(2000..=2999));
        let near = (addr(1, 2), 1025);
        for round in 0..2 {
            let out = passed(&mut lab, 1, &udp(FAR), 2).unwrap();
            let (seen, to) = ends(&out);
            assert_eq!((seen.0, to), (OUTSIDE, (FAR, 12)), "round {round}");
            assert!((2000..=2999).contains(&seen.1));
            let answer = by(Packet::udp((FAR, 12), seen), 2, 2);
            let back = passed(&mut lab, 2, &answer, 1).unwrap();
            assert_eq!(ends(&back), ((FAR, 12), near));
        }
        // Others send to the same port, which is not theirs: it is the router's own.
        let other = by(Packet::udp((FAR, 13), (OUTSIDE, 2000)), 2, 2);
        assert_eq!(passed(&mut lab, 2, &other, 1), None);
        // What comes from inside to inside stays as it is.
        let across = by(Packet::udp((addr(3, 2), 5), near), 3, 2);
        let got = passed(&mut lab, 3, &across, 1).unwrap();
        assert_eq!(ends(&got), ((addr(3, 2), 5), near));
    }
}

#[test]
fn tcp_and_echoes_are_followed_in_both_directions() {
    for workers in 1..=3 {
        let mut lab = lab(workers, masquerade(1024..=32767));
        let near = (addr(1, 2), 1025);
        let syn = by(Packet::tcp(near, (FAR, 80), SYN, 100, 0), 1, 2);
        let (seen, _) = ends(&passed(&mut lab, 1, &syn, 2).unwrap());
        let answer = by(Packet::tcp((FAR, 80), seen, SYN | ACK, 900, 101), 2, 2);
        let back = passed(&mut lab, 2, &answer, 1).unwrap();
        assert_eq!(ends(&back), ((FAR, 80), near));
        let ack = by(Packet::tcp(near, (FAR, 80), ACK, 101, 901), 1, 2);
        for _ in 0..2 {
            assert_eq!(ends(&passed(&mut lab, 1, &ack, 2).unwrap()).0, seen);
        }
        // Of no connection, so nobody knows what it is to become.
        let stray = by(Packet::tcp((addr(1, 3), 7), (FAR, 80), ACK, 1, 1), 1, 3);
        assert_eq!(passed(&mut lab, 1, &stray, 2), None);
        assert_eq!(lab.edge("ip4-firewall", "Untranslated"), 1);
        let mut seen = Vec::new();
        for host in [2, 3] {
            let echo = by(Packet::echo_request(addr(1, host), FAR, 3, 1), 1, host);
            let out = ends(&passed(&mut lab, 1, &echo, 2).unwrap());
            let (kind, rest) = (icmp4::ECHO_REPLY, u32::from(out.0.1) << 16 | 1);
            let reply = by(Packet::icmp(FAR, OUTSIDE, kind, 0, rest), 2, 2);
            let back = ends(&passed(&mut lab, 2, &reply, 1).unwrap());
            assert_eq!(back, ((FAR, 3), (addr(1, host), 3)));
            seen.push(out);
        }
        assert_ne!(seen[0], seen[1]);
    }
}

/// An ICMP error about a packet, from a router.
fn error(from: u32, about: &[u8], to: u32) -> Packet {
    let packet = &about[14..];
    Packet::icmp(from, to, icmp4::TIME_EXCEEDED, 0, 0).payload(&packet[..28])
}

#[test]
fn errors_tell_each_end_of_the_packets_that_it_knows() {
    for workers in 1..=3 {
        let mut lab = lab(workers, masquerade(1024..=32767));
        let near = (addr(1, 2), 1025);
        let out = passed(&mut lab, 1, &udp(FAR), 2).unwrap();
        let seen = ends(&out).0;
        // From a router outside.
        let middle = by(error(0x3000_0009, &out, OUTSIDE), 2, 2);
        let back = passed(&mut lab, 2, &middle, 1).unwrap();
        let quoted = ends_of(&back[14 + 28..]);
        assert_eq!(ends(&back).1.0, near.0);
        assert_eq!(quoted, (near, (FAR, 12)));
        // From inside, about an answer.
        let answer = by(Packet::udp((FAR, 12), seen), 2, 2);
        let came = passed(&mut lab, 2, &answer, 1).unwrap();
        let own = by(error(addr(1, 2), &came, FAR), 1, 2);
        let gone = passed(&mut lab, 1, &own, 2).unwrap();
        assert_eq!(ends(&gone).0.0, OUTSIDE);
        assert_eq!(ends_of(&gone[14 + 28..]), ((FAR, 12), seen));
        // The router's own, about an answer that it has translated already.
        let last = by(Packet::udp((FAR, 12), seen).ttl(1), 2, 2);
        let told = passed(&mut lab, 2, &last, 2).unwrap();
        assert_eq!(ends(&told).0.0, OUTSIDE);
        assert_eq!(ends_of(&told[14 + 28..]), ((FAR, 12), seen));
        // About nothing that is known.
        let strange = by(error(0x3000_0009, &udp(FAR).frame(), OUTSIDE), 2, 2);
        assert_eq!(passed(&mut lab, 2, &strange, 1), None);
    }
}

#[test]
fn a_port_of_the_router_leads_to_a_host_inside() {
    for workers in 1..=3 {
        let rules = Rules {
            destination: vec![forward(8080)],
            ..masquerade(1024..=32767)
        };
        let mut lab = lab(workers, rules);
        let (server, client) = ((addr(1, 2), 80), (FAR, 4444));
        let syn = by(Packet::tcp(client, (OUTSIDE, 8080), SYN, 1, 0), 2, 2);
        let came = passed(&mut lab, 2, &syn, 1).unwrap();
        assert_eq!(ends(&came), (client, server));
        let answer = by(Packet::tcp(server, client, SYN | ACK, 9, 2), 1, 2);
        let back = passed(&mut lab, 1, &answer, 2).unwrap();
        assert_eq!(ends(&back), ((OUTSIDE, 8080), client));
        // Another one, by another port, and the host itself where no rule says anything.
        let ack = by(Packet::tcp(client, (OUTSIDE, 8080), ACK, 2, 10), 2, 2);
        assert_eq!(
            ends(&passed(&mut lab, 2, &ack, 1).unwrap()),
            (client, server)
        );
        let none = by(Packet::tcp(client, (OUTSIDE, 8081), SYN, 1, 0), 2, 2);
        assert_eq!(passed(&mut lab, 2, &none, 1), None);
        // A connection that is the server's own may not be sent as if it were to the router's port.
        let direct = by(Packet::tcp(client, server, ACK, 2, 10), 2, 2);
        assert_eq!(passed(&mut lab, 2, &direct, 1), None);
        assert_eq!(lab.edge("ip4-firewall", "Misplaced"), 1);
    }
}

#[test]
fn hosts_inside_reach_each_other_by_the_address_outside() {
    for workers in 1..=3 {
        let mut hairpin = source(
            1,
            from(addr(1, 0), 24),
            To::Interface {
                ports: 1024..=32767,
            },
        );
        hairpin.packets[0].destination = Prefix::cut(addr(1, 0), 24);
        let rules = Rules {
            source: vec![hairpin],
            destination: vec![DestinationRule {
                interface: None,
                own: false,
                packets: vec![Match {
                    destination: Prefix::host(OUTSIDE),
                    ..forward(8080).packets[0].clone()
                }],
                ..forward(8080)
            }],
            fixed: vec![],
        };
        let mut lab = lab(workers, rules);
        let (server, client) = ((addr(1, 2), 80), (addr(1, 3), 4444));
        let syn = by(Packet::tcp(client, (OUTSIDE, 8080), SYN, 1, 0), 1, 3);
        let came = ends(&passed(&mut lab, 1, &syn, 1).unwrap());
        assert_eq!((came.0.0, came.1), (addr(1, 1), server));
        let answer = by(Packet::tcp(server, came.0, SYN | ACK, 9, 2), 1, 2);
        let back = passed(&mut lab, 1, &answer, 1).unwrap();
        assert_eq!(ends(&back), ((OUTSIDE, 8080), client));
    }
}

#[test]
fn a_network_stands_for_another_one_address_by_address() {
    for workers in 1..=3 {
        let outside = Ipv4Addr::new(198, 51, 100, 0);
        let rules = Rules {
            fixed: vec![Static {
                interface: Some("eth2".to_owned()),
                outside,
                inside: Ipv4Addr::from_bits(addr(1, 0)),
                length: 24,
            }],
            ..masquerade(1024..=32767)
        };
        let mut lab = lab(workers, rules);
        let at = |host: u32| outside.to_bits() + host;
        let out = passed(&mut lab, 1, &udp(FAR), 2).unwrap();
        assert_eq!(ends(&out), ((at(2), 1025), (FAR, 12)));
        let answer = by(Packet::udp((FAR, 12), (at(2), 1025)), 2, 2);
        let back = passed(&mut lab, 2, &answer, 1).unwrap();
        assert_eq!(ends(&back), ((FAR, 12), (addr(1, 2), 1025)));
        // Flows may begin outside, and protocols without ports pass.
        let gre = by(Packet::raw(FAR, at(3), 47).payload(&[1; 20]), 2, 2);
        let came = passed(&mut lab, 2, &gre, 1).unwrap();
        assert_eq!(ends(&came), ((FAR, 0), (addr(1, 3), 0)));
        let gre = by(Packet::raw(addr(1, 3), FAR, 47).payload(&[1; 20]), 1, 3);
        let gone = passed(&mut lab, 1, &gre, 2).unwrap();
        assert_eq!(ends(&gone), ((at(3), 0), (FAR, 0)));
        // Inside nobody is translated.
        let across = by(Packet::udp((addr(1, 2), 1), (addr(3, 2), 2)), 1, 2);
        let got = passed(&mut lab, 1, &across, 3).unwrap();
        assert_eq!(ends(&got).0, (addr(1, 2), 1));
    }
}

#[test]
fn each_flow_to_a_server_has_a_port_of_its_own_until_there_is_none() {
    for workers in 1..=3u16 {
        let mut lab = lab(workers.into(), masquerade(2000..=2000 + 29));
        let mut seen = Vec::new();
        for port in 0..60 {
            let packet = by(Packet::udp((addr(1, 2), 5000 + port), (FAR, 53)), 1, 2);
            if let Some(out) = passed(&mut lab, 1, &packet, 2) {
                seen.push(ends(&out).0.1);
            }
        }
        // The flows of a worker have its share of the ports.
        let refused = lab.edge("ip4-firewall", "NoPort");
        assert_eq!(seen.len() as u64 + refused, 60);
        assert!(refused >= 30);
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count);
        // Another server may be reached by the same ones.
        let packet = by(Packet::udp((addr(1, 2), 5000), (FAR + 1, 53)), 1, 2);
        assert!(passed(&mut lab, 1, &packet, 2).is_some());
    }
}

#[test]
fn a_source_keeps_its_port_if_it_can_and_its_address_of_a_pool() {
    let pool = To::Pool {
        addresses: Ipv4Addr::new(203, 0, 113, 0)..=Ipv4Addr::new(203, 0, 113, 7),
        ports: 1024..=65535,
        blocks: None,
    };
    let rules = Rules {
        source: vec![
            source(2, from(addr(1, 3), 32), To::Same),
            source(2, all(), pool),
        ],
        ..Rules::default()
    };
    let mut lab = lab(1, rules);
    let mut addresses = Vec::new();
    for port in [1025, 40_000, 50_000] {
        let packet = by(Packet::udp((addr(1, 2), port), (FAR, 53)), 1, 2);
        let (seen, _) = ends(&passed(&mut lab, 1, &packet, 2).unwrap());
        assert_eq!(seen.1, port);
        addresses.push(seen.0);
    }
    addresses.dedup();
    assert_eq!(addresses.len(), 1);
    assert_eq!(addresses[0] & !7, 0xcb00_7100);
    let kept = by(Packet::udp((addr(1, 3), 9), (FAR, 53)), 1, 3);
    let got = passed(&mut lab, 1, &kept, 2).unwrap();
    assert_eq!(ends(&got).0, (addr(1, 3), 9));
}

#[test]
fn a_host_has_its_block_of_ports() {
    let pool = To::Pool {
        addresses: Ipv4Addr::new(203, 0, 113, 0)..=Ipv4Addr::new(203, 0, 113, 1),
        ports: 1024..=1024 + 299,
        blocks: Some(Blocks {
            first: Ipv4Addr::from_bits(addr(1, 0)),
            ports: 100,
        }),
    };
    let rules = Rules {
        source: vec![source(2, from(addr(1, 0), 24), pool)],
        ..Rules::default()
    };
    let mut lab = lab(1, rules);
    for (host, address, first) in [(2, 0xcb00_7100, 1224), (3, 0xcb00_7101, 1024)] {
        let packet = by(Packet::udp((addr(1, host), 9), (FAR, 53)), 1, host);
        let (seen, _) = ends(&passed(&mut lab, 1, &packet, 2).unwrap());
        assert_eq!(seen.0, address);
        assert!((first..first + 100).contains(&seen.1));
    }
    // Behind the last one there is nothing.
    let packet = by(Packet::udp((addr(1, 9), 9), (FAR, 53)), 1, 2);
    assert_eq!(passed(&mut lab, 1, &packet, 2), None);
}

#[test]
fn rules_that_change_end_what_they_would_translate_otherwise_and_nothing_else() {
    let mut lab = lab(1, masquerade(2000..=2999));
    let seen = |lab: &mut Lab| {
        let out = passed(lab, 1, &udp(FAR), 2)?;
        Some(ends(&out).0)
    };
    let answers = |lab: &mut Lab, to: (u32, u16)| {
        passed(lab, 2, &by(Packet::udp((FAR, 12), to), 2, 2), 1).is_some()
    };
    let first = seen(&mut lab).unwrap();
    // More ports: the flow goes on.
    lab.apply(vec![Change::NatSet(masquerade(1024..=2999))]);
    assert_eq!(seen(&mut lab), Some(first));
    assert!(answers(&mut lab, first));
    // Others: it is another one, and answers to the one before go nowhere.
    lab.apply(vec![Change::NatSet(masquerade(3000..=3999))]);
    assert!(!answers(&mut lab, first));
    let second = seen(&mut lab).unwrap();
    assert!((3000..=3999).contains(&second.1));
    // The interface has another address.
    let other = ip(2, 9);
    lab.apply(vec![Change::AddressesSet {
        interface: 2,
        addresses: vec![router::Address::new(other, 24)],
    }]);
    lab.apply(vec![Change::RouteSet {
        prefix: router::Prefix::host(other),
        route: Route::Local,
    }]);
    let third = seen(&mut lab).unwrap();
    assert_eq!(third.0, addr(2, 9));
    assert!(!answers(&mut lab, second) && answers(&mut lab, third));
    // Without rules nothing is translated, and nothing is followed.
    lab.apply(vec![Change::NatSet(Rules::default())]);
    assert_eq!(seen(&mut lab), Some((addr(1, 2), 1025)));
    assert!(!answers(&mut lab, third));
}
