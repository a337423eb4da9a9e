//! Two workers that hand packets to each other's nodes and ports.

use std::sync::Arc;
use std::time::{Duration, Instant};

use graph::memory_port::MemoryPort;
use graph::node::each;
use graph::pool::STRIDE;
use graph::waker::Waker;
use graph::worker::Worker;
use graph::{
    Buffers, Command, Desc, Each, Emit, Graph, Handle, Handoff, Node, Pool, TxPlacement,
    WorkerPort, cycles, edges,
};

edges! {
    enum Steered {
        Owner => Node("owner"),
        Other => Node("other-owner"),
        Lost => Drop("lost"),
    }
}

/// Gives packets to the worker that their first byte names; its top bit says to which node.
struct Steer;
impl Each<()> for Steer {
    const NAME: &'static str = "steer";
    type Next = Steered;
    fn packet(&mut self, (): &(), out: &mut Emit<'_, Steered>, d: Desc) {
        let byte = out.pool().bytes_of(&d)[0];
        let worker = usize::from(byte & 0x7f);
        match byte {
            0x7f => out.hand_over(0, Steered::Lost, d),
            0..0x80 => out.hand_over(worker, Steered::Owner, d),
            _ => out.hand_over(worker, Steered::Other, d),
        }
    }
}

edges! {
    enum Owned {
        Out => Interface,
    }
}

/// Writes its worker into the packet's second byte and sends it by interface 2.
struct Owner(u8);
impl Each<()> for Owner {
    const NAME: &'static str = "owner";
    type Next = Owned;
    fn packet(&mut self, (): &(), out: &mut Emit<'_, Owned>, mut d: Desc) {
        out.pool().bytes_of_mut(&mut d)[1] = self.0;
        d.set_tx_if(2);
        out.push(Owned::Out, d);
    }
}

/// The same under another name, and 100 higher.
struct Other(Owner);
impl Each<()> for Other {
    const NAME: &'static str = "other-owner";
    type Next = Owned;
    fn packet(&mut self, (): &(), out: &mut Emit<'_, Owned>, mut d: Desc) {
        out.pool().bytes_of_mut(&mut d)[1] = 100 + self.0.0;
        d.set_tx_if(2);
        out.push(Owned::Out, d);
    }
}

struct Lab {
    workers: Vec<Worker<()>>,
    handles: Vec<Handle>,
    pool: Arc<Pool>,
    /// Interface 1 is worker 0's, interface 2 worker 1's.
    ports: [MemoryPort; 2],
}

/// Two workers with rings of `size` packets.
fn lab(size: usize) -> Lab {
    let pool = Pool::new(4096, STRIDE).unwrap();
    let wakers = [0, 1].map(|_| Waker::new().unwrap());
    let ports = ["one", "two"].map(MemoryPort::new);
    let (mut workers, mut handles) = (Vec::new(), Vec::new());
    for (i, handoff) in Handoff::mesh(&wakers, size).into_iter().enumerate() {
        let nodes: Vec<Box<dyn Node<()>>> = vec![
            each(Steer),
            each(Owner(i as u8)),
            each(Other(Owner(i as u8))),
        ];
        let graph = Graph::new(nodes, Buffers::new(pool.clone()), 4, Arc::default()).unwrap();
        let (worker, mut handle) = Worker::new(graph, (), wakers[i].clone(), handoff);
        let port = WorkerPort::new(Box::new(ports[i].clone()), i as u16 + 1, i as u16 + 1, 0);
        let other = 2 - i as u16;
        for command in [
            Command::AddPort(Box::new(port)),
            Command::PlaceTx(other, TxPlacement::Worker(1 - i)),
            Command::Egress(other, other),
        ] {
            assert!(handle.command(command).is_ok());
        }
        workers.push(worker);
        handles.push(handle);
    }
    Lab {
        workers,
        handles,
        pool,
        ports,
    }
}

impl Lab {
    /// Rounds until nothing moves; every buffer is free then.
    fn run(&mut self) {
        while self
            .workers
            .iter_mut()
            .filter_map(|worker| worker.round(cycles::now()))
            .sum::<usize>()
            > 0
        {}
        let cached = self.workers.iter().map(|w| w.graph().bufs().cached());
        let free = self.pool.available() as usize + cached.sum::<usize>();
        assert_eq!(free, self.pool.count() as usize);
    }

    /// Packets that worker `worker`'s node `node` was given, and counts of its edges.
    fn node(&self, worker: usize, node: usize) -> (u64, Vec<u64>) {
        let node = &self.handles[worker].counters.nodes[node].1;
        let edges = node.edges.iter().map(|e| e.get());
        (node.packets.get(), edges.collect())
    }
}

/// Packet `n` for the owner that `owner` names.
fn packet(owner: u8, n: u16) -> Vec<u8> {
    let [high, low] = n.to_be_bytes();
    vec![owner, 0xff, high, low]
}

