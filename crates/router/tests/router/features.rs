//! Features: each packet passes those of its interfaces once, in both directions, and is the same
//! packet afterwards.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use graph::node::node;
use graph::{Edges, Pkt, Stage, edges};
use router::arc::{self, IP4_IN_ARC, IP4_OUT_ARC};
use router::nodes::{self, Table};
use router::{Change, Cx, Feature, Interface, Route};

use crate::harness::*;

/// Interfaces and the packets that passed there, in their order.
pub type Log = Arc<Mutex<Vec<(u16, Vec<u8>)>>>;

edges! {
    enum In {
        On => Arc(IP4_IN_ARC),
    }
}

edges! {
    enum Out {
        On => Arc(IP4_OUT_ARC),
    }
}

/// The edge along an arc.
pub trait Passing: Edges {
    const ON: Self;
}

impl Passing for In {
    const ON: In = In::On;
}

impl Passing for Out {
    const ON: Out = Out::On;
}

/// Writes down what comes in.
pub struct LogIn<N>(pub Log, pub PhantomData<N>);
impl<N: Passing> Stage<Cx> for LogIn<N> {
    const NAME: &'static str = "log-in";
    type Next = N;
    const THRU: N = N::ON;
    fn packet(&mut self, _: &Cx, p: &mut Pkt<'_>) -> N {
        let packet = (p.rx_if, p.bytes().to_vec());
        self.0.lock().unwrap().push(packet);
        N::ON
    }
}

/// Writes down what leaves.
pub struct LogOut<N>(pub Log, pub PhantomData<N>);
impl<N: Passing> Stage<Cx> for LogOut<N> {
    const NAME: &'static str = "log-out";
    type Next = N;
    const THRU: N = N::ON;
    fn packet(&mut self, _: &Cx, p: &mut Pkt<'_>) -> N {
        let packet = (p.tx_if(), p.bytes().to_vec());
        self.0.lock().unwrap().push(packet);
        N::ON
    }
}

/// Stands beside the other features, without a bit in any mask.
struct Unused;
impl Stage<Cx> for Unused {
    const NAME: &'static str = "unused";
    type Next = In;
    const THRU: In = In::On;
    fn packet(&mut self, _: &Cx, _: &mut Pkt<'_>) -> In {
        panic!("a packet for a feature that is off")
    }
}

/// The features that log.
const LOGGED: &[Feature] = &[arc::ip4_in(1), arc::ip4_out(0)];

/// A router that may log what passes, and the logs of both directions.
fn logging(workers: usize) -> (Lab, [Log; 2]) {
    let logs = [Log::default(), Log::default()];
    let [input, output] = logs.clone();
    let table = || {
        let mut table: Table = nodes::table();
        table.nodes.push(node(Unused));
        table
            .nodes
            .push(node(LogIn(input.clone(), PhantomData::<In>)));
        table
            .nodes
            .push(node(LogOut(output.clone(), PhantomData::<Out>)));
        table.arcs.ip4_in = vec!["unused", "log-in"];
        table.arcs.ip4_out = vec!["log-out"];
        table
    };
    let lab = Lab::with_table(workers, 64, 8192, None, table).wired();
    (lab, logs)
}

/// An interface has these features and no others.
pub fn features(interface: u16, features: &[Feature]) -> Vec<Change> {
    let set = features.iter().map(|&feature| Change::FeatureSet {
        interface,
        feature,
        argument: Some(0),
    });
    let none = Change::FeaturesDelete(interface);
    [none].into_iter().chain(set).collect()
}

/// Takes what was logged so far.
pub fn take(log: &Log) -> Vec<(u16, Vec<u8>)> {
    std::mem::take(&mut log.lock().unwrap())
}

/// Packets that come in by interface 1, and whether they are IPv4 for its own Ethernet address with
/// a good header.
fn packets() -> Vec<(&'static str, Vec<u8>, bool)> {
    let own = addr(1, 1);
    let far = || udp(FAR).payload(&[7; 18]);
    let mut broken = far().frame();
    broken[24] ^= 1;
    let mut group = far().frame();
    group[..6].fill(0xff);
    let mut stranger = far().frame();
    stranger[5] ^= 1;
    let mut arp = far().frame();
    arp[12..14].copy_from_slice(&[8, 6]);
    let padded = [udp(FAR).id(9).frame(), vec![0; 18]].concat();
    vec![
        ("forwarded", far().id(1).frame(), true),
        ("padded", padded, true),
        ("for the host", udp(own).payload(&[7; 18]).frame(), true),
        ("with options", far().options(&[1, 1, 1, 0]).frame(), true),
        (
            "without a route",
            udp(0x6000_0001).payload(&[7; 18]).frame(),
            true,
        ),
        ("at its end", far().ttl(1).frame(), true),
        ("cut", udp(FAR).payload(&[7; 1700]).frame(), true),
        (
            "too large",
            udp(FAR).payload(&[7; 1700]).fragment(0x4000).frame(),
            true,
        ),
        ("held", udp(addr(3, 9)).payload(&[7; 18]).frame(), true),
        ("broken", broken, false),
        ("to everybody", group, false),
        ("a stranger's", stranger, false),
        ("arp", arp, false),
    ]
}

