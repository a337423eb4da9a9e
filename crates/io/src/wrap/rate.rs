//! A port that sends no faster than it is allowed to: a token bucket.

use graph::{Batch, Buffers, Frame, Port, cycles};

/// The wrapper. What exceeds the rate stays with the caller.
pub struct Rate {
    inner: Box<dyn Port>,
    /// Cycles of the time stamp counter that a packet costs.
    cost: f64,
    /// Most cycles that may be saved up.
    bucket: f64,
    saved: f64,
    last: u64,
}

impl Rate {
    /// Limits `inner` to `pps` packets a second (more than 0), in bursts of up to `burst` packets
    /// (at least 1).
    pub fn new(inner: Box<dyn Port>, pps: f64, burst: u32) -> Self {
        let cost = cycles::per_second() / pps.max(f64::MIN_POSITIVE);
        let bucket = cost * f64::from(burst.max(1));
        Self {
            inner,
            cost,
            bucket,
            saved: bucket,
            last: cycles::now(),
        }
    }

    /// Packets that may be sent at this time.
    #[expect(clippy::cast_possible_truncation, reason = "a fraction is cut off")]
    fn allowance(&mut self, now: u64) -> usize {
        let passed = now.saturating_sub(self.last) as f64;
        self.last = now;
        self.saved = (self.saved + passed).min(self.bucket);
        (self.saved / self.cost) as usize
    }
}

impl Port for Rate {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn rx(&mut self, bufs: &mut Buffers, frame: &mut Frame) {
        self.inner.rx(bufs, frame);
    }

    fn tx(&mut self, bufs: &mut Buffers, batch: &mut Batch<'_>) {
        let (before, allowed) = (batch.len(), self.allowance(cycles::now()));
        batch.offer(allowed, |batch| self.inner.tx(bufs, batch));
        self.saved -= (before - batch.len()) as f64 * self.cost;
    }

    super::pass_on!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::null::Null;

    #[test]
    fn the_bucket_fills_with_time_and_no_further_than_its_size() {
        let mut rate = Rate::new(Box::new(Null), 1000.0, 10);
        let second = cycles::per_second();
        let start = rate.last;
        assert_eq!(rate.allowance(start), 10, "full at first");
        rate.saved = 0.0;
        assert_eq!(rate.allowance(start + (second * 0.0051) as u64), 5);
        assert_eq!(rate.allowance(start + (second * 9.0) as u64), 10);
        rate.saved = 0.0;
        assert_eq!(
            rate.allowance(start),
            0,
            "a clock that steps back gives nothing"
        );
    }
}
