//! The dispatch of packets along edges, with counters and trace.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::time::Duration;

use crate::counters::{NodeCounters, WorkerCounters};
use crate::queues::Queues;
use crate::targets::{Target, Targets};
use crate::trace::Tracer;
use crate::transmit::{Transmit, Way};
use crate::{Buffers, Desc, FRAME, Frame, Pool};

mod ports;

/// The queues between the nodes and behind them, and what a worker's nodes share.
///
/// Its frames hold packets of one pool: packets are checked where they come in, from ports, from
/// other workers and from nodes that make them.
pub struct Out {
    bufs: Buffers,
    /// The pool of all packets in the frames, even if a node or port exchanges `bufs`.
    pool: Arc<Pool>,
    /// TSC at the start of this round.
    now: u64,
    /// In TSC cycles.
    millisecond: u64,
    /// The node that runs.
    current: usize,
    targets: Targets,
    counters: Vec<Arc<NodeCounters>>,
    worker: Arc<WorkerCounters>,
    queues: Queues,
    transmit: Transmit,
    tracer: Tracer,
}

impl Out {
    pub(crate) fn new(
        bufs: Buffers,
        targets: Targets,
        counters: Vec<Arc<NodeCounters>>,
        interfaces: usize,
        worker: Arc<WorkerCounters>,
    ) -> Self {
        Out {
            pool: bufs.share(),
            bufs,
            now: crate::cycles::now(),
            millisecond: crate::cycles::of(Duration::from_millis(1)),
            current: 0,
            queues: Queues::new(targets.nodes()),
            transmit: Transmit::new(interfaces),
            targets,
            counters,
            worker,
            tracer: Tracer::default(),
        }
    }

