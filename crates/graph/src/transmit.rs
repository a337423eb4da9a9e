//! Packets on their way out of a worker's graph: by its ports, or to other workers.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::counters::{InterfaceCounters, WorkerCounters};
use crate::trace::{Record, Tracer};
use crate::{Buffers, Desc, Frame, Handoff, PortId, WorkerPort};

/// Which worker sends what leaves by a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TxPlacement {
    /// None: the packets are lost.
    None,
    /// This worker, by its queue of this index.
    Queue(usize),
    /// The worker of this index.
    Worker(usize),
}

/// Packets that wait to leave by one port.
struct Waiting {
    frame: Frame,
    placement: TxPlacement,
}

/// The packets that wait to leave, and the ports that they leave by.
pub(crate) struct Transmit {
    /// By interface: the port that its packets leave by, or 0.
    egress: Box<[PortId]>,
    /// By port, up to the highest number in use. What waits for port 0 is lost.
    waiting: Vec<Waiting>,
    /// Ports that packets wait for.
    outgoing: Vec<PortId>,
    /// By interface.
    counters: Arc<[InterfaceCounters]>,
    /// The queues that this worker serves.
    queues: Vec<WorkerPort>,
    handoff: Handoff,
}

impl Transmit {
    /// No packets and no ports, for interfaces 0 to `interfaces` - 1 and as many ports.
    pub(crate) fn new(interfaces: usize) -> Self {
        let mut transmit = Transmit {
            egress: vec![0; interfaces].into(),
            waiting: Vec::new(),
            outgoing: Vec::new(),
            counters: (0..interfaces).map(|_| Default::default()).collect(),
            queues: Vec::new(),
            handoff: Handoff::default(),
        };
        transmit.know(0);
        transmit
    }

    /// Makes room for packets that leave by `port`. False if there are more interfaces than that.
    fn know(&mut self, port: PortId) -> bool {
        let known = usize::from(port) < self.egress.len().max(1);
        if known {
            let none = || Waiting {
                frame: Frame::default(),
                placement: TxPlacement::None,
            };
            let ports = self.waiting.len().max(usize::from(port) + 1);
            self.waiting.resize_with(ports, none);
            self.outgoing.reserve(ports);
        }
        known
    }

    /// Counters of an interface; those of interface 0 for one that does not exist.
    #[inline]
    pub(crate) fn counters(&self, interface: u16) -> &InterfaceCounters {
        &self.counters[known(interface, self.counters.len())]
    }

    /// Counters of all interfaces, in order.
    pub(crate) fn all_counters(&self) -> Arc<[InterfaceCounters]> {
        self.counters.clone()
    }

    /// The port that an interface's packets leave by.
    #[inline]
    pub(crate) fn port(&self, interface: u16) -> PortId {
        self.egress[known(interface, self.egress.len())]
    }

    /// Tries to queue the whole frame by exchanging frames. False, with the frame as it was, if its
    /// packets leave by several interfaces, or by a port that packets wait for already.
    #[inline]
    pub(crate) fn swap(&mut self, frame: &mut Frame) -> bool {
        let Some(to) = frame.packets().first().map(Desc::tx_if) else {
            return true;
        };
        let port = self.port(to);
        let waiting = &mut self.waiting[usize::from(port)].frame;
        if !waiting.is_empty() || frame.packets().iter().any(|d| d.tx_if() != to) {
            return false;
        }
        std::mem::swap(waiting, frame);
        self.outgoing.push(port);
        true
    }

    /// Queues packets from the front of `run` that leave by the same interface, as many as there is
    /// room for. Returns how many: 0 if what waits has to be sent first.
    ///
    /// # Safety
    /// The caller owns the packets, and no longer uses the originals of those that were taken.
    pub(crate) unsafe fn append(&mut self, run: &[Desc]) -> usize {
        let Some(to) = run.first().map(Desc::tx_if) else {
            return 0;
        };
        let same = run.iter().take_while(|d| d.tx_if() == to).count();
        let port = self.port(to);
        let waiting = &mut self.waiting[usize::from(port)].frame;
        if waiting.is_empty() {
            self.outgoing.push(port);
        }
        // SAFETY: the caller owns the packets, and gives up the originals of those whose number
        // this returns.
        unsafe { waiting.append(&run[..same]) }
    }

