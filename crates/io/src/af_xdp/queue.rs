//! One queue of an interface: an AF_XDP socket and its rings, a [`Port`].
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use graph::pool::MAX_PACKET;
use graph::{Batch, Buffers, Desc, Frame, Pool, Port, PortCounters};
use kernel::event::{EventFd, poll, pollfd};

use super::socket::{self, RING, Rings};

/// Calls to the kernel in one flush. In copy mode it takes 32 packets a call: 8 calls are a frame,
/// the others are for what an earlier flush left.
const KICKS: usize = 12;

pub(super) const NAMES: [&str; 12] = [
    "rx-dropped",
    "rx-ring-full",
    "rx-fill-empty",
    "rx-invalid",
    "tx-invalid",
    "rx-bad-descriptor",
    "rx-too-long",
    "rx-no-buffer",
    "tx-chained",
    "tx-gone",
    "tx-kick-error",
    "tx-down",
];
const RX_BAD: usize = 5;
const RX_TOO_LONG: usize = 6;
const RX_NO_BUFFER: usize = 7;
const TX_CHAINED: usize = 8;
const TX_GONE: usize = 9;
const TX_KICK_ERROR: usize = 10;
const TX_DOWN: usize = 11;

/// Buffers to receive into that the kernel has at most: a full ring of empty ones, and a full ring
/// of received ones.
const RECEIVING: u32 = 2 * RING;
/// Buffers with packets to send that the kernel has at most, sent ones that it still has to give
/// back included.
const SENDING: u32 = RING;

/// One queue. When the interface vanishes it receives nothing and drops what it is given; see
/// [`super::Interface::gone`]. While it is down the queue drops what it is given too; the one batch
/// that found it so is sent when it is up again.
#[derive(Debug)]
pub struct Queue {
    name: String,
    socket: Option<Arc<OwnedFd>>,
    rings: Option<Rings>,
    /// The memory that the socket is registered with.
    pool: Arc<Pool>,
    /// Buffers that the kernel has, by index.
    owned: Owned,
    /// How many of them to receive into, and how many to send.
    receiving: u32,
    sending: u32,
    /// The driver reads and writes the pool itself.
    zero_copy: bool,
    /// Long packets may be sent and received in several buffers.
    chains: bool,
    /// The packet whose last buffer is still to come, and whether it is to be dropped.
    partial: Option<Desc>,
    skipping: bool,
    /// The kernel did not take all of the transmit ring.
    unsent: bool,
    /// The interface was down at the last attempt to send.
    down: bool,
    gone: Arc<AtomicBool>,
    /// Stands for the socket once the interface is gone: it never wakes.
    quiet: EventFd,
    counters: PortCounters,
}

/// The set of buffers that are in the kernel's hands.
#[derive(Debug)]
struct Owned(Box<[u64]>);

impl Owned {
    #[inline(always)]
    fn insert(&mut self, buf: u32) {
        if let Some(word) = self.0.get_mut(buf as usize / 64) {
            *word |= 1 << (buf % 64);
        }
    }

    /// False if it was not in.
    #[inline(always)]
    fn remove(&mut self, buf: u32) -> bool {
        let Some(word) = self.0.get_mut(buf as usize / 64) else {
            return false;
        };
        let bit = 1 << (buf % 64);
        let was = *word & bit != 0;
        *word &= !bit;
        was
    }
}

impl Queue {
    /// Buffers of the pool that a queue holds at most.
    pub const HOLDS: u32 = RECEIVING + SENDING;

    pub(super) fn new(
        name: String,
        socket: Arc<OwnedFd>,
        rings: Rings,
        pool: Arc<Pool>,
        [zero_copy, chains]: [bool; 2],
        gone: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        Ok(Self {
            name,
            socket: Some(socket),
            rings: Some(rings),
            owned: Owned(vec![0; pool.count().div_ceil(64) as usize].into()),
            receiving: 0,
            sending: 0,
            zero_copy,
            pool,
            chains,
            partial: None,
            skipping: false,
            unsent: false,
            down: false,
            gone,
            quiet: EventFd::new()?,
            counters: PortCounters::new(&NAMES),
        })
    }

    /// Gives the kernel as many empty buffers as its ring holds, and as we may lend it.
    fn refill(&mut self, bufs: &mut Buffers) {
        let Some(rings) = &mut self.rings else { return };
        let stride = bufs.pool().stride() as u64;
        // A few at a time are not worth a store that the kernel reads, and perhaps a system call.
        let free = rings.fill.free(RING / 8).min(RECEIVING - self.receiving);
        if free < RING / 8 {
            return;
        }
        for _ in 0..free {
            let Some(buf) = bufs.alloc_index() else {
                self.counters.add(RX_NO_BUFFER, 1);
                break;
            };
            self.owned.insert(buf);
            self.receiving += 1;
            rings.fill.push(u64::from(buf) * stride);
        }
        rings.fill.submit();
        if rings.fill.needs_wakeup()
            && let Some(socket) = &self.socket
        {
            // An error is seen by the next send or sleep.
            let _ = socket::kick_rx(socket);
        }
    }