    pub(crate) fn bufs(&self) -> &Buffers {
        &self.bufs
    }
    #[inline]
    pub(crate) fn bufs_mut(&mut self) -> &mut Buffers {
        &mut self.bufs
    }
    #[inline]
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.now
    }
    #[inline]
    pub(crate) fn millisecond(&self) -> u64 {
        self.millisecond
    }
    pub(crate) fn worker(&self) -> &Arc<WorkerCounters> {
        &self.worker
    }
    pub(crate) fn node_counters(&self) -> &[Arc<NodeCounters>] {
        &self.counters
    }
    /// Packets that leave this worker, and its ports.
    #[inline]
    pub(crate) fn transmit(&mut self) -> &mut Transmit {
        &mut self.transmit
    }

    pub(crate) fn tracer(&mut self) -> &mut Tracer {
        &mut self.tracer
    }

    /// Begins a round at TSC `now`.
    #[inline]
    pub(crate) fn begin(&mut self, now: u64) {
        self.now = now;
    }

    /// Makes `node` the current one.
    #[inline]
    pub(crate) fn enter(&mut self, node: usize) {
        self.current = node;
    }

    /// Moves the packets of the first node that has any into `work`, and makes that node the
    /// current one.
    #[inline]
    pub(crate) fn next_node(&mut self, work: &mut Frame) -> Option<usize> {
        let node = self.queues.take(work)?;
        if self.tracer.active {
            let packets = work.packets_mut();
            self.tracer.visit(&self.pool, node as u16, |_| 0, packets);
        }
        self.current = node;
        Some(node)
    }

    /// Counts a call of the current node with `packets` packets that began at TSC `start`. Returns
    /// the TSC now.
    #[inline]
    pub(crate) fn count_call(&self, packets: u64, start: u64) -> u64 {
        let now = crate::cycles::now();
        let node = &self.counters[self.current];
        node.calls.add(1);
        node.packets.add(packets);
        node.clocks.add(now.wrapping_sub(start));
        now
    }

    /// Sends the whole frame along `edge` of the current node.
    #[inline]
    pub(crate) fn all(&mut self, edge: u8, frame: &mut Frame) {
        self.count(edge, frame.len());
        let mut target = self.target(edge);
        // Packets of one interface take one way along an arc, and a frame is mostly of one.
        if let Target::Arc { arc, from } = target
            && let [first, ..] = frame.packets()
            && self.targets.together(arc, frame.packets()) == frame.len()
        {
            target = self.targets.next(arc, from, first);
        }
        match target {
            Target::Node(to) => self.enqueue(to, frame),
            Target::Interface => self.leave(Way::Interface, frame),
            Target::Port => self.leave(Way::Port, frame),
            // SAFETY: the frame is emptied below.
            Target::Arc { arc, from } => unsafe { self.arc_run(arc, from, edge, frame.packets()) },
            // SAFETY: the frame is emptied below.
            Target::Drop => unsafe { self.drop_run(edge, frame.packets()) },
        }
        frame.clear();
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
            self.count(edge, to - from);
            // SAFETY: each packet is in one run, and the frame is emptied below.
            unsafe { self.dispatch(edge, &packets[from..to]) };
            from = to;
        }
        frame.clear();
    }

    /// Sends one packet along `edge` of the current node.
    ///
    /// # Panics
    /// Panics if it is of another pool than the graph's.
    pub(crate) fn push(&mut self, edge: u8, d: Desc) {
        self.pool.index(&d);
        self.count(edge, 1);
        // SAFETY: d is ours and ends here.
        unsafe { self.dispatch(edge, std::slice::from_ref(&d)) };
    }

    /// Sends one packet along `edge` of the current node, but at `worker`, if it leads to a node.
    ///
    /// # Panics
    /// As [`Out::push`], and when there is no such worker.
    pub(crate) fn hand_over(&mut self, worker: usize, edge: u8, d: Desc) {
        let target = match self.target(edge) {
            Target::Arc { arc, from } => self.targets.next(arc, from, &d),
            other => other,
        };
        let Target::Node(node) = target else {
            return self.push(edge, d);
        };
        self.pool.index(&d);
        let (bufs, counters) = (&mut self.bufs, &*self.worker);
        let handoff = self.transmit.handoff();
        match handoff.hand_over(worker, node, d, bufs, counters) {
            Ok(()) => self.count(edge, 1),
            Err(d) => self.push(edge, d),
        }
    }

    /// Counts packets under `edge` of the current node.
    #[inline]
    pub(crate) fn count(&self, edge: u8, packets: usize) {
        self.counters[self.current].edges[edge as usize].add(packets as u64);
    }

    #[inline]
    fn target(&self, edge: u8) -> Target {
        self.targets.of(self.current, edge)
    }

    /// # Safety
    /// The originals in `run` must not be used again.
    #[inline]
    unsafe fn dispatch(&mut self, edge: u8, run: &[Desc]) {
        // SAFETY: nobody uses the originals again: a frame is cleared behind its last run, and
        // `push` has the packet by value.
        unsafe { self.deliver(self.target(edge), edge, run) };
    }

    /// # Safety
    /// The originals in `run` must not be used again.
    #[inline]
    unsafe fn deliver(&mut self, target: Target, edge: u8, run: &[Desc]) {
        match target {
            // SAFETY: each run goes one way, and `dispatch` was given it to use up. So in all arms.
            Target::Node(node) => unsafe { self.enqueue_run(node, run) },
            // SAFETY: as above.
            Target::Arc { arc, from } => unsafe { self.arc_run(arc, from, edge, run) },
            // SAFETY: as above.
            Target::Interface => unsafe { self.leave_run(Way::Interface, run) },
            // SAFETY: as above.
            Target::Port => unsafe { self.leave_run(Way::Port, run) },
            // SAFETY: as above.
            Target::Drop => unsafe { self.drop_run(edge, run) },
        }
    }

    /// Sends packets to the features of an arc that they are to pass next, by runs.
    ///
    /// # Safety
    /// The originals in `run` must not be used again.
    #[cold]
    unsafe fn arc_run(&mut self, arc: u8, from: u8, edge: u8, run: &[Desc]) {
        let mut rest = run;
        while let [first, ..] = rest {
            let target = self.targets.next(arc, from, first);
            let n = self.targets.together(arc, rest);
            // SAFETY: `deliver` was given `run` to use up, and each packet is in one part of it.
            unsafe { self.deliver(target, edge, &rest[..n]) };
            rest = &rest[n..];
        }
    }

    /// Queues the whole frame for a node.
    #[inline]
    fn enqueue(&mut self, to: u16, frame: &mut Frame) {
        if !self.queues.swap(to, frame) {
            // SAFETY: the frame is emptied at once.
            unsafe { self.enqueue_run(to, frame.packets()) };
        }
        frame.clear();
    }

    /// # Safety
    /// The originals in `run` must not be used again.
    #[inline]
    unsafe fn enqueue_run(&mut self, to: u16, run: &[Desc]) {
        // SAFETY: `deliver` and `enqueue` give up all originals; those that the queue does not take
        // are lost below, so each has one end.
        let n = unsafe { self.queues.append(to, run) };
        if n < run.len() {
            // SAFETY: given up as above, and not taken by the queue.
            unsafe { self.lose(&run[n..]) };
        }
    }

    /// Frees packets that found no room in front of a node.
    ///
    /// # Safety
    /// The originals in `run` must not be used again.
    #[cold]
    unsafe fn lose(&mut self, run: &[Desc]) {
        self.worker.queue_full.add(run.len() as u64);
        for d in run {
            // SAFETY: `enqueue_run` was given it to use up, and the queue has not taken it.
            let d = unsafe { d.duplicate() };
            self.bufs.free(d);
        }
    }

    /// Queues the whole frame to leave, and empties it.
    #[inline]
    fn leave(&mut self, way: Way, frame: &mut Frame) {
        if !self.transmit.swap(way, frame) {
            // SAFETY: the frame is emptied at once.
            unsafe { self.leave_run(way, frame.packets()) };
        }
        frame.clear();
    }

    /// # Safety
    /// The originals in `run` must not be used again.
    unsafe fn leave_run(&mut self, way: Way, run: &[Desc]) {
        let mut rest = run;
        while let Some(first) = rest.first() {
            // SAFETY: `deliver` and `leave` give up all originals; what was taken is not in the
            // rest.
            match unsafe { self.transmit.append(way, rest) } {
                0 => self.send(self.transmit.exit(way, first.tx_if())),
                n => rest = &rest[n..],
            }
        }
    }

    /// # Safety
    /// The originals in `run` must not be used again.
    #[cold]
    unsafe fn drop_run(&mut self, edge: u8, run: &[Desc]) {
        for d in run {
            self.transmit.counters(d.rx_if).drops.add(1);
            if self.tracer.active {
                let node = self.current as u16;
                self.tracer.dropped(&self.pool, node, edge, d);
            }
            // SAFETY: `deliver` was given it to use up, and it goes nowhere else.
            let d = unsafe { d.duplicate() };
            self.bufs.free(d);
        }
    }
}
