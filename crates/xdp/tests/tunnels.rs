//! Packets of VXLAN tunnels: of those for an own address, the router's program takes no others.

mod net;
mod shared;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;

use tables::entry::Entry;
use tables::interface::{Interface, Interfaces, Mode};
use tables::ip6;
use tables::special::Special;
use tables::tunnels::{Tunnel, Tunnels};
use wire::craft::Packet;
use wire::eth::Mac;
use wire::{ip, ip4, port, vxlan};
use xdp::{RouterPort, Verdict};

use net::{LEFT_MAC, RIGHT_MAC, root, xsk};
use shared::{SIZES, Tables};

/// Number of the interface whose port the program is on.
const INTERFACE: u16 = 7;
const VNI: u32 = 0x12_3456;
/// The own end and the other one of a tunnel, and an address of neither, in both families.
const ENDS: [[&str; 3]; 2] = [
    ["192.0.2.1", "198.51.100.1", "198.51.100.2"],
    ["2001:db8::1", "2001:db8:1::1", "2001:db8:1::2"],
];

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn mapped(text: &str) -> Ipv6Addr {
    match address(text) {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// A port's program with a socket, on an interface that both families of own ends are addresses of.
fn prepare(router: &Tables) -> (RouterPort, std::os::fd::OwnedFd) {
    let memory = router.memory().clone();
    let interface = Interface {
        mode: Mode::Routed,
        mac: RIGHT_MAC,
        ..Interface::default()
    };
    Interfaces::new(memory.interfaces, memory.outer_tags).set(INTERFACE, &interface);
    let local = Entry::special(Special::Local);
    let own: Ipv4Addr = ENDS[0][0].parse().expect("an address");
    let word = memory.ip4_first.at((own.to_bits() >> 8) as usize);
    word.store(local.bits(), Relaxed);
    let own = ip6::Prefix::cut(mapped(ENDS[1][0]).to_bits(), 128);
    let mut fib = ip6::Fib::new(memory.ip6_first, memory.ip6_pages, memory.ip6_leaves);
    fib.insert(own, local).expect("there is room");
    let port = router.load(INTERFACE).expect("the program loads");
    let socket = xsk();
    port.register(0, socket.as_fd()).expect("registers");
    (port, socket)
}

/// UDP between these, with a VXLAN header and a frame.
fn packet(from: &str, to: &str, udp_port: u16, vni: u32) -> Packet {
    let ports = (50_000, udp_port);
    let packet = match (address(from), address(to)) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            Packet::udp((from.to_bits(), ports.0), (to.to_bits(), ports.1))
        }
        _ => Packet::udp6((mapped(from), ports.0), (mapped(to), ports.1)),
    };
    let [high, middle, low] = [vni >> 16, vni >> 8, vni].map(|bits| bits as u8);
    let mut payload = vec![8, 0, 0, 0, high, middle, low, 0];
    payload.extend(Packet::echo_request(1, 2, 3, 4).frame());
    let macs = [LEFT_MAC, RIGHT_MAC].map(Mac);
    packet.macs(macs[0], macs[1]).payload(&payload)
}

fn is_taken(port: &RouterPort, packet: &[u8]) -> bool {
    match port.run_once(packet).expect("the program runs").0 {
        Verdict::Redirect => true,
        Verdict::Pass => false,
        other => panic!("{other:?}"),
    }
}

fn tunnel(at: usize, vni: u32) -> Tunnel {
    Tunnel {
        local: mapped(ENDS[at][0]),
        remote: mapped(ENDS[at][1]),
        vni,
    }
}

