//! A port that loses, doubles, damages and delays what it receives. For tests.

use std::collections::VecDeque;
use std::os::fd::RawFd;

use graph::{Buffers, Desc, Port, PortCounters};

/// How probable each fault is for a packet, from 0 (never) to 1 (always).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Odds {
    /// The packet is lost.
    pub drop: f64,
    /// It comes twice.
    pub duplicate: f64,
    /// One bit of it is flipped.
    pub corrupt: f64,
    /// It comes with the next call to receive, after packets that came later.
    pub delay: f64,
}

/// The wrapper. The same seed makes the same faults for the same packets.
pub struct Fault {
    inner: Box<dyn Port>,
    odds: Odds,
    state: u64,
    held: VecDeque<Desc>,
}

impl Fault {
    /// Puts faults on `inner`.
    pub fn new(inner: Box<dyn Port>, odds: Odds, seed: u64) -> Self {
        Self {
            inner,
            odds,
            state: seed | 1,
            held: VecDeque::new(),
        }
    }

    /// xorshift64*
    fn random(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && ((self.random() >> 11) as f64 / (1u64 << 53) as f64) < probability
    }

    /// What becomes of one packet; `None` if it does not come now.
    fn suffer(&mut self, bufs: &mut Buffers, mut d: Desc) -> Option<Desc> {
        if self.happens(self.odds.drop) {
            bufs.free(d);
            return None;
        }
        if self.happens(self.odds.duplicate) {
            let mut bytes = Vec::new();
            bufs.pool().segments(&d, |s| bytes.extend_from_slice(s));
            self.held.extend(bufs.copy_in(&bytes));
        }
        if self.happens(self.odds.corrupt) {
            let random = self.random() as usize;
            let bytes = bufs.pool().bytes_of_mut(&mut d);
            let bits = bytes.len() * 8;
            if let Some(bit) = random.checked_rem(bits) {
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
        if self.happens(self.odds.delay) {
            self.held.push_back(d);
            return None;
        }
        Some(d)
    }
}

impl Port for Fault {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn rx(&mut self, bufs: &mut Buffers, out: &mut [Desc]) -> usize {
        let late = self.held.len();
        let fresh = self.inner.rx(bufs, out);
        let mut n = 0;
        for i in 0..fresh {
            // SAFETY: each received descriptor is taken out once; its place is only written again.
            let d = unsafe { out[i].duplicate() };
            if let Some(d) = self.suffer(bufs, d) {
                out[n] = d;
                n += 1;
            }
        }
        // What was held before this call comes now.
        for _ in 0..late.min(out.len() - n) {
            if let Some(d) = self.held.pop_front() {
                out[n] = d;
                n += 1;
            }
        }
        n
    }

    fn tx(&mut self, bufs: &mut Buffers, descs: &[Desc]) -> usize {
        self.inner.tx(bufs, descs)
    }

    fn flush(&mut self, bufs: &mut Buffers) {
        self.inner.flush(bufs);
    }

    fn fd(&self) -> Option<RawFd> {
        self.inner.fd()
    }

    fn arm(&mut self) -> bool {
        self.held.is_empty() && self.inner.arm()
    }

    fn forgets(&self) -> bool {
        self.inner.forgets()
    }

    fn disarm(&mut self) {
        self.inner.disarm();
    }

    fn drain(&mut self, bufs: &mut Buffers) {
        self.held.drain(..).for_each(|d| bufs.free(d));
        self.inner.drain(bufs);
    }

    fn counters(&self) -> PortCounters {
        self.inner.counters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pcap::Pcap;
    use graph::Pool;

    /// Receives 1000 numbered packets through `odds`.
    fn run(odds: Odds, seed: u64) -> Vec<Vec<u8>> {
        let mut bufs = Buffers::new(Pool::new(256, 2048).expect("pool"));
        let packets = (0..1000u16)
            .map(|i| [i.to_be_bytes().as_slice(), &[0; 58]].concat())
            .collect();
        let mut port = Fault::new(Box::new(Pcap::new("p", packets, false, None)), odds, seed);
        // SAFETY: places that are overwritten.
        let mut frame: Vec<Desc> = (0..32).map(|_| unsafe { Desc::new(0, 0, 0) }).collect();
        let mut got = Vec::new();
        for _ in 0..200 {
            let n = port.rx(&mut bufs, &mut frame);
            for d in &frame[..n] {
                got.push(bufs.pool().bytes_of(d).to_vec());
                // SAFETY: its place is overwritten by the next call.
                bufs.free(unsafe { d.duplicate() });
            }
        }
        port.drain(&mut bufs);
        assert_eq!(bufs.cached() as u32 + bufs.pool().available(), 256);
        got
    }

    #[test]
    fn each_fault_does_what_it_says() {
        let none = Odds::default();
        assert_eq!(run(none, 1).len(), 1000);
        let lost = run(Odds { drop: 0.25, ..none }, 1).len();
        assert!((650..850).contains(&lost), "{lost}");
        let doubled = run(
            Odds {
                duplicate: 0.25,
                ..none
            },
            1,
        )
        .len();
        assert!((1150..1350).contains(&doubled), "{doubled}");
        let damaged = run(
            Odds {
                corrupt: 1.0,
                ..none
            },
            1,
        );
        for (i, p) in damaged.iter().enumerate() {
            let number = (u16::from_be_bytes([p[0], p[1]]) ^ i as u16).count_ones();
            let rest: u32 = p[2..].iter().map(|b| b.count_ones()).sum();
            assert_eq!(number + rest, 1, "one bit differs");
        }
        let late = run(
            Odds {
                delay: 0.25,
                ..none
            },
            1,
        );
        assert_eq!(late.len(), 1000);
        assert!(!late.is_sorted());
        assert_eq!(run(Odds { drop: 1.0, ..none }, 1).len(), 0);
    }

    #[test]
    fn a_seed_repeats_its_faults() {
        let odds = Odds {
            drop: 0.1,
            duplicate: 0.1,
            corrupt: 0.1,
            delay: 0.1,
        };
        assert!(run(odds, 5) == run(odds, 5));
        assert!(run(odds, 5) != run(odds, 6));
    }
}