    /// The next port that has packets to [`send`](Self::send).
    #[inline]
    pub(crate) fn next(&mut self) -> Option<PortId> {
        self.outgoing.pop()
    }

    /// Gives the packets that wait for `port` to its queue here, or to the worker that has one.
    /// Packets that are not taken are lost.
    pub(crate) fn send(
        &mut self,
        port: PortId,
        bufs: &mut Buffers,
        tracer: &mut Tracer,
        worker: &WorkerCounters,
    ) {
        let waiting = &mut self.waiting[usize::from(port)];
        let frame = &mut waiting.frame;
        // It overflowed and was sent before its turn.
        if frame.is_empty() {
            return;
        }
        if tracer.active {
            let node = Record::INTERFACE_TX;
            tracer.visit(bufs.pool(), node, Desc::tx_if, frame.packets_mut());
        }
        match waiting.placement {
            TxPlacement::Queue(queue) => {
                let queue = &mut self.queues[queue];
                queue.send(bufs, frame, &self.counters[usize::from(queue.interface)]);
            }
            TxPlacement::Worker(to) => self.handoff.transmit(to, frame, worker),
            TxPlacement::None => {
                for d in frame.packets() {
                    let to = known(d.tx_if(), self.counters.len());
                    self.counters[to].no_port.add(1);
                }
            }
        }
        frame.drain().for_each(|d| bufs.free(d));
    }

    /// Changes which worker sends what leaves by a port.
    pub(crate) fn place(&mut self, port: PortId, placement: TxPlacement) {
        if port != 0 && self.know(port) {
            self.waiting[usize::from(port)].placement = placement;
        }
    }

    /// Changes the port that an interface's packets leave by; 0 for none.
    pub(crate) fn set_egress(&mut self, interface: u16, port: PortId) {
        if self.know(port)
            && let Some(egress) = self.egress.get_mut(usize::from(interface))
        {
            *egress = port;
        }
    }

    /// Takes over a queue of a port, which from now on sends what leaves by it if no other queue of
    /// this worker does; its interface's packets leave by it. Gives it back if there is no such
    /// interface or port.
    ///
    /// The first one sends and not the last: a device may have fewer queues to send by than to
    /// receive from.
    pub(crate) fn add(&mut self, queue: WorkerPort) -> Result<(), WorkerPort> {
        let exists = usize::from(queue.interface) < self.egress.len();
        if !exists || queue.id == 0 || !self.know(queue.id) {
            return Err(queue);
        }
        self.set_egress(queue.interface, queue.id);
        let placement = &mut self.waiting[usize::from(queue.id)].placement;
        if !matches!(placement, TxPlacement::Queue(_)) {
            *placement = TxPlacement::Queue(self.queues.len());
        }
        self.queues.push(queue);
        Ok(())
    }

    /// Gives up a queue of `port`, if there is one left.
    pub(crate) fn remove(&mut self, port: PortId) -> Option<WorkerPort> {
        let i = self.queues.iter().position(|q| q.id == port)?;
        let removed = self.queues.swap_remove(i);
        // The last queue has moved into its place, and the port may have another one.
        for (id, waiting) in (0..).zip(&mut self.waiting) {
            if let TxPlacement::Queue(_) = waiting.placement {
                let queue = self.queues.iter().position(|q| q.id == id);
                waiting.placement = queue.map_or(TxPlacement::None, TxPlacement::Queue);
            }
        }
        Some(removed)
    }

    /// The queues that this worker serves, in the order of their indices.
    #[inline]
    pub(crate) fn queues(&mut self) -> &mut [WorkerPort] {
        &mut self.queues
    }

    /// Joins the other workers.
    pub(crate) fn join(&mut self, handoff: Handoff) {
        self.handoff = handoff;
    }

    /// The rings from and to other workers.
    #[inline]
    pub(crate) fn handoff(&mut self) -> &mut Handoff {
        &mut self.handoff
    }
}

/// Index of an interface. Packets for one that does not exist, a mistake of a node, are lost on
/// interface 0, which has no port.
#[inline]
fn known(interface: u16, interfaces: usize) -> usize {
    let interface = usize::from(interface);
    debug_assert!(
        interface < interfaces,
        "interface {interface} of {interfaces}"
    );
    if interface < interfaces { interface } else { 0 }
}
