//! The context that the nodes of a worker share: table readers, the snapshot, limits and events.

use std::cell::RefCell;
use std::sync::Arc;

use graph::counters::InterfaceCounters;
use graph::epoch::Reader;
use graph::worker::Context;
use tables::{adjacency, interface, ip4, ip6, mac, nexthop};

use crate::change::InterfaceId;
use crate::event::Events;
use crate::firewall::Tracker;
use crate::limits::Limits;
use crate::sflow::Samples;
use crate::snapshot::Snapshot;
use crate::state::State;

/// A worker's context.
pub struct Cx {
    /// Interfaces.
    pub interfaces: interface::Reader,
    /// IPv4 destinations.
    pub fib: ip4::Reader,
    /// IPv6 destinations.
    pub ip6: ip6::Reader,
    /// Next-hop groups.
    pub groups: nexthop::Reader,
    /// Adjacencies.
    pub adjacencies: adjacency::Reader,
    /// Stations of bridge domains.
    pub stations: mac::Reader,
    /// Limits that all workers share.
    pub limits: Arc<Limits>,
    /// Events for the control thread.
    pub events: Events,
    /// Samples of packets for the control thread.
    pub samples: Samples,
    /// Grows whenever something is published: nodes that hold packets then try them again.
    pub changes: u64,
    /// The worker's counters, by interface.
    counters: Arc<[InterfaceCounters]>,
    /// The flows that the worker owns.
    pub(crate) tracker: RefCell<Tracker>,
    /// Number of the worker, from 0.
    pub(crate) worker: usize,
    snapshot: Reader<Snapshot>,
}

impl Cx {
    pub(crate) fn new(
        worker: usize,
        state: &State,
        snapshot: Reader<Snapshot>,
        limits: Arc<Limits>,
        (events, samples): (Events, Samples),
        counters: Arc<[InterfaceCounters]>,
        tracker: Tracker,
    ) -> Self {
        Cx {
            interfaces: state.interfaces.reader(),
            fib: state.ip4.fib.reader(),
            ip6: state.ip6.fib.reader(),
            groups: state.nexthops.groups.reader(),
            adjacencies: state.nexthops.slab.reader(),
            stations: state.bridges.stations.reader(),
            limits,
            events,
            samples,
            changes: 0,
            counters,
            tracker: RefCell::new(tracker),
            worker,
            snapshot,
        }
    }

    /// The snapshot.
    #[inline(always)]
    pub fn snapshot(&self) -> &Snapshot {
        self.snapshot.get()
    }
}

/// What interfaces without a port of their own receive and send: nobody else counts it.
impl Cx {
    /// An interface has received a frame of so many bytes.
    #[inline(always)]
    pub(crate) fn received(&self, interface: InterfaceId, bytes: usize) {
        if let Some(counters) = self.counters.get(usize::from(interface)) {
            counters.rx_packets.add(1);
            counters.rx_bytes.add(bytes as u64);
        }
    }

    /// An interface has sent a frame of so many bytes.
    #[inline(always)]
    pub(crate) fn sent(&self, interface: InterfaceId, bytes: usize) {
        if let Some(counters) = self.counters.get(usize::from(interface)) {
            counters.tx_packets.add(1);
            counters.tx_bytes.add(bytes as u64);
        }
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
        self.snapshot.is_stale() || self.tracker.borrow_mut().is_asked()
    }

    fn offline(&mut self, sleep: &mut dyn FnMut()) {
        self.snapshot.offline(sleep);
        self.changes += 1;
    }

    #[inline]
    fn is_up(&self, interface: u16) -> bool {
        self.interfaces.load(interface).mode() != interface::Mode::Down
    }
}
