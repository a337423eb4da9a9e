//! Packets that enter and leave a worker's graph: by ports, and from and to other workers.

use super::Out;
use crate::handoff::Destination;
use crate::trace::Record;
use crate::transmit::{Exit, Way};
use crate::{FRAME, Flag, Frame, PortId, WorkerPort};

impl Out {
    /// Gives the packets that wait at `exit` to the queue of its port here, to the worker that has
    /// one, or to the node that packets pass before their port.
    pub(super) fn send(&mut self, exit: Exit) {
        let Some((node, frame)) = self.transmit.for_node(exit) else {
            let (bufs, tracer) = (&mut self.bufs, &mut self.tracer);
            return self.transmit.send(exit, bufs, tracer, &self.worker);
        };
        if self.queues.swap(node, frame) {
            return;
        }
        // SAFETY: the frame is emptied below, and those that were taken are skipped.
        let taken = unsafe { self.queues.append(node, frame.packets()) };
        for d in frame.drain().skip(taken) {
            self.worker.queue_full.add(1);
            self.bufs.free(d);
        }
    }

    /// Gives away all packets that wait to leave. True if nodes have packets then.
    #[inline]
    pub(crate) fn send_all(&mut self) -> bool {
        while let Some(exit) = self.transmit.next() {
            self.send(exit);
        }
        self.transmit.handoff().flush(&mut self.bufs, &self.worker);
        !self.queues.is_empty()
    }

    /// Receives from queue `queue`, by way of `frame`, which is empty. Returns how many packets.
    ///
    /// # Panics
    /// Panics if the port gave packets of another pool.
    #[inline]
    pub(crate) fn receive(&mut self, queue: usize, frame: &mut Frame) -> usize {
        let start = crate::cycles::now();
        let port = &mut self.transmit.queues()[queue];
        let (interface, entry) = (port.interface, port.first.unwrap_or(port.entry));
        port.port.rx(&mut self.bufs, frame);
        let n = frame.len();
        if n == 0 {
            return 0;
        }
        let packets = frame.packets_mut();
        let (mut any, mut all) = (0, u32::MAX);
        for d in packets.iter_mut() {
            d.rx_if = interface;
            any |= d.buf;
            all &= d.buf;
        }
        if !self.pool.owns(any, all) {
            crate::pool::foreign();
        }
        let counters = self.transmit.counters(interface);
        counters.rx_calls.add(1);
        counters.rx_packets.add(n as u64);
        let bytes = crate::worker_port::size(&self.pool, packets);
        counters.rx_bytes.add(bytes);
        let clocks = crate::cycles::now().wrapping_sub(start);
        counters.rx_clocks.add(clocks);
        if self.tracer.active {
            let node = Record::INTERFACE_RX;
            self.tracer.visit(&self.pool, node, |d| d.rx_if, packets);
        }
        self.enqueue(entry, frame);
        n
    }

    /// Takes at most [`FRAME`] packets from ring `ring` to where they go. Returns how many.
    ///
    /// # Panics
    /// Panics if the other worker has another pool.
    pub(crate) fn take_over(&mut self, ring: usize) -> usize {
        let mut moved = 0;
        while moved < FRAME
            && let Some((destination, mut d)) = self.transmit.handoff().take(ring)
        {
            moved += 1;
            self.pool.index(&d);
            // The other worker traced it, up to here.
            d.unmark(Flag::TRACED);
            let run = std::slice::from_ref(&d);
            match destination {
                // SAFETY: d is ours and ends here.
                Destination::Transmit => unsafe { self.leave_run(Way::Port, run) },
                // SAFETY: d is ours and ends here.
                Destination::Node(node) => unsafe { self.enqueue_run(node, run) },
            }
        }
        moved
    }

    /// Flushes the ports that have been given packets.
    #[inline]
    pub(crate) fn flush_ports(&mut self) {
        for port in self.transmit.queues() {
            if port.outstanding {
                port.outstanding = false;
                port.port.flush(&mut self.bufs);
            }
        }
    }

    /// Changes the node that an interface's packets pass before its port; ignores a node that does
    /// not exist.
    pub(crate) fn set_output(&mut self, interface: u16, node: Option<u16>) {
        if node.is_none_or(|node| usize::from(node) < self.targets.nodes()) {
            self.transmit.set_output(interface, node);
        }
    }

    /// Changes the node that an interface's packets enter first; ignores a node that does not exist.
    pub(crate) fn set_input(&mut self, interface: u16, node: Option<u16>) {
        if node.is_none_or(|node| usize::from(node) < self.targets.nodes()) {
            self.transmit.set_input(interface, node);
        }
    }

    /// Takes over a queue of a port. Gives it back if its interface, its port or its entry node does
    /// not exist.
    pub(crate) fn add_port(&mut self, port: WorkerPort) -> Result<(), WorkerPort> {
        if usize::from(port.entry) >= self.targets.nodes() {
            return Err(port);
        }
        self.transmit.add(port)?;
        if let Some(queue) = self.transmit.queues().last_mut() {
            queue.port.fill(&mut self.bufs);
        }
        Ok(())
    }

    /// Gives up a queue of `port`, drained, if there is one left.
    pub(crate) fn remove_port(&mut self, port: PortId) -> Option<WorkerPort> {
        let mut queue = self.transmit.remove(port)?;
        queue.port.drain(&mut self.bufs);
        Some(queue)
    }
}
