//! The router's program forwards IPv6: by the same routes as the workers, the same ways, and only
//! what needs nothing else.

mod bench;
mod net;
mod shared;

use std::collections::BTreeSet;
use std::net::Ipv6Addr;

use tables::adjacency::Adjacency;
use tables::entry::Entry;
use tables::hash::flow6;
use tables::ip6::{Fib, Prefix};
use tables::random::Random;
use tables::special::Special;
use tables::synthetic;
use wire::craft::Packet;
use wire::eth::Mac;
use wire::ip;
use xdp::{DROPS, Verdict};

use bench::{IN, MTU, OUT};
use net::{LEFT_MAC, RIGHT_MAC};

/// Neighbors that routes lead to.
const NEIGHBORS: u8 = 12;

type Bench = bench::Bench<Fib>;

impl Bench {
    /// Without a route.
    fn new(test: &str) -> Option<Self> {
        Self::without_routes(test, |memory| {
            Fib::new(memory.ip6_first, memory.ip6_pages, memory.ip6_leaves)
        })
    }

    fn route(&mut self, prefix: Prefix, entry: Entry) {
        self.fib.insert(prefix, entry).expect("room");
        let retired = self.fib.retired();
        self.fib.reclaim(retired);
    }

    /// The neighbor that the program sends a packet to, with one hop less and else as it came.
    fn forwarded(&self, packet: &[u8]) -> Option<u8> {
        let before = self.router.counted(IN);
        let (verdict, after) = self.run(packet);
        let now = self.router.counted(IN);
        let dropped = now.drops.iter().sum::<u64>() - before.drops.iter().sum::<u64>();
        if now.rx_packets == before.rx_packets || dropped > 0 {
            assert_eq!(after, packet);
            return None;
        }
        assert_eq!(verdict, Verdict::Redirect);
        let mut expected = packet.to_vec();
        expected[..14].copy_from_slice(&neighbor(after[5]).header[..14]);
        expected[21] -= 1;
        assert_eq!(after, expected);
        Some(after[5])
    }
}

/// The `n`th neighbor.
fn neighbor(n: u8) -> Adjacency {
    let header = [2, 0, 0, 0, 7, n, 2, 0, 0, 0, 9, 9, 0x86, 0xdd];
    let address = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, n.into());
    Adjacency::rewrite(OUT, MTU, &header, address.into())
}

fn from(src: &str, dst: u128) -> Packet {
    let src: Ipv6Addr = src.parse().expect("an address");
    Packet::udp6((src, 1025), (dst, 12)).macs(Mac(LEFT_MAC), Mac(RIGHT_MAC))
}

fn to(dst: u128) -> Packet {
    from("2001:db8::1", dst)
}

/// A table like the Internet's, with prefixes of all lengths, and what is beside them.
#[test]
fn destinations_are_found_as_workers_find_them() {
    let Some(mut bench) = Bench::new("destinations_are_found_as_workers_find_them") else {
        return;
    };
    let entries: Vec<Entry> = (1..=NEIGHBORS)
        .map(|n| bench.entry(&[neighbor(n)]))
        .chain([Entry::special(Special::Local)])
        .collect();
    let mut random = Random::new(0x6970_7636);
    let mut prefixes = synthetic::ip6::routes(1200, 1);
    // Deep ones: a chain of nested prefixes to the last bit.
    let deep = 0x2001_0db8_1234_5678_9abc_def0_1234_5678;
    prefixes.extend((33..=128).filter_map(|length| Prefix::new(deep, length)));
    for prefix in &prefixes {
        let entry = entries[random.below(entries.len() as u32) as usize];
        bench.route(*prefix, entry);
    }
    let reader = bench.fib.reader();
    let mut destinations = synthetic::ip6::destinations(&prefixes, 3000, 2);
    let around = |prefix: &Prefix| {
        let (first, last) = (prefix.addr(), prefix.last());
        [first.wrapping_sub(1), first, last, last.wrapping_add(1)]
    };
    destinations.extend(prefixes.iter().flat_map(around));
    destinations.extend((0..128).map(|bit| deep ^ 1 << bit));
    let mut seen = BTreeSet::new();
    for dst in destinations {
        let first = (dst >> 120) as u8;
        // What has no route to be looked up for is another test's.
        if first == 0 || first >= 0xfe {
            continue;
        }
        let packet = to(dst).frame();
        let entry = reader.lookup(&dst);
        let expected = entries.iter().position(|known| *known == entry);
        match expected {
            Some(at) if !entry.is_special() => {
                let n = at as u8 + 1;
                assert_eq!(bench.forwarded(&packet), Some(n), "{dst:x}");
                seen.insert(n);
            }
            Some(_) => assert_eq!(bench.run(&packet).0, Verdict::Pass, "{dst:x}"),
            None => {
                assert_eq!(bench.forwarded(&packet), None, "{dst:x}");
                assert_eq!(bench.run(&packet).0, Verdict::Redirect, "{dst:x}");
            }
        }
    }
    assert_eq!(seen.len(), usize::from(NEIGHBORS), "all neighbors are used");
}

