//! The router's program: what it leaves to the kernel and what it takes, and that userspace's
//! stores count at once; and that programs come onto devices and off them.

mod net;
mod shared;

use std::net::Ipv6Addr;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tables::entry::Entry;
use tables::interface::{self, Interface, Interfaces, Tags};
use tables::special::Special;
use tables::{Memory, Sizes};
use testbed::{Directory, alone, command, only, patience, root_with, until};
use wire::craft::Packet;
use wire::eth::Mac;
use wire::ip;
use xdp::{Mode, Receiver, Router, RouterPort, Verdict};

use net::{LEFT_MAC, Pair, RIGHT_MAC, root, udp, xsk};
use shared::{SIZES, Tables};

const EXT: u32 = 1 << 31;
/// Number of the interface whose port the program is on.
const INTERFACE: u16 = 7;
/// Far longer than anything takes that is waited for.
const LIMIT: Duration = Duration::from_secs(10);
const DST: [u8; 4] = [198, 51, 100, 77];

/// A port's program, of an interface that is up.
fn port(router: &Router) -> RouterPort {
    set(router.memory(), interface::Mode::Routed, RIGHT_MAC);
    router.load(INTERFACE).expect("the program loads")
}

fn set(memory: &Memory, mode: interface::Mode, mac: [u8; 6]) {
    let interface = Interface {
        mode,
        mac,
        ..Interface::default()
    };
    Interfaces::new(memory.interfaces.clone(), memory.outer_tags.clone())
        .set(INTERFACE, &interface);
}

fn verdict(port: &RouterPort, packet: &[u8]) -> Verdict {
    port.run_once(packet).expect("the program runs").0
}

/// With a socket, what the router takes is redirected.
#[test]
fn classes_of_packets() {
    if !root("classes_of_packets") {
        return;
    }
    let router = Tables::take();
    let port = port(&router);
    let socket = xsk();
    port.register(0, socket.as_fd()).expect("registers");
    let good = udp(RIGHT_MAC, [192, 0, 2, 1], DST, 60);
    let with = |at: usize, byte: u8| {
        let mut packet = good.clone();
        packet[at] = byte;
        packet
    };
    let ethertype = |high: u8, low: u8| {
        let mut packet = good.clone();
        packet[12..14].copy_from_slice(&[high, low]);
        packet
    };
    let short = |len: usize| good[..len].to_vec();
    let to = |dst| udp(RIGHT_MAC, [192, 0, 2, 1], dst, 60);
    let dhcp = |client: [u8; 6]| {
        let mut packet = udp(RIGHT_MAC, [192, 0, 2, 1], DST, 300);
        packet[36..38].copy_from_slice(&68u16.to_be_bytes());
        packet[70..76].copy_from_slice(&client);
        packet
    };
    let mut tcp = dhcp(RIGHT_MAC);
    tcp[23] = 6;
    let cases = [
        ("forwarded", good.clone(), Verdict::Redirect),
        ("time to live 0", with(22, 0), Verdict::Redirect),
        ("time to live 1", with(22, 1), Verdict::Redirect),
        ("wrong checksum", with(24, good[24] ^ 1), Verdict::Redirect),
        ("total length too large", with(16, 9), Verdict::Redirect),
        ("version 6", with(14, 0x65), Verdict::Redirect),
        ("header length 4", with(14, 0x44), Verdict::Redirect),
        ("fragment", with(20, 0x20), Verdict::Redirect),
        ("cut in the header", short(33), Verdict::Redirect),
        ("header only", short(34), Verdict::Redirect),
        ("options", with(14, 0x46), Verdict::Pass),
        ("other station", with(5, 9), Verdict::Pass),
        ("other station, first byte", with(0, 4), Verdict::Pass),
        (
            "multicast",
            udp([1, 0, 0x5e, 0, 0, 5], [192, 0, 2, 1], [224, 0, 0, 5], 60),
            Verdict::Pass,
        ),
        (
            "broadcast",
            udp([255; 6], [192, 0, 2, 1], [255; 4], 60),
            Verdict::Pass,
        ),
        ("ARP", ethertype(8, 6), Verdict::Pass),
        ("IPv4 as IPv6", ethertype(0x86, 0xdd), Verdict::Redirect),
        ("VLAN tag", ethertype(0x81, 0), Verdict::Pass),
        ("service VLAN tag", ethertype(0x88, 0xa8), Verdict::Pass),
        ("LLDP", ethertype(0x88, 0xcc), Verdict::Pass),
        ("multicast in unicast", to([224, 0, 0, 1]), Verdict::Pass),
        (
            "the last multicast",
            to([239, 255, 255, 255]),
            Verdict::Pass,
        ),
        ("class E", to([240, 0, 0, 1]), Verdict::Redirect),
        ("limited broadcast", to([255; 4]), Verdict::Pass),
        ("DHCP for us", dhcp(RIGHT_MAC), Verdict::Pass),
        ("DHCP for another", dhcp(LEFT_MAC), Verdict::Redirect),
        (
            "DHCP cut off",
            dhcp(RIGHT_MAC)[..75].to_vec(),
            Verdict::Redirect,
        ),
        ("TCP port 68", tcp, Verdict::Redirect),
        ("unknown ethertype", ethertype(0x12, 0x34), Verdict::Pass),
    ];
    for (what, packet, expected) in &cases {
        assert_eq!(verdict(&port, packet), *expected, "{what}");
    }
    let counters = router.counted(INTERFACE);
    let count = |wanted: Verdict| {
        cases
            .iter()
            .filter(|(_, _, verdict)| *verdict == wanted)
            .count() as u64
    };
    assert_eq!(counters.passed, count(Verdict::Pass));
    assert_eq!(counters.redirected, count(Verdict::Redirect));
}

