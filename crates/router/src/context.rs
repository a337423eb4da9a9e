//! What the stages of one worker share: table readers and the snapshot.

use crate::change::InterfaceId;
use crate::snapshot::{Face, INTERFACES, Snapshot};
use graph::epoch::Reader;
use graph::worker::Context;
use tables::{adjacency, ip4, nexthop};

/// Readers of all that the control thread writes.
pub struct Cx {
    /// IPv4 destinations.
    pub fib: ip4::Reader,
    /// Next-hop groups.
    pub groups: nexthop::Reader,
    /// Adjacencies.
    pub adjacencies: adjacency::Reader,
    /// Raised whenever anything was published: who holds packets tries them again.
    pub changes: u64,
    snapshot: Reader<Snapshot>,
}

impl Cx {
    pub(crate) fn new(
        fib: ip4::Reader,
        groups: nexthop::Reader,
        adjacencies: adjacency::Reader,
        snapshot: Reader<Snapshot>,
    ) -> Self {
        Cx {
            fib,
            groups,
            adjacencies,
            changes: 0,
            snapshot,
        }
    }

    /// An interface; numbers out of range are masked into it.
    #[inline(always)]
    pub fn face(&self, interface: InterfaceId) -> &Face {
        &self.snapshot.get().faces[interface as usize & (INTERFACES - 1)]
    }

    /// The snapshot.
    #[inline(always)]
    pub fn snapshot(&self) -> &Snapshot {
        self.snapshot.get()
    }
}

impl Context for Cx {
    #[inline]
    fn refresh(&mut self) -> bool {
        let changed = self.snapshot.refresh();
        self.changes += u64::from(changed);
        changed
    }

    fn is_stale(&self) -> bool {
        self.snapshot.is_stale()
    }

    fn offline(&mut self, sleep: &mut dyn FnMut()) {
        self.snapshot.offline(sleep);
        self.changes += 1;
    }
}
