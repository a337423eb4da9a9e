//! The engine with toy stages: edges, runs, overflow, fused stages, chains, threads.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use graph::GraphError;
use graph::counters::WorkerCounters;
use graph::memory_port::MemoryPort;
use graph::node::{each, node};
use graph::pool::STRIDE;
use graph::waker::Waker;
use graph::worker::Worker;
use graph::{
    Buffers, Command, Desc, Each, Emit, Fused, Graph, Handle, Handoff, Node, Packets, Pkt, Pool,
    Returned, Stage, WorkerPort, cycles, edges,
};

edges! {
    /// By the packet's first byte.
    enum Sorted {
        Even => Node("copier"),
        Odd => Interface,
        Zero => Drop("zero"),
    }
}

/// Sorts packets by their first byte; odd ones leave by interface 2.
struct Sorter;
impl Stage<()> for Sorter {
    const NAME: &'static str = "sorter";
    type Next = Sorted;
    const THRU: Sorted = Sorted::Even;
    const HEADERS_AHEAD: usize = 4;
    fn packet(&mut self, (): &(), p: &mut Pkt<'_>) -> Sorted {
        p.set_tx_if(2);
        match *p.header::<u8>(0) {
            0 => Sorted::Zero,
            n if n.is_multiple_of(2) => Sorted::Even,
            _ => Sorted::Odd,
        }
    }
}

edges! {
    enum Done {
        Out => Interface,
        Large => Drop("larger than 100"),
    }
}

/// Sends those up to 100 by interface 3.
struct Copier;
impl Stage<()> for Copier {
    const NAME: &'static str = "copier";
    type Next = Done;
    const THRU: Done = Done::Out;
    fn packet(&mut self, (): &(), p: &mut Pkt<'_>) -> Done {
        p.set_tx_if(3);
        if *p.header::<u8>(0) > 100 {
            Done::Large
        } else {
            Done::Out
        }
    }
}

edges! {
    enum Reckoned {
        On => Node("copier"),
        Wrong => Drop("the word is not what was prepared"),
    }
}

/// Leaves each packet's number in its batch and the batch's own in its word, in time.
struct Reckoner {
    batches: Arc<Mutex<Vec<usize>>>,
}
impl Stage<()> for Reckoner {
    const NAME: &'static str = "reckoner";
    type Next = Reckoned;
    const THRU: Reckoned = Reckoned::On;
    const BATCH: usize = 8;

    fn packet(&mut self, (): &(), p: &mut Pkt<'_>) -> Reckoned {
        let [number, batch] = *p.header::<[u8; 2]>(1);
        if p.argument() == u32::from(number) << 8 | u32::from(batch) {
            Reckoned::On
        } else {
            Reckoned::Wrong
        }
    }

    fn prepare(&mut self, (): &(), packets: &mut Packets<'_>) {
        let mut batches = self.batches.lock().unwrap();
        let (batch, mut number) = (batches.len() as u8, 0);
        packets.for_each(|p| {
            *p.header_mut::<[u8; 2]>(1) = [number, batch];
            p.set_argument(u32::from(number) << 8 | u32::from(batch));
            number += 1;
        });
        batches.push(number.into());
    }
}

edges! {
    enum Loop {
        On => Node("copier"),
        Again => Node("copier"),
    }
}

/// Names the stage that it is fused with by another edge than its through edge, too.
struct Looper;
impl Stage<()> for Looper {
    const NAME: &'static str = "looper";
    type Next = Loop;
    const THRU: Loop = Loop::On;
    fn packet(&mut self, (): &(), p: &mut Pkt<'_>) -> Loop {
        match *p.header::<u8>(0) {
            0 => Loop::Again,
            _ => Loop::On,
        }
    }
}

edges! {
    enum Back {
        On => Node("copier"),
        Again => Node("returner"),
    }
}

