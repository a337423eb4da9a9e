//! The nodes behind and before the ports: packets of the interfaces that ask for one pass it once,
//! others never.

use std::sync::Arc;

use graph::memory_port::MemoryPort;
use graph::node::node;
use graph::pool::STRIDE;
use graph::waker::Waker;
use graph::worker::Worker;
use graph::{
    Buffers, Command, Graph, Handle, Handoff, Pkt, Pool, Stage, WorkerPort, cycles, edges,
};

edges! {
    enum Sent {
        Out => Interface,
    }
}

/// Sends each packet by the interface that its first byte names.
struct Sort;
impl Stage<()> for Sort {
    const NAME: &'static str = "sort";
    type Next = Sent;
    const THRU: Sent = Sent::Out;
    fn packet(&mut self, (): &(), p: &mut Pkt<'_>) -> Sent {
        let to = p.header::<[u8; 1]>(0)[0];
        p.set_tx_if(to.into());
        Sent::Out
    }
}

edges! {
    enum Passed {
        Out => Port,
        Elsewhere => Interface,
        Unwanted => Drop("unwanted"),
    }
}

/// Marks each packet; one to interface 4 leaves by 3 in the end, as by a member of a bond.
struct Output;
impl Stage<()> for Output {
    const NAME: &'static str = "output";
    type Next = Passed;
    const THRU: Passed = Passed::Out;
    fn packet(&mut self, (): &(), p: &mut Pkt<'_>) -> Passed {
        let marks = &mut p.header_mut::<[u8; 3]>(0)[1..];
        marks[0] += 1;
        match (marks[1], p.tx_if()) {
            (b'x', _) => Passed::Unwanted,
            (_, 4) => {
                p.set_tx_if(3);
                Passed::Elsewhere
            }
            _ => Passed::Out,
        }
    }
}

edges! {
    enum Entered {
        Sort => Node("sort"),
    }
}

/// Marks each packet that enters by it.
struct Input;
impl Stage<()> for Input {
    const NAME: &'static str = "input";
    type Next = Entered;
    const THRU: Entered = Entered::Sort;
    fn packet(&mut self, (): &(), p: &mut Pkt<'_>) -> Entered {
        p.header_mut::<[u8; 2]>(0)[1] += 1;
        Entered::Sort
    }
}

struct Lab {
    worker: Worker<()>,
    handle: Handle,
    /// Of interfaces 1 to 3, port 0 none.
    ports: Vec<MemoryPort>,
}

/// The index of the node `output`.
const NODE: u16 = 1;

/// The index of the node `input`.
const FIRST: u16 = 2;

fn lab() -> Lab {
    let bufs = Buffers::new(Pool::new(8192, STRIDE).unwrap());
    let nodes = vec![node(Sort), node(Output), node(Input)];
    let graph = Graph::new(nodes, bufs, 8, Arc::default()).unwrap();
    assert_eq!(graph.index_of("output"), Some(NODE));
    let (worker, handle) = Worker::new(graph, (), Waker::new().unwrap(), Handoff::default());
    let mut lab = Lab {
        worker,
        handle,
        ports: vec![MemoryPort::new("none")],
    };
    for id in 1..=3 {
        let memory = MemoryPort::new("port");
        let port = WorkerPort::new(Box::new(memory.clone()), id, id, 0);
        lab.command(Command::AddPort(Box::new(port)));
        lab.ports.push(memory);
    }
    lab
}

impl Lab {
    fn command(&mut self, command: Command) {
        assert!(self.handle.command(command).is_ok());
    }

    /// Sends packets in by port 1, and returns what ports 2 and 3 sent.
    fn pass(&mut self, packets: impl IntoIterator<Item = Vec<u8>>) -> [Vec<Vec<u8>>; 2] {
        packets.into_iter().for_each(|p| self.ports[1].put(p));
        while self.worker.round(cycles::now()) != Some(0) {}
        [2, 3].map(|port| self.ports[port].take())
    }
}

/// Packets of a port that has sent none.
const NOTHING: Vec<Vec<u8>> = Vec::new();

fn packet(to: u8) -> Vec<u8> {
    vec![to, 0, b'.']
}

fn passed(to: u8) -> Vec<u8> {
    vec![to, 1, b'.']
}

