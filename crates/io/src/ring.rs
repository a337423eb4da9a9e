//! Two ports back to back in one process: what one sends the other receives, without a copy.
//!
//! Both ends use the same [`graph::Pool`].

use std::os::fd::RawFd;
use std::sync::Arc;

use graph::ring::{Consumer, Producer, ring};
use graph::waker::Waker;
use graph::{Batch, Buffers, Desc, Frame, Port};

/// One end.
pub struct Ring {
    name: String,
    tx: Producer<Desc>,
    rx: Consumer<Desc>,
    /// Wakes us.
    waker: Arc<Waker>,
    /// Wakes the other end.
    other: Arc<Waker>,
    sent: bool,
}

impl Ring {
    /// Two ends with these names, `size` packets each way at most (rounded up to a power of two).
    ///
    /// # Errors
    /// The operating system's, if the process has no more file descriptors.
    pub fn pair(names: [&str; 2], size: usize) -> std::io::Result<(Self, Self)> {
        let (to_b, from_a) = ring(size);
        let (to_a, from_b) = ring(size);
        let (a, b) = (Waker::new()?, Waker::new()?);
        let end = |name: &str, tx, rx, waker: &Arc<Waker>, other: &Arc<Waker>| Self {
            name: name.to_owned(),
            tx,
            rx,
            waker: waker.clone(),
            other: other.clone(),
            sent: false,
        };
        Ok((
            end(names[0], to_b, from_b, &a, &b),
            end(names[1], to_a, from_a, &b, &a),
        ))
    }
}

impl Port for Ring {
    fn name(&self) -> &str {
        &self.name
    }

    fn rx(&mut self, _bufs: &mut Buffers, frame: &mut Frame) {
        for _ in 0..frame.room() {
            let Some(d) = self.rx.pop() else { break };
            frame.put(d);
        }
    }

    fn tx(&mut self, _bufs: &mut Buffers, batch: &mut Batch<'_>) {
        let fresh = batch.map(|mut d| {
            d.reset();
            d
        });
        self.sent |= self.tx.fill(fresh) > 0;
    }

    fn flush(&mut self, _bufs: &mut Buffers) {
        if std::mem::take(&mut self.sent) {
            self.other.wake();
        }
    }

    fn fd(&self) -> Option<RawFd> {
        Some(self.waker.fd())
    }

    fn arm(&mut self) -> bool {
        self.waker.arm();
        self.rx.is_empty()
    }

    fn disarm(&mut self) {
        self.waker.disarm();
    }

    fn drain(&mut self, bufs: &mut Buffers) {
        while let Some(d) = self.rx.pop() {
            bufs.free(d);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use graph::Pool;
    use kernel::event::{poll, pollfd};

    use super::*;
    use crate::testbed::frame_of;

    #[test]
    fn packets_cross_without_a_copy() {
        let pool = Pool::new(4096, 2048).expect("pool");
        let (mut bufs, mut others) = (Buffers::new(pool.clone()), Buffers::new(pool.clone()));
        let (mut a, mut b) = Ring::pair(["a", "b"], 16).expect("ring");
        for round in 0..100u8 {
            let mut frame = frame_of(&mut bufs, &vec![vec![round; 3000]; 20]);
            assert_eq!(frame.send(&mut a, &mut bufs), 16);
            frame.drain().for_each(|d| bufs.free(d));
            b.rx(&mut others, &mut frame);
            assert_eq!(frame.len(), 16);
            for d in frame.drain() {
                assert_eq!(pool.total(&d), 3000);
                others.free(d);
            }
        }
        a.drain(&mut bufs);
        b.drain(&mut others);
        let cached = (bufs.cached() + others.cached()) as u32;
        assert_eq!(pool.available() + cached, 4096);
    }

    #[test]
    fn a_sleeper_is_woken() {
        let mut bufs = Buffers::new(Pool::new(64, 2048).expect("pool"));
        let (mut a, mut b) = Ring::pair(["a", "b"], 16).expect("ring");
        assert!(b.arm());
        assert_eq!(
            frame_of(&mut bufs, &[vec![0; 60]]).send(&mut a, &mut bufs),
            1
        );
        a.flush(&mut bufs);
        let mut wait = [pollfd(&b.waker.fd(), libc::POLLIN)];
        assert!(poll(&mut wait, Some(Duration::from_secs(10))));
        b.disarm();
        assert!(!b.arm());
        b.disarm();
        b.drain(&mut bufs);
        assert!(b.arm());
    }
}
