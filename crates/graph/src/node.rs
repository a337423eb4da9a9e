//! Nodes: a stage over a whole frame, and where the packets go from there.
#![allow(unsafe_code)]

use crate::counters::{InterfaceCounters, NodeCounters, WorkerCounters};
use crate::frame::{FRAME, Frame};
use crate::stage::{Pkt, Stage, StageInfo};
use crate::trace::{Record, Tracer};
use crate::worker_port::{Handoff, WorkerPort};
use crate::{Buffers, Desc, Edges, Pool};
use std::marker::PhantomData;
use std::sync::Arc;

/// A node of the graph. Most are a [`Stage`] ([`node`] makes one of it); who makes, frees or holds packets is an [`Each`] ([`each`]).
pub trait Node<C>: Send {
    /// Name in `show runtime`.
    fn name(&self) -> &'static str;
    /// The stages (for most: one), with their edges.
    fn stages(&self) -> Vec<StageInfo>;
    /// Takes every packet of the frame and gives it to an edge of `out`; leaves the frame empty.
    ///
    /// # Safety
    /// The packets are of the pool of `out`'s graph.
    unsafe fn frame(&mut self, cx: &C, out: &mut Out, frame: &mut Frame);
    /// Whether [`Node::poll`] is to be called.
    fn polls(&self) -> bool {
        false
    }
    /// Called about once a millisecond and after every new snapshot, for nodes that hold packets.
    fn poll(&mut self, _cx: &C, _out: &mut Out) {}
}

/// A node that runs `stage` on every packet.
pub fn node<C: 'static, S: Stage<C>>(name: &'static str, stage: S) -> Box<dyn Node<C>> {
    Box::new(Staged::<C, S> {
        name,
        stage,
        _context: PhantomData,
    })
}

/// A node that has a packet to itself, one after the other in their order, and may make, free or hold packets.
pub trait Each<C>: Send {
    /// Name in `show runtime` and `show errors`.
    const NAME: &'static str;
    /// Its ways out; the first is the one that most packets take.
    type Next: Edges;

    /// Takes the packet and gives it to an edge of `out`, or keeps it.
    fn packet(&mut self, cx: &C, out: &mut Out, d: Desc);

    /// As [`Node::polls`].
    fn polls(&self) -> bool {
        false
    }
    /// As [`Node::poll`].
    fn poll(&mut self, _cx: &C, _out: &mut Out) {}
}

/// A node that gives `each` its packets.
pub fn each<C: 'static, E: Each<C> + 'static>(each: E) -> Box<dyn Node<C>> {
    Box::new(OneByOne(each))
}

struct OneByOne<E>(E);

impl<C, E: Each<C>> Node<C> for OneByOne<E> {
    fn name(&self) -> &'static str {
        E::NAME
    }
    fn stages(&self) -> Vec<StageInfo> {
        vec![StageInfo {
            name: E::NAME,
            edges: E::Next::table(),
            thru: 0,
        }]
    }
    unsafe fn frame(&mut self, cx: &C, out: &mut Out, frame: &mut Frame) {
        for d in frame.drain() {
            self.0.packet(cx, out, d);
        }
    }
    fn polls(&self) -> bool {
        self.0.polls()
    }
    fn poll(&mut self, cx: &C, out: &mut Out) {
        self.0.poll(cx, out);
    }
}

struct Staged<C, S> {
    name: &'static str,
    stage: S,
    _context: PhantomData<fn(&C)>,
}

impl<C, S: Stage<C>> Node<C> for Staged<C, S> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn stages(&self) -> Vec<StageInfo> {
        S::stages()
    }
    unsafe fn frame(&mut self, cx: &C, out: &mut Out, frame: &mut Frame) {
        let thru = S::THRU.index();
        let mut nexts = [0u8; FRAME];
        let pool = &*out.pool;
        let packets = frame.packets_mut();
        let mut differs = 0;
        packets
            .iter()
            .take(S::HEADERS_AHEAD)
            .for_each(|d| pool.prefetch(d));
        for i in 0..packets.len() {
            if S::HEADERS_AHEAD > 0
                && let Some(d) = packets.get(i + S::HEADERS_AHEAD)
            {
                pool.prefetch(d);
            }
            if S::HINT_AHEAD > 0
                && let Some(d) = packets.get_mut(i + S::HINT_AHEAD)
            {
                // SAFETY: as required of the caller, the packets are of this pool.
                let ahead = unsafe { Pkt::known(pool, d) };
                self.stage.hint(cx, &ahead);
            }
            // SAFETY: as above.
            let mut packet = unsafe { Pkt::known(pool, &mut packets[i]) };
            let next = self.stage.packet(cx, &mut packet).index();
            nexts[i] = next;
            differs |= next ^ thru;
        }
        if differs == 0 {
            out.all(thru, frame);
        } else {
            out.scatter(&nexts, frame);
        }
    }
}

