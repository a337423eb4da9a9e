//! A queue whose rings are a file that the test writes as the kernel would.

use std::os::unix::fs::FileExt;

use rustix::net::xdp::XdpRingOffset;

use super::super::ring::Cursor;
use super::*;
use crate::testbed::frame_of;

/// A ring as the kernel makes them, and its side of it.
struct Kernel(std::fs::File);

const OFFSETS: XdpRingOffset = XdpRingOffset {
    producer: 0,
    consumer: 64,
    flags: Some(128),
    desc: 192,
};

impl Kernel {
    fn ring<T: Copy>() -> (Self, Cursor<T>) {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(1 << 20).expect("room");
        let fd = OwnedFd::from(file.try_clone().expect("its descriptor"));
        let cursor = Cursor::map(&fd, 0, OFFSETS, RING).expect("a mapping");
        (Self(file), cursor)
    }

    fn get(&self, at: u64) -> u32 {
        let mut word = [0; 4];
        self.0.read_exact_at(&mut word, at).expect("a word");
        u32::from_ne_bytes(word)
    }

    fn set(&self, at: u64, word: u32) {
        self.0
            .write_all_at(&word.to_ne_bytes(), at)
            .expect("a word");
    }

    /// Takes all that was submitted; says how much that was since the beginning.
    fn take(&self) -> u32 {
        let submitted = self.get(OFFSETS.producer);
        self.set(OFFSETS.consumer, submitted);
        submitted
    }
}

/// A driver that takes all it is offered and gives nothing back for long: what the queue has
/// lent it stays within the bound that the pool is made for, and in zero-copy mode nobody else
/// gets it while the driver may still use it.
fn lends_no_more_than_it_may(zero_copy: bool) {
    let (fill, fill_ring) = Kernel::ring();
    let (done, done_ring) = Kernel::ring();
    let (_, rx_ring) = Kernel::ring();
    let (tx, tx_ring) = Kernel::ring();
    let rings = Rings {
        fill: fill_ring,
        done: done_ring,
        rx: rx_ring,
        tx: tx_ring,
    };
    let pool = Pool::new(4 * RING, 2048).expect("a pool");
    let mut bufs = Buffers::new(pool.clone());
    let socket = Arc::new(OwnedFd::from(EventFd::new().expect("an eventfd")));
    let modes = [zero_copy, false];
    let mut port = Queue::new(
        "q".into(),
        socket,
        rings,
        pool.clone(),
        modes,
        Arc::default(),
    )
    .expect("a queue");
    let send = |port: &mut Queue, bufs: &mut Buffers, count: usize| {
        let mut frame = frame_of(bufs, &vec![vec![7; 60]; count]);
        let sent = frame.send(port, bufs);
        frame.drain().for_each(|d| bufs.free(d));
        port.flush(bufs);
        (sent, tx.take())
    };
    for _ in 0..40 {
        port.rx(&mut bufs, &mut Frame::default());
        fill.take();
        send(&mut port, &mut bufs, 256);
    }
    assert_eq!(fill.take(), RECEIVING);
    assert_eq!(send(&mut port, &mut bufs, 1), (0, SENDING));
    // Sent packets come back: there is room for as many.
    for index in 0..3u64 {
        // Where the entries of the transmit ring begin with their address.
        let mut address = [0; 8];
        let read = tx.0.read_exact_at(&mut address, OFFSETS.desc + 16 * index);
        read.expect("an entry");
        let wrote = done.0.write_all_at(&address, OFFSETS.desc + 8 * index);
        wrote.expect("an entry");
    }
    done.set(OFFSETS.producer, 3);
    assert_eq!(send(&mut port, &mut bufs, 5), (3, SENDING + 3));
    port.drain(&mut bufs);
    drop((port, bufs));
    let lost = if zero_copy { Queue::HOLDS } else { 0 };
    assert_eq!(pool.available(), pool.count() - lost);
}

#[test]
fn a_slow_driver_is_lent_no_more_than_it_may() {
    lends_no_more_than_it_may(false);
    lends_no_more_than_it_may(true);
}