/// Tagged frames are the router's where a sub-interface has their outer tag, whatever follows it and
/// whoever it is for.
#[test]
fn tags_of_sub_interfaces() {
    if !root("tags_of_sub_interfaces") {
        return;
    }
    let router = Tables::take();
    let port = port(&router);
    let socket = xsk();
    port.register(0, socket.as_fd()).expect("registers");
    let tagged = |ethertype: u16, vlan: u16| {
        let mut packet = udp(LEFT_MAC, [192, 0, 2, 1], DST, 60);
        packet[12..14].copy_from_slice(&ethertype.to_be_bytes());
        // Priority 5: no part of the identifier.
        packet[14..16].copy_from_slice(&(0xa000 | vlan).to_be_bytes());
        packet
    };
    let memory = router.memory();
    let mut interfaces = Interfaces::new(memory.interfaces.clone(), memory.outer_tags.clone());
    let mut sub = |number, parent, tags| {
        let sub = Interface {
            parent,
            tags,
            ..Interface::default()
        };
        interfaces.set(number, &sub);
    };
    let ours = |vlan| {
        let verdicts = [0x8100, 0x88a8].map(|kind| verdict(&port, &tagged(kind, vlan)));
        assert_eq!(verdicts[0], verdicts[1], "{vlan}");
        verdicts[0] == Verdict::Redirect
    };
    for vlan in [0, 1, 31, 32, 511, 512, 4094, 4095] {
        assert!(!ours(vlan), "{vlan}");
        sub(8, INTERFACE, Tags::one(vlan));
        sub(9, INTERFACE, Tags::two(vlan, 7));
        assert!(ours(vlan), "{vlan}");
        assert!(!ours(vlan ^ 1) && !ours(vlan ^ 32) && !ours(vlan ^ 512));
        sub(8, 0, Tags::NONE);
        assert!(ours(vlan), "{vlan}: the other one has it still");
        // Another interface's tags do not matter.
        sub(9, INTERFACE - 1, Tags::one(vlan));
        assert!(!ours(vlan), "{vlan}");
    }
    sub(8, INTERFACE, Tags::one(3));
    let short = tagged(0x8100, 3)[..17].to_vec();
    assert_eq!(verdict(&port, &short), Verdict::Pass);
    set(router.memory(), interface::Mode::Down, RIGHT_MAC);
    assert!(!ours(3), "an interface that is down takes nothing");
}

