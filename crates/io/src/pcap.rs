//! Packets from memory in, packets to a function out: replay and capture.
//!
//! Files are read and written by the caller; this port knows no file format.

use std::time::{Duration, Instant};

use graph::{Batch, Buffers, Frame, Port, PortCounters};

/// Receiver of the sent packets, with the time since the port was made.
pub type Sink = Box<dyn FnMut(&[u8], Duration) + Send>;

const RX_NO_BUFFER: usize = 0;
const RX_TOO_LONG: usize = 1;

/// The port.
pub struct Pcap {
    name: String,
    packets: Vec<Vec<u8>>,
    next: usize,
    repeat: bool,
    sink: Option<Sink>,
    start: Instant,
    packet: Vec<u8>,
    counters: PortCounters,
}

impl Pcap {
    /// A port that receives `packets`, once or over and over, and gives what it sends to `sink`.
    pub fn new(name: &str, packets: Vec<Vec<u8>>, repeat: bool, sink: Option<Sink>) -> Self {
        Self {
            name: name.to_owned(),
            packets,
            next: 0,
            repeat,
            sink,
            start: Instant::now(),
            packet: Vec::new(),
            counters: PortCounters::new(&["rx-no-buffer", "rx-too-long"]),
        }
    }

    /// Packets that are still to be received; for one that repeats, up to the end of this round.
    pub fn left(&self) -> usize {
        self.packets.len() - self.next
    }
}

impl Port for Pcap {
    fn name(&self) -> &str {
        &self.name
    }

    fn rx(&mut self, bufs: &mut Buffers, frame: &mut Frame) {
        // Bounded by the packets too, so that a file of nothing but oversized ones comes to an end.
        for _ in 0..frame.room().min(self.packets.len()) {
            if self.next == self.packets.len() {
                if !self.repeat {
                    break;
                }
                self.next = 0;
            }
            let packet = &self.packets[self.next];
            if let Some(d) = bufs.copy_in(packet) {
                frame.put(d);
            } else if packet.len() > graph::pool::MAX_PACKET {
                self.counters.add(RX_TOO_LONG, 1);
            } else {
                self.counters.add(RX_NO_BUFFER, 1);
                break;
            }
            self.next += 1;
        }
    }

    fn tx(&mut self, bufs: &mut Buffers, batch: &mut Batch<'_>) {
        let time = self.start.elapsed();
        for d in batch {
            if let Some(sink) = &mut self.sink {
                self.packet.clear();
                bufs.pool()
                    .segments(&d, |bytes| self.packet.extend_from_slice(bytes));
                sink(&self.packet, time);
            }
            bufs.free(d);
        }
    }

    fn counters(&self) -> PortCounters {
        self.counters.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use graph::Pool;

    use super::*;

    #[test]
    fn what_is_replayed_can_be_captured() {
        let mut bufs = Buffers::new(Pool::new(256, 2048).expect("pool"));
        let packets: Vec<Vec<u8>> = [60, 1514, 9000, 20_000, 64]
            .map(|len| vec![len as u8; len])
            .into();
        let seen: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let notes = seen.clone();
        let sink: Sink = Box::new(move |p, _| notes.lock().expect("lock").push(p.to_vec()));
        let mut port = Pcap::new("pcap0", packets.clone(), false, Some(sink));
        let mut frame = Frame::default();
        loop {
            port.rx(&mut bufs, &mut frame);
            let n = frame.len();
            if n == 0 {
                break;
            }
            assert_eq!(frame.send(&mut port, &mut bufs), n);
        }
        let want: Vec<Vec<u8>> = packets.into_iter().filter(|p| p.len() < 10_000).collect();
        assert!(*seen.lock().expect("lock") == want);
        assert_eq!(port.left(), 0);
        assert_eq!(
            port.counters().iter().collect::<Vec<_>>(),
            [("rx-no-buffer", 0), ("rx-too-long", 1)]
        );
        assert_eq!(bufs.cached() as u32 + bufs.pool().available(), 256);
    }

    #[test]
    fn a_repeated_file_has_no_end() {
        let mut bufs = Buffers::new(Pool::new(256, 2048).expect("pool"));
        let mut port = Pcap::new("pcap0", vec![vec![1; 60], vec![2; 60]], true, None);
        let mut frame = Frame::default();
        for _ in 0..10 {
            port.rx(&mut bufs, &mut frame);
            assert_eq!(frame.len(), 2);
            assert_eq!(bufs.pool().bytes_of(&frame.packets()[1])[0], 2);
            assert_eq!(frame.send(&mut port, &mut bufs), 2);
        }
    }
}
