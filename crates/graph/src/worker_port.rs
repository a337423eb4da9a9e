//! A port that a worker serves.

use crate::counters::InterfaceCounters;
use crate::{Buffers, Desc, Frame, Pool, Port, PortId};

/// A queue of a port, the interface that its packets come in by, and where they go.
pub struct WorkerPort {
    /// The queue.
    pub port: Box<dyn Port>,
    /// The number of its port, which all queues of it share.
    pub id: PortId,
    /// Its interface: what the port receives and sends counts here.
    pub interface: u16,
    /// Index of the node that its packets enter.
    pub entry: u16,
    /// Index of the node that its packets enter before that one, if there is one.
    pub(crate) first: Option<u16>,
    /// True if `flush` is due.
    pub(crate) outstanding: bool,
    /// True once its interface has been up: only then is it received from.
    pub(crate) serving: bool,
}

impl WorkerPort {
    /// A queue of port `id` and of `interface`, whose packets enter node `entry`.
    pub fn new(port: Box<dyn Port>, id: PortId, interface: u16, entry: u16) -> Self {
        WorkerPort {
            port,
            id,
            interface,
            entry,
            first: None,
            outstanding: true,
            serving: false,
        }
    }

    /// The same, received from at once, though its interface may be down: as if that had been up
    /// before.
    #[must_use]
    pub fn served(self) -> Self {
        WorkerPort {
            serving: true,
            ..self
        }
    }

    /// Gives packets to the port and counts them; those that it does not take stay in the frame.
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

/// Bytes of these packets, in all their buffers.
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
