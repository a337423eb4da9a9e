//! A port without a device, for tests and tools: packets are put in by hand, and collected when
//! they come out.

use crate::{Batch, Buffers, Frame, Port, PortCounters};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The far end of a cable.
#[derive(Debug)]
struct Ends {
    to_port: VecDeque<Vec<u8>>,
    from_port: Vec<Vec<u8>>,
    room: usize,
}

/// A port of packets in memory; its clones are the same cable.
#[derive(Debug, Clone)]
pub struct Cable {
    name: String,
    ends: Arc<Mutex<Ends>>,
}

impl Cable {
    /// An empty cable that takes any number of packets.
    pub fn new(name: &str) -> Self {
        let ends = Ends {
            to_port: VecDeque::new(),
            from_port: Vec::new(),
            room: usize::MAX,
        };
        Cable {
            name: name.into(),
            ends: Arc::new(Mutex::new(ends)),
        }
    }

    fn ends(&self) -> MutexGuard<'_, Ends> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the port receive a packet. Packets longer than [`crate::pool::MAX_PACKET`] are lost.
    pub fn put(&self, packet: Vec<u8>) {
        self.ends().to_port.push_back(packet);
    }

    /// Packets that the port has not received yet.
    pub fn waiting(&self) -> usize {
        self.ends().to_port.len()
    }

    /// What the port has sent since the last call.
    pub fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.ends().from_port)
    }

    /// Limits the port to `room` more packets; then it takes none.
    pub fn set_room(&self, room: usize) {
        self.ends().room = room;
    }
}

impl Port for Cable {
    fn name(&self) -> &str {
        &self.name
    }

    fn rx(&mut self, bufs: &mut Buffers, frame: &mut Frame) {
        let mut ends = self.ends();
        while frame.room() > 0 {
            let Some(packet) = ends.to_port.pop_front() else {
                break;
            };
            if let Some(d) = bufs.copy_in(&packet) {
                frame.put(d);
            }
        }
    }

    fn tx(&mut self, bufs: &mut Buffers, batch: &mut Batch<'_>) {
        let mut ends = self.ends();
        for d in batch.take(ends.room) {
            ends.room -= 1;
            ends.from_port.push(bufs.pool().to_vec(&d));
            bufs.free(d);
        }
    }

    fn counters(&self) -> PortCounters {
        PortCounters::default()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::pool::{MAX_PACKET, Pool, STRIDE};

    #[test]
    fn packets_go_in_and_come_out_whole() {
        let pool = Pool::new(64, STRIDE).unwrap();
        let mut bufs = Buffers::new(pool.clone());
        let (mut cable, far) = {
            let cable = Cable::new("cable");
            (cable.clone(), cable)
        };
        let packets: Vec<Vec<u8>> = [0, 1, 60, 1856, 1857, MAX_PACKET, MAX_PACKET + 1]
            .iter()
            .map(|n| (0..*n).map(|i| i as u8).collect())
            .collect();
        packets.iter().for_each(|p| far.put(p.clone()));
        let mut frame = Frame::default();
        cable.rx(&mut bufs, &mut frame);
        assert_eq!(frame.len(), packets.len() - 1);
        far.set_room(5);
        assert_eq!(frame.send(&mut cable, &mut bufs), 5);
        far.set_room(5);
        assert_eq!(frame.send(&mut cable, &mut bufs), 1);
        assert_eq!(far.take(), packets[..6]);
        assert_eq!(
            (far.waiting(), bufs.cached() as u32 + pool.available()),
            (0, 64)
        );
    }
}
