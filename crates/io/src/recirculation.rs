//! A port that receives what it transmits, over and over: the same packets pass a graph again and
//! again, for benches.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex};

use graph::{Batch, Buffers, Desc, Frame, Pkt, Port};

/// Store where a [`Recirculation`] leaves its packets when it is drained.
pub type Collected = Arc<Mutex<Vec<Desc>>>;

/// A ring of packets that go round: `rx` takes from the front, `tx` puts to the back. Descriptors
/// move in bulk, packets are never touched.
///
/// Where a graph puts headers in front of packets, or takes them off, they come back without these
/// or with them: see [`moved`](Recirculation::moved).
pub struct Recirculation {
    ring: Box<[MaybeUninit<Desc>]>,
    head: usize,
    tail: usize,
    moved: i32,
    collected: Option<Collected>,
}

impl Recirculation {
    /// A port that holds `packets`, and never more than these. When it is drained they go to
    /// `collected`, or are freed.
    pub fn new(packets: Vec<Desc>, collected: Option<Collected>) -> Self {
        let size = packets.len().next_power_of_two().max(1);
        let tail = packets.len();
        let mut ring: Vec<_> = packets.into_iter().map(MaybeUninit::new).collect();
        ring.resize_with(size, MaybeUninit::uninit);
        Recirculation {
            ring: ring.into(),
            head: 0,
            tail,
            moved: 0,
            collected,
        }
    }

    /// Packets come back as if they had just been received, and begin so many bytes behind where they
    /// began when they were transmitted; before it, at what lies there still, if that is negative.
    /// It must lie within their buffer, or they come back as they are.
    #[must_use]
    pub fn moved(mut self, by: i32) -> Self {
        self.moved = by;
        self
    }

    /// The two pieces of the ring that hold `n` places from `from` on.
    fn pieces(&self, from: usize, n: usize) -> [(usize, usize); 2] {
        let at = from & (self.ring.len() - 1);
        let first = n.min(self.ring.len() - at);
        [(at, first), (0, n - first)]
    }
}

impl Port for Recirculation {
    fn name(&self) -> &str {
        "recirculation"
    }

    #[inline]
    fn rx(&mut self, _bufs: &mut Buffers, frame: &mut Frame) {
        let n = frame.room().min(self.tail - self.head);
        for (at, len) in self.pieces(self.head, n) {
            let run = &self.ring[at..][..len];
            // SAFETY: places between head and tail are written.
            let run = unsafe { run.assume_init_ref() };
            // SAFETY: there is room for n; head moves on, so each is read once.
            unsafe { frame.append(run) };
        }
        self.head += n;
    }

    #[inline]
    fn tx(&mut self, bufs: &mut Buffers, batch: &mut Batch<'_>) {
        let n = batch.len().min(self.ring.len() - (self.tail - self.head));
        for (at, len) in self.pieces(self.tail, n) {
            let (from, to) = (&batch.packets()[..len], &mut self.ring[at..][..len]);
            // SAFETY: both are `len` long; places outside of head..tail are free, so nothing is
            // overwritten.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr().cast(), len) };
            // SAFETY: at least `len` packets are left, and they have just been copied.
            unsafe { batch.advance(len) };
            if self.moved != 0 {
                // SAFETY: these have just been written.
                let run = unsafe { self.ring[at..][..len].assume_init_mut() };
                for d in run {
                    d.reset();
                    Pkt::new(bufs.pool(), d).shift(self.moved);
                }
            }
        }
        self.tail += n;
    }

    fn drain(&mut self, bufs: &mut Buffers) {
        let mask = self.ring.len() - 1;
        let mut collected = self.collected.as_ref().and_then(|c| c.lock().ok());
        while self.head != self.tail {
            // SAFETY: written, and read once.
            let d = unsafe { self.ring[self.head & mask].assume_init_read() };
            self.head += 1;
            match &mut collected {
                Some(c) => c.push(d),
                None => bufs.free(d),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use graph::Pool;

    use super::*;

    #[test]
    fn packets_go_round_in_order() {
        let pool = Pool::new(64, 2112).unwrap();
        let mut bufs = Buffers::new(pool.clone());
        let packets: Vec<_> = (0..40u8).map(|i| bufs.copy_in(&[i; 60]).unwrap()).collect();
        let mut port = Recirculation::new(packets, None);
        let mut first = 0u8;
        let mut frame = Frame::default();
        for sent in [7, 7, 40, 1, 23, 0, 39] {
            port.rx(&mut bufs, &mut frame);
            assert_eq!(frame.len(), 40);
            for (d, number) in frame.packets().iter().zip(first..) {
                assert_eq!(pool.bytes_of(d)[0], number % 40);
            }
            first = (first + sent) % 40;
            // The rest stays in the frame, and comes before those that went round.
            let count = usize::from(sent);
            assert_eq!(frame.offer(count, |batch| port.tx(&mut bufs, batch)), count);
        }
        assert_eq!(frame.send(&mut port, &mut bufs), 1, "39 went round");
        port.drain(&mut bufs);
        drop(bufs);
        assert_eq!(pool.available(), 64);
    }

    #[test]
    fn packets_come_back_without_their_first_bytes_and_with_them() {
        let pool = Pool::new(8, 2112).unwrap();
        let mut bufs = Buffers::new(pool.clone());
        let packets = vec![bufs.copy_in(&[1, 2, 3, 4, 5]).unwrap()];
        let collected = Collected::default();
        let mut port = Recirculation::new(packets, Some(collected.clone())).moved(2);
        let mut frame = Frame::default();
        for (by, left) in [(2, &[3, 4, 5][..]), (-1, &[2, 3, 4, 5])] {
            port = port.moved(by);
            port.rx(&mut bufs, &mut frame);
            frame.packets_mut()[0].mark(graph::Flag::OURS);
            assert_eq!(frame.send(&mut port, &mut bufs), 1);
            port.rx(&mut bufs, &mut frame);
            let d = &frame.packets()[0];
            assert_eq!((pool.bytes_of(d), d.has(graph::Flag::OURS)), (left, false));
            port = port.moved(0);
            assert_eq!(frame.send(&mut port, &mut bufs), 1);
        }
        port.drain(&mut bufs);
        let all = std::mem::take(&mut *collected.lock().unwrap());
        all.into_iter().for_each(|d| bufs.free(d));
        drop(bufs);
        assert_eq!(pool.available(), 8);
    }
}
