//! What the stages of one worker share: table readers and the snapshot.

use crate::event::Events;
use crate::limits::Limits;
use crate::snapshot::Snapshot;
use crate::state::State;
use graph::epoch::Reader;
use graph::worker::Context;
use std::sync::Arc;
use tables::{adjacency, interface, ip4, nexthop};

/// Readers of all that the control thread writes.
pub struct Cx {
    /// Interfaces.
    pub interfaces: interface::Reader,
    /// IPv4 destinations.
    pub fib: ip4::Reader,
    /// Next-hop groups.
    pub groups: nexthop::Reader,
    /// Adjacencies.
    pub adjacencies: adjacency::Reader,
    /// What the workers may do only so often, all together.
    pub limits: Arc<Limits>,
    /// To the control thread.
    pub events: Events,
    /// Raised whenever anything was published: nodes that hold packets try them again.
    pub changes: u64,
    snapshot: Reader<Snapshot>,
}

impl Cx {
    pub(crate) fn new(
        state: &State,
        snapshot: Reader<Snapshot>,
        limits: Arc<Limits>,
        events: Events,
    ) -> Self {
        Cx {
            interfaces: state.interfaces.reader(),
            fib: state.fib.reader(),
            groups: state.nexthops.groups.reader(),
            adjacencies: state.nexthops.slab.reader(),
            limits,
            events,
            changes: 0,
            snapshot,
        }
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
