//! Checksums beyond the IPv4 header, compared with those of packets from another maker.

use wire::craft::Packet;
use wire::{ip, tcp};

use super::*;

/// A frame whose checksums are then destroyed, and sent by a stream that corrects them.
fn corrected(mut frame: Vec<u8>, places: &[usize], step: Step) -> Vec<u8> {
    for &at in places {
        frame[at..at + 2].fill(0xee);
    }
    let mut out = vec![0; frame.len()];
    Fields::new(&stream(frame, Vec::new(), vec![step]), 0, 0).write(Nanos(0), &mut out);
    out
}

fn hardware(protocol: Option<u8>) -> Step {
    Step::ChecksumTransport {
        network: 14,
        transport: 34,
        protocol,
    }
}

#[test]
fn transport_of_ip4() {
    let (a, b) = (0x1000_0001, 0x3000_0001);
    let udp = Packet::udp((a, 1025), (b, 12)).payload(b"odd").frame();
    assert_eq!(
        corrected(udp.clone(), &[24, 40], hardware(Some(ip::UDP))),
        udp
    );
    let tcp = Packet::tcp((a, 1025), (b, 80), tcp::SYN, 7, 9)
        .payload(&[1; 99])
        .frame();
    assert_eq!(
        corrected(tcp.clone(), &[24, 50], hardware(Some(ip::TCP))),
        tcp
    );
    let raw = Packet::raw(a, b, 99).payload(&[1; 30]).frame();
    assert_eq!(corrected(raw.clone(), &[24], hardware(None)), raw);
}

/// A UDP checksum of 0 would mean none (RFC 768).
#[test]
fn no_udp_checksum_is_zero() {
    let mut udp = Packet::udp((0, 0), (0, 0)).payload(&[0, 0]).frame();
    // What is missing to a sum of 0xffff: protocol 17 and twice the length 10.
    udp[42..44].copy_from_slice(&(0xffffu16 - 17 - 20).to_be_bytes());
    let out = corrected(udp, &[40], hardware(Some(ip::UDP)));
    assert_eq!(out[40..42], [0xff, 0xff]);
}

/// Echo request fe80::1 to fe80::2, identification 1, sequence 1, no data: words of the
/// pseudo-header fe80+1+fe80+2+8+3a, of the message 8000+1+1; sum 2_7d47, folded 7d49.
#[test]
fn icmp6() {
    let mut frame = vec![0; 62];
    (frame[12], frame[13]) = (0x86, 0xdd);
    frame[14] = 0x60;
    (frame[19], frame[20]) = (8, ip::ICMP6);
    frame[22..24].copy_from_slice(&[0xfe, 0x80]);
    frame[37] = 1;
    frame[38..40].copy_from_slice(&[0xfe, 0x80]);
    frame[53] = 2;
    frame[54..62].copy_from_slice(&[0x80, 0, 0, 0, 0, 1, 0, 1]);
    let step = Step::ChecksumIcmp6 {
        network: 14,
        transport: 54,
    };
    let out = corrected(frame.clone(), &[56], step);
    assert_eq!(u16::from_be_bytes([out[56], out[57]]), !0x7d49);
    // The same bytes as UDP over IPv6: the protocol, the checksum's place and its rule differ.
    frame[20] = ip::UDP;
    let step = Step::ChecksumTransport {
        network: 14,
        transport: 54,
        protocol: Some(ip::UDP),
    };
    let out = corrected(frame, &[60], step);
    // fe80+1+fe80+2+8+11, and 8000+0+1+0: sum 2_7d1d... less the last word, which is the checksum.
    let sum = 0xfe80u32 + 1 + 0xfe80 + 2 + 8 + 0x11 + 0x8000 + 1;
    let folded = (sum & 0xffff) + (sum >> 16);
    assert_eq!(
        u32::from(u16::from_be_bytes([out[60], out[61]])),
        !folded & 0xffff
    );
}

/// Shows that whatever was written before it counts, wherever the instruction stands.
#[test]
fn transport_comes_last() {
    let frame = Packet::udp((1, 1025), (2, 12)).payload(&[1; 30]).frame();
    let write = Step::Write {
        variable: 0,
        offset: 50,
        add: 0,
        big_endian: true,
    };
    let variables = vec![variable(Op::Inc, 4, 0x1234_5678, 0, u64::from(u32::MAX), 1)];
    let steps = vec![hardware(Some(ip::UDP)), write];
    let mut out = vec![0; frame.len()];
    Fields::new(&stream(frame, variables, steps), 0, 0).write(Nanos(0), &mut out);
    let sum = wire::checksum::transport(1, 2, ip::UDP, &out[34..]);
    assert_eq!((sum, &out[50..54]), (0, &[0x12, 0x34, 0x56, 0x78][..]));
}