#[test]
fn packets_of_tunnels_are_taken_and_no_others() {
    if !root("packets_of_tunnels_are_taken_and_no_others") {
        return;
    }
    let router = Tables::take();
    let (port, _socket) = prepare(&router);
    let mut tunnels = Tunnels::new(router.memory().tunnels.clone());
    for (at, [local, remote, other]) in ENDS.into_iter().enumerate() {
        let good = packet(remote, local, port::VXLAN, VNI);
        assert!(!is_taken(&port, &good.frame()), "there is no tunnel");
        tunnels.set(9, Some(&tunnel(at, VNI)));
        assert!(is_taken(&port, &good.frame()));

        let frame = good.frame();
        let ip_len = [ip4::LEN, wire::ip6::LEN][at];
        let vxlan_end = 14 + ip_len + 8 + vxlan::LEN;
        let mut no_flag = frame.clone();
        no_flag[vxlan_end - vxlan::LEN] = 0;
        let mut tcp = frame.clone();
        tcp[[23, 20][at]] = ip::TCP;
        // What a host may be sent that is of no tunnel.
        for (what, packet) in [
            ("port", packet(remote, local, port::VXLAN + 1, VNI).frame()),
            (
                "network",
                packet(remote, local, port::VXLAN, VNI + 1).frame(),
            ),
            ("sender", packet(other, local, port::VXLAN, VNI).frame()),
            ("no network", no_flag),
            ("TCP", tcp),
            ("cut off", frame[..vxlan_end - 1].to_vec()),
            ("without UDP", frame[..14 + ip_len].to_vec()),
        ] {
            assert!(!is_taken(&port, &packet), "{what}: {local}");
        }
        assert!(is_taken(&port, &frame[..vxlan_end]), "headers alone");
        // Bits that the receiver ignores (RFC 7348 section 5).
        let mut reserved = frame.clone();
        for at in [0, 1, 2, 3, 7] {
            reserved[vxlan_end - vxlan::LEN + at] = 0xff;
        }
        assert!(is_taken(&port, &reserved), "reserved bits");

        // Ends the other way round, and a tunnel that changes.
        let turned = Tunnel {
            local: mapped(remote),
            remote: mapped(local),
            vni: VNI,
        };
        for (now, taken) in [
            (turned, false),
            (tunnel(at, VNI + 1), false),
            (tunnel(at, VNI), true),
        ] {
            tunnels.set(9, Some(&now));
            assert_eq!(is_taken(&port, &frame), taken, "{now:?}");
        }
        tunnels.set(9, None);
        assert!(!is_taken(&port, &frame), "there is none any more");
    }
}

#[test]
fn fragments_and_options_are_the_kernels() {
    if !root("fragments_and_options_are_the_kernels") {
        return;
    }
    let router = Tables::take();
    let (port, _socket) = prepare(&router);
    let mut tunnels = Tunnels::new(router.memory().tunnels.clone());
    for at in [0, 1] {
        tunnels.set(9 + at as u16, Some(&tunnel(at, VNI)));
    }
    let [of_ip4, of_ip6] = ENDS.map(|[local, remote, _]| packet(remote, local, port::VXLAN, VNI));
    assert!(is_taken(
        &port,
        &of_ip4.clone().fragment(ip4::DONT_FRAGMENT).frame()
    ));
    for word in [ip4::MORE_FRAGMENTS, 1, ip4::MORE_FRAGMENTS | 185] {
        assert!(!is_taken(&port, &of_ip4.clone().fragment(word).frame()));
    }
    assert!(!is_taken(&port, &of_ip4.options(&[1, 1, 1, 0]).frame()));
    assert!(is_taken(&port, &of_ip6.frame()));
    // Next header, reserved, offset, identification.
    let fragment = of_ip6.extension(ip::FRAGMENT, &[0, 1, 0, 0, 0, 7, 0]);
    assert!(!is_taken(&port, &fragment.frame()));
}

/// As many tunnels as there is room for, in both families.
#[test]
fn each_of_many_tunnels_is_known() {
    if !root("each_of_many_tunnels_is_known") {
        return;
    }
    let router = Tables::take();
    let (port, _socket) = prepare(&router);
    let mut tunnels = Tunnels::new(router.memory().tunnels.clone());
    let all = 1..SIZES.interfaces as u16;
    let of = |number: u16| (usize::from(number) % 2, u32::from(number) << 12);
    for number in all.clone() {
        let (at, vni) = of(number);
        tunnels.set(number, Some(&tunnel(at, vni)));
    }
    for number in all.clone() {
        let (at, vni) = of(number);
        for (vni, taken) in [(vni, true), (vni + 1, false)] {
            let packet = packet(ENDS[at][1], ENDS[at][0], port::VXLAN, vni);
            assert_eq!(is_taken(&port, &packet.frame()), taken, "{number}");
        }
    }
    let (counters, count) = (router.counted(INTERFACE), all.count() as u64);
    assert_eq!([counters.redirected, counters.passed], [count; 2]);
}
