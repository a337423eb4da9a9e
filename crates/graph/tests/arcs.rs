//! Feature arcs: packets pass the features in their mask, in order, and no others.

use std::sync::Arc;

use graph::memory_port::MemoryPort;
use graph::node::{each, node};
use graph::pool::STRIDE;
use graph::waker::Waker;
use graph::worker::Worker;
use graph::{
    Buffers, By, Command, Desc, Each, Emit, FEATURES, FeatureArc, Fused, Graph, GraphError, Handle,
    Handoff, Node, Pkt, Pool, Stage, To, WorkerPort, cycles, edges,
};

edges! {
    enum Entered {
        On => Arc("way"),
    }
}

/// Start of the arc. Takes a packet's first byte for its mask, in place of what an interface asks
/// for.
struct Enter;
impl Stage<()> for Enter {
    const NAME: &'static str = "enter";
    type Next = Entered;
    const THRU: Entered = Entered::On;
    fn packet(&mut self, (): &(), p: &mut Pkt<'_>) -> Entered {
        let mask = p.header::<[u8; 1]>(0)[0];
        p.set_argument(mask.into());
        Entered::On
    }
}

edges! {
    enum Passed {
        On => Arc("way"),
        Filtered => Drop("filtered"),
    }
}

/// Appends its number to the digits in the packet; `const` so that each is a node of its own.
struct Feature<const N: u8>;
impl<const N: u8> Feature<N> {
    const NAMES: [&'static str; 3] = ["first", "second", "third"];
}
impl<const N: u8> Stage<()> for Feature<N> {
    const NAME: &'static str = Self::NAMES[N as usize];
    type Next = Passed;
    const THRU: Passed = Passed::On;
    fn packet(&mut self, (): &(), p: &mut Pkt<'_>) -> Passed {
        let digits = p.header_mut::<[u8; 4]>(4);
        let at = usize::from(digits[0]);
        (digits[0], digits[at + 1]) = (digits[0] + 1, b'0' + N);
        if N == 1 && p.header::<[u8; 1]>(1) == b"x" {
            Passed::Filtered
        } else {
            Passed::On
        }
    }
}

edges! {
    enum Left {
        Out => Interface,
    }
}

/// The end of the arc.
struct Leave;
impl Stage<()> for Leave {
    const NAME: &'static str = "leave";
    type Next = Left;
    const THRU: Left = Left::Out;
    fn packet(&mut self, (): &(), p: &mut Pkt<'_>) -> Left {
        p.set_tx_if(1);
        Left::Out
    }
}

/// A feature that has each packet to itself.
struct Keeper;
impl Each<()> for Keeper {
    const NAME: &'static str = "third";
    type Next = Passed;
    fn packet(&mut self, (): &(), out: &mut Emit<'_, Passed>, mut d: Desc) {
        Feature::<2>.packet(&(), &mut Pkt::new(out.pool(), &mut d));
        out.hand_over(0, Passed::On, d);
    }
}

fn way(features: &[&'static str]) -> FeatureArc {
    FeatureArc {
        name: "way",
        features: features.to_vec(),
        end: To::Node("leave"),
        by: By::Tx,
        mask: Box::new(u32::from),
    }
}

fn bufs() -> Buffers {
    Buffers::new(Pool::new(4096, STRIDE).unwrap())
}

/// A worker with a port at interface 1.
fn lab(nodes: Vec<Box<dyn Node<()>>>, arc: FeatureArc) -> (Worker<()>, Handle, MemoryPort) {
    let graph = Graph::with_arcs(nodes, vec![arc], bufs(), 2, Arc::default()).unwrap();
    let (worker, mut handle) = Worker::new(graph, (), Waker::new().unwrap(), Handoff::default());
    let memory = MemoryPort::new("port");
    let port = WorkerPort::new(Box::new(memory.clone()), 1, 1, 0);
    assert!(handle.command(Command::AddPort(Box::new(port))).is_ok());
    (worker, handle, memory)
}

#[test]
fn packets_pass_the_features_of_their_mask_in_order() {
    let staged: Vec<Box<dyn Node<()>>> = vec![
        node(Enter),
        node(Feature::<0>),
        node(Feature::<1>),
        node(Feature::<2>),
        node(Leave),
    ];
    // Where it stands among the nodes is nothing to the arc.
    let kept: Vec<Box<dyn Node<()>>> = vec![
        node(Enter),
        node(Leave),
        each(Keeper),
        node(Feature::<1>),
        node(Feature::<0>),
    ];
    for nodes in [staged, kept] {
        let (mut worker, handle, memory) = lab(nodes, way(&["first", "second", "third"]));
        // Runs of one mask and single ones; bits 3 and above mean nothing.
        let masks = (0..1000u32).map(|n| if n < 500 { 7 } else { n * n / 7 % 16 } as u8);
        for (mask, n) in masks.clone().zip(0..1000u16) {
            let [high, low] = n.to_be_bytes();
            let kind = if n % 5 == 0 { b'x' } else { b'.' };
            memory.put(vec![mask, kind, high, low, 0, 0, 0, 0]);
        }
        while worker.round(cycles::now()) != Some(0) {}
        let sent = memory.take();
        let mut filtered = 0;
        let mut sent: std::collections::BTreeMap<u16, Vec<u8>> = sent
            .into_iter()
            .map(|p| (u16::from_be_bytes([p[2], p[3]]), p))
            .collect();
        for (mask, n) in masks.zip(0..1000u16) {
            let Some(p) = sent.remove(&n) else {
                assert!(n % 5 == 0 && mask & 2 > 0, "packet {n}");
                filtered += 1;
                continue;
            };
            let passed = &p[5..][..usize::from(p[4])];
            let want = (0..3u8)
                .filter(|bit| mask >> bit & 1 > 0)
                .map(|bit| b'0' + bit);
            assert!(passed.iter().copied().eq(want), "packet {n}: {p:?}");
        }
        assert!(sent.is_empty());
        let counters = &handle.counters;
        let count = |stage, edge| counters.edge(stage, edge).unwrap().get();
        assert_eq!(count("enter", "On"), 1000);
        assert_eq!(count("second", "Filtered"), filtered);
        assert_eq!(count("leave", "Out"), 1000 - filtered);
        let bufs = worker.graph().bufs();
        assert_eq!(bufs.cached() as u32 + bufs.pool().available(), 4096);
    }
}

edges! {
    enum Chosen {
        On => Arc("way"),
    }
}

/// Sends packets by the arc, whose end is the interface.
struct Choose;
impl Stage<()> for Choose {
    const NAME: &'static str = "choose";
    type Next = Chosen;
    const THRU: Chosen = Chosen::On;
    fn packet(&mut self, (): &(), p: &mut Pkt<'_>) -> Chosen {
        p.set_tx_if(1);
        Chosen::On
    }
}

#[test]
fn an_arc_may_end_at_the_interface() {
    let nodes: Vec<Box<dyn Node<()>>> = vec![node(Choose), node(Feature::<0>)];
    let arc = FeatureArc {
        end: To::Interface,
        ..way(&["first"])
    };
    let (mut worker, _, memory) = lab(nodes, arc);
    memory.put(vec![0; 8]);
    while worker.round(cycles::now()) != Some(0) {}
    assert_eq!(memory.take(), [[0, 0, 0, 0, 1, b'0', 0, 0]]);
}

#[test]
fn arcs_to_nowhere_are_refused() {
    let make = |nodes: Vec<Box<dyn Node<()>>>, arcs: Vec<FeatureArc>| {
        Graph::with_arcs(nodes, arcs, bufs(), 2, Arc::default()).err()
    };
    let all = || -> Vec<Box<dyn Node<()>>> { vec![node(Enter), node(Leave), node(Feature::<0>)] };
    let lost = |from, to| Some(GraphError::NoSuchNode { from, to });
    assert_eq!(make(all(), vec![way(&["first"])]), None);
    assert_eq!(make(all(), vec![]), lost("enter", "way"));
    assert_eq!(make(all(), vec![way(&["second"])]), lost("way", "second"));
    let endless = FeatureArc {
        end: To::Node("nowhere"),
        ..way(&[])
    };
    assert_eq!(make(all(), vec![endless]), lost("way", "nowhere"));
    let twice = way(&["first", "first"]);
    assert_eq!(make(all(), vec![twice]), Some(GraphError::Twice("first")));
    let many = way(&["first"; FEATURES + 1]);
    assert_eq!(make(all(), vec![many]), Some(GraphError::TooMany));
    // An arc is not within a node.
    let fused = vec![node(Fused(Enter, Leave)) as Box<dyn Node<()>>];
    let apart = GraphError::NotFused {
        from: "enter",
        to: "leave",
    };
    assert_eq!(make(fused, vec![way(&[])]), Some(apart));
}
