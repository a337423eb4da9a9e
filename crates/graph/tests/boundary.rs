//! Shows all that safe code can do to packets: lose them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use graph::node::{each, node};
use graph::pool::{MAX_PACKET, STRIDE};
use graph::waker::Waker;
use graph::worker::Worker;
use graph::{
    Batch, Buffers, Command, Desc, Each, Emit, FRAME, Frame, Graph, Handoff, Node, Pkt, Pool, Port,
    Stage, WorkerPort, cycles, edges,
};

fn pool() -> (Arc<Pool>, Buffers) {
    let pool = Pool::new(512, STRIDE).unwrap();
    (pool.clone(), Buffers::new(pool))
}

/// Packets 0, 1, 2, ...
fn numbered(bufs: &mut Buffers, count: u8) -> Frame {
    let mut frame = Frame::default();
    for n in 0..count {
        frame.push(bufs.copy_in(&[n; 60]).unwrap()).unwrap();
    }
    frame
}

fn numbers(bufs: &mut Buffers, packets: impl Iterator<Item = Desc>) -> Vec<u8> {
    packets
        .map(|d| {
            let number = bufs.pool().bytes_of(&d)[0];
            bufs.free(d);
            number
        })
        .collect()
}

/// Message of its panic.
fn panics<R>(f: impl FnOnce() -> R) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).err().expect("a panic");
    let text = panic.downcast_ref::<&str>().map(|s| s.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .expect("a panic with words")
}

const FOREIGN: &str = "a packet of another pool";

#[test]
fn what_is_not_taken_of_an_offer_stays_in_order() {
    let (pool, mut bufs) = pool();
    for (offered, taken) in [(0, 0), (5, 0), (5, 2), (5, 5), (20, 19), (20, 20), (99, 20)] {
        let mut frame = numbered(&mut bufs, 20);
        let mut got = Vec::new();
        let n = frame.offer(offered, |batch| {
            assert_eq!(batch.len(), offered.min(20));
            got = numbers(&mut bufs, batch.take(taken));
            assert_eq!(batch.len(), batch.packets().len());
        });
        assert_eq!((n, frame.len()), (taken, 20 - taken));
        got.extend(numbers(&mut bufs, frame.drain()));
        assert!(got.into_iter().eq(0..20) && frame.is_empty());
        assert_eq!(bufs.cached() as u32 + pool.available(), 512);
    }
}

#[test]
fn a_part_of_an_offer_is_taken_from_it() {
    let (pool, mut bufs) = pool();
    let mut frame = numbered(&mut bufs, 20);
    let mut got = Vec::new();
    frame.offer(15, |batch| {
        got.extend(numbers(&mut bufs, batch.take(2)));
        batch.offer(4, |part| {
            got.extend(numbers(&mut bufs, part.take(3)));
            assert_eq!(part.len(), 1);
        });
        assert_eq!(batch.len(), 10);
        batch.offer(usize::MAX, |part| assert_eq!(part.len(), 10));
        got.extend(numbers(&mut bufs, batch.take(1)));
    });
    got.extend(numbers(&mut bufs, frame.drain()));
    assert!(got.into_iter().eq(0..20));
    assert_eq!(bufs.cached() as u32 + pool.available(), 512);
}

fn stumble(batch: &mut Batch<'_>) {
    batch.next();
    panic!("over a packet");
}

#[test]
fn who_panics_with_packets_in_hand_loses_them() {
    let (pool, mut bufs) = pool();
    let free = |bufs: &Buffers| bufs.cached() as u32 + pool.available();
    let mut frame = numbered(&mut bufs, 20);
    panics(|| frame.offer(10, stumble));
    assert!(frame.is_empty(), "nobody owns the others twice");
    assert_eq!(free(&bufs), 512 - 20);
    let mut frame = numbered(&mut bufs, 20);
    frame.offer(20, |batch| {
        let whole = &mut *batch;
        panics(|| whole.offer(5, stumble));
        assert_eq!(batch.len(), 15);
    });
    assert!(numbers(&mut bufs, frame.drain()).into_iter().eq(5..20));
    assert_eq!(free(&bufs), 512 - 25);
    // An iterator that is not brought to its end.
    let mut frame = numbered(&mut bufs, 20);
    assert_eq!(numbers(&mut bufs, frame.drain().take(7)).len(), 7);
    assert!(frame.is_empty());
    assert_eq!(free(&bufs), 512 - 38);
}

#[test]
fn a_full_frame_takes_no_more() {
    let (_, mut bufs) = pool();
    let mut frame = Frame::default();
    for _ in 0..FRAME {
        frame.push(bufs.alloc().unwrap()).unwrap();
    }
    let more = bufs.alloc().unwrap();
    assert_eq!((frame.room(), frame.packets().len()), (0, FRAME));
    bufs.free(frame.push(more).unwrap_err());
}