#[test]
fn only_what_needs_nothing_else_is_forwarded() {
    let Some(mut bench) = Bench::new("only_what_needs_nothing_else_is_forwarded") else {
        return;
    };
    let one = bench.entry(&[neighbor(1)]);
    bench.route("2001:db8:1::/48".parse().unwrap(), one);
    let dst = 0x2001_0db8_0001 << 80 | 1;
    let empty = to(dst).frame();
    let long = |length: usize| to(dst).frame_len(14 + length).frame();
    let raw = |next| {
        let src = Ipv6Addr::from(0x2001_0db8u128 << 96 | 1);
        Packet::raw6(src, dst, next)
            .macs(Mac(LEFT_MAC), Mac(RIGHT_MAC))
            .frame_len(60)
            .frame()
    };
    let mut padded = raw(ip::NO_NEXT_HEADER);
    padded[18..20].fill(0);
    let options = to(dst).extension(ip::DESTINATION_OPTIONS, &[0, 1, 4, 0, 0, 0, 0]);
    let routing = to(dst).extension(ip::ROUTING, &[0, 0, 1, 0, 0, 0, 0]);
    let fragment = to(dst).extension(ip::FRAGMENT, &[0, 5, 1, 0, 0, 0, 9]);
    for (what, packet) in [
        ("an empty one", empty.clone()),
        ("without a header behind", raw(ip::NO_NEXT_HEADER)),
        ("padded", padded.clone()),
        ("as long as the link takes", long(MTU.into())),
        ("hop limit 2", to(dst).ttl(2).frame()),
        ("hop limit 255", to(dst).ttl(255).frame()),
        ("destination options", options.frame()),
        ("a routing header", routing.frame()),
        ("a fragment", fragment.frame()),
        ("from a unique local address", from("fd00::1", dst).frame()),
        ("from NAT64", from("64:ff9b::1.2.3.4", dst).frame()),
    ] {
        assert_eq!(bench.forwarded(&packet), Some(1), "{what}");
    }
    let mut longer = padded;
    longer.push(0);
    let mut beyond = empty.clone();
    beyond[19] += 1;
    for (what, packet) in [
        ("more behind it than padding", longer),
        ("longer than the frame", beyond),
        ("larger than the link takes", long(usize::from(MTU) + 1)),
        ("hop limit 1", to(dst).ttl(1).frame()),
        ("hop limit 0", to(dst).ttl(0).frame()),
        ("without a route", to(dst ^ 1 << 80).frame()),
    ] {
        assert_eq!(bench.forwarded(&packet), None, "{what}");
        assert_eq!(bench.run(&packet).0, Verdict::Redirect, "{what}");
    }
}

#[test]
fn drops_are_counted_by_reason() {
    let Some(mut bench) = Bench::new("drops_are_counted_by_reason") else {
        return;
    };
    let one = bench.entry(&[neighbor(1)]);
    bench.route("2001:db8:1::/48".parse().unwrap(), one);
    let blackhole = Entry::special(Special::Blackhole);
    bench.route("2001:db8:2::/48".parse().unwrap(), blackhole);
    let host = |network: u128| (0x2001_0db8_0000 + network) << 80 | 1;
    for (network, reason) in [
        (2, ("ip6-lookup", "Blackhole")),
        (1, ("ip6-rewrite", "Gone")),
    ] {
        if reason.1 == "Gone" {
            bench.router.unset_egress(OUT).expect("is there");
        }
        let before = bench.router.counted(IN);
        assert_eq!(bench.run(&to(host(network)).frame()).0, Verdict::Drop);
        let mut expected = before;
        expected.rx_packets += 1;
        expected.rx_bytes += 62;
        let at = DROPS.iter().position(|drop| *drop == reason);
        expected.drops[at.expect("a reason")] += 1;
        assert_eq!(bench.router.counted(IN), expected, "{reason:?}");
    }
}

/// Flows are spread as the workers spread them.
#[test]
fn flows_take_the_ways_that_workers_give_them() {
    let Some(mut bench) = Bench::new("flows_take_the_ways_that_workers_give_them") else {
        return;
    };
    let all: Vec<_> = (1..=NEIGHBORS).map(neighbor).collect();
    let many = bench.entry(&all);
    bench.route("2001:db8:2::/48".parse().unwrap(), many);
    let (groups, adjacencies) = (bench.groups.reader(), bench.slab.reader());
    let mut random = Random::new(0x666c_6f77);
    let mut seen = BTreeSet::new();
    for _ in 0..10_000 {
        let mut wide = || u128::from(random.word()) << 32 | u128::from(random.word());
        let src = 0x2001_0db8 << 96 | wide() << 32 | wide() & 0xffff_ffff;
        let dst = 0x2001_0db8_0002 << 80 | wide();
        let (ports, label) = (random.word(), random.word());
        let proto = [6, 17, 132, 136, 58, 47, 44][random.below(7) as usize];
        let mut payload = ports.to_be_bytes().to_vec();
        payload.extend([0; 4]);
        let packet = Packet::raw6(src, dst, proto)
            .macs(Mac(LEFT_MAC), Mac(RIGHT_MAC))
            .flow_label(label)
            .payload(&payload)
            .frame();
        let ports = if ip::has_ports(proto) { ports } else { 0 };
        let (sport, dport) = ((ports >> 16) as u16, ports as u16);
        let ends = (src.to_be_bytes(), dst.to_be_bytes());
        let hash = flow6(&ends.0, &ends.1, label, proto, sport, dport);
        let way = groups.bucket(many.group(), hash);
        let expected = adjacencies.load(way).header();
        let (verdict, after) = bench.run(&packet);
        assert_eq!((verdict, &after[..14]), (Verdict::Redirect, &expected[..]));
        seen.insert(after[5]);
    }
    assert_eq!(seen.len(), usize::from(NEIGHBORS), "all neighbors are used");
}