/// Where an edge leads, resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Node(u16),
    Interface,
    Drop,
}

/// Packets on their way out of one interface, and who serves it.
pub(crate) struct Transmit {
    pub(crate) frame: Frame,
    pub(crate) placement: TxPlacement,
    pub(crate) counters: Arc<InterfaceCounters>,
}

/// Who sends an interface's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TxPlacement {
    /// Nobody: the interface has no port now.
    None,
    /// This worker's port of that index.
    Port(usize),
    /// Another worker.
    Worker(usize),
}

/// The frames between the nodes, and all that a node may reach beside its own state.
///
/// Its frames hold packets of one pool: those of another are stopped where packets come in, from ports and by [`Out::push`].
pub struct Out {
    /// The worker's buffers.
    pub bufs: Buffers,
    /// The pool of all packets in the frames, whoever exchanges `bufs`.
    pool: Arc<Pool>,
    /// TSC at the start of this loop.
    pub now: u64,
    pub(crate) pending: Vec<Frame>,
    /// Bit n: node n has packets.
    pub(crate) ready: u64,
    spare: Vec<Frame>,
    spilled: Vec<(u16, Frame)>,
    pub(crate) current: usize,
    pub(crate) targets: Vec<Box<[Target]>>,
    pub(crate) counters: Vec<Arc<NodeCounters>>,
    pub(crate) transmit: Vec<Transmit>,
    /// Interfaces with packets in their transmit frame.
    pub(crate) outgoing: Vec<u16>,
    pub(crate) worker: Arc<WorkerCounters>,
    pub(crate) tracer: Tracer,
    pub(crate) ports: Vec<WorkerPort>,
    pub(crate) handoff: Handoff,
}

/// Frames kept for nodes whose queue is full.
const SPARE: usize = 16;

impl Out {
    pub(crate) fn new(
        bufs: Buffers,
        targets: Vec<Box<[Target]>>,
        counters: Vec<Arc<NodeCounters>>,
        interfaces: usize,
        worker: Arc<WorkerCounters>,
    ) -> Self {
        let nodes = targets.len();
        assert!(nodes <= 64, "a graph has at most 64 nodes");
        Out {
            pool: bufs.share(),
            bufs,
            now: crate::cycles::now(),
            pending: (0..nodes).map(|_| Frame::default()).collect(),
            ready: 0,
            spare: (0..SPARE).map(|_| Frame::default()).collect(),
            spilled: Vec::with_capacity(SPARE),
            current: 0,
            targets,
            counters,
            transmit: (0..interfaces)
                .map(|_| Transmit {
                    frame: Frame::default(),
                    placement: TxPlacement::None,
                    counters: Arc::default(),
                })
                .collect(),
            outgoing: Vec::with_capacity(interfaces),
            worker,
            tracer: Tracer::default(),
            ports: Vec::with_capacity(interfaces),
            handoff: Handoff::default(),
        }
    }

    /// Sends the whole frame along `edge` of the current node.
    #[inline]
    pub(crate) fn all(&mut self, edge: u8, frame: &mut Frame) {
        let node = &self.counters[self.current];
        node.edges[edge as usize].add(frame.len() as u64);
        match self.targets[self.current][edge as usize] {
            Target::Node(to) => self.enqueue(to, frame),
            Target::Interface => self.transmit_frame(frame),
            Target::Drop => {
                // SAFETY: the frame is emptied at once.
                unsafe { self.drop_run(edge, frame.packets()) };
                frame.clear();
            }
        }
    }

