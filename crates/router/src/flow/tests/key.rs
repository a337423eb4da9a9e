use std::net::SocketAddr;

use tables::random::Random;
use wire::{icmp4, icmp6, ip, ip4, ip6};

use crate::flow::key::{
    self, Kind, Malformed, Packet, ends, key4, key6, message, quoted4, quoted6,
};
use crate::flow::tcp::Segment;

fn packet4(from: u32, to: u32, protocol: u8, content: &[u8]) -> Vec<u8> {
    let header = ip4::Header::new(from, to, protocol, content.len());
    [&header.bytes()[..], content].concat()
}

fn packet6(from: u128, to: u128, protocol: u8, content: &[u8]) -> Vec<u8> {
    let [from, to] = [from, to].map(u128::to_be_bytes);
    let header = ip6::Header::new(from, to, protocol, content.len());
    [&header.bytes()[..], content].concat()
}

fn ported(from: u16, to: u16) -> Vec<u8> {
    [&from.to_be_bytes()[..], &to.to_be_bytes(), &[0x55; 16]].concat()
}

fn echo(kind: u8, id: u16) -> Vec<u8> {
    let mut message = icmp4::Header::new(kind, 0, u32::from(id) << 16 | 9)
        .bytes()
        .to_vec();
    message.extend([1, 2, 3]);
    message
}

/// Two packets, and that they are of one flow in both directions.
fn assert_one_flow(there: Packet, back: Packet) {
    assert_eq!(there.key, back.key);
    assert_ne!(there.swapped, back.swapped);
    assert_eq!(there.kind, back.kind);
}

#[test]
fn both_directions_have_one_key_and_all_flows_another() {
    let mut random = Random::new(1);
    let mut keys = std::collections::HashMap::new();
    for _ in 0..20_000 {
        // Few of each, so that much is the same and only one thing differs.
        let [a, b] = [(); 2].map(|()| 0x0a00_0000 + random.below(3));
        let [p, q] = [(); 2].map(|()| random.below(3) as u16 + 0xfffd);
        let protocol = [ip::TCP, ip::UDP, ip::SCTP, ip::UDP_LITE][random.below(4) as usize];
        if (a, p) == (b, q) {
            continue;
        }
        let is_v6 = random.below(2) == 1;
        let wide = |address: u32| u128::from(address) << 96 | u128::from(address);
        let make = |a: u32, p: u16, b: u32, q: u16| match is_v6 {
            true => packet6(wide(a), wide(b), protocol, &ported(p, q)),
            false => packet4(a, b, protocol, &ported(p, q)),
        };
        let (there, back) = (make(a, p, b, q), make(b, q, a, p));
        let read = |bytes| match is_v6 {
            true => key::ip6(bytes).unwrap(),
            false => key::ip4(bytes).unwrap(),
        };
        let bytes = there;
        let (there, back) = (read(&bytes), read(&back));
        assert_one_flow(there, back);
        assert_eq!(there.content(&bytes), ported(p, q));
        let mut two = [(a, p), (b, q)];
        two.sort_unstable();
        let flow = (two, protocol, is_v6);
        assert_eq!(*keys.entry(there.key).or_insert(flow), flow);
        assert_eq!(there.swapped, two[0] != (a, p));
        let (ends, shown) = ends(&there.key);
        let end = |(address, port): (u32, u16)| match is_v6 {
            true => SocketAddr::from((wide(address).to_be_bytes(), port)),
            false => SocketAddr::from((address.to_be_bytes(), port)),
        };
        assert_eq!((ends, shown), (two.map(end), protocol));
        let ports = u32::from(p) << 16 | u32::from(q);
        let made = match is_v6 {
            true => key6(wide(a), wide(b), ports, protocol),
            false => key4(a, b, ports, protocol),
        };
        assert_eq!(made, (there.key, there.swapped));
    }
    assert!(keys.len() > 200, "{} flows", keys.len());
}

#[test]
fn echo_and_reply_are_one_flow_and_other_messages_are_none_of_it() {
    let v4 = |from, to, kind, id| packet4(from, to, ip::ICMP, &echo(kind, id));
    let there = v4(1, 2, icmp4::ECHO_REQUEST, 7);
    let back = v4(2, 1, icmp4::ECHO_REPLY, 7);
    let (there, back) = (key::ip4(&there).unwrap(), key::ip4(&back).unwrap());
    assert_one_flow(there, back);
    assert_eq!(there.kind, Kind::Echo);
    let differs = |kind, id| key::ip4(&v4(1, 2, kind, id)).unwrap().key != there.key;
    assert!(differs(icmp4::ECHO_REQUEST, 8) && differs(13, 7));
    // A reply opens no flow.
    assert_eq!(message(&there.key), Some(icmp4::ECHO_REQUEST));
    let timestamp = key::ip4(&v4(1, 2, 13, 7)).unwrap().key;
    assert_eq!(message(&timestamp), Some(13));
    let zero = v4(1, 2, icmp4::ECHO_REQUEST, 0);
    let zero = key::ip4(&zero).unwrap().key;
    assert!(
        (1..=255)
            .filter(|&kind| kind != icmp4::ECHO_REQUEST)
            .all(|kind| { key::ip4(&v4(1, 2, kind, 0)).unwrap().key != zero })
    );

    let v6 = |from, to, kind| packet6(from, to, ip::ICMP6, &echo(kind, 7));
    let (there, back) = (v6(1, 2, icmp6::ECHO_REQUEST), v6(2, 1, icmp6::ECHO_REPLY));
    assert_one_flow(key::ip6(&there).unwrap(), key::ip6(&back).unwrap());
    let echo6 = key::ip6(&there).unwrap().key;
    assert_eq!(message(&echo6), Some(icmp6::ECHO_REQUEST));
    // ICMP of the other family is no ICMP.
    let other = packet4(1, 2, ip::ICMP6, &echo(icmp6::ECHO_REQUEST, 7));
    let other = key::ip4(&other).unwrap();
    assert_eq!((other.kind, message(&other.key)), (Kind::Other, None));
}

