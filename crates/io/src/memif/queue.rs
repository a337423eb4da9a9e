//! The worker's side of a memif interface: one queue pair, a [`Port`].

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use graph::{Batch, Buffers, Frame, Port, PortCounters};
use kernel::event::Set;

use super::Role;
use super::cursor::{Cursor, NAMES, PEER_FAULT, drop_all};
use super::link::{Link, LinkSlot};
use super::lost;
use super::ring::NO_INTERRUPT;
use super::transfer::Fault;

/// One queue pair. While the interface is down it receives nothing and drops (and counts) what it
/// is given.
#[derive(Debug)]
pub struct Queue {
    name: String,
    slot: Arc<LinkSlot>,
    epoch: u32,
    /// Lost regions of anybody, as far as this queue knows.
    losses: u32,
    live: Option<Live>,
    /// Wakes for packets and for a change of the link.
    wake: Set,
    counters: PortCounters,
}

/// The link in use.
#[derive(Debug)]
struct Live {
    link: Arc<Link>,
    cursor: Cursor,
}

impl Queue {
    pub(super) fn new(name: String, slot: Arc<LinkSlot>) -> std::io::Result<Self> {
        let wake = Set::new()?;
        wake.add(&slot.changed)?;
        Ok(Self {
            name,
            slot,
            epoch: 0,
            losses: lost::losses(),
            live: None,
            wake,
            counters: PortCounters::new(&NAMES),
        })
    }

    /// Takes up the link that the control thread plugged in, or lets go of the one it pulled.
    #[cold]
    fn switch(&mut self) {
        let Some((epoch, link)) = self.slot.current() else {
            return;
        };
        if let Some(end) = self.live.take().as_ref().and_then(|l| l.link.rx.as_ref()) {
            self.wake.remove(&end.event);
        }
        self.epoch = epoch;
        if let Some(link) = link {
            if let Some(end) = &link.rx {
                // Without it the queue still works by polling.
                let _ = self.wake.add(&end.event);
            }
            // Its memory may have gone before we had it: that loss was nobody's then.
            let lost = link.is_lost();
            self.live = Some(Live::start(link));
            if lost {
                self.fault();
            }
        }
    }

    /// The link in use, for tests that play the hostile side.
    #[cfg(test)]
    pub(super) fn link(&self) -> Option<Arc<Link>> {
        self.live.as_ref().map(|l| l.link.clone())
    }

    #[inline(always)]
    fn refresh(&mut self) {
        if self.slot.epoch() != self.epoch {
            self.switch();
        }
        if lost::losses() != self.losses {
            self.mourn();
        }
    }

    /// Memory of a peer went away: perhaps of this one.
    #[cold]
    fn mourn(&mut self) {
        self.losses = lost::losses();
        if self.live.as_ref().is_some_and(|l| l.link.is_lost()) {
            self.fault();
        }
    }

    #[cold]
    fn fault(&mut self) {
        self.counters.add(PEER_FAULT, 1);
        if let Some(end) = self.live.take().as_ref().and_then(|l| l.link.rx.as_ref()) {
            self.wake.remove(&end.event);
        }
        self.slot.accuse(self.epoch);
    }
}

impl Port for Queue {
    fn name(&self) -> &str {
        &self.name
    }

    fn rx(&mut self, bufs: &mut Buffers, frame: &mut Frame) {
        self.refresh();
        if let Some(live) = &mut self.live {
            let received = live.cursor.receive(&live.link, bufs, frame, &self.counters);
            if let Err(Fault) = received {
                self.fault();
            }
        }
    }

    fn tx(&mut self, bufs: &mut Buffers, batch: &mut Batch<'_>) {
        self.refresh();
        match &mut self.live {
            Some(live) => {
                let sent = live.cursor.send(&live.link, bufs, batch, &self.counters);
                if let Err(Fault) = sent {
                    self.fault();
                }
            }
            None => drop_all(bufs, batch, &self.counters),
        }
    }

    fn flush(&mut self, _bufs: &mut Buffers) {
        if let Some(live) = &mut self.live {
            live.cursor.signal(&live.link, &self.slot.doorbell);
        }
    }

    fn fd(&self) -> Option<RawFd> {
        Some(self.wake.as_raw_fd())
    }

    fn arm(&mut self) -> bool {
        self.refresh();
        match &self.live {
            Some(live) => live.cursor.arm(&live.link),
            None => true,
        }
    }

    fn forgets(&self) -> bool {
        // The peer looks at our flag and may do so too early, or not at all.
        self.live.is_some()
    }

    fn disarm(&mut self) {
        self.wake.clear();
        if let Some(end) = self.live.as_ref().and_then(|l| l.link.rx.as_ref()) {
            // Relaxed: a peer that sees this late signals once too often, which does no harm.
            end.ring.flags().store(NO_INTERRUPT, Ordering::Relaxed);
        }
    }

    fn counters(&self) -> PortCounters {
        self.counters.clone()
    }
}

impl Live {
    fn start(link: Arc<Link>) -> Self {
        if let Some(end) = &link.rx {
            end.ring.flags().store(NO_INTERRUPT, Ordering::Relaxed);
            if link.role == Role::Client {
                // Every buffer of the ring is on offer from the start.
                for at in 0..end.ring.size() {
                    end.ring.write(at, link.own(end, at, link.buffer_size, 0));
                }
                end.ring.head().store(end.ring.size(), Ordering::Release);
            }
        }
        Self {
            link,
            cursor: Cursor::default(),
        }
    }
}
