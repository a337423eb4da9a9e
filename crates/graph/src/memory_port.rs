//! A port of packets in memory, for tests: they are put in by hand, and collected when they come
//! out.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Batch, Buffers, Frame, Port, PortCounters};

#[derive(Debug)]
struct Packets {
    /// Put in, and not yet received.
    waiting: VecDeque<Vec<u8>>,
    /// Sent, and not yet collected.
    sent: Vec<Vec<u8>>,
    /// Packets that the port still sends.
    room: usize,
}

/// A port of packets in memory; its clones are the same port.
#[derive(Debug, Clone)]
pub struct MemoryPort {
    name: String,
    packets: Arc<Mutex<Packets>>,
}

impl MemoryPort {
    /// A port without packets that takes any number of them.
    pub fn new(name: &str) -> Self {
        let packets = Packets {
            waiting: VecDeque::new(),
            sent: Vec::new(),
            room: usize::MAX,
        };
        MemoryPort {
            name: name.into(),
            packets: Arc::new(Mutex::new(packets)),
        }
    }

    fn packets(&self) -> MutexGuard<'_, Packets> {
        self.packets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the port receive a packet. Packets longer than [`crate::pool::MAX_PACKET`] are lost.
    pub fn put(&self, packet: Vec<u8>) {
        self.packets().waiting.push_back(packet);
    }

    /// Packets that the port has not received yet.
    pub fn waiting(&self) -> usize {
        self.packets().waiting.len()
    }

    /// Takes the packets that the port has sent since the last call.
    pub fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.packets().sent)
    }

    /// Limits the port to `room` more packets; then it takes none.
    pub fn set_room(&self, room: usize) {
        self.packets().room = room;
    }
}

impl Port for MemoryPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn rx(&mut self, bufs: &mut Buffers, frame: &mut Frame) {
        let mut packets = self.packets();
        while frame.room() > 0 {
            let Some(packet) = packets.waiting.pop_front() else {
                break;
            };
            if let Some(d) = bufs.copy_in(&packet) {
                frame.put(d);
            }
        }
    }

    fn tx(&mut self, bufs: &mut Buffers, batch: &mut Batch<'_>) {
        let mut packets = self.packets();
        for d in batch.take(packets.room) {
            packets.room -= 1;
            packets.sent.push(bufs.pool().to_vec(&d));
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
        let far = MemoryPort::new("port");
        let mut port = far.clone();
        let packets: Vec<Vec<u8>> = [0, 1, 60, 1856, 1857, MAX_PACKET, MAX_PACKET + 1]
            .iter()
            .map(|n| (0..*n).map(|i| i as u8).collect())
            .collect();
        packets.iter().for_each(|p| far.put(p.clone()));
        let mut frame = Frame::default();
        port.rx(&mut bufs, &mut frame);
        assert_eq!(frame.len(), packets.len() - 1);
        far.set_room(5);
        assert_eq!(frame.send(&mut port, &mut bufs), 5);
        far.set_room(5);
        assert_eq!(frame.send(&mut port, &mut bufs), 1);
        assert_eq!(far.take(), packets[..6]);
        assert_eq!(
            (far.waiting(), bufs.cached() as u32 + pool.available()),
            (0, 64)
        );
    }
}
