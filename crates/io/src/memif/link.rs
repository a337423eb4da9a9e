//! The hand-over of a connection from the control thread to the workers.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use kernel::event::EventFd;

use super::doorbell::Doorbell;
use super::region::Region;
use super::ring::Ring;
use super::{Role, lost};

/// Our end of a ring, which is one direction of a queue.
#[derive(Debug)]
pub struct RingEnd {
    /// The descriptors.
    pub ring: Ring,
    /// Signals the receiver.
    pub event: OwnedFd,
    /// Client: offset of the first buffer in region 0; buffer `i` belongs to descriptor `i`.
    pub buffers: u32,
}

/// A queue pair of a live connection.
#[derive(Debug)]
pub struct Link {
    /// Our side.
    pub role: Role,
    /// The shared memory, by region index.
    pub regions: Arc<[Region]>,
    /// The ring that we receive from.
    pub rx: Option<RingEnd>,
    /// The ring that we send to.
    pub tx: Option<RingEnd>,
    /// Bytes of a buffer (client: of our own making).
    pub buffer_size: u32,
    /// Client: distance of two buffers.
    pub stride: u32,
}

impl Link {
    /// True if the peer's memory went away.
    pub fn is_lost(&self) -> bool {
        self.regions.iter().any(Region::is_lost)
    }
}

/// Place where a worker finds its current link. The worker looks at `epoch` with one load a call
/// and takes the lock only when that has changed, that is once a connect or disconnect. The lock
/// orders the link; `epoch` and `faulty` are hints that arrive in time.
#[derive(Debug)]
pub struct LinkSlot {
    epoch: AtomicU32,
    link: Mutex<Option<Arc<Link>>>,
    /// Epoch of the link that the worker complained about.
    faulty: AtomicU32,
    /// Wakes the worker when the link changes.
    pub changed: EventFd,
    /// Wakes the peer.
    pub doorbell: Arc<Doorbell>,
    control: Arc<EventFd>,
}

impl LinkSlot {
    /// Without a link; `control` wakes the control thread.
    pub fn new(control: Arc<EventFd>, doorbell: Arc<Doorbell>) -> std::io::Result<Self> {
        Ok(Self {
            epoch: AtomicU32::new(0),
            link: Mutex::new(None),
            faulty: AtomicU32::new(u32::MAX),
            changed: EventFd::new()?,
            doorbell,
            control,
        })
    }

    /// Counts the changes of the link.
    #[inline(always)]
    pub fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Plugs in a link (or none) and returns the old one, which the worker may still be using.
    pub fn plug(&self, link: Option<Arc<Link>>) -> Option<Arc<Link>> {
        let mut place = self.link.lock().unwrap_or_else(|e| e.into_inner());
        let old = std::mem::replace(&mut *place, link);
        self.epoch.fetch_add(1, Ordering::Release);
        drop(place);
        self.changed.signal();
        old
    }

    /// The current link and its epoch; `None` if the control thread is just changing it.
    pub fn current(&self) -> Option<(u32, Option<Arc<Link>>)> {
        let place = self.link.try_lock().ok()?;
        // Relaxed: the epoch changes under the lock that is held here.
        Some((self.epoch.load(Ordering::Relaxed), place.clone()))
    }

    /// A worker found the peer breaking the rules: the control thread is to disconnect it.
    pub fn accuse(&self, epoch: u32) {
        self.faulty.store(epoch, Ordering::Release);
        self.control.signal();
    }

    /// Fault that a worker found with the peer of the current link.
    pub fn complaint(&self) -> Option<&'static str> {
        if self.faulty.load(Ordering::Acquire) != self.epoch() {
            return None;
        }
        let place = self.link.lock().unwrap_or_else(|e| e.into_inner());
        let lost = place.as_ref().is_some_and(|link| link.is_lost());
        Some(if lost {
            lost::REASON
        } else {
            "peer wrote invalid counters or descriptors"
        })
    }
}
