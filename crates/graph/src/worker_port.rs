//! The ports that a worker serves, and the rings to the ports that other workers serve.

use crate::counters::{InterfaceCounters, WorkerCounters};
use crate::ring::{Consumer, Producer};
use crate::waker::Waker;
use crate::{Buffers, Desc, FRAME, Frame, Pool, Port};
use std::sync::Arc;

/// A port with the interface that it is a queue of.
pub struct WorkerPort {
    /// The port.
    pub port: Box<dyn Port>,
    /// Its interface.
    pub interface: u16,
    /// Index of the node that its packets enter.
    pub entry: u16,
    /// Whether `flush` is due.
    pub(crate) outstanding: bool,
}

impl WorkerPort {
    /// A port of `interface`, whose packets enter node `entry`.
    pub fn new(port: Box<dyn Port>, interface: u16, entry: u16) -> Self {
        WorkerPort {
            port,
            interface,
            entry,
            outstanding: true,
        }
    }

    /// Gives packets to the port and counts; what it does not take is left in the frame.
    #[inline]
    pub(crate) fn send(&mut self, bufs: &mut Buffers, frame: &mut Frame, c: &InterfaceCounters) {
        let mut bytes = size(bufs.pool(), frame.packets());
        let start = crate::cycles::now();
        let taken = frame.send(&mut *self.port, bufs);
        c.tx_clocks.add(crate::cycles::now().wrapping_sub(start));
        c.tx_calls.add(1);
        if !frame.is_empty() {
            bytes -= size(bufs.pool(), frame.packets());
            c.tx_errors.add(frame.len() as u64);
        }
        c.tx_packets.add(taken as u64);
        c.tx_bytes.add(bytes);
        self.outstanding = true;
    }
}

/// Bytes of these packets.
#[inline]
pub(crate) fn size(pool: &Pool, packets: &[Desc]) -> u64 {
    let (mut bytes, mut chained) = (0u64, false);
    for d in packets {
        bytes += u64::from(d.len);
        chained |= d.is_chained();
    }
    if !chained {
        bytes
    } else {
        packets.iter().map(|d| pool.total(d) as u64).sum()
    }
}

/// Packets that leave by a port of another worker.
#[derive(Default)]
pub struct Handoff {
    /// By worker.
    pub(crate) out: Vec<Option<(Producer<Desc>, Arc<Waker>)>>,
    pub(crate) inbound: Vec<Consumer<Desc>>,
}

impl Handoff {
    /// Rings between `workers.len()` workers, each to each; element n is worker n's side.
    pub fn mesh(wakers: &[Arc<Waker>], size: usize) -> Vec<Handoff> {
        let mut all: Vec<Handoff> = wakers.iter().map(|_| Handoff::default()).collect();
        for from in 0..wakers.len() {
            for (to, waker) in wakers.iter().enumerate() {
                if from == to {
                    all[from].out.push(None);
                    continue;
                }
                let (producer, consumer) = crate::ring::ring(size);
                all[from].out.push(Some((producer, waker.clone())));
                all[to].inbound.push(consumer);
            }
        }
        all
    }

    /// Gives packets to `worker`; those that it has no room for are left in the frame.
    pub(crate) fn give(&mut self, worker: usize, frame: &mut Frame, counters: &WorkerCounters) {
        if let Some(Some((ring, waker))) = self.out.get_mut(worker) {
            let taken = frame.offer(FRAME, |batch| _ = ring.fill(batch));
            counters.handoffs.add(taken as u64);
            waker.wake();
        }
        counters.handoff_full.add(frame.len() as u64);
    }
}