/// Runs all packets through, one at a time, resolves the neighbor that one waits for, and lets the
/// host send. Returns what each interface sent.
fn traffic(lab: &mut Lab) -> Vec<Vec<Vec<u8>>> {
    let small = Interface {
        mtu: 1400,
        ..interface(2)
    };
    lab.apply(vec![
        Change::InterfaceSet(small),
        route("97.0.0.0/8", Route::Blackhole),
    ]);
    for (_, frame, _) in packets() {
        lab.receive(1, [frame]);
    }
    lab.apply(vec![neighbor(3, 9)]);
    if lab.cables.contains_key(&4) {
        lab.receive(4, [udp(addr(1, 2)).payload(&[1; 18]).frame()]);
    }
    // And back.
    let back =
        wire::craft::Packet::udp((FAR, 12), (addr(1, 2), 1025)).macs(host_mac(2, 2), own_mac(2));
    lab.receive(2, (0..300).map(|n| back.clone().id(n).frame()));
    lab.check_buffers(0);
    let interfaces = lab.cables.keys().copied().collect::<Vec<_>>();
    interfaces.into_iter().map(|id| lab.sent(id)).collect()
}

#[test]
fn every_packet_passes_once_and_unchanged() {
    let want = traffic(&mut Lab::with_host());
    assert!(want.iter().all(|sent| !sent.is_empty()));
    let (lab, [input, output]) = logging(1);
    let mut lab = lab.add_host();
    lab.apply((1..=3).flat_map(|id| features(id, LOGGED)).collect());
    assert!(traffic(&mut lab) == want);
    let (from_two, from_one): (Vec<_>, Vec<_>) = take(&input).into_iter().partition(|p| p.0 == 2);
    assert_eq!(from_two.len(), 300);
    let mut seen = from_one.into_iter();
    for (what, mut frame, is_seen) in packets() {
        if !is_seen {
            continue;
        }
        // What follows the packet does not go on.
        if what == "padded" {
            frame.truncate(60);
        }
        assert!(seen.next() == Some((1, frame)), "{what}");
    }
    assert_eq!(seen.next(), None);
    let output = take(&output);
    for (id, sent) in (1..=3).zip(&want) {
        let left: Vec<_> = output.iter().filter(|p| p.0 == id).map(|p| &p.1).collect();
        // Interface 1 has sent the host's packet, too.
        let by_host = |f: &&Vec<u8>| f.ends_with(&[1; 18]);
        let sent: Vec<_> = sent.iter().filter(|f| id > 1 || !by_host(f)).collect();
        assert!(left == sent, "interface {id}");
    }
    // 4 errors and 300 forwarded; 1 forwarded, 1 padded and 2 pieces; the one that was held.
    let left = [1, 2, 3].map(|id| output.iter().filter(|p| p.0 == id).count());
    assert_eq!(left, [303, 4, 1]);
    assert_eq!(lab.edge("ip4-input", "BadChecksum"), 1);
}

#[test]
fn interfaces_without_features_have_nothing_to_do_with_them() {
    let want = traffic(&mut Lab::with_host());
    let none: &[Feature] = &[];
    // None ever, those of one interface, and some that were switched off again.
    let cases = [(vec![], 0), (vec![LOGGED], 300), (vec![LOGGED, none], 0)];
    for (set, count) in cases {
        let (lab, [input, output]) = logging(1);
        let mut lab = lab.add_host();
        for features in set {
            lab.apply(self::features(2, features));
        }
        assert!(traffic(&mut lab) == want);
        let (input, output) = (take(&input), take(&output));
        assert!(input.iter().chain(&output).all(|p| p.0 == 2));
        assert_eq!(input.len(), count);
        assert_eq!(lab.edge("ip4-input-features", "Features"), count as u64);
        assert_eq!(lab.edge("ip4-rewrite", "Features"), output.len() as u64);
        assert_eq!(output.is_empty(), count == 0);
    }
}

#[test]
fn features_outlast_their_interface() {
    let none: &[Feature] = &[];
    // Those of the interfaces, whenever they are set, until they are set anew.
    for (before, meanwhile, count) in [
        (LOGGED, None, 1),
        (none, Some(LOGGED), 1),
        (LOGGED, Some(none), 0),
    ] {
        let (mut lab, [input, output]) = logging(1);
        lab.apply(
            [1, 2]
                .into_iter()
                .flat_map(|id| features(id, before))
                .collect(),
        );
        lab.apply(vec![Change::InterfaceDelete(1), Change::InterfaceDelete(2)]);
        if let Some(set) = meanwhile {
            lab.apply(
                [1, 2]
                    .into_iter()
                    .flat_map(|id| features(id, set))
                    .collect(),
            );
        }
        for id in [1, 2] {
            lab.apply(connected(id));
            lab.apply(vec![neighbor(id, 2)]);
        }
        let frame = udp(FAR).payload(&[7; 18]).frame();
        lab.receive(1, [frame.clone()]);
        let sent = forwarded(&frame, 2, 2);
        assert_eq!(lab.sent(2), std::slice::from_ref(&sent));
        assert_eq!(take(&input), vec![(1, frame); count]);
        assert_eq!(take(&output), vec![(2, sent); count]);
    }
}

#[test]
fn packets_pass_the_features_of_an_interface_of_another_worker() {
    let (mut lab, [input, output]) = logging(2);
    lab.apply((1..=3).flat_map(|id| features(id, LOGGED)).collect());
    let frames: Vec<_> = (0..500)
        .map(|n| udp(FAR).id(n).payload(&[7; 18]).frame())
        .collect();
    lab.receive(1, frames.clone());
    let sent = lab.sent(2);
    let want: Vec<_> = frames.iter().map(|f| forwarded(f, 2, 2)).collect();
    assert!(sent == want);
    assert!(take(&input).into_iter().map(|p| p.1).eq(frames));
    assert!(take(&output).into_iter().map(|p| p.1).eq(want));
    lab.check_buffers(0);
}