#[test]
fn packets_reach_the_node_of_their_owner() {
    let mut lab = lab(1024);
    let owners = [1, 1, 0, 0x81, 1, 0x80, 0x81, 0x7f];
    let sent: Vec<Vec<u8>> = (0..800)
        .map(|n| packet(owners[usize::from(n) % 8], n))
        .collect();
    sent.iter().for_each(|p| lab.ports[0].put(p.clone()));
    lab.run();
    let mut out = lab.ports[1].take();
    assert_eq!(out.len(), 700);
    for p in &mut out {
        let owner = (p[0] & 1) + if p[0] & 0x80 > 0 { 100 } else { 0 };
        assert_eq!(p[1], owner, "{p:?}");
        p[1] = 0xff;
    }
    // In their order, of each owner.
    for owner in [0, 1, 0x80, 0x81] {
        let of = |p: &&Vec<u8>| p[0] == owner;
        assert!(sent.iter().filter(of).eq(out.iter().filter(of)), "{owner}");
    }
    // They count under the edge where they left, and at the node where they went on.
    assert_eq!(lab.node(0, 0), (800, vec![400, 300, 100]));
    assert_eq!([lab.node(0, 1).0, lab.node(1, 1).0], [100, 300]);
    assert_eq!([lab.node(0, 2).0, lab.node(1, 2).0], [100, 200]);
    // Those of worker 0 leave by worker 1's port.
    let counters = &lab.handles[0].counters.worker;
    assert_eq!(
        (counters.handoffs.get(), counters.handoff_full.get()),
        (700, 0)
    );
}

#[test]
fn what_finds_a_ring_full_is_lost_and_counted() {
    let mut lab = lab(64);
    for n in 0..500 {
        lab.ports[0].put(packet([1, 0x81][usize::from(n / 40 % 2)], n));
    }
    // The other worker is busy with something else.
    while lab.workers[0].round(cycles::now()) != Some(0) {}
    let counters = lab.handles[0].counters.worker.clone();
    assert_eq!(counters.handoffs.get() + counters.handoff_full.get(), 500);
    // Of 64 places one says where the packets go; the next kind finds room for few, or none.
    assert!((60..64).contains(&counters.handoffs.get()));
    lab.run();
    assert_eq!(lab.ports[1].take().len() as u64, counters.handoffs.get());
    // The ring is as good as before.
    (0..50).for_each(|n| lab.ports[0].put(packet(0x81, n)));
    (0..10).for_each(|n| lab.ports[0].put(packet(1, n)));
    lab.run();
    let out = lab.ports[1].take();
    let by = |worker: u8| out.iter().filter(|p| p[1] == worker).count();
    assert_eq!((out.len(), by(101), by(1)), (60, 50, 10));
}

#[test]
fn threads_hand_over_both_ways() {
    let Lab {
        workers,
        handles,
        pool,
        ports,
    } = lab(4096);
    let started = workers.into_iter().zip(handles);
    let mut handles: Vec<Handle> = started
        .map(|(worker, handle)| worker.start("worker".into(), || Ok(()), handle).unwrap())
        .collect();
    let (mut out, start) = (Vec::new(), Instant::now());
    for n in 0..2000 {
        ports[usize::from(n & 1)].put(packet([1, 0, 0x80, 0x81][usize::from(n / 2 % 4)], n));
        if n % 100 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        out.extend(ports[1].take());
    }
    while out.len() < 2000 {
        assert!(start.elapsed() < Duration::from_secs(60), "{}", out.len());
        out.extend(ports[1].take());
    }
    let mut numbers: Vec<u16> = out
        .iter()
        .map(|p| u16::from_be_bytes([p[2], p[3]]))
        .collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..2000));
    assert!(out.iter().all(|p| p[1] % 100 == p[0] & 1));
    handles.iter_mut().for_each(Handle::stop);
    assert_eq!(pool.available(), pool.count());
}

#[test]
#[should_panic(expected = "worker 2 of 2")]
fn a_worker_that_is_not_there_is_a_mistake() {
    let mut lab = lab(64);
    lab.ports[0].put(packet(2, 0));
    lab.run();
}

#[test]
#[should_panic(expected = "a packet of another pool")]
fn workers_of_different_pools_do_not_mix() {
    let mut one = lab(64);
    let other = lab(64);
    let wakers = [0, 1].map(|_| Waker::new().unwrap());
    let meshes = Handoff::mesh(&wakers, 64);
    for ((pool, handoff), (i, waker)) in [&one.pool, &other.pool]
        .into_iter()
        .zip(meshes)
        .zip(wakers.iter().enumerate())
    {
        let nodes: Vec<Box<dyn Node<()>>> =
            vec![each(Steer), each(Owner(0)), each(Other(Owner(0)))];
        let graph = Graph::new(nodes, Buffers::new(pool.clone()), 4, Arc::default()).unwrap();
        let (worker, mut handle) = Worker::new(graph, (), waker.clone(), handoff);
        let port = WorkerPort::new(Box::new(one.ports[i].clone()), 1, 1, 0);
        assert!(handle.command(Command::AddPort(Box::new(port))).is_ok());
        one.workers[i] = worker;
        one.handles[i] = handle;
    }
    one.ports[0].put(packet(1, 0));
    one.run();
}
