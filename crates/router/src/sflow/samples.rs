//! The ring from a worker to the control thread.

use std::cell::RefCell;
use std::sync::Arc;

use graph::Pkt;
use graph::counters::Counter;
use graph::ring::{Consumer, Producer, ring};
use wire::sflow::MOST_HEADER;

use crate::change::InterfaceId;

/// Most samples of a worker that wait for the control thread, which looks every 10 ms: room for
/// 5 million packets a second at one in 100.
const WAITING: usize = 512;

/// The begin of a packet that has come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The interface that it came in by.
    pub interface: InterfaceId,
    /// Bytes of the whole packet.
    pub length: u32,
    /// Bytes that are here.
    taken: u16,
    bytes: [u8; MOST_HEADER],
}

impl Sample {
    /// Of a packet.
    pub(super) fn of(p: &Pkt<'_>) -> Self {
        let (mut bytes, mut taken) = ([0; MOST_HEADER], 0);
        p.segments(|segment| {
            let n = segment.len().min(MOST_HEADER - taken);
            bytes[taken..taken + n].copy_from_slice(&segment[..n]);
            taken += n;
        });
        Sample {
            interface: p.rx_if,
            length: u32::try_from(p.total()).unwrap_or(u32::MAX),
            taken: taken as u16,
            bytes,
        }
    }

    /// The first bytes of the packet, [`MOST_HEADER`] at most.
    pub fn header(&self) -> &[u8] {
        &self.bytes[..usize::from(self.taken)]
    }
}

/// A worker's end of its ring.
// Boxed: see `Events`.
pub struct Samples {
    ring: Box<RefCell<Producer<Sample>>>,
    /// Samples that found the ring full, by interface.
    lost: Arc<[Counter]>,
}

/// The control thread's end.
pub(crate) struct Collected {
    ring: Consumer<Sample>,
    lost: Arc<[Counter]>,
}

impl Collected {
    /// The samples that wait, as many as may at once.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Sample> {
        (0..WAITING).map_while(|_| self.ring.pop())
    }

    /// Samples of an interface that are lost.
    pub(super) fn lost(&self, interface: InterfaceId) -> u64 {
        let lost = self.lost.get(usize::from(interface));
        lost.map_or(0, Counter::get)
    }
}

/// A ring for samples of interfaces with numbers below `interfaces`.
pub(crate) fn samples(interfaces: usize) -> (Samples, Collected) {
    let (producer, ring) = ring(WAITING);
    let lost: Arc<[Counter]> = (0..interfaces).map(|_| Counter::default()).collect();
    let samples = Samples {
        ring: Box::new(RefCell::new(producer)),
        lost: lost.clone(),
    };
    (samples, Collected { ring, lost })
}

impl Samples {
    /// Sends a sample, or counts that it is lost.
    pub(super) fn send(&self, sample: Sample) {
        let interface = usize::from(sample.interface);
        if self.ring.borrow_mut().push(sample).is_err()
            && let Some(lost) = self.lost.get(interface)
        {
            lost.add(1);
        }
    }
}