#[test]
fn classes_of_ip6_packets() {
    if !root("classes_of_ip6_packets") {
        return;
    }
    let router = Tables::take();
    let port = port(&router);
    let socket = xsk();
    port.register(0, socket.as_fd()).expect("registers");
    let address = |text: &str| text.parse::<Ipv6Addr>().expect("an address");
    let [global, other] = ["2001:db8::1", "2001:db8:9::2"].map(address);
    let [local, group, own, mapped] = ["fe80::1", "ff02::1", "::1", "::ffff:1.2.3.4"].map(address);
    let (none, nat64) = (Ipv6Addr::UNSPECIFIED, address("64:ff9b::1.2.3.4"));
    let packet = |src: Ipv6Addr, dst: Ipv6Addr| {
        Packet::udp6((src, 1025), (dst, 12)).macs(Mac(LEFT_MAC), Mac(RIGHT_MAC))
    };
    let between = |src, dst| packet(src, dst).frame();
    let good = between(global, other);
    let hop_by_hop = packet(global, other).extension(ip::HOP_BY_HOP, &[0, 1, 4, 0, 0, 0, 0]);
    let options = packet(global, other).extension(ip::DESTINATION_OPTIONS, &[0, 1, 4, 0, 0, 0, 0]);
    let mut version = good.clone();
    version[14] = 0x40;
    for (what, packet, expected) in [
        ("forwarded", good.clone(), Verdict::Redirect),
        (
            "hop limit 0",
            packet(global, other).ttl(0).frame(),
            Verdict::Redirect,
        ),
        ("cut in the header", good[..53].to_vec(), Verdict::Redirect),
        ("header only", good[..54].to_vec(), Verdict::Redirect),
        ("version 4", version, Verdict::Redirect),
        ("destination options", options.frame(), Verdict::Redirect),
        ("hop-by-hop options", hop_by_hop.frame(), Verdict::Pass),
        ("to a group", between(global, group), Verdict::Pass),
        (
            "to a neighbor's link-local address",
            between(global, local),
            Verdict::Pass,
        ),
        (
            "from a link-local address",
            between(local, other),
            Verdict::Pass,
        ),
        ("from nobody yet", between(none, other), Verdict::Pass),
        ("from a group", between(group, other), Verdict::Redirect),
        (
            "from the host itself",
            between(own, other),
            Verdict::Redirect,
        ),
        (
            "from a mapped address",
            between(mapped, other),
            Verdict::Redirect,
        ),
        (
            "to a mapped address",
            between(global, mapped),
            Verdict::Redirect,
        ),
        (
            "to the host itself",
            between(global, own),
            Verdict::Redirect,
        ),
        ("to nobody", between(global, none), Verdict::Redirect),
        ("from NAT64", between(nat64, other), Verdict::Redirect),
        ("to NAT64", between(global, nat64), Verdict::Redirect),
        (
            "other station",
            packet(global, other)
                .macs(Mac(LEFT_MAC), Mac(LEFT_MAC))
                .frame(),
            Verdict::Pass,
        ),
    ] {
        assert_eq!(verdict(&port, &packet), expected, "{what}");
    }
}

/// Every kind of entry, in the first level and the second, changed under the running program.
#[test]
fn routes_count_at_once() {
    if !root("routes_count_at_once") {
        return;
    }
    let router = Tables::take();
    let port = port(&router);
    let socket = xsk();
    port.register(0, socket.as_fd()).expect("registers");
    let tables = router.memory();
    let dst = u32::from_be_bytes(DST);
    let packet = udp(RIGHT_MAC, [192, 0, 2, 1], DST, 60);
    let group = 3;
    let first = tables.ip4_first.at((dst >> 8) as usize);
    let second = tables.ip4_second.at(group * 256 + (dst & 255) as usize);
    let kernels = |group: u32| match Special::of(group) {
        Some(Special::Local | Special::Broadcast | Special::Punt) => Verdict::Pass,
        _ => Verdict::Redirect,
    };
    for entry in [
        1,
        0,
        2,
        3,
        4,
        5,
        6,
        16,
        Entry::new(17, true).bits(),
        1 << 29,
        1,
    ] {
        first.store(entry, Relaxed);
        assert_eq!(
            verdict(&port, &packet),
            kernels(entry),
            "first level: {entry:#x}"
        );
    }
    first.store(EXT | group as u32, Relaxed);
    for entry in [0, 1, 2, 3, 5, Entry::new(16, true).bits(), 1] {
        second.store(entry, Relaxed);
        assert_eq!(
            verdict(&port, &packet),
            kernels(entry),
            "second level: {entry:#x}"
        );
    }
    // The neighbours of the address are not local.
    for last in [76, 78, 93, 61, 0, 255] {
        let packet = udp(
            RIGHT_MAC,
            [192, 0, 2, 1],
            [DST[0], DST[1], DST[2], last],
            60,
        );
        assert_eq!(verdict(&port, &packet), Verdict::Redirect, "host {last}");
    }
    // A group that does not exist is for the graph to complain about.
    first.store(EXT | 0x3fff_ffff, Relaxed);
    assert_eq!(verdict(&port, &packet), Verdict::Redirect);
}

