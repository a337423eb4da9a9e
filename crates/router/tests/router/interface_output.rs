//! interface-output: frames of any kind pass the features of the interface that they leave by, once,
//! with the argument that they have there.

use std::sync::{Arc, Mutex};

use graph::node::node;
use graph::{Pkt, Stage, edges};
use router::arc::{self, INTERFACE_OUT_ARC};
use router::nodes;
use router::{Change, Cx};
use wire::eth;

use crate::harness::*;

edges! {
    enum Next {
        On => Arc(INTERFACE_OUT_ARC),
    }
}

/// Interfaces, arguments and lengths of what passed.
type Log = Arc<Mutex<Vec<(u16, u32, usize)>>>;

struct Sampler(Log);
impl Stage<Cx> for Sampler {
    const NAME: &'static str = "sampler";
    type Next = Next;
    const THRU: Next = Next::On;
    fn packet(&mut self, cx: &Cx, p: &mut Pkt<'_>) -> Next {
        let argument = cx.interfaces.argument(p.tx_if(), arc::interface_out(0));
        let seen = (p.tx_if(), argument, p.len());
        self.0.lock().unwrap().push(seen);
        Next::On
    }
}

fn lab(workers: usize) -> (Lab, Log) {
    let log = Log::default();
    let table = || {
        let mut table = nodes::table();
        table.nodes.push(node(Sampler(log.clone())));
        table.arcs.interface_out = vec!["sampler"];
        table
    };
    let lab = Lab::with_table(workers, 64, 8192, None, table).wired();
    (lab, log)
}

fn sampled(interface: u16, argument: Option<u32>) -> Change {
    Change::FeatureSet {
        interface,
        feature: arc::interface_out(0),
        argument,
    }
}

fn take(log: &Log) -> Vec<(u16, u32, usize)> {
    std::mem::take(&mut *log.lock().unwrap())
}

#[test]
fn frames_of_any_kind_pass_once_with_the_argument_of_their_interface() {
    // With two workers interface 2 is another worker's than the packets.
    for workers in [1, 2] {
        let (mut lab, log) = lab(workers);
        let frames: Vec<_> = (0..300).map(|n| udp(FAR).id(n).frame()).collect();
        let len = frames[0].len();
        lab.receive(1, frames.clone());
        let want = lab.sent(2);
        assert_eq!(want.len(), 300);
        assert_eq!(take(&log), [], "nobody asks for it");

        lab.apply(vec![sampled(2, Some(7)), sampled(3, Some(9))]);
        lab.receive(1, frames.clone());
        assert!(lab.sent(2) == want);
        assert_eq!(take(&log), vec![(2, 7, len); 300]);

        // Another argument, in place.
        lab.apply(vec![sampled(2, Some(8))]);
        lab.receive(1, [frames[0].clone()]);
        assert_eq!(take(&log), [(2, 8, len)]);

        // The interface goes and comes with it.
        lab.apply(vec![Change::InterfaceDelete(2)]);
        lab.apply(connected(2));
        lab.apply(vec![neighbor(2, 2)]);
        lab.receive(1, [frames[0].clone()]);
        assert_eq!(take(&log), [(2, 8, len)]);

        // Switched off, alone and with all others.
        lab.apply(vec![sampled(2, None), Change::FeaturesDelete(3)]);
        lab.sent(2);
        lab.receive(1, [frames[0].clone(), udp(addr(3, 2)).frame()]);
        assert_eq!((lab.sent(2).len(), lab.sent(3).len()), (1, 1));
        assert_eq!(take(&log), []);
        lab.check_buffers(0);
    }
}

#[test]
fn what_the_host_sends_passes_too() {
    let (lab, log) = lab(1);
    let mut lab = lab.add_host();
    lab.apply(vec![sampled(1, Some(1))]);
    let mut arp = udp(addr(1, 2)).frame();
    arp[12..14].copy_from_slice(&eth::ARP.to_be_bytes());
    lab.receive(4, [arp.clone()]);
    assert_eq!(lab.sent(1), std::slice::from_ref(&arp));
    assert_eq!(take(&log), [(1, 1, arp.len())]);
    assert_eq!(lab.edge("interface-output", "Features"), 1);
}
