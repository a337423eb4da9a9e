//! A worker's place in a connection's rings: packets are received and sent here.

use std::sync::atomic::{Ordering, fence};

use graph::{Batch, Buffers, Desc, Frame, PortCounters};

use super::Role;
use super::copy::{prefetch_read, prefetch_write};
use super::doorbell::Doorbell;
use super::link::{Link, RingEnd};
use super::ring::{NEXT, NO_INTERRUPT};
use super::transfer::{Fault, Stop};

/// Packets ahead for which shared memory is fetched. A line that the peer's processor has written
/// takes 290 to 960 cycles to come, a packet that is received and sent about 47 in cache
/// (measured).
const AHEAD: u16 = 16;

/// Names of a queue's counters, by the indices below.
pub const NAMES: [&str; 5] = [
    "rx-bad-packet",
    "rx-no-buffer",
    "tx-link-down",
    "tx-too-long",
    "peer-fault",
];
/// Packets without bytes, or longer than any may be.
pub const RX_BAD_PACKET: usize = 0;
/// Times that the pool was used up.
pub const RX_NO_BUFFER: usize = 1;
/// Packets dropped without a link or a ring.
pub const TX_LINK_DOWN: usize = 2;
/// Packets dropped that no chain of descriptors holds.
pub const TX_TOO_LONG: usize = 3;
/// Times that the peer broke the rules.
pub const PEER_FAULT: usize = 4;

/// A worker's place in its rings. Our own counters are kept here; in shared memory they are only
/// written.
///
/// Descriptors and packets go over with the counters: ours is stored when they are written or no
/// longer needed (Release), the peer's is loaded before they are touched (Acquire).
#[derive(Debug, Default)]
pub struct Cursor {
    /// Next descriptor to receive from.
    rx: u16,
    /// Next descriptor to send with.
    tx: u16,
    /// The peer's counter of the transmit ring as last read.
    tx_seen: u16,
    /// Packets were sent that the peer may have to be told about.
    kick: bool,
}

impl Cursor {
    /// Descriptors that the peer filled and we have not emptied.
    #[inline(always)]
    fn filled(&self, role: Role, end: &RingEnd) -> Result<u16, Fault> {
        let counter = match role {
            Role::Server => end.ring.head(),
            Role::Client => end.ring.tail(),
        };
        let filled = counter.load(Ordering::Acquire).wrapping_sub(self.rx);
        if filled > end.ring.size() {
            Err(Fault)
        } else {
            Ok(filled)
        }
    }

    /// Descriptors that we may fill; looks at the peer's counter only when fewer than `want` are
    /// known of.
    #[inline(always)]
    fn room(&mut self, role: Role, end: &RingEnd, want: usize) -> Result<u16, Fault> {
        let size = end.ring.size();
        let (counter, ahead) = match role {
            Role::Server => (end.ring.head(), 0),
            Role::Client => (end.ring.tail(), size),
        };
        let tx = self.tx;
        let room = |seen: u16| seen.wrapping_add(ahead).wrapping_sub(tx);
        if (room(self.tx_seen) as usize) < want {
            let seen = counter.load(Ordering::Acquire);
            // What was ours stays ours: a counter that goes back is as wrong as one too far ahead.
            if !(room(self.tx_seen)..=size).contains(&room(seen)) {
                return Err(Fault);
            }
            self.tx_seen = seen;
        }
        Ok(room(self.tx_seen))
    }

    /// Receives into the frame. What came before a fault of the peer's is good.
    pub fn receive(
        &mut self,
        link: &Link,
        bufs: &mut Buffers,
        frame: &mut Frame,
        counters: &PortCounters,
    ) -> Result<(), Fault> {
        let Some(end) = &link.rx else {
            return Ok(());
        };
        let mut filled = self.filled(link.role, end)?;
        if filled == 0 {
            return Ok(());
        }
        let start = self.rx;
        for i in 0..filled.min(AHEAD) {
            link.hint(end, self.rx.wrapping_add(i), prefetch_read);
        }
        let mut result = Ok(());
        while frame.room() > 0 && filled > 0 {
            if filled > AHEAD {
                link.hint(end, self.rx.wrapping_add(AHEAD), prefetch_read);
            }
            let slot = end.ring.read(self.rx);
            let taken = if slot.flags & NEXT == 0
                && slot.length.wrapping_sub(1) < u32::from(bufs.pool().room())
            {
                link.copy_one(end, self.rx, slot, bufs).map(|d| (d, 1))
            } else {
                link.copy_chain(end, self.rx, filled, bufs)
            };
            match taken {
                Ok((d, slots)) => {
                    frame.put(d);
                    self.release(link, end, slots);
                    filled -= slots;
                }
                Err(Stop::Skip(slots)) => {
                    counters.add(RX_BAD_PACKET, 1);
                    self.release(link, end, slots);
                    filled -= slots;
                }
                Err(Stop::NoBuffer) => {
                    counters.add(RX_NO_BUFFER, 1);
                    break;
                }
                Err(Stop::Incomplete) => break,
                Err(Stop::Fault) => {
                    result = Err(Fault);
                    break;
                }
            }
        }
        if self.rx != start {
            self.publish_rx(link.role, end);
        }
        result
    }