/// Has an edge to itself.
struct Returner;
impl Stage<()> for Returner {
    const NAME: &'static str = "returner";
    type Next = Back;
    const THRU: Back = Back::On;
    fn packet(&mut self, (): &(), _: &mut Pkt<'_>) -> Back {
        Back::Again
    }
}

edges! {
    enum Many {
        Next => Node("copier"),
    }
}

/// Makes that many packets out of each.
struct Multiplier(usize);
impl Each<()> for Multiplier {
    const NAME: &'static str = "multiplier";
    type Next = Many;

    fn packet(&mut self, (): &(), out: &mut Emit<'_, Many>, d: Desc) {
        for n in 0..self.0 {
            if let Some(copy) = out.bufs().copy_in(&[2, (n >> 8) as u8, n as u8]) {
                out.push(Many::Next, copy);
            }
        }
        out.bufs().free(d);
    }
}

struct Lab {
    worker: Worker<()>,
    handle: Handle,
    pool: Arc<Pool>,
    ports: Vec<MemoryPort>,
}

/// The number of an interface's port is greater than its own by this.
const PORT: u16 = 4;

/// Ports at interfaces 1 to 3; what they receive enters the first node.
fn lab(nodes: Vec<Box<dyn Node<()>>>) -> Lab {
    let pool = Pool::new(8192, STRIDE).unwrap();
    let graph = Graph::new(nodes, Buffers::new(pool.clone()), 8, Arc::default()).unwrap();
    let waker = Waker::new().unwrap();
    let (worker, mut handle) = Worker::new(graph, (), waker, Handoff::default());
    let ports: Vec<MemoryPort> = (0..4)
        .map(|i| MemoryPort::new(&format!("port{i}")))
        .collect();
    for id in 1..4 {
        let port = Box::new(ports[usize::from(id)].clone());
        let command = Command::AddPort(Box::new(WorkerPort::new(port, id + PORT, id, 0)));
        assert!(handle.command(command).is_ok());
    }
    Lab {
        worker,
        handle,
        pool,
        ports,
    }
}

impl Lab {
    fn run(&mut self, packets: impl IntoIterator<Item = Vec<u8>>) {
        packets.into_iter().for_each(|p| self.ports[1].put(p));
        let idle = (0..100_000).any(|_| self.worker.round(cycles::now()) == Some(0));
        assert!(idle, "its work has no end");
        let cached = self.worker.graph().bufs().cached();
        let free = self.pool.available() as usize + cached;
        assert_eq!(free, self.pool.count() as usize);
    }
}

#[test]
fn packets_keep_their_order_on_each_edge() {
    let apart_and_fused: [Vec<Box<dyn Node<()>>>; 2] = [
        vec![node(Sorter), node(Copier)],
        vec![node(Fused(Sorter, Copier))],
    ];
    for nodes in apart_and_fused {
        let mut lab = lab(nodes);
        let packets: Vec<Vec<u8>> = (0..1000u32)
            .map(|i| vec![(i * i % 251) as u8, (i >> 8) as u8, i as u8])
            .collect();
        lab.run(packets.clone());
        let wanted = |keep: fn(u8) -> bool| {
            let kept = packets.iter().filter(|p| keep(p[0]));
            kept.cloned().collect::<Vec<_>>()
        };
        assert_eq!(lab.ports[2].take(), wanted(|b| b % 2 == 1));
        let small = wanted(|b| b != 0 && b.is_multiple_of(2) && b <= 100);
        assert_eq!(lab.ports[3].take(), small);
        let zero = wanted(|b| b == 0).len() as u64;
        assert_eq!(lab.handle.counters.nodes[0].1.edges[2].get(), zero);
        assert_eq!(lab.handle.counters.nodes[0].1.packets.get(), 1000);
    }
}

