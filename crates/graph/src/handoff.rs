//! Packets for other workers: a ring from each worker to each other one.
//!
//! The sender says where a packet goes on at the other worker: out of its interface, or at a node.
//! A ring holds nothing but 16-byte descriptors; a descriptor without a packet says where those
//! behind it go.

use std::sync::Arc;

use crate::counters::WorkerCounters;
use crate::ring::{Consumer, Producer};
use crate::waker::Waker;
use crate::{Buffers, Desc, FRAME, Frame};

/// Place where a packet goes on at the worker that it was handed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Destination {
    /// Out of its interface.
    Transmit,
    /// To the node of this index.
    Node(u16),
}

/// One worker's rings to the others and from them. The default has none: the worker is alone.
#[derive(Default)]
pub struct Handoff {
    /// By worker; none to itself.
    outbound: Vec<Option<Outbound>>,
    inbound: Vec<Inbound>,
    /// Workers for whose nodes packets wait.
    waiting: Vec<usize>,
}

struct Outbound {
    sender: Sender,
    /// Packets for node `node` of the other worker, until they are flushed.
    packets: Frame,
    node: u16,
}

/// The writing end of a ring to another worker.
struct Sender {
    ring: Producer<Desc>,
    waker: Arc<Waker>,
    /// The destination of the packet that is put into the ring next.
    destination: Destination,
}

struct Inbound {
    ring: Consumer<Desc>,
    /// The destination of the packet that comes out of the ring next.
    destination: Destination,
}

impl Handoff {
    /// Rings of `size` packets between `wakers.len()` workers, each to each; element n is worker
    /// n's side. The workers' graphs must have the same nodes in the same order.
    pub fn mesh(wakers: &[Arc<Waker>], size: usize) -> Vec<Handoff> {
        let mut all: Vec<Handoff> = wakers.iter().map(|_| Handoff::default()).collect();
        for from in 0..wakers.len() {
            // Here, so that the worker itself never allocates.
            all[from].waiting.reserve(wakers.len());
            for (to, waker) in wakers.iter().enumerate() {
                if from == to {
                    all[from].outbound.push(None);
                    continue;
                }
                let (producer, consumer) = crate::ring::ring(size);
                let sender = Sender {
                    ring: producer,
                    waker: waker.clone(),
                    destination: Destination::Transmit,
                };
                all[from].outbound.push(Some(Outbound {
                    sender,
                    packets: Frame::default(),
                    node: 0,
                }));
                all[to].inbound.push(Inbound {
                    ring: consumer,
                    destination: Destination::Transmit,
                });
            }
        }
        all
    }

    /// The number of workers, this one included.
    pub(crate) fn workers(&self) -> usize {
        self.outbound.len().max(1)
    }

    /// Gives `worker` packets to transmit; packets that find its ring full stay in the frame.
    pub(crate) fn transmit(&mut self, worker: usize, frame: &mut Frame, counters: &WorkerCounters) {
        if let Some(Some(to)) = self.outbound.get_mut(worker) {
            to.sender.give(Destination::Transmit, frame, counters);
        } else {
            counters.handoff_full.add(frame.len() as u64);
        }
    }

    /// Keeps a packet for node `node` of `worker` until the next [`flush`](Self::flush), at most a
    /// frame of them. Gives it back if that is this worker.
    ///
    /// # Panics
    /// Panics if there is no such worker.
    pub(crate) fn hand_over(
        &mut self,
        worker: usize,
        node: u16,
        d: Desc,
        bufs: &mut Buffers,
        counters: &WorkerCounters,
    ) -> Result<(), Desc> {
        assert!(
            worker < self.workers(),
            "worker {worker} of {}",
            self.workers()
        );
        let Some(Some(to)) = self.outbound.get_mut(worker) else {
            return Err(d);
        };
        // All packets of a frame have one destination, which goes through the ring once.
        if to.packets.room() == 0 || to.node != node {
            to.flush(bufs, counters);
        }
        to.node = node;
        if to.packets.is_empty() && !self.waiting.contains(&worker) {
            self.waiting.push(worker);
        }
        to.packets.put(d);
        Ok(())
    }

    /// Gives away the packets for nodes of other workers. Those that find a ring full are lost.
    #[inline]
    pub(crate) fn flush(&mut self, bufs: &mut Buffers, counters: &WorkerCounters) {
        while let Some(worker) = self.waiting.pop() {
            if let Some(Some(to)) = self.outbound.get_mut(worker) {
                to.flush(bufs, counters);
            }
        }
    }

    /// The number of rings from other workers.
    pub(crate) fn inbound(&self) -> usize {
        self.inbound.len()
    }

    /// The next packet that came by ring `ring`, and where it goes.
    #[inline]
    pub(crate) fn take(&mut self, ring: usize) -> Option<(Destination, Desc)> {
        let from = &mut self.inbound[ring];
        loop {
            let d = from.ring.pop()?;
            // A vacant descriptor is no packet: it says where those behind it go.
            if !d.is_vacant() {
                return Some((from.destination, d));
            }
            from.destination = match d.argument() {
                0 => Destination::Transmit,
                node => Destination::Node((node - 1) as u16),
            };
        }
    }

    /// True if nothing waits in the rings from other workers.
    pub(crate) fn is_empty(&mut self) -> bool {
        self.inbound.iter_mut().all(|from| from.ring.is_empty())
    }
}

impl Outbound {
    fn flush(&mut self, bufs: &mut Buffers, counters: &WorkerCounters) {
        let to = Destination::Node(self.node);
        self.sender.give(to, &mut self.packets, counters);
        self.packets.drain().for_each(|d| bufs.free(d));
    }
}

impl Sender {
    /// Puts packets into the ring and wakes the worker; those without room stay in the frame.
    fn give(&mut self, to: Destination, frame: &mut Frame, counters: &WorkerCounters) {
        if to != self.destination && self.ring.push(sign(to)).is_ok() {
            self.destination = to;
        }
        if to == self.destination {
            let taken = frame.offer(FRAME, |batch| _ = self.ring.fill(batch));
            counters.handoffs.add(taken as u64);
        }
        self.waker.wake();
        counters.handoff_full.add(frame.len() as u64);
    }
}

/// A descriptor without a packet, which says where those behind it go.
fn sign(to: Destination) -> Desc {
    let mut sign = Desc::VACANT;
    sign.set_argument(match to {
        Destination::Transmit => 0,
        Destination::Node(node) => u32::from(node) + 1,
    });
    sign
}
