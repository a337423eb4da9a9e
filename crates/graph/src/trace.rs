//! Trace: what a packet looked like at every node it passed. A worker writes records into a buffer
//! made by the control thread.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Desc, Flag, Pool};

/// Bytes of the packet that a record keeps: enough for the headers that a trace prints.
pub const SNAPLEN: usize = 128;

/// One packet at one node.
#[derive(Debug, Clone)]
pub struct Record {
    /// Number of the packet in this trace, from 1.
    pub packet: u32,
    /// Index of the node; [`Record::INTERFACE_RX`] and [`Record::INTERFACE_TX`] for ports.
    pub node: u16,
    /// The edge along which it was dropped, if it ended here.
    pub dropped: Option<u8>,
    /// TSC when it was written.
    pub clock: u64,
    /// Interface it was received on.
    pub rx_if: u16,
    /// The descriptor's word for the node.
    word: u32,
    /// Offset of the network header.
    pub l3: u8,
    /// Length of the whole packet in bytes.
    pub len: u32,
    /// The first bytes, zeros beyond the packet's end; see [`Record::packet_bytes`].
    pub bytes: [u8; SNAPLEN],
}

impl Record {
    /// `node` of a record written when a port received the packet; the interface is `rx_if`.
    pub const INTERFACE_RX: u16 = u16::MAX;
    /// `node` of a record written when a packet is given to a port; the interface is
    /// [`Record::tx_if`].
    pub const INTERFACE_TX: u16 = u16::MAX - 1;
    /// Instead of a node's number, to [`trace`]: packets are traced from where they are first seen,
    /// those that a node makes, too.
    pub const ANYWHERE: u16 = u16::MAX - 2;

    /// As [`Desc::adjacency`].
    pub fn adjacency(&self) -> u32 {
        self.word
    }
    /// As [`Desc::tx_if`].
    pub fn tx_if(&self) -> u16 {
        self.word as u16
    }
    /// As [`Desc::argument`].
    pub fn argument(&self) -> u32 {
        self.word
    }

    /// The packet's first bytes, at most [`SNAPLEN`].
    pub fn packet_bytes(&self) -> &[u8] {
        &self.bytes[..SNAPLEN.min(self.len as usize)]
    }

    const EMPTY: Record = Record {
        packet: 0,
        node: 0,
        dropped: None,
        clock: 0,
        rx_if: 0,
        word: 0,
        l3: 0,
        len: 0,
        bytes: [0; SNAPLEN],
    };
}

/// Words for the numbers in a record, given by whoever prints the trace.
pub trait Names {
    /// An adjacency in words; `None` if there is none of this number.
    fn adjacency(&self, id: u32) -> Option<String>;
}

/// Room for records; append-only.
struct Records {
    places: Box<[UnsafeCell<Record>]>,
    len: AtomicUsize,
}

// SAFETY: places below `len` are written before `len` is raised (Release) and never again; only the
// one `Writer` reaches those above.
unsafe impl Sync for Records {}

/// A worker's end of a trace: what to trace, and the only way to write records.
pub struct Writer {
    node: u16,
    interface: u16,
    packets: u32,
    records: Arc<Records>,
}

/// The control thread's end of a trace: reads records while the worker goes on.
pub struct Reader(Arc<Records>);

/// A trace of `packets` packets (at most 10,000, which take 20 MB) with room for about 12 records
/// each, more than there are nodes on a packet's way. Packets are traced from `node` on: the index
/// of a node, [`Record::ANYWHERE`], or [`Record::INTERFACE_RX`] for those that `interface`
/// receives, 0 for all interfaces.
pub fn trace(node: u16, interface: u16, packets: u32) -> (Writer, Reader) {
    let packets = packets.min(10_000);
    let places = (0..packets as usize * 12)
        .map(|_| UnsafeCell::new(Record::EMPTY))
        .collect();
    let records = Arc::new(Records {
        places,
        len: AtomicUsize::new(0),
    });
    let writer = Writer {
        node,
        interface,
        packets,
        records: records.clone(),
    };
    (writer, Reader(records))
}

impl Reader {
    /// The records so far.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        // Acquire pairs with the Release in `push`: the records below `len` are seen whole.
        let len = self.0.len.load(Ordering::Acquire);
        // SAFETY: below len: written and final.
        self.0.places[..len].iter().map(|r| unsafe { &*r.get() })
    }
}

impl Writer {
    fn push(&mut self, record: Record) {
        // Relaxed: nobody else writes it.
        let len = self.records.len.load(Ordering::Relaxed);
        if let Some(place) = self.records.places.get(len) {
            // SAFETY: above len: ours alone, as there is one writer and it is borrowed mutably.
            unsafe { *place.get() = record };
            // Release: the record goes before the length that admits it.
            self.records.len.store(len + 1, Ordering::Release);
        }
    }
}

/// A worker's side of a trace.
#[derive(Default)]
pub(crate) struct Tracer {
    writer: Option<Writer>,
    begun: u32,
    /// True if any traced packet may be in the graph; without one, nobody looks at the packets of a
    /// frame.
    pub(crate) active: bool,
}

impl Tracer {
    pub(crate) fn start(&mut self, writer: Option<Writer>) -> Option<Writer> {
        self.begun = 0;
        self.active = writer.is_some();
        std::mem::replace(&mut self.writer, writer)
    }

    /// Marks packets that begin their trace at `node` and records all marked ones. `interface` is
    /// what a packet comes in or leaves by there.
    #[cold]
    pub(crate) fn visit(
        &mut self,
        pool: &Pool,
        node: u16,
        interface: impl Fn(&Desc) -> u16,
        packets: &mut [Desc],
    ) {
        let Some(writer) = &mut self.writer else {
            return;
        };
        for d in packets {
            let begins = [node, Record::ANYWHERE].contains(&writer.node)
                && [0, interface(d)].contains(&writer.interface);
            if begins && !d.has(Flag::TRACED) && self.begun < writer.packets {
                self.begun += 1;
                d.mark(Flag::TRACED);
                pool.meta_mut(d).trace = self.begun as u16;
            }
            if d.has(Flag::TRACED) {
                writer.push(record(pool, d, node, None));
            }
        }
    }

    /// Records that a marked packet was dropped at `node`, along `edge`.
    #[cold]
    pub(crate) fn dropped(&mut self, pool: &Pool, node: u16, edge: u8, d: &Desc) {
        if let (Some(writer), true) = (&mut self.writer, d.has(Flag::TRACED)) {
            writer.push(record(pool, d, node, Some(edge)));
        }
    }
}

fn record(pool: &Pool, d: &Desc, node: u16, dropped: Option<u8>) -> Record {
    let mut bytes = [0; SNAPLEN];
    let data = pool.bytes_of(d);
    let n = data.len().min(SNAPLEN);
    bytes[..n].copy_from_slice(&data[..n]);
    Record {
        packet: u32::from(pool.meta(d).trace),
        node,
        dropped,
        clock: crate::cycles::now(),
        rx_if: d.rx_if,
        word: d.argument(),
        l3: d.l3,
        len: pool.total(d) as u32,
        bytes,
    }
}