    /// A received entry as a packet of one buffer.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the stride is 2048 or 4096, and the length is compared with it"
    )]
    fn accept(&mut self, entry: libc::xdp_desc) -> Option<Desc> {
        let stride = self.pool.stride() as u64;
        let (buf, off) = (entry.addr / stride, (entry.addr % stride) as u16);
        let end = u64::from(off) + u64::from(entry.len);
        let fits = self.pool.offsets().contains(&off) && end <= stride;
        let buf = u32::try_from(buf).unwrap_or(u32::MAX);
        if !fits || !self.owned.remove(buf) {
            self.counters.add(RX_BAD, 1);
            return None;
        }
        self.receiving -= 1;
        // SAFETY: the kernel had this buffer from us and gave it back; offset and length were just
        // checked.
        Some(unsafe { self.pool.packet(buf, off, entry.len as u16) })
    }

    /// One buffer of a packet that has several. Returns the packet with its last one.
    #[cold]
    fn join(&mut self, bufs: &mut Buffers, part: Desc, more: bool) -> Option<Desc> {
        let mut packet = self.partial.take();
        if self.skipping {
            bufs.free(part);
        } else if let Some(head) = &mut packet {
            bufs.chain(head, part);
            if bufs.pool().total(head) > MAX_PACKET {
                self.counters.add(RX_TOO_LONG, 1);
                self.skipping = true;
                packet.take().into_iter().for_each(|d| bufs.free(d));
            }
        } else {
            packet = Some(part);
        }
        if more {
            self.partial = packet;
            return None;
        }
        self.skipping = false;
        packet
    }

    /// Takes back the buffers that were sent.
    fn reap(&mut self, bufs: &mut Buffers) {
        let Some(rings) = &mut self.rings else { return };
        let n = rings.done.filled(1);
        let stride = bufs.pool().stride() as u64;
        for _ in 0..n {
            let buf = u32::try_from(rings.done.pop() / stride).unwrap_or(u32::MAX);
            if self.owned.remove(buf) {
                self.sending -= 1;
                // SAFETY: the kernel had it from us and is done with it.
                unsafe { bufs.free_index(buf) };
            }
        }
        if n > 0 {
            rings.done.release();
        }
    }

    /// Puts the next packet on the transmit ring; false if there is none, or no room for it.
    #[inline(always)]
    fn put(&mut self, bufs: &mut Buffers, batch: &mut Batch<'_>) -> bool {
        let (Some(rings), Some(next)) = (&mut self.rings, batch.peek()) else {
            return false;
        };
        let needs = match next.is_chained() {
            true if self.chains => u32::from(self.pool.buffers(next)),
            _ => 1,
        };
        if rings.tx.free(needs) < needs || SENDING - self.sending < needs {
            return false;
        }
        let Some(d) = batch.next() else { return false };
        let stride = self.pool.stride() as u64;
        let mut give = |d: Desc, options: u32| {
            let index = self.pool.index(&d);
            self.owned.insert(index);
            self.sending += 1;
            rings.tx.push(libc::xdp_desc {
                addr: u64::from(index) * stride + u64::from(d.off()),
                len: u32::from(d.len()),
                options,
            });
        };
        if !d.is_chained() {
            give(d, 0);
        } else if self.chains {
            let mut left = needs;
            bufs.unchain(d, |_, part| {
                left -= 1;
                give(part, if left > 0 { libc::XDP_PKT_CONTD } else { 0 });
            });
        } else {
            self.counters.add(TX_CHAINED, 1);
            bufs.free(d);
        }
        true
    }

    /// The kernel has buffers of one pool only.
    ///
    /// # Panics
    /// When these are of another.
    #[inline(always)]
    fn check(&self, bufs: &Buffers) {
        let same = std::ptr::eq(bufs.pool(), &raw const *self.pool);
        assert!(same, "AF_XDP: buffers of another pool than the socket's");
    }

    /// Makes the kernel send, and notices when the interface is gone. What it does not take now is
    /// tried again with the next call to receive.
    fn kick(&mut self) {
        (self.unsent, self.down) = (false, false);
        let (Some(rings), Some(socket)) = (&mut self.rings, &self.socket) else {
            return;
        };
        for _ in 0..KICKS {
            let before = rings.tx.pending();
            if before == 0 || !rings.tx.needs_wakeup() {
                return;
            }
            match socket::kick_tx(socket).map_err(|e| e.raw_os_error().unwrap_or(0)) {
                // More than one call's worth waits, or the driver is busy: go on while there is
                // progress.
                Ok(()) | Err(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS) => {
                    if rings.tx.pending() == before {
                        break;
                    }
                }
                // Down, not away: it is tried again when there is more to send.
                Err(libc::ENETDOWN) => return self.down = true,
                Err(libc::ENXIO | libc::ENODEV | libc::EBADF) => {
                    return self.gone.store(true, Ordering::Release);
                }
                Err(_) => return self.counters.add(TX_KICK_ERROR, 1),
            }
        }
        self.unsent = rings.tx.pending() > 0;
    }

    fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    /// Asks the kernel whether the interface is gone.
    fn looks_gone(&self) -> bool {
        if let Some(socket) = &self.socket {
            let mut state = [pollfd(&**socket, 0)];
            poll(&mut state, Some(std::time::Duration::ZERO));
            if state[0].revents & (libc::POLLERR | libc::POLLNVAL) != 0 {
                self.gone.store(true, Ordering::Release);
            }
        }
        self.is_gone()
    }
}

