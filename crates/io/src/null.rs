//! A port that swallows what it transmits, and receives nothing: it takes the place of a port that is
//! not there.

use graph::{Batch, Buffers, Frame, Port};

/// The port.
pub struct Null;

impl Port for Null {
    fn name(&self) -> &str {
        "null"
    }

    fn rx(&mut self, _bufs: &mut Buffers, _frame: &mut Frame) {}

    fn tx(&mut self, bufs: &mut Buffers, batch: &mut Batch<'_>) {
        batch.for_each(|d| bufs.free(d));
    }
}

#[cfg(test)]
mod tests {
    use graph::Pool;

    use super::*;
    use crate::testbed::frame_of;

    #[test]
    fn it_swallows_all_and_receives_nothing() {
        let mut bufs = Buffers::new(Pool::new(64, 2112).expect("pool"));
        for _ in 0..3 {
            let mut frame = frame_of(&mut bufs, &vec![vec![1; 60]; 40]);
            assert_eq!(frame.send(&mut Null, &mut bufs), 40);
            Null.rx(&mut bufs, &mut frame);
            assert!(frame.is_empty());
        }
        assert_eq!(bufs.cached() as u32 + bufs.pool().available(), 64);
    }
}