    /// Sends each packet of the frame along its edge in `nexts`, by runs.
    pub(crate) fn scatter(&mut self, nexts: &[u8; FRAME], frame: &mut Frame) {
        let packets = frame.packets();
        let n = packets.len();
        let mut from = 0;
        while from < n {
            let edge = nexts[from];
            let mut to = from + 1;
            while to < n && nexts[to] == edge {
                to += 1;
            }
            self.counters[self.current].edges[edge as usize].add((to - from) as u64);
            match self.targets[self.current][edge as usize] {
                // SAFETY: each packet is in one run, and the frame is emptied below.
                Target::Node(node) => unsafe { self.enqueue_run(node, &packets[from..to]) },
                // SAFETY: as above.
                Target::Interface => unsafe { self.transmit_run(&packets[from..to]) },
                // SAFETY: as above.
                Target::Drop => unsafe { self.drop_run(edge, &packets[from..to]) },
            }
            from = to;
        }
        frame.clear();
    }

    /// Sends one packet along `edge` of the current node.
    ///
    /// # Panics
    /// When it is of another pool than the graph's.
    pub fn push(&mut self, edge: impl Edges, d: Desc) {
        self.pool.index(&d);
        let edge = edge.index();
        self.counters[self.current].edges[edge as usize].add(1);
        match self.targets[self.current][edge as usize] {
            // SAFETY: d is ours and ends here.
            Target::Node(node) => unsafe { self.enqueue_run(node, std::slice::from_ref(&d)) },
            Target::Interface => self.transmit_one(d),
            Target::Drop => {
                self.transmit_counters(d.rx_if).drops.add(1);
                if self.tracer.active {
                    self.tracer
                        .dropped(&self.pool, self.current as u16, edge, &d);
                }
                self.bufs.free(d);
            }
        }
    }

    /// Counts a packet under a drop edge of the current node without ending it (for who frees it himself).
    pub fn count(&mut self, edge: impl Edges) {
        self.counters[self.current].edges[edge.index() as usize].add(1);
    }

    /// Takes packets that `interface` has received for the graph's.
    ///
    /// # Panics
    /// When the port gave packets of another pool.
    #[inline]
    pub(crate) fn admit(&self, interface: u16, packets: &mut [Desc]) {
        let (mut any, mut all) = (0, u32::MAX);
        for d in packets {
            d.rx_if = interface;
            any |= d.buf;
            all &= d.buf;
        }
        if !self.pool.owns(any, all) {
            crate::pool::foreign();
        }
    }

    /// Counters of an interface.
    pub(crate) fn transmit_counters(&self, interface: u16) -> &InterfaceCounters {
        &self.transmit[self.known(interface.into())].counters
    }

    /// Place of an interface. One that does not exist is a node's mistake; its packets are lost on interface 0, which
    /// has no port.
    #[inline]
    fn known(&self, interface: u32) -> usize {
        let (interface, interfaces) = (interface as usize, self.transmit.len());
        debug_assert!(
            interface < interfaces,
            "interface {interface} of {interfaces}"
        );
        if interface < interfaces { interface } else { 0 }
    }

    #[inline]
    pub(crate) fn enqueue(&mut self, to: u16, frame: &mut Frame) {
        let pending = &mut self.pending[to as usize];
        if pending.is_empty() {
            std::mem::swap(pending, frame);
            self.ready |= 1 << to;
        } else {
            // SAFETY: the frame is emptied at once.
            unsafe { self.enqueue_run(to, frame.packets()) };
        }
        frame.clear();
    }

    /// # Safety
    /// The originals in `run` must not be used again.
    #[inline]
    unsafe fn enqueue_run(&mut self, to: u16, run: &[Desc]) {
        self.ready |= 1 << to;
        // SAFETY: as required of the caller.
        let n = unsafe { self.pending[to as usize].append(run) };
        if n < run.len() {
            // SAFETY: as required of the caller; these were not appended.
            unsafe { self.spill(to, &run[n..]) };
        }
    }

    /// # Safety
    /// The originals in `run` must not be used again.
    #[cold]
    unsafe fn spill(&mut self, to: u16, run: &[Desc]) {
        let mut run = run;
        // The frame that waits last, if it has room: nodes that make packets push them one by one.
        if let Some((_, frame)) = self.spilled.iter_mut().rev().find(|(t, _)| *t == to) {
            // SAFETY: as required of the caller.
            let n = unsafe { frame.append(run) };
            run = &run[n..];
        }
        if run.is_empty() {
            return;
        }
        let Some(mut frame) = self.spare.pop() else {
            self.worker.queue_full.add(run.len() as u64);
            for d in run {
                // SAFETY: the caller gave it up.
                let d = unsafe { d.duplicate() };
                self.bufs.free(d);
            }
            return;
        };
        // SAFETY: as required of the caller; a run is never longer than a frame.
        unsafe { frame.append(run) };
        self.spilled.push((to, frame));
    }

