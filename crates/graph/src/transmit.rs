//! Packets on their way out of a worker's graph: by its ports, or to other workers.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::counters::{InterfaceCounters, WorkerCounters};
use crate::trace::{Record, Tracer};
use crate::{Buffers, Desc, Frame, Handoff, PortId, WorkerPort};

/// Choice of the worker that sends what leaves by a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TxPlacement {
    /// None: the packets are lost.
    None,
    /// This worker, by its queue of this index.
    Queue(usize),
    /// The worker of this index.
    Worker(usize),
}

/// Progress of packets on their way out of an interface.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    /// Before the node that its packets may have to pass.
    Interface,
    /// Behind it.
    Port,
}

/// Number of a place where packets wait to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit(u16);

impl Exit {
    /// No exit: packets that wait here are lost.
    const NONE: Exit = Exit(0);
    /// The node that packets pass before their port.
    const NODE: Exit = Exit(1);

    /// A port; 0 for none.
    const fn of(port: PortId) -> Exit {
        match port {
            0 => Exit::NONE,
            port => Exit(port + 1),
        }
    }

    #[inline]
    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Packets that wait to leave by one exit.
struct Waiting {
    frame: Frame,
    placement: TxPlacement,
}

/// The packets that wait to leave, and the ports that they leave by.
pub(crate) struct Transmit {
    /// By interface: where its packets leave, the port or the node before it.
    interfaces: Box<[Exit]>,
    /// By interface: the port that its packets leave by.
    ports: Box<[Exit]>,
    /// The node that packets pass before their port.
    node: u16,
    /// By interface: the node that its packets enter before that of their port.
    inputs: Box<[Option<u16>]>,
    /// By exit, up to that of the highest port in use.
    waiting: Vec<Waiting>,
    /// Exits that packets wait at.
    outgoing: Vec<Exit>,
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
            interfaces: vec![Exit::NONE; interfaces].into(),
            ports: vec![Exit::NONE; interfaces].into(),
            node: 0,
            inputs: vec![None; interfaces].into(),
            waiting: Vec::new(),
            outgoing: Vec::new(),
            counters: (0..interfaces).map(|_| Default::default()).collect(),
            queues: Vec::new(),
            handoff: Handoff::default(),
        };
        transmit.reserve(Exit::NODE);
        transmit
    }

    /// Makes room for packets that leave by `port`. False if its number is too high: there are as
    /// many ports as interfaces.
    fn know(&mut self, port: PortId) -> bool {
        let known = usize::from(port) < self.ports.len().max(1) && port < PortId::MAX;
        if known {
            self.reserve(Exit::of(port));
        }
        known
    }

    /// Makes room for packets that wait at an exit.
    fn reserve(&mut self, exit: Exit) {
        let none = || Waiting {
            frame: Frame::default(),
            placement: TxPlacement::None,
        };
        let exits = self.waiting.len().max(exit.index() + 1);
        self.waiting.resize_with(exits, none);
        self.outgoing.reserve(exits);
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

    /// Exit of an interface's packets.
    #[inline]
    pub(crate) fn exit(&self, way: Way, interface: u16) -> Exit {
        let exits = match way {
            Way::Interface => &self.interfaces,
            Way::Port => &self.ports,
        };
        exits[known(interface, exits.len())]
    }

    /// Tries to queue the whole frame by exchanging frames. False, with the frame as it was, if its
    /// packets leave by several interfaces, or by an exit that packets wait at already.
    #[inline]
    pub(crate) fn swap(&mut self, way: Way, frame: &mut Frame) -> bool {
        let Some(to) = frame.packets().first().map(Desc::tx_if) else {
            return true;
        };
        let exit = self.exit(way, to);
        let waiting = &mut self.waiting[exit.index()].frame;
        if !waiting.is_empty() || frame.packets().iter().any(|d| d.tx_if() != to) {
            return false;
        }
        std::mem::swap(waiting, frame);
        self.outgoing.push(exit);
        true
    }

    /// Queues packets from the front of `run` that leave by the same interface, as many as there is
    /// room for. Returns how many: 0 if what waits has to be sent first.
    ///
    /// # Safety
    /// The caller owns the packets, and no longer uses the originals of those that were taken.
    pub(crate) unsafe fn append(&mut self, way: Way, run: &[Desc]) -> usize {
        let Some(to) = run.first().map(Desc::tx_if) else {
            return 0;
        };
        let same = run.iter().take_while(|d| d.tx_if() == to).count();
        let exit = self.exit(way, to);
        let waiting = &mut self.waiting[exit.index()].frame;
        if waiting.is_empty() {
            self.outgoing.push(exit);
        }
        // SAFETY: `Out::leave_run` owns the packets, and goes on behind those that this has taken.
        unsafe { waiting.append(&run[..same]) }
    }

    /// The next exit that has packets to [`send`](Self::send).
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Exit> {
        self.outgoing.pop()
    }

    /// The packets that wait at an exit, if it is that of the node before the ports; and that node.
    #[inline]
    pub(crate) fn for_node(&mut self, exit: Exit) -> Option<(u16, &mut Frame)> {
        let waiting = &mut self.waiting[exit.index()];
        (exit == Exit::NODE).then_some((self.node, &mut waiting.frame))
    }

    /// Gives the packets that wait at `exit` to its port's queue here, or to the worker that has one.
    /// Packets that are not taken are lost.
    pub(crate) fn send(
        &mut self,
        exit: Exit,
        bufs: &mut Buffers,
        tracer: &mut Tracer,
        worker: &WorkerCounters,
    ) {
        let waiting = &mut self.waiting[exit.index()];
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
            self.waiting[Exit::of(port).index()].placement = placement;
        }
    }

    /// Changes the port that an interface's packets leave by; 0 for none.
    pub(crate) fn set_egress(&mut self, interface: u16, port: PortId) {
        let at = usize::from(interface);
        if at >= self.ports.len() || !self.know(port) {
            return;
        }
        self.ports[at] = Exit::of(port);
        if self.interfaces[at] != Exit::NODE {
            self.interfaces[at] = Exit::of(port);
        }
    }

    /// Changes the node that an interface's packets pass before its port.
    pub(crate) fn set_output(&mut self, interface: u16, node: Option<u16>) {
        let at = usize::from(interface);
        if at >= self.ports.len() {
            return;
        }
        self.node = node.unwrap_or(self.node);
        self.interfaces[at] = match node {
            Some(_) => Exit::NODE,
            None => self.ports[at],
        };
    }

    /// Changes the node that an interface's packets enter first.
    pub(crate) fn set_input(&mut self, interface: u16, node: Option<u16>) {
        let Some(input) = self.inputs.get_mut(usize::from(interface)) else {
            return;
        };
        *input = node;
        let own = self.queues.iter_mut().filter(|q| q.interface == interface);
        own.for_each(|queue| queue.first = node);
    }

    /// Takes over a queue of a port, which from now on sends what leaves by it if no other queue of
    /// this worker does; its interface's packets leave by it. Gives it back if there is no such
    /// interface or port.
    ///
    /// The first one sends and not the last: a device may have fewer queues to send by than to
    /// receive from.
    pub(crate) fn add(&mut self, mut queue: WorkerPort) -> Result<(), WorkerPort> {
        let exists = usize::from(queue.interface) < self.ports.len();
        if !exists || queue.id == 0 || !self.know(queue.id) {
            return Err(queue);
        }
        self.set_egress(queue.interface, queue.id);
        let placement = &mut self.waiting[Exit::of(queue.id).index()].placement;
        if !matches!(placement, TxPlacement::Queue(_)) {
            *placement = TxPlacement::Queue(self.queues.len());
        }
        queue.first = self.inputs[usize::from(queue.interface)];
        self.queues.push(queue);
        Ok(())
    }

    /// Gives up a queue of `port`, if there is one left.
    pub(crate) fn remove(&mut self, port: PortId) -> Option<WorkerPort> {
        let i = self.queues.iter().position(|q| q.id == port)?;
        let removed = self.queues.swap_remove(i);
        // The last queue has moved into its place, and the port may have another one.
        let moved = self.queues.len();
        for (exit, waiting) in (0..).map(Exit).zip(&mut self.waiting) {
            waiting.placement = match waiting.placement {
                TxPlacement::Queue(at) if at == i => {
                    let queue = self.queues.iter().position(|q| Exit::of(q.id) == exit);
                    queue.map_or(TxPlacement::None, TxPlacement::Queue)
                }
                TxPlacement::Queue(at) if at == moved => TxPlacement::Queue(i),
                other => other,
            };
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