    /// Goes past `slots` descriptors. The client offers their buffers again.
    #[inline(always)]
    fn release(&mut self, link: &Link, end: &RingEnd, slots: u16) {
        for _ in 0..slots {
            if link.role == Role::Client {
                let slot = link.own(end, self.rx, link.buffer_size, 0);
                end.ring.write(self.rx, slot);
            }
            self.rx = self.rx.wrapping_add(1);
        }
    }

    /// Shows the peer what was released.
    fn publish_rx(&self, role: Role, end: &RingEnd) {
        match role {
            Role::Server => end.ring.tail().store(self.rx, Ordering::Release),
            Role::Client => {
                let head = self.rx.wrapping_add(end.ring.size());
                end.ring.head().store(head, Ordering::Release);
            }
        }
    }

    /// Copies packets into the ring and frees them. What was sent before a fault of the peer's is
    /// sent.
    pub fn send(
        &mut self,
        link: &Link,
        bufs: &mut Buffers,
        batch: &mut Batch<'_>,
        counters: &PortCounters,
    ) -> Result<(), Fault> {
        let Some(end) = &link.tx else {
            drop_all(bufs, batch, counters);
            return Ok(());
        };
        let mut room = self.room(link.role, end, batch.len())?;
        for i in 0..room.min(AHEAD) {
            link.hint(end, self.tx.wrapping_add(i), prefetch_write);
        }
        let start = self.tx;
        let mut result = Ok(());
        while let Some(d) = batch.peek() {
            if room == 0 {
                // Long packets take several descriptors each: more may have become free than the
                // batch has packets.
                match self.room(link.role, end, 1) {
                    Ok(0) => break,
                    Ok(more) => room = more,
                    Err(Fault) => {
                        result = Err(Fault);
                        break;
                    }
                }
            }
            if room > AHEAD {
                link.hint(end, self.tx.wrapping_add(AHEAD), prefetch_write);
            }
            let slots = match self.put(link, end, &mut room, d, bufs) {
                Ok(Some(slots)) => slots,
                Ok(None) => break,
                Err(Fault) => {
                    result = Err(Fault);
                    break;
                }
            };
            if slots == 0 {
                counters.add(TX_TOO_LONG, 1);
            }
            self.tx = self.tx.wrapping_add(slots);
            room -= slots;
            batch.next().into_iter().for_each(|d| bufs.free(d));
        }
        if self.tx != start {
            match link.role {
                Role::Server => end.ring.tail().store(self.tx, Ordering::Release),
                Role::Client => end.ring.head().store(self.tx, Ordering::Release),
            }
            self.kick = true;
        }
        result
    }

    /// Copies a packet into the ring. Returns how many descriptors it took: 0 if it is too long for
    /// any peer, `None` if it has to wait for more than the `room` there is.
    #[inline(always)]
    fn put(
        &mut self,
        link: &Link,
        end: &RingEnd,
        room: &mut u16,
        d: &Desc,
        bufs: &Buffers,
    ) -> Result<Option<u16>, Fault> {
        let slots = link.put(end, self.tx, *room, d, bufs)?;
        if slots > 0 {
            return Ok(Some(slots));
        }
        // A long packet: more descriptors may have become free than were known of.
        *room = self.room(link.role, end, usize::MAX)?;
        let slots = link.put(end, self.tx, *room, d, bufs)?;
        Ok((slots > 0 || *room >= end.longest_chain()).then_some(slots))
    }

    /// Wakes the peer if it sleeps.
    pub fn signal(&mut self, link: &Link, doorbell: &Doorbell) {
        if !self.kick {
            return;
        }
        self.kick = false;
        if let Some(end) = &link.tx {
            // Our counter is stored before we look at the peer's flag; the sleeper clears its flag,
            // then looks at our counter. So one of the two sees what the other did.
            fence(Ordering::SeqCst);
            if end.ring.flags().load(Ordering::Relaxed) & NO_INTERRUPT == 0 {
                doorbell.ring(&end.event);
            }
        }
    }

    /// Asks the peer for signals; false if packets are here already.
    pub fn arm(&self, link: &Link) -> bool {
        let Some(end) = &link.rx else { return true };
        end.ring.flags().store(0, Ordering::Relaxed);
        // The other half of what `signal` does.
        fence(Ordering::SeqCst);
        matches!(self.filled(link.role, end), Ok(0))
    }
}

/// Drops and counts all packets.
pub fn drop_all(bufs: &mut Buffers, batch: &mut Batch<'_>, counters: &PortCounters) {
    counters.add(TX_LINK_DOWN, batch.len() as u64);
    batch.for_each(|d| bufs.free(d));
}
