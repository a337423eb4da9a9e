//! What may be translated, of the packets for an own address: the router's program takes these, and no
//! others.

mod net;
mod shared;

use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;

use tables::entry::Entry;
use tables::interface::{Interface, Interfaces, Mode};
use tables::special::Special;
use tables::translated::{Range, Translated};
use wire::craft::Packet;
use wire::eth::Mac;
use wire::ip;
use xdp::{RouterPort, Verdict};

use net::{LEFT_MAC, RIGHT_MAC, root, xsk};
use shared::Tables;

/// Number of the interface whose port the program is on, and of its host interface.
const INTERFACE: u16 = 7;
const HOST: u16 = 8;
const OWN: u32 = Ipv4Addr::new(192, 0, 2, 1).to_bits();
const FAR: u32 = Ipv4Addr::new(198, 51, 100, 1).to_bits();
/// First port of those that are translated, and the last.
const PORTS: [u16; 2] = [10_000, 32_767];

fn set(router: &Tables, peer: u16) {
    let interface = Interface {
        mode: Mode::Routed,
        mac: RIGHT_MAC,
        peer,
        ..Interface::default()
    };
    let memory = router.memory().clone();
    Interfaces::new(memory.interfaces, memory.outer_tags).set(INTERFACE, &interface);
}

fn is_taken(port: &RouterPort, packet: Packet) -> bool {
    let [left, right] = [LEFT_MAC, RIGHT_MAC].map(Mac);
    let frame = packet.macs(left, right).frame();
    match port.run_once(&frame).expect("the program runs").0 {
        Verdict::Redirect => true,
        Verdict::Pass => false,
        other => panic!("{other:?}"),
    }
}

/// An ICMP packet of this type with this content behind the first four bytes.
fn icmp(kind: u8, content: &[u8]) -> Packet {
    let bytes = [&[kind, 0, 0, 0][..], content].concat();
    Packet::raw(FAR, OWN, ip::ICMP).payload(&bytes)
}

/// An ICMP error about a packet.
fn error(kind: u8, about: Packet) -> Packet {
    icmp(kind, &[&[0; 4][..], &about.frame()[14..]].concat())
}

fn tcp(port: u16) -> Packet {
    Packet::tcp((FAR, 443), (OWN, port), 2, 0, 0)
}

fn udp(port: u16) -> Packet {
    Packet::udp((FAR, 53), (OWN, port))
}

fn echo_reply(identifier: u16) -> Packet {
    icmp(0, &[identifier.to_be_bytes(), [0, 1]].concat())
}

#[test]
fn what_may_be_translated_is_taken_and_nothing_else() {
    if !root("what_may_be_translated_is_taken_and_nothing_else") {
        return;
    }
    let router = Tables::take();
    let word = router.memory().ip4_first.at((OWN >> 8) as usize);
    word.store(Entry::special(Special::Local).bits(), Relaxed);
    set(&router, HOST);
    let port = router.load(INTERFACE).expect("the program loads");
    let socket = xsk();
    port.register(0, socket.as_fd()).expect("registers");
    let mut table = Translated::new(router.memory().translated.clone());
    let all = || {
        [
            tcp(PORTS[0]),
            udp(PORTS[0]),
            echo_reply(PORTS[0]),
            Packet::raw(FAR, OWN, 47),
        ]
    };
    assert!(
        all().map(|packet| is_taken(&port, packet)) == [false; 4],
        "there are no rules"
    );

    // A rule of one protocol.
    let [first, last] = PORTS;
    let ports = first..=last;
    table.set(&[Range {
        protocol: Some(ip::UDP),
        ports: ports.clone(),
    }]);
    assert_eq!(
        all().map(|packet| is_taken(&port, packet)),
        [false, true, false, false]
    );
    let later = || tcp(first).fragment(100);
    assert!(!is_taken(&port, later()), "TCP has no rule");

    // One of all protocols.
    table.set(&[Range {
        protocol: None,
        ports,
    }]);
    assert_eq!(all().map(|packet| is_taken(&port, packet)), [true; 4]);
    for (number, is) in [
        (first - 1, false),
        (first, true),
        (last, true),
        (last + 1, false),
    ] {
        assert_eq!(is_taken(&port, tcp(number)), is, "TCP {number}");
        assert_eq!(is_taken(&port, udp(number)), is, "UDP {number}");
        assert_eq!(is_taken(&port, echo_reply(number)), is, "echo {number}");
        let sent = [
            Packet::tcp((OWN, number), (FAR, 443), 2, 0, 0),
            Packet::udp((OWN, number), (FAR, 53)),
            Packet::echo_request(OWN, FAR, number, 1),
        ];
        for about in sent {
            for kind in [3, 11, 12] {
                assert_eq!(
                    is_taken(&port, error(kind, about.clone())),
                    is,
                    "{kind} {number}"
                );
            }
            // A redirect is about a route of the host's.
            assert!(!is_taken(&port, error(5, about)));
        }
    }
    assert!(is_taken(&port, error(3, Packet::raw(OWN, FAR, 47))));
    assert!(is_taken(&port, later()), "it tells no port");
    // Cut off behind its header.
    assert!(!is_taken(
        &port,
        Packet::raw(FAR, OWN, ip::TCP).payload(&[0; 3])
    ));
    assert!(!is_taken(&port, icmp(3, &[0; 20])));

    assert!(router.counted(INTERFACE).redirected > 0);
    // Without an interface by which the host gets what is its own, it has all.
    set(&router, 0);
    assert_eq!(all().map(|packet| is_taken(&port, packet)), [false; 4]);
}
