//! null: receives what it transmitted. For benches, and to stand where no port is.

use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex};

use graph::{Buffers, Desc, Port};

/// Where a [`Null`] leaves its packets when it is drained.
pub type Collected = Arc<Mutex<Vec<Desc>>>;

/// A ring of packets that go round: `rx` takes from the front, `tx` puts to the back. Descriptors move in bulk, packets are never touched.
pub struct Null {
    ring: Box<[MaybeUninit<Desc>]>,
    head: usize,
    tail: usize,
    collected: Option<Collected>,
}

impl Null {
    /// A port that holds `packets`, and never more than these. When it is drained they go to `collected`, or are freed.
    pub fn new(packets: Vec<Desc>, collected: Option<Collected>) -> Self {
        let size = packets.len().next_power_of_two().max(1);
        let tail = packets.len();
        let mut ring: Vec<_> = packets.into_iter().map(MaybeUninit::new).collect();
        ring.resize_with(size, MaybeUninit::uninit);
        Null {
            ring: ring.into(),
            head: 0,
            tail,
            collected,
        }
    }

    /// The two pieces of the ring that hold `n` places from `from` on.
    fn pieces(&self, from: usize, n: usize) -> [(usize, usize); 2] {
        let at = from & (self.ring.len() - 1);
        let first = n.min(self.ring.len() - at);
        [(at, first), (0, n - first)]
    }
}

impl Port for Null {
    fn name(&self) -> &str {
        "null"
    }

    #[inline]
    fn rx(&mut self, _bufs: &mut Buffers, out: &mut [Desc]) -> usize {
        let n = out.len().min(self.tail - self.head);
        let mut done = 0;
        for (at, len) in self.pieces(self.head, n) {
            // SAFETY: places between head and tail are written; out has room for n; head moves on, so each is read once.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    self.ring.as_ptr().add(at).cast(),
                    out.as_mut_ptr().add(done),
                    len,
                );
            }
            done += len;
        }
        self.head += n;
        n
    }

    #[inline]
    fn tx(&mut self, _bufs: &mut Buffers, descs: &[Desc]) -> usize {
        let n = descs.len().min(self.ring.len() - (self.tail - self.head));
        let mut done = 0;
        for (at, len) in self.pieces(self.tail, n) {
            // SAFETY: places outside of head..tail are free; what is copied counts as taken, the caller uses it no more.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    descs.as_ptr().add(done),
                    self.ring.as_mut_ptr().add(at).cast(),
                    len,
                );
            }
            done += len;
        }
        self.tail += n;
        n
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
    use super::*;
    use graph::Pool;

    #[test]
    fn packets_go_round_in_order() {
        let pool = Pool::new(64, 2112).unwrap();
        let mut bufs = Buffers::new(pool.clone());
        let packets: Vec<_> = (0..40u8).map(|i| bufs.copy_in(&[i; 60]).unwrap()).collect();
        let mut port = Null::new(packets, None);
        let mut expected = 0u8;
        for _ in 0..9 {
            // SAFETY: places that own nothing.
            let mut out: Vec<Desc> = (0..7).map(|_| unsafe { Desc::new(0, 0, 0) }).collect();
            assert_eq!(port.rx(&mut bufs, &mut out), 7);
            for d in &out {
                assert_eq!(pool.bytes_of(d)[0], expected % 40);
                expected += 1;
            }
            assert_eq!(port.tx(&mut bufs, &out), 7);
        }
        port.drain(&mut bufs);
        drop(bufs);
        assert_eq!(pool.available(), 64);
    }
}
