//! ip4-lookup and ip4-rewrite.

use router::{Change, Interface, Route};

use crate::harness::*;

#[test]
fn a_packet_leaves_with_a_new_header_and_one_hop_less() {
    let mut lab = Lab::new();
    let frames: Vec<_> = (0..255)
        .map(|i| udp(FAR + i).ttl(i as u8 + 1).id(i as u16).frame())
        .collect();
    lab.receive(1, frames[1..].to_vec());
    let want: Vec<_> = frames[1..].iter().map(|f| forwarded(f, 2, 2)).collect();
    assert_eq!(lab.sent(2), want);
    // To a host on the link, and back out of the interface where it came from.
    let frame = udp(addr(3, 2)).frame();
    lab.receive(1, [frame.clone()]);
    assert_eq!(lab.sent(3), [forwarded(&frame, 3, 2)]);
    let frame = udp(addr(1, 2)).frame();
    lab.receive(1, [frame.clone()]);
    assert_eq!(lab.sent(1), [forwarded(&frame, 1, 2)]);
    lab.check_buffers(0);
}

#[test]
fn special_routes_take_their_edges() {
    let mut lab = Lab::new();
    let specials = [
        ("60.1.0.0/16", Route::Blackhole, "Blackhole", 0),
        ("60.2.0.0/16", Route::Unreachable, "Unreachable", 1),
        ("60.3.0.0/16", Route::Prohibit, "Prohibited", 13),
        ("60.4.0.0/16", Route::Punt, "Punt", 0),
        ("60.5.0.0/16", Route::Local, "Punt", 0),
        ("60.6.0.0/16", Route::Broadcast, "Punt", 0),
    ];
    for (text, special, edge, code) in specials {
        lab.apply(vec![route(text, special)]);
        let prefix: tables::ip4::Prefix = text.parse().unwrap();
        let destination = prefix.addr() + 1;
        lab.takes(udp(destination).frame(), "ip4-lookup", edge);
        let answers = lab.sent(1);
        assert_eq!(answers.len(), usize::from(code > 0));
        answers
            .iter()
            .for_each(|a| assert_eq!(a[34..36], [3, code]));
    }
    lab.takes(udp(0x4600_0001).frame(), "ip4-lookup", "NoRoute");
    assert_eq!(lab.sent(1)[0][34..36], [3, 0]);
    lab.takes(udp(addr(2, 255)).frame(), "ip4-lookup", "Punt");
}

#[test]
fn time_to_live_ends_here() {
    let mut lab = Lab::new();
    for ttl in [0, 1] {
        lab.takes(udp(FAR).ttl(ttl).frame(), "ip4-rewrite", "TtlExpired");
        assert_eq!(lab.sent(1)[0][34..36], [11, 0]);
    }
    lab.takes(udp(FAR).ttl(2).frame(), "ip4-rewrite", "Output");
    assert_eq!(lab.sent(2)[0][22], 1);
}

#[test]
fn the_link_decides_the_size() {
    let mut lab = Lab::new();
    let of = |bytes: usize, word: u16| udp(FAR).fragment(word).frame_len(14 + bytes).frame();
    for (bytes, word, edge) in [
        (1500, 0x4000, "Output"),
        (1501, 0x4000, "FragmentationNeeded"),
        (1500, 0, "Output"),
        (1501, 0, "Fragment"),
    ] {
        lab.takes(of(bytes, word), "ip4-rewrite", edge);
    }
    let small = Interface {
        mtu: 600,
        ..interface(2)
    };
    lab.apply(vec![Change::InterfaceSet(small)]);
    lab.takes(of(601, 0x4000), "ip4-rewrite", "FragmentationNeeded");
    let answers = lab.sent(1);
    assert_eq!(
        answers[0][34..42],
        [3, 4, answers[0][36], answers[0][37], 0, 0, 5, 0xdc]
    );
    assert_eq!(answers[1][40..42], 600u16.to_be_bytes());
}

#[test]
fn a_link_that_is_down_takes_nothing() {
    let mut lab = Lab::new();
    let down = Interface {
        up: false,
        ..interface(2)
    };
    lab.apply(vec![Change::InterfaceSet(down)]);
    lab.takes(udp(FAR).frame(), "ip4-rewrite", "Gone");
    lab.apply(vec![Change::InterfaceSet(interface(2))]);
    lab.takes(udp(FAR).frame(), "ip4-rewrite", "Output");
    lab.apply(vec![Change::InterfaceDelete(2)]);
    lab.takes(udp(FAR).frame(), "ip4-rewrite", "Gone");
}

#[test]
fn an_interface_that_does_not_serve_yet_sends_and_takes_nothing_in() {
    let mut lab = Lab::new();
    let idle = |id| {
        Change::InterfaceSet(Interface {
            serving: false,
            ..interface(id)
        })
    };
    lab.apply(vec![idle(2)]);
    lab.takes(udp(FAR).frame(), "ip4-rewrite", "Output");
    assert_eq!(lab.sent(2).len(), 1);
    lab.apply(vec![idle(1)]);
    lab.takes(udp(FAR).frame(), "ethernet-input", "Down");
    lab.apply(vec![Change::InterfaceSet(interface(1))]);
    lab.takes(udp(FAR).frame(), "ip4-rewrite", "Output");
}

#[test]
fn a_jumbo_packet_stays_in_one_piece() {
    let mut lab = Lab::new();
    let jumbo = Interface {
        mtu: 9216,
        ..interface(2)
    };
    lab.apply(vec![Change::InterfaceSet(jumbo)]);
    let payload: Vec<u8> = (0..9000).map(|i| (i % 251) as u8).collect();
    let frame = udp(FAR).payload(&payload).frame();
    lab.takes(frame.clone(), "ip4-rewrite", "Output");
    assert_eq!(lab.sent(2), [forwarded(&frame, 2, 2)]);
}