#[test]
fn only_packets_of_interfaces_that_ask_pass_it() {
    let mut lab = lab();
    let both = || [packet(2), packet(3), packet(2)];
    assert_eq!(
        lab.pass(both()),
        [vec![packet(2), packet(2)], vec![packet(3)]]
    );
    lab.command(Command::Output(2, Some(NODE)));
    assert_eq!(
        lab.pass(both()),
        [vec![passed(2), passed(2)], vec![packet(3)]]
    );
    // Its port goes and comes, and it still asks.
    lab.command(Command::Egress(2, 0));
    assert_eq!(lab.pass([packet(2)]), [NOTHING; 2]);
    lab.command(Command::Egress(2, 3));
    assert_eq!(lab.pass([packet(2)]), [NOTHING, vec![passed(2)]]);
    lab.command(Command::Output(2, None));
    assert_eq!(lab.pass([packet(2)]), [NOTHING, vec![packet(2)]]);
    // No such node, no such interface.
    lab.command(Command::Output(3, Some(9)));
    lab.command(Command::Output(u16::MAX, Some(NODE)));
    assert_eq!(lab.pass([packet(3)]), [NOTHING, vec![packet(3)]]);
}

/// More than a frame, in turn, some of them dropped on the way.
#[test]
fn none_is_lost_or_out_of_order() {
    let mut lab = lab();
    lab.command(Command::Output(2, Some(NODE)));
    lab.command(Command::Output(3, Some(NODE)));
    let made = |n: u32| {
        let to = 2 + (n / 7 % 2) as u8;
        let what = *b"x....".get(n as usize % 5).unwrap();
        let [a, b, ..] = n.to_le_bytes();
        vec![to, 0, what, a, b]
    };
    let wanted = |port: u8| {
        let all = (0..3000).map(made);
        let own = all.filter(move |p| p[0] == port && p[2] != b'x');
        own.map(|mut p| {
            p[1] = 1;
            p
        })
    };
    let sent = lab.pass((0..3000).map(made));
    for (sent, port) in sent.into_iter().zip([2, 3]) {
        assert!(sent.into_iter().eq(wanted(port)), "port {port}");
    }
}

#[test]
fn it_may_send_by_another_interface() {
    let mut lab = lab();
    lab.command(Command::Output(4, Some(NODE)));
    assert_eq!(lab.pass([packet(4), packet(3)])[1].len(), 2);
    // That one asks for it, too.
    lab.command(Command::Output(3, Some(NODE)));
    assert_eq!(lab.pass([packet(4)]), [NOTHING, vec![vec![4, 2, b'.']]]);
}

/// The node that what comes in enters first, for one interface alone.
#[test]
fn what_comes_in_enters_the_node_that_is_asked_for() {
    let mut lab = lab();
    lab.command(Command::Input(1, Some(FIRST)));
    assert_eq!(lab.pass([packet(2)]), [vec![passed(2)], NOTHING]);
    // No such node, no such interface: nothing changes.
    lab.command(Command::Input(1, Some(9)));
    lab.command(Command::Input(u16::MAX, Some(FIRST)));
    assert_eq!(lab.pass([packet(2)]), [vec![passed(2)], NOTHING]);
    // The port goes and comes, and its packets still enter there.
    lab.command(Command::RemovePort(1));
    lab.pass([]);
    let port = WorkerPort::new(Box::new(lab.ports[1].clone()), 1, 1, 0);
    lab.command(Command::AddPort(Box::new(port)));
    assert_eq!(lab.pass([packet(2)]), [vec![passed(2)], NOTHING]);
    lab.command(Command::Input(1, None));
    assert_eq!(lab.pass([packet(2)]), [vec![packet(2)], NOTHING]);
}

/// The last queue of a worker takes the place of one that goes.
#[test]
fn who_stays_still_sends_when_another_port_goes() {
    for gone in [2, 3] {
        let mut lab = lab();
        let own = |port: u8| match u16::from(port) == gone {
            true => NOTHING,
            false => vec![packet(port)],
        };
        lab.command(Command::RemovePort(gone));
        for _ in 0..2 {
            assert_eq!(lab.pass([packet(2), packet(3)]), [own(2), own(3)]);
        }
        // It comes back.
        let port = WorkerPort::new(
            Box::new(lab.ports[usize::from(gone)].clone()),
            gone,
            gone,
            0,
        );
        lab.command(Command::AddPort(Box::new(port)));
        assert_eq!(
            lab.pass([packet(2), packet(3)]),
            [vec![packet(2)], vec![packet(3)]]
        );
    }
}