    /// Brings packets that waited for room into the node's frame, once it is empty.
    #[inline]
    pub(crate) fn unspill(&mut self, node: usize) {
        if self.spilled.is_empty() {
            return;
        }
        if let Some(i) = self.spilled.iter().position(|(to, _)| *to as usize == node) {
            let (to, mut frame) = self.spilled.remove(i);
            self.enqueue(to, &mut frame);
            self.spare.push(frame);
        }
    }

    pub(crate) fn transmit_one(&mut self, d: Desc) {
        // SAFETY: d is ours and ends here.
        unsafe { self.transmit_run(std::slice::from_ref(&d)) };
    }

    fn transmit_frame(&mut self, frame: &mut Frame) {
        let Some(first) = frame.packets().first().map(|d| d.adj) else {
            return;
        };
        let same = frame.packets().iter().all(|d| d.adj == first);
        if same
            && (first as usize) < self.transmit.len()
            && self.transmit[first as usize].frame.is_empty()
        {
            std::mem::swap(&mut self.transmit[first as usize].frame, frame);
            self.outgoing.push(first as u16);
        } else {
            // SAFETY: the frame is emptied at once.
            unsafe { self.transmit_run(frame.packets()) };
        }
        frame.clear();
    }

    /// # Safety
    /// The originals in `run` must not be used again.
    unsafe fn transmit_run(&mut self, run: &[Desc]) {
        let mut from = 0;
        while from < run.len() {
            let to_if = run[from].adj;
            let mut to = from + 1;
            while to < run.len() && run[to].adj == to_if {
                to += 1;
            }
            let interface = self.known(to_if);
            let slot = &mut self.transmit[interface];
            if slot.frame.is_empty() {
                self.outgoing.push(interface as u16);
            }
            // SAFETY: as required of the caller.
            let n = unsafe { slot.frame.append(&run[from..to]) };
            if n < to - from {
                self.send(interface);
            }
            from += n;
        }
    }

    /// # Safety
    /// The originals in `run` must not be used again.
    #[cold]
    unsafe fn drop_run(&mut self, edge: u8, run: &[Desc]) {
        for d in run {
            self.transmit_counters(d.rx_if).drops.add(1);
            if self.tracer.active {
                self.tracer
                    .dropped(&self.pool, self.current as u16, edge, d);
            }
            // SAFETY: the caller gave it up.
            let d = unsafe { d.duplicate() };
            self.bufs.free(d);
        }
    }

    /// Gives what waits for `interface` to its port, or to the worker that serves it. What the port does not take is lost.
    pub(crate) fn send(&mut self, interface: usize) {
        // Announced again after it overflowed, and sent already.
        if self.transmit[interface].frame.is_empty() {
            return;
        }
        self.trace_transmit(interface);
        let slot = &mut self.transmit[interface];
        let frame = &mut slot.frame;
        match slot.placement {
            TxPlacement::Port(port) => self.ports[port].send(&mut self.bufs, frame, &slot.counters),
            TxPlacement::Worker(worker) => self.handoff.give(worker, frame, &self.worker),
            TxPlacement::None => slot.counters.no_port.add(frame.len() as u64),
        }
        frame.drain().for_each(|d| self.bufs.free(d));
    }

    #[inline]
    pub(crate) fn trace_node(&mut self, node: usize, frame: &mut Frame) {
        if self.tracer.active {
            self.tracer
                .visit(&self.pool, node as u16, 0, frame.packets_mut());
        }
    }

    #[inline]
    pub(crate) fn trace_receive(&mut self, interface: u16, packets: &mut [Desc]) {
        if self.tracer.active {
            self.tracer
                .visit(&self.pool, Record::INTERFACE_RX, interface, packets);
        }
    }

    #[inline]
    fn trace_transmit(&mut self, interface: usize) {
        if self.tracer.active {
            let frame = &mut self.transmit[interface].frame;
            self.tracer.visit(
                &self.pool,
                Record::INTERFACE_TX,
                interface as u16,
                frame.packets_mut(),
            );
        }
    }
}
