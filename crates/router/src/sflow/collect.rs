//! What the control thread takes of the samples, and knows of interfaces beside them.

use graph::counters::InterfaceCounts;

use super::samples::{Collected, Sample};
use crate::change::InterfaceId;
use crate::{Router, show};

/// What an interface has counted since the start, whatever was cleared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Its packets, over all workers.
    pub packets: InterfaceCounts,
    /// Samples of it that found no room on their way to the control thread.
    pub lost: u64,
}

impl Router {
    /// Takes the samples that have come since the last call, as many as may wait at once.
    pub fn samples(&mut self) -> impl Iterator<Item = Sample> {
        self.samples.iter_mut().flat_map(Collected::take)
    }

    /// What an interface has counted.
    pub fn counted(&self, interface: InterfaceId) -> Counted {
        let lost = self.samples.iter().map(|worker| worker.lost(interface));
        Counted {
            packets: show::counts_of(self, interface),
            lost: lost.sum(),
        }
    }
}
