//! ip4-input: every reason to refuse a packet.

use router::{Change, Interface};
use wire::craft::Packet;

use crate::harness::*;

fn from_to(source: u32, destination: u32) -> Packet {
    Packet::udp((source, 1), (destination, 2)).macs(host_mac(1, 2), own_mac(1))
}

/// The frame of a good packet with byte `at` of the IP header set, its checksum right again.
fn with(at: usize, value: u8) -> Vec<u8> {
    let mut frame = udp(FAR).frame();
    frame[14 + at] = value;
    seal(&mut frame);
    frame
}

#[test]
fn headers_that_are_wrong_are_dropped() {
    let mut lab = Lab::new();
    for length in 14..34 {
        lab.takes(
            udp(FAR).frame()[..length].to_vec(),
            "ip4-input",
            "Truncated",
        );
    }
    lab.takes(with(0, 0x65), "ip4-input", "BadVersion");
    lab.takes(with(0, 0x05), "ip4-input", "BadVersion");
    lab.takes(with(0, 0x44), "ip4-input", "BadHeaderLength");
    lab.takes(with(3, 19), "ip4-input", "BadLength");
    lab.takes(with(3, 47), "ip4-input", "BadLength");
    lab.takes(with(2, 9), "ip4-input", "BadLength");
    for at in 0..20 {
        let mut frame = udp(FAR).frame();
        frame[14 + at] ^= 0x80;
        lab.receive(1, [frame]);
    }
    assert!(lab.edge("ip4-input", "BadChecksum") >= 16);
    lab.check_buffers(0);
    assert!(lab.sent(2).is_empty());
}

#[test]
fn headers_with_options_are_checked_and_go_to_the_host() {
    let mut lab = Lab::new();
    let good = udp(FAR).options(&[1; 12]).frame();
    lab.takes(good.clone(), "ip4-input", "Punt");
    let mut bad = good.clone();
    bad[40] = 7;
    lab.takes(bad, "ip4-input", "BadChecksum");
    // The header is longer than the packet says, and longer than the frame.
    let mut bad = good.clone();
    (bad[16], bad[17]) = (0, 28);
    lab.takes(bad, "ip4-input", "BadLength");
    lab.takes(good[..40].to_vec(), "ip4-input", "BadLength");
}

#[test]
fn addresses_that_nobody_may_use_are_dropped() {
    let mut lab = Lab::new();
    for source in [
        0,
        u32::MAX,
        0x7f00_0001,
        0x7fff_ffff,
        0xe000_0001,
        0xefff_ffff,
    ] {
        lab.takes(from_to(source, FAR).frame(), "ip4-input", "MartianSource");
    }
    for destination in [0, 0x7f00_0001, 0x7fff_ffff] {
        let frame = from_to(addr(1, 2), destination).frame();
        lab.takes(frame, "ip4-input", "MartianDestination");
    }
    for destination in [u32::MAX, 0xe000_0005, 0xefff_ffff] {
        lab.takes(
            from_to(addr(1, 2), destination).frame(),
            "ip4-input",
            "Punt",
        );
    }
    lab.takes(from_to(0, u32::MAX).frame(), "ip4-input", "Punt");
    // Class E and odd zero addresses are looked up as any other.
    for (source, destination) in [(0xf000_0001, FAR), (addr(1, 2), 0xf000_0001), (1, FAR)] {
        lab.takes(from_to(source, destination).frame(), "ip4-input", "Lookup");
    }
}

#[test]
fn padding_and_chains_are_no_reason_to_refuse() {
    let mut lab = Lab::new();
    let padded = udp(FAR).frame();
    assert!(padded.len() > 42, "a padded frame");
    lab.takes(padded, "ip4-rewrite", "Output");
    lab.takes(udp(FAR).frame_len(9000).frame(), "ip4-input", "Lookup");
    let mut short = udp(FAR).frame_len(9000).frame();
    short.truncate(8000);
    lab.takes(short, "ip4-input", "BadLength");
}

#[test]
fn what_is_behind_the_packet_is_cut_off() {
    let mut lab = Lab::new();
    let frame = udp(FAR).frame_len(100).frame();
    for extra in [1, 46, 1600, 4900] {
        let mut longer = frame.clone();
        longer.resize(100 + extra, 7);
        lab.takes(longer, "ip4-input", "Lookup");
        assert_eq!(lab.sent(2), [forwarded(&frame, 2, 2)]);
    }
    let long = udp(FAR).frame_len(4000).frame();
    lab.takes(long.clone(), "ip4-input", "Lookup");
    let fragments = lab.sent(2);
    assert_eq!(fragments.len(), 3);
    for extra in [1, 50, 2000, 5000] {
        let mut longer = long.clone();
        longer.resize(4000 + extra, 7);
        lab.takes(longer, "ip4-input", "Lookup");
        assert_eq!(lab.sent(2), fragments);
    }
    // One of these ends where the first buffer does.
    lab.apply(vec![Change::InterfaceSet(Interface {
        mtu: 9000,
        ..interface(2)
    })]);
    for length in 1700..2112 {
        let frame = udp(FAR).frame_len(length).frame();
        let mut longer = frame.clone();
        longer.resize(4000, 7);
        lab.receive(1, [longer]);
        assert!(lab.sent(2) == [forwarded(&frame, 2, 2)], "{length} bytes");
    }
    lab.check_buffers(0);
}