#[test]
fn errors_are_of_the_flow_that_they_quote() {
    let sent = packet4(1, 9, ip::UDP, &ported(1000, 53));
    let flow = key::ip4(&sent).unwrap();
    let error = |quote: &[u8]| [&echo(icmp4::UNREACHABLE, 0)[..8], quote].concat();
    // Eight bytes behind the header are enough (RFC 792).
    let least = error(&sent[..28]);
    let quoted = quoted4(&least).unwrap();
    assert_eq!((quoted.key, quoted.swapped), (flow.key, flow.swapped));
    let outer = packet4(5, 1, ip::ICMP, &least);
    assert_eq!(key::ip4(&outer).unwrap().kind, Kind::Error);
    for length in 0..28 {
        assert_eq!(
            quoted4(&error(&sent[..length])),
            Err(Malformed::Truncated),
            "{length}"
        );
    }
    assert_eq!(quoted4(&[3, 0, 0]), Err(Malformed::Truncated));
    assert_eq!(quoted4(&error(&outer)), Err(Malformed::Nested));
    let mut later = ip4::Header::new(1, 9, ip::UDP, 18);
    later.set_fragment(100);
    let later = [&later.bytes()[..], &ported(1, 2)].concat();
    assert_eq!(quoted4(&error(&later)), Err(Malformed::Fragment));
    // What it quotes is not IPv4, or its header is too short.
    for first in [0x65, 0x44, 0x4f] {
        let mut wrong = sent.clone();
        wrong[0] = first;
        assert_eq!(
            quoted4(&error(&wrong)),
            Err(Malformed::Truncated),
            "{first:x}"
        );
    }

    let sent = packet6(1, 9, ip::TCP, &ported(1000, 80));
    let flow = key::ip6(&sent).unwrap();
    let error = |quote: &[u8]| [&echo(icmp6::TOO_BIG, 0)[..8], quote].concat();
    let whole = error(&sent);
    assert_eq!(quoted6(&whole).unwrap().key, flow.key);
    assert!((0..48).all(|length| quoted6(&error(&sent[..length])) == Err(Malformed::Truncated)));
    let outer = packet6(5, 1, ip::ICMP6, &whole);
    assert_eq!(quoted6(&error(&outer)), Err(Malformed::Nested));
}

#[test]
fn fragments_and_padding_and_what_is_short() {
    let mut header = ip4::Header::new(1, 2, ip::UDP, 20);
    header.set_fragment(ip4::MORE_FRAGMENTS);
    let first = [&header.bytes()[..], &ported(1000, 53)].concat();
    let whole = packet4(1, 2, ip::UDP, &ported(1000, 53));
    assert_eq!(key::ip4(&first).unwrap().key, key::ip4(&whole).unwrap().key);
    header.set_fragment(185);
    let later = [&header.bytes()[..], &ported(1000, 53)].concat();
    let later = key::ip4(&later).unwrap();
    assert_eq!(
        (later.kind, later.key),
        (Kind::Fragment, key4(1, 2, 0, ip::UDP).0)
    );

    let padded = [&whole[..], &[0xee; 6]].concat();
    assert_eq!(key::ip4(&padded), key::ip4(&whole));
    let [tcp, gre] = [ip::TCP, ip::GRE].map(|protocol| packet4(1, 2, protocol, &[1, 2, 3]));
    assert_eq!(key::ip4(&tcp), Err(Malformed::Truncated));
    assert_eq!(key::ip4(&gre).unwrap().key, key4(1, 2, 0, ip::GRE).0);

    let options = [ip::UDP, 0, 1, 4, 0, 0, 0, 0];
    let content = [&options[..], &ported(1000, 53)].concat();
    let extended = packet6(1, 2, ip::DESTINATION_OPTIONS, &content);
    let plain = packet6(1, 2, ip::UDP, &ported(1000, 53));
    let [by_option, by_none] = [&extended, &plain].map(|bytes| {
        let packet = key::ip6(bytes).unwrap();
        (packet.key, packet.kind, packet.content(bytes))
    });
    assert_eq!(by_option, by_none);
    let fragment = |word: u16| {
        let [high, low] = word.to_be_bytes();
        let header = [ip::UDP, 0, high, low, 0, 0, 0, 1];
        packet6(
            1,
            2,
            ip::FRAGMENT,
            &[&header[..], &ported(1000, 53)].concat(),
        )
    };
    assert_eq!(key::ip6(&fragment(1)).unwrap().kind, Kind::Udp);
    assert_eq!(key::ip6(&fragment(800)).unwrap().kind, Kind::Fragment);
}

#[test]
fn any_bytes_are_read_or_refused() {
    let mut random = Random::new(9);
    let mut read = 0;
    for _ in 0..50_000 {
        let mut bytes: Vec<u8> = (0..random.below(90)).map(|_| random.word() as u8).collect();
        if let Some(first) = bytes.first_mut() {
            *first = [0x45, 0x60, *first, 0x4f][random.below(4) as usize];
        }
        for packet in [
            key::ip4(&bytes),
            key::ip6(&bytes),
            quoted4(&bytes),
            quoted6(&bytes),
        ] {
            let is_read = |packet: Packet| Segment::read(packet.content(&bytes)).is_some();
            read += u32::from(packet.is_ok_and(is_read));
        }
    }
    assert!(read > 1000, "{read}");
}
