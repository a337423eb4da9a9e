//! What a worker has counted of its flows, for everyone to read.

use graph::counters::Counter;
use tables::flow::Flows;

/// Counters of a worker, as they were when its nodes were polled last.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    pub(super) flows: Counter,
    pub(super) embryonic: Counter,
    pub(super) begun: Counter,
    pub(super) refused: Counter,
    pub(super) displaced: Counter,
    pub(super) expired: Counter,
}

impl Counters {
    /// Of this table; only the worker that owns it calls this.
    pub(in crate::firewall) fn set(&self, flows: &Flows) {
        let counts = flows.counts();
        self.flows.set(flows.len() as u64);
        self.embryonic.set(flows.embryonic() as u64);
        self.begun.set(counts.inserted);
        self.refused.set(counts.refused);
        self.displaced.set(counts.displaced);
        self.expired.set(counts.expired);
    }
}
