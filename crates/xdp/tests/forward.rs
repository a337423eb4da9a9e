//! The router's program forwards: which packets, what they look like afterwards, and what it
//! counts.

mod bench;
mod net;
mod shared;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use tables::Memory;
use tables::adjacency::Adjacency;
use tables::entry::Entry;
use tables::hash::flow5;
use tables::ip4::Fib;
use tables::random::Random;
use tables::special::Special;
use testbed::Netns;
use xdp::{Counters, DROPS, Device, Error, Verdict};

use bench::{IN, MTU, OUT};
use net::{RIGHT_MAC, index, sum, udp};

const SRC: [u8; 4] = [192, 0, 2, 1];

type Bench = bench::Bench<Fib>;

impl Bench {
    /// With these destinations: 10.1.0.0/16 behind one neighbor, 10.2.0.0/16 behind twelve,
    /// 10.3.0.0/16 each of the specials by its third byte, 10.4.0.0/16 one that is not resolved,
    /// 10.5.0.0/16 behind an interface that no program sends by, 10.6.0.0/16 by a group whose
    /// members are gone.
    fn new(test: &str) -> Option<Self> {
        let fib = |memory: Memory| Fib::new(memory.ip4_first, memory.ip4_second);
        let mut bench = Self::without_routes(test, fib)?;
        bench.route("10.1.0.0/16", &[neighbor(1, OUT)]);
        let many: Vec<_> = (1..13).map(|n| neighbor(n, OUT)).collect();
        bench.route("10.2.0.0/16", &many);
        for special in Special::ALL {
            let prefix = format!("10.3.{}.0/24", special.number()).parse();
            let entry = Entry::special(special);
            bench.fib.insert(prefix.unwrap(), entry).unwrap();
        }
        bench.route("10.4.0.0/16", &[Adjacency::incomplete(OUT, MTU, NEXT_HOP)]);
        bench.route("10.5.0.0/16", &[neighbor(1, OUT + 1)]);
        bench.route("10.6.0.0/16", &[]);
        Some(bench)
    }

    fn route(&mut self, prefix: &str, to: &[Adjacency]) {
        let entry = self.entry(to);
        self.fib.insert(prefix.parse().unwrap(), entry).unwrap();
    }

    fn counters(&self, interface: u16) -> Counters {
        self.router.counted(interface)
    }

    /// True if the program forwards the packet itself: counted so, and then changed as a router
    /// changes it, else not at all.
    fn forwards(&self, packet: &[u8]) -> bool {
        let before = [self.counters(IN), self.counters(OUT)];
        let (verdict, after) = self.run(packet);
        let [mut received, mut sent] = [self.counters(IN), self.counters(OUT)];
        let forwarded = received.rx_packets > before[0].rx_packets && verdict == Verdict::Redirect;
        if forwarded {
            let n = after[5];
            assert_eq!(after, routed(packet, n), "{packet:02x?}");
            received.rx_packets -= 1;
            received.rx_bytes -= packet.len() as u64;
            sent.tx_packets -= 1;
            sent.tx_bytes -= packet.len() as u64;
        } else {
            assert_eq!(after, packet);
        }
        let [was, _] = before;
        let elsewhere = [
            received.passed - was.passed,
            received.redirected - was.redirected,
            received.drops.iter().sum::<u64>() - was.drops.iter().sum::<u64>(),
        ];
        let as_said = match verdict {
            _ if forwarded => [0, 0, 0],
            Verdict::Pass => [1, 0, 0],
            Verdict::Redirect => [0, 1, 0],
            _ => [0, 0, 1],
        };
        assert_eq!(elsewhere, as_said);
        assert_eq!(
            sent, before[1],
            "what was sent is counted where it was sent"
        );
        forwarded
    }
}

/// The program does not look at it.
const NEXT_HOP: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

/// The `n`th neighbor.
fn neighbor(n: u8, tx_if: u16) -> Adjacency {
    Adjacency::rewrite(tx_if, MTU, &header(n), NEXT_HOP)
}

fn header(n: u8) -> [u8; 14] {
    [2, 0, 0, 0, 7, n, 2, 0, 0, 0, 9, 9, 8, 0]
}

