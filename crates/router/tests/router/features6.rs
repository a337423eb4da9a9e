//! Features of IPv6: as those of IPv4, which have nothing to do with these packets.

use std::marker::PhantomData;

use graph::edges;
use graph::node::node;
use router::arc::{self, IP6_IN_ARC, IP6_OUT_ARC};
use router::nodes::{self, Table};
use router::{Change, Feature, Interface};
use wire::ip;

use crate::features::{Log, LogIn, LogOut, Passing, features, take};
use crate::harness::*;
use crate::ip6_nodes::{self, NEAR, between, good, prepared};

edges! {
    enum In {
        On => Arc(IP6_IN_ARC),
    }
}

edges! {
    enum Out {
        On => Arc(IP6_OUT_ARC),
    }
}

impl Passing for In {
    const ON: In = In::On;
}

impl Passing for Out {
    const ON: Out = Out::On;
}

/// These features: each the first of its arc.
const LOGGED: &[Feature] = &[arc::ip6_in(0), arc::ip6_out(0)];
/// The same bits of IPv4.
const OTHERS: &[Feature] = &[arc::ip4_in(0), arc::ip4_out(0)];

/// A router that may log what passes, and the logs of both directions.
fn logging() -> (Lab, [Log; 2]) {
    let logs = [Log::default(), Log::default()];
    let [input, output] = logs.clone();
    let table = || {
        let mut table: Table = nodes::table();
        table
            .nodes
            .push(node(LogIn(input.clone(), PhantomData::<In>)));
        table
            .nodes
            .push(node(LogOut(output.clone(), PhantomData::<Out>)));
        table.arcs.ip6_in = vec!["log-in"];
        table.arcs.ip6_out = vec!["log-out"];
        table
    };
    let lab = Lab::with_table(1, 64, 8192, None, table).wired();
    (prepared(wired6(lab)).add_host(), logs)
}

/// Packets that come in by interface 1, and whether features see them.
fn packets() -> Vec<(&'static str, Vec<u8>, bool)> {
    let frame = good().frame();
    let mut version = frame.clone();
    version[14] = 0x40;
    let mut group = frame.clone();
    group[..6].fill(0xff);
    let option = good().extension(ip::HOP_BY_HOP, &[0, 1, 4, 0, 0, 0, 0]);
    vec![
        ("forwarded", frame, true),
        ("for the host", between(NEAR, "2001:db8:1::1").frame(), true),
        ("with options", option.frame(), true),
        (
            "without a route",
            between(NEAR, "2001:db8:9900::1").frame(),
            true,
        ),
        ("at its end", good().ttl(1).frame(), true),
        ("too large", good().frame_len(1700).frame(), true),
        ("held", between(NEAR, "2001:db8:3::9").frame(), true),
        ("of another version", version, false),
        ("to everybody", group, false),
        ("of IPv4", udp(FAR).frame(), false),
    ]
}

/// Runs all packets through and resolves the neighbor that one waits for. Returns what each
/// interface sent.
fn traffic(lab: &mut Lab) -> Vec<Vec<Vec<u8>>> {
    for (_, frame, _) in packets() {
        lab.receive(1, [frame]);
    }
    lab.apply(vec![neighbor6(3, "2001:db8:3::9")]);
    lab.check_buffers(0);
    (1..=4).map(|id| lab.sent(id)).collect()
}

#[test]
fn every_packet_passes_once_and_unchanged() {
    let want = traffic(&mut ip6_nodes::lab().add_host());
    // An error for each of three; one forwarded, one of IPv4; the held one; three for the host.
    assert_eq!(want.iter().map(Vec::len).collect::<Vec<_>>(), [3, 2, 1, 3]);
    for (set, is_seen) in [(LOGGED, true), (OTHERS, false)] {
        let (mut lab, [input, output]) = logging();
        lab.apply((1..=3).flat_map(|id| features(id, set)).collect());
        assert!(traffic(&mut lab) == want);
        let seen = packets().into_iter().filter(|(.., seen)| is_seen && *seen);
        let seen: Vec<_> = seen.map(|(_, frame, _)| (1, frame)).collect();
        assert_eq!(take(&input), seen);
        let is_ip6 = |frame: &&Vec<u8>| frame[12..14] == [0x86, 0xdd];
        let left = take(&output);
        for (id, sent) in (1..=3).zip(&want) {
            let left: Vec<_> = left.iter().filter(|p| p.0 == id).map(|p| &p.1).collect();
            let sent: Vec<_> = sent.iter().filter(|f| is_seen && is_ip6(f)).collect();
            assert_eq!(left, sent, "interface {id}");
        }
    }
}

#[test]
fn a_link_that_is_too_small_has_no_features_by_that() {
    let (mut lab, [_, output]) = logging();
    let small = Interface {
        mtu: 1000,
        ..interface(2)
    };
    lab.apply(vec![Change::InterfaceSet(small)]);
    let frame = good().frame_len(14 + 1280).frame();
    lab.receive(1, [frame]);
    assert_eq!(lab.sent(2).len(), 1);
    assert_eq!(take(&output), []);
}