#[test]
fn a_stage_prepares_batches_of_packets_before_it_sees_them() {
    for fused in [false, true] {
        let batches = Arc::new(Mutex::new(Vec::new()));
        let reckoner = Reckoner {
            batches: batches.clone(),
        };
        let nodes: Vec<Box<dyn Node<()>>> = if fused {
            vec![node(Fused(reckoner, Copier))]
        } else {
            vec![node(reckoner), node(Copier)]
        };
        let mut lab = lab(nodes);
        lab.run((0..21).map(|_| vec![1, 0, 0]));
        assert_eq!(*batches.lock().unwrap(), [8, 8, 5]);
        let numbers: Vec<u8> = lab.ports[3].take().iter().map(|p| p[1]).collect();
        let wanted: Vec<u8> = (0..21).map(|number| number % 8).collect();
        assert_eq!(numbers, wanted);
    }
}

#[test]
fn a_fused_node_counts_as_its_stages() {
    let mut lab = lab(vec![node(Fused(Sorter, Copier))]);
    lab.run([vec![0], vec![1], vec![2], vec![4], vec![200]]);
    let counters = &lab.handle.counters.nodes[0].1;
    let edges: Vec<u64> = counters.edges.iter().map(|e| e.get()).collect();
    // Even, which is never counted, odd, zero; out, large.
    assert_eq!(edges, [0, 1, 1, 2, 1]);
    let names: Vec<&str> = counters.stages.iter().map(|p| p.name).collect();
    assert_eq!(names, ["sorter", "copier"]);
}

#[test]
fn a_node_that_makes_many_packets_overflows_in_order_then_loses() {
    // 17 frames wait for the next node: its own and 16 spare ones.
    for (made, lost) in [
        (256, 0),
        (257, 0),
        (1000, 0),
        (17 * 256, 0),
        (17 * 256 + 7, 7),
    ] {
        let mut lab = lab(vec![each(Multiplier(made)), node(Copier)]);
        lab.run([vec![1]]);
        let number = |p: &Vec<u8>| usize::from(p[1]) << 8 | usize::from(p[2]);
        let sent = lab.ports[3].take();
        assert!(sent.iter().map(number).eq(0..made - lost), "{made} packets");
        assert_eq!(lab.handle.counters.worker.queue_full.get(), lost as u64);
    }
}

#[test]
fn sets_of_nodes_that_are_no_graph_are_refused() {
    let make = |nodes: Vec<Box<dyn Node<()>>>| {
        let pool = Pool::new(64, STRIDE).unwrap();
        let counters = Arc::<WorkerCounters>::default();
        Graph::new(nodes, Buffers::new(pool), 4, counters).err()
    };
    let lost = GraphError::NoSuchNode {
        from: "sorter",
        to: "copier",
    };
    assert_eq!(make(vec![node(Sorter)]), Some(lost));
    // Within a fused node, packets reach the second stage by the through edge only.
    let inside = GraphError::NoSuchNode {
        from: "looper",
        to: "copier",
    };
    assert_eq!(make(vec![node(Fused(Looper, Copier))]), Some(inside));
    let apart = vec![node(Looper), node(Copier)];
    assert_eq!(make(apart), None);
    let elsewhere = GraphError::NotFused {
        from: "sorter",
        to: "looper",
    };
    let fused = vec![node(Fused(Sorter, Looper)), node(Copier)];
    assert_eq!(make(fused), Some(elsewhere));
    let back = vec![node(Returner), node(Copier)];
    assert_eq!(make(back), Some(GraphError::ToItself("returner")));
    let twice = vec![node(Copier), node(Copier)];
    assert_eq!(make(twice), Some(GraphError::Twice("copier")));
    let many = (0..65).map(|_| node(Copier)).collect();
    assert_eq!(make(many), Some(GraphError::TooMany));
}

#[test]
fn a_thread_that_cannot_begin_is_an_error() {
    let Lab { worker, handle, .. } = lab(vec![node(Sorter), node(Copier)]);
    let begin = || Err(std::io::Error::other("no processor"));
    let refused = worker.start("worker".into(), begin, handle);
    let error = refused.err().expect("an error").to_string();
    assert_eq!(error, "no processor");
}