/// The packet as the neighbor `n` is to get it, made anew.
fn routed(packet: &[u8], n: u8) -> Vec<u8> {
    let mut after = packet.to_vec();
    after[..14].copy_from_slice(&header(n));
    after[22] -= 1;
    after[24..26].fill(0);
    let checksum = !sum(&after[14..34]);
    after[24..26].copy_from_slice(&checksum.to_be_bytes());
    after
}

fn to(dst: [u8; 4], len: usize) -> Vec<u8> {
    udp(RIGHT_MAC, SRC, dst, len)
}

/// The packet with other bytes at `at`, its header checksum right again.
fn with(packet: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet[at..at + bytes.len()].copy_from_slice(bytes);
    packet[24..26].fill(0);
    let checksum = !sum(&packet[14..34]);
    packet[24..26].copy_from_slice(&checksum.to_be_bytes());
    packet
}

#[test]
fn only_what_needs_nothing_else_is_forwarded() {
    let Some(bench) = Bench::new("only_what_needs_nothing_else_is_forwarded") else {
        return;
    };
    let good = to([10, 1, 2, 3], 60);
    let total = |packet: &[u8], total: u16| with(packet, 16, &total.to_be_bytes());
    let mut padded = total(&good, 20);
    padded[34..].fill(0);
    let long = to([10, 1, 2, 3], 14 + usize::from(MTU));
    let decided = |special: Special| to([10, 3, special.number() as u8, 1], 60);
    for (what, packet) in [
        ("the shortest", good[..34].to_vec()),
        ("of 64 bytes on the wire", good.clone()),
        ("padded", padded.clone()),
        ("as long as the link takes", long.clone()),
        ("a fragment", with(&good, 20, &[0x20, 0])),
        ("do not fragment", with(&good, 20, &[0x40, 0])),
        ("time to live 2", with(&good, 22, &[2])),
        ("time to live 255", with(&good, 22, &[255])),
        ("another protocol", with(&good, 23, &[200])),
        (
            "from the last unicast address",
            with(&good, 26, &[223, 255, 255, 255]),
        ),
    ] {
        let packet = match packet.len() {
            34 => total(&packet, 20),
            _ => packet,
        };
        assert!(bench.forwards(&packet), "{what}");
    }
    let mut longer = padded;
    longer.extend([0; 1]);
    for (what, packet) in [
        ("more behind it than padding", longer),
        ("longer than the frame", total(&good, 47)),
        ("shorter than its header", total(&good, 19)),
        (
            "larger than the link takes",
            to([10, 1, 2, 3], 15 + usize::from(MTU)),
        ),
        ("time to live 1", with(&good, 22, &[1])),
        ("time to live 0", with(&good, 22, &[0])),
        ("from nobody", with(&good, 26, &[0; 4])),
        ("from the host itself", with(&good, 26, &[127, 0, 0, 1])),
        ("from a group", with(&good, 26, &[224, 0, 0, 1])),
        ("to the host itself", to([127, 0, 0, 1], 60)),
        ("to nobody", to([0, 0, 0, 0], 60)),
        ("to class E", to([240, 0, 0, 1], 60)),
        ("without a route", to([10, 9, 0, 1], 60)),
        ("no route", decided(Special::NoRoute)),
        ("unreachable", decided(Special::Unreachable)),
        ("prohibited", decided(Special::Prohibit)),
        ("to a neighbor that is not resolved", to([10, 4, 0, 1], 60)),
        (
            "to an interface that programs do not send by",
            to([10, 5, 0, 1], 60),
        ),
        ("to a group without members", to([10, 6, 0, 1], 60)),
    ] {
        assert!(!bench.forwards(&packet), "{what}");
        assert_eq!(bench.run(&packet).0, Verdict::Redirect, "{what}");
    }
    for special in [Special::Local, Special::Broadcast, Special::Punt] {
        let packet = decided(special);
        assert!(!bench.forwards(&packet));
        assert_eq!(bench.run(&packet).0, Verdict::Pass, "{special:?}");
    }
}