#[test]
fn a_packet_is_looked_for_in_its_own_pool_only() {
    // The larger one's buffers lie beyond the end of the smaller one.
    let (_, mut bufs) = pool();
    let small = Pool::new(8, STRIDE).unwrap();
    let mut others = Buffers::new(small.clone());
    for length in [60, MAX_PACKET] {
        let mut d = bufs.copy_in(&vec![1; length]).unwrap();
        assert_eq!(panics(|| small.bytes_of(&d).len()), FOREIGN);
        assert_eq!(panics(|| small.bytes_of_mut(&mut d).len()), FOREIGN);
        assert_eq!(panics(|| small.data(&d)), FOREIGN);
        assert_eq!(panics(|| small.index(&d)), FOREIGN);
        assert_eq!(panics(|| small.segments(&d, |_| ())), FOREIGN);
        assert_eq!(panics(|| Pkt::new(&small, &mut d).len()), FOREIGN);
        let mut own = others.alloc().unwrap();
        assert_eq!(panics(|| others.chain(&mut own, d)), FOREIGN);
        assert!(!own.is_chained());
        others.free(own);
        let mut d = bufs.copy_in(&vec![1; length]).unwrap();
        assert_eq!(panics(|| others.resize(&mut d, 61)), FOREIGN);
        assert_eq!(panics(|| others.free(d)), FOREIGN);
    }
    assert_eq!(others.cached() as u32 + small.available(), 8);
}

#[test]
fn lengths_that_no_buffer_has_are_refused() {
    let (pool, mut bufs) = pool();
    let mut d = bufs.copy_in(&[7; 60]).unwrap();
    for length in [
        usize::MAX,
        usize::MAX - 300,
        1 << 16,
        pool.stride(),
        usize::from(pool.room()) + 1,
    ] {
        assert!(!bufs.resize(&mut d, length));
    }
    let mut p = Pkt::new(&pool, &mut d);
    for by in [i32::MAX, i32::MIN + 1, 61, 1 << 16, -193, -(1 << 16)] {
        assert!(!p.shift(by), "{by}");
    }
    // The headroom ends where the pool's own notes begin.
    assert!(p.shift(-192) && !p.shift(-1) && p.header::<u8>(192) == &7);
    assert!(p.shift(192 + 60));
    assert_eq!(p.len(), 0);
    bufs.free(d);
}

edges! {
    enum Touched {
        Out => Interface,
    }
}

/// Touches each packet and sends it on.
struct Touch;
impl Stage<()> for Touch {
    const NAME: &'static str = "touch";
    type Next = Touched;
    const THRU: Touched = Touched::Out;
    fn packet(&mut self, (): &(), p: &mut Pkt<'_>) -> Touched {
        *p.header_mut::<u8>(0) += 1;
        Touched::Out
    }
}

/// Sends on packets from a store of its own.
struct Smuggler(Arc<Mutex<Vec<Desc>>>);
impl Each<()> for Smuggler {
    const NAME: &'static str = "smuggler";
    type Next = Smuggled;
    fn packet(&mut self, (): &(), out: &mut Emit<'_, Smuggled>, d: Desc) {
        out.bufs().free(d);
        let mut store = self.0.lock().unwrap();
        store.drain(..).for_each(|d| out.push(Smuggled::On, d));
    }
}

edges! {
    enum Smuggled {
        On => Node("touch"),
    }
}

/// Receives packets from a store, sends nothing.
struct Store(Arc<Mutex<Vec<Desc>>>);
impl Port for Store {
    fn name(&self) -> &str {
        "store"
    }
    fn rx(&mut self, _: &mut Buffers, frame: &mut Frame) {
        let mut store = self.0.lock().unwrap();
        store.drain(..).for_each(|d| frame.push(d).unwrap());
    }
    fn tx(&mut self, _: &mut Buffers, _: &mut Batch<'_>) {}
}

#[test]
fn packets_of_another_pool_do_not_get_between_the_nodes() {
    for smuggled in [false, true] {
        let (_, mut strangers) = pool();
        let (pool, mut bufs) = pool();
        let [received, held] = [0, 1].map(|_| Arc::<Mutex<Vec<Desc>>>::default());
        let nodes: Vec<Box<dyn Node<()>>> = vec![each(Smuggler(held.clone())), node(Touch)];
        let graph = Graph::new(nodes, Buffers::new(pool), 4, Arc::default()).unwrap();
        let (mut worker, mut handle) =
            Worker::new(graph, (), Waker::new().unwrap(), Handoff::default());
        let entry = u16::from(!smuggled);
        let served = WorkerPort::new(Box::new(Store(received.clone())), 1, 1, entry);
        assert!(handle.command(Command::AddPort(Box::new(served))).is_ok());
        let stranger = strangers.copy_in(&[0; 60]).unwrap();
        if smuggled {
            held.lock().unwrap().push(stranger)
        } else {
            received.lock().unwrap().push(stranger)
        }
        let own = bufs.copy_in(&[0; 60]).unwrap();
        received.lock().unwrap().push(own);
        assert_eq!(panics(|| worker.round(cycles::now())), FOREIGN);
    }
}