impl Port for Queue {
    fn name(&self) -> &str {
        &self.name
    }

    fn rx(&mut self, bufs: &mut Buffers, frame: &mut Frame) {
        self.check(bufs);
        if self.unsent {
            self.flush(bufs);
        }
        let Some(rings) = &mut self.rings else {
            return;
        };
        // Far more may wait than a frame holds.
        #[expect(clippy::cast_possible_truncation, reason = "at most a frame")]
        let room = frame.room() as u32;
        let waiting = rings.rx.filled(room).min(room);
        for _ in 0..waiting {
            let Some(rings) = &mut self.rings else { break };
            let entry = rings.rx.pop();
            let Some(d) = self.accept(entry) else {
                continue;
            };
            let more = entry.options & libc::XDP_PKT_CONTD != 0;
            let whole = if more || self.partial.is_some() || self.skipping {
                self.join(bufs, d, more)
            } else {
                Some(d)
            };
            if let Some(d) = whole {
                frame.put(d);
            }
        }
        if waiting > 0
            && let Some(rings) = &self.rings
        {
            rings.rx.release();
        }
        self.refill(bufs);
    }

    fn tx(&mut self, bufs: &mut Buffers, batch: &mut Batch<'_>) {
        self.check(bufs);
        if self.is_gone() || self.rings.is_none() {
            self.counters.add(TX_GONE, batch.len() as u64);
            return batch.for_each(|d| bufs.free(d));
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most a frame")]
        let wanted = batch.len() as u32;
        let no_room = SENDING - self.sending < wanted
            || (self.rings.as_mut()).is_some_and(|r| r.tx.free(wanted) < wanted);
        if no_room || self.down {
            self.kick();
            self.reap(bufs);
        }
        if self.down {
            self.counters.add(TX_DOWN, batch.len() as u64);
            return batch.for_each(|d| bufs.free(d));
        }
        while self.put(bufs, batch) {}
        if let Some(rings) = &self.rings {
            rings.tx.submit();
        }
    }

    fn flush(&mut self, bufs: &mut Buffers) {
        self.check(bufs);
        self.kick();
        self.reap(bufs);
    }

    fn fd(&self) -> Option<RawFd> {
        match &self.socket {
            Some(socket) if !self.is_gone() => Some(socket.as_raw_fd()),
            _ => Some(self.quiet.as_raw_fd()),
        }
    }

    fn arm(&mut self) -> bool {
        self.looks_gone();
        !self.unsent && self.rings.as_mut().is_none_or(|r| r.rx.filled(1) == 0)
    }

    fn drain(&mut self, bufs: &mut Buffers) {
        self.check(bufs);
        self.partial.take().into_iter().for_each(|d| bufs.free(d));
        // With the socket closed the kernel lets go of the queue, and what it had is ours again. In
        // zero-copy mode the driver learns of that some time later, and may write to those buffers
        // until then: nobody gets them again, unless the device is gone and the driver with it.
        let lost = self.zero_copy && !self.looks_gone();
        self.rings = None;
        if let Some(socket) = self.socket.take() {
            close(socket);
        }
        if lost {
            return;
        }
        for (first, word) in (0..).step_by(64).zip(&mut self.owned.0) {
            while *word != 0 {
                let bit = word.trailing_zeros();
                *word &= *word - 1;
                // SAFETY: the kernel had it from us and its socket is closed.
                unsafe { bufs.free_index(first + bit) };
            }
        }
    }

    fn counters(&self) -> PortCounters {
        self.counters.clone()
    }
}

/// Closes a socket, after the control thread if that is just using it (for the time of a system
/// call).
fn close(mut socket: Arc<OwnedFd>) {
    while let Err(shared) = Arc::try_unwrap(socket) {
        std::thread::yield_now();
        socket = shared;
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn a_buffer_is_owned_once() {
        let mut owned = Owned(vec![0; 2].into());
        for buf in [0, 63, 64, 127] {
            assert!(!owned.remove(buf));
            owned.insert(buf);
            assert!(owned.remove(buf));
            assert!(!owned.remove(buf));
        }
        owned.insert(128);
        assert!(!owned.remove(128), "beyond the pool");
    }
}