/// Every checksum there can be comes out right.
#[test]
fn checksums_stay_right() {
    let Some(bench) = Bench::new("checksums_stay_right") else {
        return;
    };
    let good = to([10, 1, 2, 3], 60);
    let (mut seen, mut zeros) = (BTreeSet::new(), 0);
    for id in 0..=u16::MAX {
        let packet = with(&good, 18, &id.to_be_bytes());
        seen.insert([packet[24], packet[25]]);
        let expected = (Verdict::Redirect, routed(&packet, 1));
        assert_eq!(bench.run(&packet), expected);
        // In ones' complement 0xffff is 0 too, and some senders say it so (RFC 1624 section 3).
        if packet[24..26] == [0, 0] {
            let mut same = packet;
            same[24..26].fill(0xff);
            assert_eq!(bench.run(&same), expected);
            zeros += 1;
        }
    }
    assert!(seen.len() >= 65_535 && zeros >= 1);
    assert_eq!(bench.counters(OUT).tx_packets, 65_536 + zeros);
}

#[test]
fn drops_are_counted_by_reason() {
    let Some(bench) = Bench::new("drops_are_counted_by_reason") else {
        return;
    };
    let mut broken = to([10, 1, 2, 3], 60);
    broken[24] ^= 0x40;
    let blackhole = to([10, 3, Special::Blackhole.number() as u8, 9], 100);
    let gone = to([10, 1, 2, 3], 60);
    for (packet, reason) in [
        (&broken, ("ip4-input", "BadChecksum")),
        (&blackhole, ("ip4-lookup", "Blackhole")),
        (&gone, ("ip4-rewrite", "Gone")),
    ] {
        if reason.1 == "Gone" {
            bench.router.unset_egress(OUT).expect("is there");
            bench
                .router
                .unset_egress(OUT)
                .expect("is gone, which is fine");
        }
        let before = bench.counters(IN);
        assert_eq!(bench.run(packet).0, Verdict::Drop, "{reason:?}");
        let mut expected = before;
        expected.rx_packets += 1;
        expected.rx_bytes += packet.len() as u64;
        let at = DROPS.iter().position(|drop| *drop == reason);
        expected.drops[at.expect("a reason")] += 1;
        assert_eq!(bench.counters(IN), expected, "{reason:?}");
    }
    assert_eq!(bench.counters(OUT), Counters::default());
}

/// Flows are spread as the workers spread them.
#[test]
fn flows_take_the_ways_that_workers_give_them() {
    let Some(bench) = Bench::new("flows_take_the_ways_that_workers_give_them") else {
        return;
    };
    let (lookup, groups) = (bench.fib.reader(), bench.groups.reader());
    let adjacencies = bench.slab.reader();
    let mut random = Random::new(0x666c_6f77);
    let mut seen = BTreeSet::new();
    for _ in 0..20_000 {
        let [src, dst, ports] = [random.word(), random.word(), random.word()];
        let src = (1 + src % 126) << 24 | src >> 8;
        let dst = u32::from_be_bytes([10, 2, 0, 0]) | dst & 0xffff;
        let protocol = [6, 17, 132, 136, 1, 47, 50][random.below(7) as usize];
        let fragment = [0u16, 0x4000, 0x2000, 0x00ff][random.below(4) as usize];
        let mut packet = to(dst.to_be_bytes(), 60);
        packet[34..38].copy_from_slice(&ports.to_be_bytes());
        packet = with(&packet, 26, &src.to_be_bytes());
        packet = with(&packet, 23, &[protocol]);
        packet = with(&packet, 20, &fragment.to_be_bytes());
        let whole = fragment & 0x3fff == 0 && [6, 17, 132, 136].contains(&protocol);
        let ports = if whole { ports } else { 0 };
        let hash = flow5(src, dst, protocol, (ports >> 16) as u16, ports as u16);
        let way = groups.bucket(lookup.lookup(dst).group(), hash);
        let expected = adjacencies.load(way).header();
        let (verdict, after) = bench.run(&packet);
        assert_eq!((verdict, &after[..14]), (Verdict::Redirect, &expected[..]));
        seen.insert(after[5]);
    }
    assert_eq!(seen.len(), 12, "all neighbors are used");
    // One whose ports are cut off is the workers' to judge.
    let cut = with(&to([10, 2, 0, 1], 60)[..34], 16, &[0, 20]);
    assert!(!bench.forwards(&cut) && bench.forwards(&with(&cut, 23, &[1])));
}

