//! A port that loses, doubles, damages and delays what it receives. For tests.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use graph::{Batch, Buffers, Desc, Frame, Port, PortCounters};

/// Odds that a packet suffers. A probability is from 0 (never) to 1 (always).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Odds {
    /// Every packet whose number, counted from 1, is a multiple of this is lost; 0: none.
    pub drop_every: u64,
    /// The same for those that come twice.
    pub duplicate_every: u64,
    /// The same for those that come late, as by [`Odds::delay`].
    pub delay_every: u64,
    /// The packet is lost.
    pub drop: f64,
    /// It comes twice.
    pub duplicate: f64,
    /// One bit of it is flipped.
    pub corrupt: f64,
    /// It comes behind the packets of the next call that receives any.
    pub delay: f64,
}

/// Time that held packets wait for others that they come behind.
const WAIT: Duration = Duration::from_millis(1);

/// The wrapper. The same seed makes the same faults for the same packets.
pub struct Fault {
    inner: Box<dyn Port>,
    odds: Odds,
    state: u64,
    /// Packets that came.
    count: u64,
    /// Received, and not yet looked at.
    fresh: Frame,
    held: VecDeque<Desc>,
    /// Time when packets last came.
    came: Instant,
}

impl Fault {
    /// Puts faults on `inner`.
    pub fn new(inner: Box<dyn Port>, odds: Odds, seed: u64) -> Self {
        Self {
            inner,
            odds,
            state: seed | 1,
            count: 0,
            fresh: Frame::default(),
            held: VecDeque::new(),
            came: Instant::now(),
        }
    }

    /// xorshift64* (Vigna, 2016). The tables' generator is not for ports.
    fn random(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && ((self.random() >> 11) as f64 / (1u64 << 53) as f64) < probability
    }

    /// Fate of one packet; `None` if it does not come now.
    fn suffer(&mut self, bufs: &mut Buffers, mut d: Desc) -> Option<Desc> {
        self.count += 1;
        let is_due = |every: u64| every > 0 && self.count.is_multiple_of(every);
        let odds = &self.odds;
        let (drop, duplicate, delay) = (
            is_due(odds.drop_every),
            is_due(odds.duplicate_every),
            is_due(odds.delay_every),
        );
        if drop || self.happens(self.odds.drop) {
            bufs.free(d);
            return None;
        }
        if duplicate || self.happens(self.odds.duplicate) {
            let bytes = bufs.pool().to_vec(&d);
            self.held.extend(bufs.copy_in(&bytes));
        }
        if self.happens(self.odds.corrupt) {
            #[expect(clippy::cast_possible_truncation, reason = "any bits will do")]
            let random = self.random() as usize;
            let bytes = bufs.pool().bytes_of_mut(&mut d);
            let bits = bytes.len() * 8;
            if let Some(bit) = random.checked_rem(bits) {
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
        if delay || self.happens(self.odds.delay) {
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

    fn rx(&mut self, bufs: &mut Buffers, frame: &mut Frame) {
        let late = self.held.len();
        let mut fresh = std::mem::take(&mut self.fresh);
        self.inner.rx(bufs, &mut fresh);
        let any = !fresh.is_empty();
        fresh.offer(frame.room(), |batch| {
            for d in batch {
                self.suffer(bufs, d).into_iter().for_each(|d| frame.put(d));
            }
        });
        self.fresh = fresh;
        if any {
            self.came = Instant::now();
        } else if late == 0 || self.came.elapsed() < WAIT {
            return;
        }
        // What was held before this call comes now.
        for d in self.held.drain(..late.min(frame.room())) {
            frame.put(d);
        }
    }

    fn tx(&mut self, bufs: &mut Buffers, batch: &mut Batch<'_>) {
        self.inner.tx(bufs, batch);
    }

    fn flush(&mut self, bufs: &mut Buffers) {
        self.inner.flush(bufs);
    }

    fn fd(&self) -> Option<RawFd> {
        self.inner.fd()
    }

    fn arm(&mut self) -> bool {
        self.fresh.is_empty() && self.held.is_empty() && self.inner.arm()
    }

    fn forgets(&self) -> bool {
        self.inner.forgets()
    }

    fn disarm(&mut self) {
        self.inner.disarm();
    }

    fn fill(&mut self, bufs: &mut Buffers) {
        self.inner.fill(bufs);
    }

    fn drain(&mut self, bufs: &mut Buffers) {
        let held = self.fresh.drain().chain(self.held.drain(..));
        held.for_each(|d| bufs.free(d));
        self.inner.drain(bufs);
    }

    fn counters(&self) -> PortCounters {
        self.inner.counters()
    }
}

#[cfg(test)]
mod tests {
    use ::testbed::{patience, until};
    use graph::Pool;

    use super::*;
    use crate::pcap::Pcap;
    use crate::testbed::bytes_of;

    /// Receives 1000 numbered packets through `odds`.
    fn run(odds: Odds, seed: u64) -> Vec<Vec<u8>> {
        let mut bufs = Buffers::new(Pool::new(1024, 2048).expect("pool"));
        let packets = (0..1000u16)
            .map(|i| [i.to_be_bytes().as_slice(), &[0; 58]].concat())
            .collect();
        let mut port = Fault::new(Box::new(Pcap::new("p", packets, false, None)), odds, seed);
        let mut frame = Frame::default();
        let mut got = Vec::new();
        for _ in 0..200 {
            port.rx(&mut bufs, &mut frame);
            got.extend(bytes_of(&mut bufs, &mut frame));
        }
        // Nothing more comes that the last ones could come behind: they come by themselves.
        let come = until(patience(Duration::from_secs(30)), || {
            port.rx(&mut bufs, &mut frame);
            got.extend(bytes_of(&mut bufs, &mut frame));
            port.held.is_empty()
        });
        assert!(come, "{} packets are still held", port.held.len());
        port.drain(&mut bufs);
        assert_eq!(bufs.cached() as u32 + bufs.pool().available(), 1024);
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
    fn every_nth_packet_suffers() {
        let number = |packet: &Vec<u8>| u16::from_be_bytes([packet[0], packet[1]]);
        let numbers = |odds| run(odds, 1).iter().map(number).collect::<Vec<_>>();
        let none = Odds::default();
        let left = numbers(Odds {
            drop_every: 300,
            ..none
        });
        let all = || 0..1000u16;
        assert_eq!(
            left,
            all().filter(|n| (n + 1) % 300 != 0).collect::<Vec<_>>()
        );
        let mut doubled = numbers(Odds {
            duplicate_every: 400,
            ..none
        });
        doubled.sort_unstable();
        let twice = all().chain([399, 799]);
        let mut twice: Vec<u16> = twice.collect();
        twice.sort_unstable();
        assert_eq!(doubled, twice);
        let late = numbers(Odds {
            delay_every: 100,
            ..none
        });
        let earlier = |i: usize| late[..i].iter().any(|n| *n > late[i]);
        let late: Vec<u16> = (0..late.len())
            .filter(|i| earlier(*i))
            .map(|i| late[i])
            .collect();
        // Nothing comes after the last one.
        assert_eq!(late, (1..10).map(|n| 100 * n - 1).collect::<Vec<_>>());
    }

    #[test]
    fn a_seed_repeats_its_faults() {
        let odds = Odds {
            drop: 0.1,
            duplicate: 0.1,
            corrupt: 0.1,
            delay: 0.1,
            ..Odds::default()
        };
        assert!(run(odds, 5) == run(odds, 5));
        assert!(run(odds, 5) != run(odds, 6));
    }
}
