//! A port that has a look at some of the packets it receives.

use graph::{Batch, Buffers, Desc, Frame, Port, PortCounters};

/// Batches at the start whose first packet is looked at, so that a fault shows early even in little
/// traffic.
const EARLY: u32 = 256;
/// After them one batch in this many is looked at, which costs next to nothing.
const EVERY: u32 = 64;

/// The wrapper. Costs a count a batch.
pub struct Sample<P> {
    inner: P,
    look: fn(&[u8]) -> bool,
    /// Batches to the next look, and looks so far.
    wait: u32,
    looks: u32,
    found: PortCounters,
}

impl<P: Port> Sample<P> {
    /// Counts under `name` how many of the frames it looks at `look` finds. Of a frame in several
    /// buffers it sees the first.
    pub fn new(inner: P, name: &'static str, look: fn(&[u8]) -> bool) -> Self {
        Self {
            inner,
            look,
            wait: 1,
            looks: 0,
            found: PortCounters::new(&[name]),
        }
    }

    /// The counter of what was found.
    pub fn found(&self) -> PortCounters {
        self.found.clone()
    }

    #[cold]
    fn look(&mut self, bufs: &Buffers, packet: &Desc) {
        self.looks = self.looks.saturating_add(1);
        self.wait = if self.looks < EARLY { 1 } else { EVERY };
        if (self.look)(bufs.pool().bytes_of(packet)) {
            self.found.add(0, 1);
        }
    }
}

impl<P: Port> Port for Sample<P> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn rx(&mut self, bufs: &mut Buffers, frame: &mut Frame) {
        let before = frame.len();
        self.inner.rx(bufs, frame);
        if let Some(first) = frame.packets().get(before) {
            self.wait -= 1;
            if self.wait == 0 {
                self.look(bufs, first);
            }
        }
    }

    fn tx(&mut self, bufs: &mut Buffers, batch: &mut Batch<'_>) {
        self.inner.tx(bufs, batch);
    }

    super::pass_on!();
}

#[cfg(test)]
mod tests {
    use graph::Pool;

    use super::*;
    use crate::recirculation::Recirculation;

    #[test]
    fn many_at_first_then_one_of_a_batch_of_many() {
        let pool = Pool::new(1024, graph::pool::STRIDE).unwrap();
        let mut bufs = Buffers::new(pool);
        let packets = (0..4).map(|_| bufs.copy_in(&[7; 60]).unwrap()).collect();
        let inner = Recirculation::new(packets, None);
        let mut port = Sample::new(inner, "sevens", |frame| frame == [7; 60]);
        let found = port.found();
        let mut frame = Frame::default();
        let mut rounds = |n: u32| {
            for _ in 0..n {
                port.rx(&mut bufs, &mut frame);
                assert_eq!(frame.len(), 4);
                assert_eq!(frame.send(&mut port, &mut bufs), 4);
            }
            found.iter().map(|(_, n)| n).sum::<u64>()
        };
        assert_eq!(rounds(EARLY), u64::from(EARLY));
        assert_eq!(rounds(EVERY * 3), u64::from(EARLY) + 3);
    }
}