/// A lane ends and begins with the next packet.
#[test]
fn lanes_are_switched_by_the_interfaces() {
    let Some(bench) = Bench::new("lanes_are_switched_by_the_interfaces") else {
        return;
    };
    let packet = to([10, 1, 2, 3], 60);
    for _ in 0..3 {
        for (forward, send) in [(false, true), (true, false), (false, false), (true, true)] {
            bench.lanes(forward, send);
            assert_eq!(bench.forwards(&packet), forward && send);
        }
    }
}

/// Only the device that was chosen is sent by, and only if it takes what is redirected to it.
#[test]
fn devices_to_send_by_are_looked_at() {
    let Some(bench) = Bench::new("devices_to_send_by_are_looked_at") else {
        return;
    };
    let (router, netns) = (&bench.router, &bench.netns);
    netns.ip("link set lo up").expect("takes it");
    let out = netns.inside(|| Device::here(index("out")).expect("is there"));
    assert!(router.has_egress(OUT).expect("asks"));
    assert!(!router.has_egress(IN).expect("asks"));
    assert!(router.has_egress(256).is_err());
    netns.inside(|| {
        assert!(router.set_egress(256, &out).is_err());
        assert!(matches!(
            Device::here(0x7fff_ffff),
            Err(Error::NoInterface(0x7fff_ffff))
        ));
        let loopback = Device::here(index("lo")).expect("is there");
        match xdp::features(loopback.ifindex).expect("asks") {
            Some(_) => assert!(matches!(
                router.set_egress(IN, &loopback),
                Err(Error::NoTransmit { interface }) if interface == "lo"
            )),
            None => assert_eq!(router.set_egress(IN, &loopback).expect("cannot know"), None),
        }
    });
    // The same number elsewhere, and the same number later.
    let elsewhere = Netns::create("elsewhere").expect("root makes it");
    let (same, other) = (out.ifindex, out.ifindex + 100);
    let add = format!("link add out index {same} type veth peer name end index {other}");
    elsewhere.ip(&add).expect("the index is free there");
    let refused = elsewhere.inside(|| router.set_egress(IN, &out).expect_err("another device"));
    assert!(refused.to_string().contains("namespace"), "{refused}");
    netns.ip("link del out").expect("was there");
    assert!(!router.has_egress(OUT).expect("asks"));
    netns.inside(|| {
        let gone = router.set_egress(OUT, &out).expect_err("it is gone");
        assert!(matches!(gone, Error::NoInterface(_)), "{gone}");
    });
    netns.ip(&add).expect("the index is free again");
    netns.inside(|| {
        let another = router.set_egress(OUT, &out).expect_err("another device");
        assert!(another.to_string().contains("address"), "{another}");
        // The other end of this one cannot take what it would send.
        let out = Device::here(out.ifindex).expect("is there");
        match router.set_egress(OUT, &out) {
            Err(Error::NoTransmit { interface }) => assert_eq!(interface, "out"),
            Ok(None) => {}
            other => panic!("{other:?}"),
        }
    });
}

/// One of 64 packets whose checksums look unfinished is shown to the graph, which knows what to
/// tell.
#[test]
fn unfinished_checksums_come_to_the_graphs_eyes() {
    let Some(bench) = Bench::new("unfinished_checksums_come_to_the_graphs_eyes") else {
        return;
    };
    let shown = |packet: &[u8]| {
        let before = bench.counters(IN).redirected;
        for _ in 0..640 {
            assert_eq!(bench.run(packet).0, Verdict::Redirect);
        }
        bench.counters(IN).redirected - before
    };
    // Each processor counts for itself.
    net::stay_on_this_processor();
    let good = to([10, 1, 2, 3], 60);
    // Sum of the pseudo-header: addresses, protocol and length.
    let pseudo = |protocol: u8| {
        let mut pseudo = good[26..34].to_vec();
        pseudo.extend([0, protocol, 0, 26]);
        sum(&pseudo).to_be_bytes()
    };
    let tcp = with(&good, 23, &[6]);
    assert_eq!(shown(&good), 0);
    assert_eq!(shown(&with(&good, 40, &pseudo(17))), 10);
    assert_eq!(shown(&with(&tcp, 50, &pseudo(6))), 10);
    assert_eq!(shown(&with(&tcp, 50, &pseudo(17))), 0);
    let fragment = with(&good, 20, &[0x20, 0]);
    assert_eq!(shown(&with(&fragment, 40, &pseudo(17))), 0);
}
