//! Ports: a receive and a transmit queue of an interface, whatever is behind them.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Batch, Buffers, FRAME, Frame};

/// Counters that a port keeps beside the engine's (ring full, invalid descriptors, ...). Any thread
/// may read them; each is written by one thread only, so no atomic addition is needed. They order
/// nothing. They only count up: to count from 0 again, a reader [clears](Self::clear) them, which
/// remembers what they were.
#[derive(Debug, Clone, Default)]
pub struct PortCounters(Option<Arc<[PortCounter]>>);

#[derive(Debug)]
struct PortCounter {
    name: &'static str,
    value: AtomicU64,
    /// Value when it was last cleared.
    cleared: AtomicU64,
}

impl PortCounters {
    /// Counters of these names, all 0.
    pub fn new(names: &[&'static str]) -> Self {
        let counter = |name: &&'static str| PortCounter {
            name,
            value: AtomicU64::new(0),
            cleared: AtomicU64::new(0),
        };
        PortCounters(Some(names.iter().map(counter).collect()))
    }
    /// Adds to counter `index`; only the port's worker calls this.
    #[inline]
    pub fn add(&self, index: usize, n: u64) {
        if let Some(c) = self.0.as_ref().and_then(|c| c.get(index)) {
            let count = c.value.load(Ordering::Relaxed).wrapping_add(n);
            c.value.store(count, Ordering::Relaxed);
        }
    }
    /// Sets counter `index` (for values that are counted elsewhere, such as in the kernel).
    pub fn set(&self, index: usize, n: u64) {
        if let Some(c) = self.0.as_ref().and_then(|c| c.get(index)) {
            c.value.store(n, Ordering::Relaxed);
        }
    }
    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.all()
            .map(|c| (c.name, c.value.load(Ordering::Relaxed)))
    }
    /// Names, and what was counted since the last [`clear`](Self::clear).
    pub fn since_cleared(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.all().map(|c| {
            let cleared = c.cleared.load(Ordering::Relaxed);
            let count = c.value.load(Ordering::Relaxed).wrapping_sub(cleared);
            (c.name, count)
        })
    }
    /// Counts from 0 again in [`since_cleared`](Self::since_cleared); only one reader calls this.
    pub fn clear(&self) {
        for c in self.all() {
            let value = c.value.load(Ordering::Relaxed);
            c.cleared.store(value, Ordering::Relaxed);
        }
    }
    fn all(&self) -> impl Iterator<Item = &PortCounter> + '_ {
        self.0.iter().flat_map(|c| c.iter())
    }
}

impl Frame {
    /// Offers all its packets to a port and returns how many the port took. For those who serve a
    /// port without a graph.
    pub fn send(&mut self, port: &mut dyn Port, bufs: &mut Buffers) -> usize {
        self.offer(FRAME, |batch| port.tx(bufs, batch))
    }
}

/// The number of a port: of all queues of a device, whichever workers serve them. 0 is never a
/// port.
pub type PortId = u16;

/// One receive/transmit queue pair of an interface, served by one worker.
///
/// Packets change owner by value: packets that [`Port::rx`] puts into the frame belong to the
/// caller, packets that [`Port::tx`] takes out of the batch belong to the port. A port that drops a
/// descriptor loses the packet and its buffer, nothing else.
pub trait Port: Send {
    /// Name for counters and messages.
    fn name(&self) -> &str;

    /// Appends received packets to the frame, at most as many as it has room for.
    fn rx(&mut self, bufs: &mut Buffers, frame: &mut Frame);

    /// Takes packets from the front of the batch and sends them. The others stay the caller's.
    fn tx(&mut self, bufs: &mut Buffers, batch: &mut Batch<'_>);

    /// Sends what `tx` has queued and frees what has left. Called once a round while anything may
    /// be outstanding.
    fn flush(&mut self, _bufs: &mut Buffers) {}

    /// A file descriptor to wait on with poll(2) when there is nothing to do; `None` if the port
    /// has to be polled.
    fn fd(&self) -> Option<RawFd> {
        None
    }

    /// Asks for a wake-up by [`Port::fd`]. False if packets are waiting already: do not sleep.
    fn arm(&mut self) -> bool {
        true
    }

    /// True if the wake-up that [`Port::arm`] asks for may fail to come: a sleeping worker then
    /// arms again every few milliseconds.
    fn forgets(&self) -> bool {
        false
    }

    /// The worker is back from its sleep and polls again.
    fn disarm(&mut self) {}

    /// Makes room for packets that are to come. Called when a worker takes the port over, which may
    /// be long before its first [`Port::rx`].
    fn fill(&mut self, _bufs: &mut Buffers) {}

    /// Gives back every buffer that the port's rings hold. Called before the port is dropped.
    fn drain(&mut self, _bufs: &mut Buffers) {}

    /// The port's own counters.
    fn counters(&self) -> PortCounters {
        PortCounters::default()
    }
}
