//! ethernet-input and punt.

use crate::harness::*;
use router::{Change, Interface, Kind};
use wire::eth::Mac;

#[test]
fn frames_for_us_are_routed_and_others_dropped() {
    let mut lab = Lab::new();
    lab.takes(udp(FAR).frame(), "ethernet-input", "Ip4");
    assert_eq!(lab.sent(2).len(), 1);
    let stranger = udp(FAR).macs(Mac(host_mac(1, 2)), Mac([2, 9, 9, 9, 9, 9]));
    lab.takes(stranger.frame(), "ethernet-input", "NotOurs");
    for length in 0..14 {
        lab.takes(
            udp(FAR).frame()[..length].to_vec(),
            "ethernet-input",
            "Runt",
        );
    }
    let down = Interface {
        up: false,
        ..interface(1)
    };
    lab.apply(vec![Change::InterfaceSet(down)]);
    lab.takes(udp(FAR).frame(), "ethernet-input", "Down");
    assert!(lab.sent(2).is_empty());
}

/// Interface 1 with twin 4.
fn with_twin() -> Lab {
    let mut lab = Lab::new();
    lab.plug(4, 0);
    let twin = Interface {
        kind: Kind::Twin { of: 1 },
        ..interface(4)
    };
    let routed = Interface {
        kind: Kind::Routed { twin: Some(4) },
        ..interface(1)
    };
    lab.apply(vec![
        Change::InterfaceSet(twin),
        Change::InterfaceSet(routed),
    ]);
    lab
}

#[test]
fn what_is_for_the_host_goes_to_the_twin_as_it_came() {
    let mut lab = with_twin();
    let to = |mac: [u8; 6], ethertype: u16| {
        let mut frame = udp(FAR).frame();
        frame[..6].copy_from_slice(&mac);
        frame[12..14].copy_from_slice(&ethertype.to_be_bytes());
        frame
    };
    let frames = [
        to([0xff; 6], 0x0806),
        to(own_mac(1), 0x0806),
        to(own_mac(1), 0x86dd),
        to([0x01, 0x80, 0xc2, 0, 0, 0x0e], 0x88cc),
        to([0xff; 6], 0x0800),
        to([1, 0, 0x5e, 0, 0, 5], 0x0800),
    ];
    for frame in &frames {
        lab.takes(frame.clone(), "ethernet-input", "Punt");
    }
    assert_eq!(lab.edge("punt", "Host"), frames.len() as u64);
    assert_eq!(lab.sent(4), frames);
    // An own address too, with the frame untouched (its TTL as well).
    let own = udp(addr(1, 1)).ttl(1).frame();
    lab.takes(own.clone(), "ip4-lookup", "Punt");
    assert_eq!(lab.sent(4), [own]);
}

#[test]
fn what_the_host_sends_leaves_untouched() {
    let mut lab = with_twin();
    let frame = udp(addr(1, 77)).frame();
    lab.receive(4, [frame.clone(), vec![0; 60]]);
    assert_eq!(lab.sent(1), [frame, vec![0; 60]]);
    assert_eq!(lab.edge("ethernet-input", "Host"), 2);
    lab.check_buffers(0);
}

#[test]
fn without_a_twin_the_host_gets_nothing() {
    let mut lab = Lab::new();
    lab.takes(udp(addr(1, 1)).frame(), "punt", "NoTwin");
}

#[test]
fn own_errors_do_not_go_to_the_host() {
    // The sender's address is one of ours: the error comes back to us.
    let mut lab = with_twin();
    let spoofed = wire::craft::Packet::udp((addr(2, 1), 1), (FAR, 2))
        .macs(Mac(host_mac(1, 2)), Mac(own_mac(1)))
        .ttl(1);
    lab.takes(spoofed.frame(), "punt", "Own");
    assert!(lab.sent(4).is_empty());
}
