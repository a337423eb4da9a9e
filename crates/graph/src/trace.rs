//! Trace: what a packet looked like at every node it passed. A worker writes records into a buffer made by the control thread.

use crate::{Desc, Pool};
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of the packet that a record keeps.
pub const SNAPLEN: usize = 128;

/// One packet at one node.
#[derive(Debug, Clone)]
pub struct Record {
    /// Number of the packet in this trace, from 1.
    pub packet: u32,
    /// Index of the node; [`Record::INTERFACE_RX`] and [`Record::INTERFACE_TX`] for ports.
    pub node: u16,
    /// The edge by which it was dropped, if it ended here.
    pub dropped: Option<u8>,
    /// TSC.
    pub clock: u64,
    /// Interface it was received on.
    pub rx_if: u16,
    /// The descriptor's `adj`.
    pub adj: u32,
    /// Offset of the network header.
    pub l3: u8,
    /// Length of the whole packet in bytes.
    pub len: u32,
    /// The first bytes; as many as the packet has.
    pub bytes: [u8; SNAPLEN],
}

impl Record {
    /// `node` of a record written when a port received the packet; the interface is `rx_if`.
    pub const INTERFACE_RX: u16 = u16::MAX;
    /// `node` of a record written when a packet is given to a port; the interface is `adj`.
    pub const INTERFACE_TX: u16 = u16::MAX - 1;

    /// The bytes that are the packet's.
    pub fn packet_bytes(&self) -> &[u8] {
        &self.bytes[..SNAPLEN.min(self.len as usize)]
    }

    const EMPTY: Record = Record {
        packet: 0,
        node: 0,
        dropped: None,
        clock: 0,
        rx_if: 0,
        adj: 0,
        l3: 0,
        len: 0,
        bytes: [0; SNAPLEN],
    };
}

/// What to trace and room for the records; append-only, one writer.
pub struct TraceBuffer {
    /// Index of the node (or [`Record::INTERFACE_RX`]) at which packets begin to be traced.
    pub node: u16,
    /// With [`Record::INTERFACE_RX`]: only this interface's packets; 0 for all.
    pub interface: u16,
    /// Packets to trace.
    pub packets: u32,
    records: Box<[UnsafeCell<Record>]>,
    len: AtomicUsize,
}

// SAFETY: records below `len` are written before `len` is raised (Release) and never again; only the one writer touches those above.
unsafe impl Sync for TraceBuffer {}
// SAFETY: plain data.
unsafe impl Send for TraceBuffer {}

impl TraceBuffer {
    /// Room for `packets` packets of about 12 records each.
    pub fn new(node: u16, interface: u16, packets: u32) -> Arc<Self> {
        let packets = packets.min(10_000);
        let records = (0..packets as usize * 12)
            .map(|_| UnsafeCell::new(Record::EMPTY))
            .collect();
        Arc::new(TraceBuffer {
            node,
            interface,
            packets,
            records,
            len: AtomicUsize::new(0),
        })
    }

    /// The records so far.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        let len = self.len.load(Ordering::Acquire);
        // SAFETY: below len: written and final.
        self.records[..len].iter().map(|r| unsafe { &*r.get() })
    }

    fn push(&self, record: Record) {
        let len = self.len.load(Ordering::Relaxed);
        if let Some(place) = self.records.get(len) {
            // SAFETY: above len: ours alone.
            unsafe { *place.get() = record };
            self.len.store(len + 1, Ordering::Release);
        }
    }
}

/// A worker's side of a trace.
#[derive(Default)]
pub(crate) struct Tracer {
    pub(crate) buffer: Option<Arc<TraceBuffer>>,
    begun: u32,
    /// Whether any traced packet may be in the graph: only then frames are looked at.
    pub(crate) active: bool,
}

impl Tracer {
    pub(crate) fn start(&mut self, buffer: Option<Arc<TraceBuffer>>) -> Option<Arc<TraceBuffer>> {
        self.begun = 0;
        self.active = buffer.is_some();
        std::mem::replace(&mut self.buffer, buffer)
    }

    /// Marks packets that begin their trace at `node` and records all marked ones.
    #[cold]
    pub(crate) fn visit(&mut self, pool: &Pool, node: u16, interface: u16, packets: &mut [Desc]) {
        let Some(buffer) = &self.buffer else { return };
        let begins =
            node == buffer.node && (buffer.interface == 0 || buffer.interface == interface);
        for d in packets {
            if begins && !d.has(crate::flags::TRACED) && self.begun < buffer.packets {
                self.begun += 1;
                d.flags |= crate::flags::TRACED;
                pool.annex_mut(d).trace = self.begun as u16;
            }
            if d.has(crate::flags::TRACED) {
                buffer.push(record(pool, d, node, None));
            }
        }
    }

    /// Records that a marked packet was dropped at `node` by `edge`.
    #[cold]
    pub(crate) fn dropped(&mut self, pool: &Pool, node: u16, edge: u8, d: &Desc) {
        if let (Some(buffer), true) = (&self.buffer, d.has(crate::flags::TRACED)) {
            buffer.push(record(pool, d, node, Some(edge)));
        }
    }
}

fn record(pool: &Pool, d: &Desc, node: u16, dropped: Option<u8>) -> Record {
    let mut bytes = [0; SNAPLEN];
    let data = pool.bytes_of(d);
    let n = data.len().min(SNAPLEN);
    bytes[..n].copy_from_slice(&data[..n]);
    Record {
        packet: u32::from(pool.annex(d).trace),
        node,
        dropped,
        clock: crate::cycles::now(),
        rx_if: d.rx_if,
        adj: d.adj,
        l3: d.l3,
        len: pool.total(d) as u32,
        bytes,
    }
}