/// The ends of the address range hit the ends of the table.
#[test]
fn whole_address_range() {
    if !root("whole_address_range") {
        return;
    }
    let router = Tables::take();
    let port = port(&router);
    let socket = xsk();
    port.register(0, socket.as_fd()).expect("registers");
    for dst in [
        0u32,
        0xff,
        0x100,
        0x0fff_ffff,
        0x8000_0000,
        0xffff_feff,
        u32::MAX - 1,
    ] {
        let packet = udp(RIGHT_MAC, [192, 0, 2, 1], dst.to_be_bytes(), 60);
        assert_eq!(verdict(&port, &packet), Verdict::Redirect, "{dst:#x}");
        router
            .memory()
            .ip4_first
            .at((dst >> 8) as usize)
            .store(1, Relaxed);
        assert_eq!(verdict(&port, &packet), Verdict::Pass, "{dst:#x}");
        router
            .memory()
            .ip4_first
            .at((dst >> 8) as usize)
            .store(0, Relaxed);
    }
}

/// Address and mode may change; without a socket the kernel gets everything; each port has its own
/// sockets.
#[test]
fn ports_are_their_own() {
    if !root("ports_are_their_own") {
        return;
    }
    let router = Tables::take();
    let [one, two] = [port(&router), port(&router)];
    let packet = udp(RIGHT_MAC, [192, 0, 2, 1], DST, 60);
    assert_eq!(verdict(&one, &packet), Verdict::Pass);
    let socket = xsk();
    one.register(0, socket.as_fd()).expect("registers");
    assert_eq!(verdict(&one, &packet), Verdict::Redirect);
    assert_eq!(verdict(&two, &packet), Verdict::Pass);
    let mut arp = packet.clone();
    arp[12..14].copy_from_slice(&[8, 6]);
    use interface::Mode::*;
    for (mode, mac, of_packet, of_arp) in [
        (Routed, LEFT_MAC, Verdict::Pass, Verdict::Pass),
        (Unaddressed, RIGHT_MAC, Verdict::Redirect, Verdict::Pass),
        (Down, RIGHT_MAC, Verdict::Pass, Verdict::Pass),
        (Host, RIGHT_MAC, Verdict::Pass, Verdict::Pass),
        (L2, LEFT_MAC, Verdict::Redirect, Verdict::Redirect),
    ] {
        set(router.memory(), mode, mac);
        let seen = (verdict(&one, &packet), verdict(&one, &arp));
        assert_eq!(seen, (of_packet, of_arp), "{mode:?}");
    }
    one.unregister(0).expect("is there");
    one.unregister(0).expect("is gone, which is fine");
    assert_eq!(verdict(&one, &arp), Verdict::Pass);
    assert!(one.register(100_000, socket.as_fd()).is_err());
    assert!(two.register(0, std::io::stdin().as_fd()).is_err());
}

/// A program in the way is named; dropping a port clears the way.
#[test]
fn conflicts_and_detaching() {
    if !root("conflicts_and_detaching") {
        return;
    }
    let _alone = alone();
    let pair = Pair::new("conflicts").expect("root makes it");
    let router = Tables::take();
    pair.right(|ifindex| {
        assert_eq!(xdp::attached(ifindex).expect("asks"), None);
        let port = router
            .attach(ifindex, INTERFACE, &[Mode::Native, Mode::Generic])
            .expect("attaches");
        assert_eq!(
            port.attachment().map(|a| (a.ifindex(), a.mode())),
            Some((ifindex, Mode::Native))
        );
        let there = xdp::attached(ifindex).expect("asks").expect("is there");
        assert_eq!(
            (there.name.as_str(), there.mode),
            ("parshall_router", Mode::Native)
        );
        for mode in [Mode::Native, Mode::Generic] {
            let refused = router
                .attach(ifindex, INTERFACE, &[mode])
                .expect_err("is taken")
                .to_string();
            let expected = format!(
                "right already has an XDP program (id {}, name parshall_router); stop",
                there.id
            );
            assert!(refused.starts_with(&expected), "{refused}");
        }
        drop(port);
        assert_eq!(xdp::attached(ifindex).expect("asks"), None);
        let port = router
            .attach(ifindex, INTERFACE, &[Mode::Generic])
            .expect("attaches");
        assert_eq!(
            port.attachment().map(xdp::Attachment::mode),
            Some(Mode::Generic)
        );
        drop(port);
        assert_eq!(xdp::attached(ifindex).expect("asks"), None);
        assert!(matches!(
            router.attach(9999, INTERFACE, &[Mode::Native]),
            Err(xdp::Error::NoInterface(9999))
        ));
        assert!(xdp::attached(9999).is_err());
    });
}

