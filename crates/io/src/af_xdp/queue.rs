//! One queue of an interface: an AF_XDP socket and its rings, a [`Port`].
#![allow(unsafe_code)]

#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use graph::pool::MAX_PACKET;
use graph::{Batch, Buffers, Desc, Frame, Pool, Port, PortCounters};
use kernel::event::{EventFd, poll, pollfd};

use super::counters::{
    NAMES, RX_BAD, RX_NO_BUFFER, RX_TOO_LONG, TX_CHAINED, TX_DOWN, TX_GONE, TX_KICK_ERROR,
    TX_NO_QUEUE,
};
use super::owned::Owned;
use super::socket::{self, RING, Rings};

/// Calls to the kernel in one flush. In copy mode it takes 32 packets a call: 8 calls are a frame,
/// the others are for what an earlier flush left.
const KICKS: usize = 12;

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
    /// Number of them to receive into, and number to send.
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
    /// Shared by all queues and the control side; it orders nothing else.
    gone: Arc<AtomicBool>,
    /// Stands for the socket once the interface is gone: it never wakes.
    quiet: EventFd,
    counters: PortCounters,
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
            owned: Owned::new(pool.count()),
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
        // No buffer has the last number, so that what is too large is refused below.
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
        // Only looked at: what is taken off the batch has to be sent or freed.
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
    /// Panics if these are of another.
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
                // The kernel has receive queues of this number only: it takes the call and sends
                // nothing (`xsk_generic_xmit`, net/xdp/xsk.c).
                Ok(()) if !self.zero_copy && rings.tx.pending() == before => {
                    self.counters.add(TX_NO_QUEUE, 1);
                    break;
                }
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
                    return self.gone.store(true, Ordering::Relaxed);
                }
                Err(_) => return self.counters.add(TX_KICK_ERROR, 1),
            }
        }
        self.unsent = rings.tx.pending() > 0;
    }

    fn is_gone(&self) -> bool {
        // Relaxed: the flag stands for itself, and a worker that sees it late only fails once more.
        self.gone.load(Ordering::Relaxed)
    }

    /// Asks the kernel whether the interface is gone.
    fn looks_gone(&self) -> bool {
        if let Some(socket) = &self.socket {
            let mut state = [pollfd(&**socket, 0)];
            poll(&mut state, Some(std::time::Duration::ZERO));
            if state[0].revents & (libc::POLLERR | libc::POLLNVAL) != 0 {
                self.gone.store(true, Ordering::Relaxed);
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

    fn fill(&mut self, bufs: &mut Buffers) {
        self.refill(bufs);
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
            socket::close(socket);
        }
        if lost {
            return;
        }
        self.owned.drain(|buf| {
            // SAFETY: the kernel had it from us and its socket is closed.
            unsafe { bufs.free_index(buf) };
        });
    }

    fn counters(&self) -> PortCounters {
        self.counters.clone()
    }
}
