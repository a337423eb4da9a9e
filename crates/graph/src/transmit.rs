//! Packets on their way out of a worker's graph: by its ports, or to other workers.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::counters::{InterfaceCounters, WorkerCounters};
use crate::trace::{Record, Tracer};
use crate::{Buffers, Desc, Frame, Handoff, WorkerPort};

/// Which worker sends an interface's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TxPlacement {
    /// None: the interface has no port, and its packets are lost.
    None,
    /// This worker, by its port of this index.
    Port(usize),
    /// The worker of this index.
    Worker(usize),
}

/// Packets for one interface.
struct Queue {
    frame: Frame,
    placement: TxPlacement,
    counters: Arc<InterfaceCounters>,
}

/// The packets that wait to leave, and the ports that they leave by.
pub(crate) struct Transmit {
    queues: Vec<Queue>,
    /// Interfaces with packets in their frame.
    outgoing: Vec<u16>,
    ports: Vec<WorkerPort>,
    handoff: Handoff,
}

impl Transmit {
    /// No packets and no ports, for interfaces 0 to `interfaces` - 1.
    pub(crate) fn new(interfaces: usize) -> Self {
        let queue = |_| Queue {
            frame: Frame::default(),
            placement: TxPlacement::None,
            counters: Arc::default(),
        };
        Transmit {
            queues: (0..interfaces).map(queue).collect(),
            outgoing: Vec::with_capacity(interfaces),
            ports: Vec::with_capacity(interfaces),
            handoff: Handoff::default(),
        }
    }

    /// Counters of an interface.
    #[inline]
    pub(crate) fn counters(&self, interface: u16) -> &InterfaceCounters {
        &self.queues[self.known(interface)].counters
    }

    /// Counters of all interfaces, in order.
    pub(crate) fn all_counters(&self) -> Vec<Arc<InterfaceCounters>> {
        self.queues.iter().map(|q| q.counters.clone()).collect()
    }

    /// Index of an interface. Packets for one that does not exist, a mistake of a node, are lost on
    /// interface 0, which has no port.
    #[inline]
    fn known(&self, interface: u16) -> usize {
        let (interface, interfaces) = (usize::from(interface), self.queues.len());
        debug_assert!(
            interface < interfaces,
            "interface {interface} of {interfaces}"
        );
        if interface < interfaces { interface } else { 0 }
    }

    /// Tries to queue the whole frame by exchanging frames. False, with the frame as it was, if its
    /// packets leave by several interfaces, or by one that has packets already.
    #[inline]
    pub(crate) fn swap(&mut self, frame: &mut Frame) -> bool {
        let Some(to) = frame.packets().first().map(Desc::tx_if) else {
            return true;
        };
        let interface = self.known(to);
        if !self.queues[interface].frame.is_empty()
            || frame.packets().iter().any(|d| d.tx_if() != to)
        {
            return false;
        }
        std::mem::swap(&mut self.queues[interface].frame, frame);
        self.outgoing.push(interface as u16);
        true
    }

    /// Queues packets from the front of `run` that leave by the same interface, as many as there is
    /// room for. Returns how many: 0 if the interface has to send first.
    ///
    /// # Safety
    /// The caller owns the packets, and no longer uses the originals of those that were taken.
    pub(crate) unsafe fn append(&mut self, run: &[Desc]) -> usize {
        let Some(to) = run.first().map(Desc::tx_if) else {
            return 0;
        };
        let same = run.iter().take_while(|d| d.tx_if() == to).count();
        let interface = self.known(to);
        let queue = &mut self.queues[interface];
        if queue.frame.is_empty() {
            self.outgoing.push(interface as u16);
        }
        // SAFETY: the caller owns the packets, and gives up the originals of those whose number
        // this returns.
        unsafe { queue.frame.append(&run[..same]) }
    }

    /// The next interface that has packets to [`send`](Self::send).
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u16> {
        self.outgoing.pop()
    }

    /// Gives the packets for `interface` to its port, or to the worker that has the port. Packets
    /// that are not taken are lost.
    pub(crate) fn send(
        &mut self,
        interface: u16,
        bufs: &mut Buffers,
        tracer: &mut Tracer,
        worker: &WorkerCounters,
    ) {
        let interface = self.known(interface);
        let queue = &mut self.queues[interface];
        let frame = &mut queue.frame;
        // It overflowed and was sent before its turn.
        if frame.is_empty() {
            return;
        }
        if tracer.active {
            let node = Record::INTERFACE_TX;
            tracer.visit(bufs.pool(), node, interface as u16, frame.packets_mut());
        }
        match queue.placement {
            TxPlacement::Port(port) => self.ports[port].send(bufs, frame, &queue.counters),
            TxPlacement::Worker(to) => self.handoff.transmit(to, frame, worker),
            TxPlacement::None => queue.counters.no_port.add(frame.len() as u64),
        }
        frame.drain().for_each(|d| bufs.free(d));
    }

    /// Changes which worker sends the packets of an interface.
    pub(crate) fn place(&mut self, interface: u16, placement: TxPlacement) {
        if let Some(queue) = self.queues.get_mut(usize::from(interface)) {
            queue.placement = placement;
        }
    }

    /// Takes over a port, which from now on sends its interface's packets if no other port of this
    /// worker does. Gives it back if there is no such interface.
    ///
    /// The first one sends and not the last: a device may have fewer queues to send by than to
    /// receive from.
    pub(crate) fn add(&mut self, port: WorkerPort) -> Result<(), WorkerPort> {
        let Some(queue) = self.queues.get_mut(usize::from(port.interface)) else {
            return Err(port);
        };
        if !matches!(queue.placement, TxPlacement::Port(_)) {
            queue.placement = TxPlacement::Port(self.ports.len());
        }
        self.ports.push(port);
        Ok(())
    }

    /// Gives up a port of `interface`, if there is one left.
    pub(crate) fn remove(&mut self, interface: u16) -> Option<WorkerPort> {
        let i = self.ports.iter().position(|p| p.interface == interface)?;
        let port = self.ports.swap_remove(i);
        // The last port has moved into its place, and the interface may have another one.
        for (i, queue) in (0..).zip(&mut self.queues) {
            if let TxPlacement::Port(_) = queue.placement {
                let port = self.ports.iter().position(|p| p.interface == i);
                queue.placement = port.map_or(TxPlacement::None, TxPlacement::Port);
            }
        }
        Some(port)
    }

    /// The ports, in the order of their indices.
    #[inline]
    pub(crate) fn ports(&mut self) -> &mut [WorkerPort] {
        &mut self.ports
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