/// Someone else's program, attached the old way: the message says how to remove it.
#[test]
fn foreign_program() {
    const PROGRAM: &str = "__attribute__((section(\"xdp\"))) int strange(void *c) { return 2; }";
    if !root_with("foreign_program", &["clang"]) {
        return;
    }
    let _alone = alone();
    let pair = Pair::new("foreign").expect("root makes it");
    let directory = Directory::new();
    let object = directory.path().join("foreign.o").display().to_string();
    let clang = "clang -O2 -target bpf -x c -c - -o";
    let clang: Vec<_> = clang.split(' ').chain([object.as_str()]).collect();
    command::run_with(&clang, PROGRAM).expect("clang compiles it");
    pair.right(|ifindex| {
        let attach = format!("ip link set dev right xdpgeneric obj {object} sec xdp");
        let attach: Vec<_> = attach.split(' ').collect();
        command::run(&attach).expect("ip attaches it");
        let there = xdp::attached(ifindex).expect("asks").expect("is there");
        assert_eq!(
            (there.name.as_str(), there.mode),
            ("strange", Mode::Generic)
        );
        let id = there.id;
        let expected = format!(
            "right already has an XDP program (id {id}, name strange); \
             remove it with `ip link set dev right xdp off`"
        );
        for mode in [Mode::Native, Mode::Generic] {
            let refused = Receiver::attach(ifindex, &[mode]).expect_err("is taken");
            assert_eq!(refused.to_string(), expected);
        }
        assert_eq!(xdp::attached(ifindex).expect("asks"), Some(there));
    });
}

const HOLD: &str = "PARSHALL_TEST_HOLD";

/// The process that is killed: it holds a program until then.
fn hold(ifindex: u32) -> ! {
    let _port = Receiver::attach(ifindex, &[Mode::Native]).expect("attaches");
    println!("holding");
    loop {
        std::thread::park();
    }
}

/// kill -9 takes the program off, and a new one finds nothing in its way.
#[test]
fn killed_process() {
    if let Ok(index) = std::env::var(HOLD) {
        hold(index.parse().expect("an index"));
    }
    if !root("killed_process") {
        return;
    }
    let _alone = alone();
    let pair = Pair::new("killed").expect("root makes it");
    pair.right(|ifindex| {
        let child = only("killed_process").env(HOLD, ifindex.to_string());
        let mut child = child.start().expect("starts");
        let log = child.log_path().to_owned();
        let holds = || std::fs::read_to_string(&log).is_ok_and(|log| log.contains("holding"));
        child.ready(patience(LIMIT), holds).expect("attaches");
        let there = xdp::attached(ifindex).expect("asks");
        let there = there.expect("is attached");
        let links = xdp::links().expect("lists");
        assert!(
            links
                .iter()
                .any(|link| link.program == there.id && link.ifindex == ifindex)
        );
        child.kill();
        let gone = || xdp::attached(ifindex).expect("asks").is_none();
        assert!(until(patience(LIMIT), gone));
        Receiver::attach(ifindex, &[Mode::Native]).expect("attaches again");
    });
}

#[test]
fn odd_table_sizes_are_refused() {
    if !root("odd_table_sizes_are_refused") {
        return;
    }
    for adjacencies in [0, 3, 1 << 31] {
        let sizes = Sizes {
            adjacencies,
            ..SIZES
        };
        assert!(
            matches!(Router::new(sizes), Err(xdp::Error::Parameter(_))),
            "{adjacencies}"
        );
    }
}