#[test]
fn a_thread_that_sleeps_serves_what_comes() {
    let Lab {
        worker,
        handle,
        ports,
        pool,
    } = lab(vec![node(Sorter), node(Copier)]);
    let mut handle = worker.start("worker".into(), || Ok(()), handle).unwrap();
    for n in 1..=20u8 {
        // Until it has been asleep.
        let slept = handle.counters.worker.sleeps.get();
        wait(|| handle.counters.worker.sleeps.get() > slept);
        ports[1].put(vec![2, n]);
        let mut sent = Vec::new();
        wait(|| {
            sent.extend(ports[3].take());
            !sent.is_empty()
        });
        assert_eq!(sent, [vec![2, n]]);
    }
    assert!(handle.alive());
    handle.stop();
    assert!(!handle.alive());
    let mut ports = 0;
    while let Some(Returned::Port(_)) = handle.returned() {
        ports += 1;
    }
    assert_eq!((ports, pool.available()), (3, pool.count()));
}

#[test]
fn what_has_come_before_a_stop_is_sent() {
    let mut lab = lab(vec![node(Sorter), node(Copier)]);
    let packets = 600;
    (0..packets).for_each(|_| lab.ports[1].put(vec![2]));
    assert!(lab.handle.command(Command::Stop).is_ok());
    assert_eq!(lab.worker.round(cycles::now()), None);
    assert_eq!(lab.ports[3].take().len(), packets);
}

/// Waits for something that happens sooner or later.
fn wait(mut happened: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happened() {
        let waited = start.elapsed();
        assert!(waited < Duration::from_secs(60), "it did not happen");
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// A device may have fewer queues to send by than to receive from, and has the first ones.
#[test]
fn the_first_port_of_an_interface_sends() {
    let mut lab = lab(vec![node(Sorter), node(Copier)]);
    let second = MemoryPort::new("second");
    let port = WorkerPort::new(Box::new(second.clone()), 2 + PORT, 2, 0);
    assert!(lab.handle.command(Command::AddPort(Box::new(port))).is_ok());
    lab.run([vec![1]]);
    second.put(vec![3]);
    lab.run([]);
    assert_eq!(lab.ports[2].take(), [vec![1], vec![3]]);
    assert!(second.take().is_empty());
}

/// As sub-interfaces share the port of their device.
#[test]
fn interfaces_share_a_port() {
    let mut lab = lab(vec![node(Sorter), node(Copier)]);
    let egress = |lab: &mut Lab, port| {
        let command = Command::Egress(3, port);
        assert!(lab.handle.command(command).is_ok());
    };
    egress(&mut lab, 2 + PORT);
    lab.run([vec![1], vec![2], vec![1], vec![2], vec![2]]);
    assert_eq!(lab.ports[2].take().len(), 5);
    assert!(lab.ports[3].take().is_empty());
    let count = |lab: &Lab, id: usize| lab.handle.counters.interfaces[id].read();
    assert_eq!(count(&lab, 2).tx_packets, 5, "the device sent them");
    assert_eq!(count(&lab, 3).tx_packets, 0);

    egress(&mut lab, 0);
    lab.run([vec![1], vec![2]]);
    assert_eq!(lab.ports[2].take(), [vec![1]]);
    assert_eq!(count(&lab, 3).no_port, 1);

    // No such port: it stays as it was.
    egress(&mut lab, u16::MAX);
    lab.run([vec![2]]);
    assert_eq!(count(&lab, 3).no_port, 2);

    // Gone with its packets, of whichever interface.
    egress(&mut lab, 2 + PORT);
    assert!(lab.handle.command(Command::RemovePort(2 + PORT)).is_ok());
    lab.run([vec![1], vec![2]]);
    assert_eq!((count(&lab, 2).no_port, count(&lab, 3).no_port), (1, 3));
    assert!(lab.ports[2].take().is_empty());
}
