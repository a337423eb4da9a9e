//! Taps of interfaces that are no more, which the kernel removes all at once.
//!
//! One by one each of them takes 20 ms (`Kernel::remove_all`). So those of interfaces that a change
//! removes one behind the other wait for the last one; nothing else is done meanwhile, as their names
//! and addresses are not free before.

use graph::WorkerPort;
use ports::Open;
use tracing::warn;

use super::Interfaces;

/// Taps that wait to be removed. They go when they are dropped, in any case.
#[derive(Default)]
pub(super) struct Graveyard {
    /// The kernel's indexes.
    links: Vec<u32>,
    taps: Vec<Open>,
    /// Their queues, as workers have given them back.
    queues: Vec<WorkerPort>,
}

impl Graveyard {
    /// Keeps a tap, by the kernel's index, with its queues.
    pub fn bury(&mut self, link: u32, tap: Open, queues: Vec<WorkerPort>) {
        self.links.push(link);
        self.taps.push(tap);
        self.queues.extend(queues);
    }
}

impl Interfaces {
    /// Removes the taps of all interfaces that are no more.
    pub fn remove_taps(&mut self) {
        let Graveyard {
            links,
            taps,
            queues,
        } = std::mem::take(&mut self.graveyard);
        if links.len() > 1 {
            self.remove_links(&links);
        }
        drop((taps, queues));
    }

    /// Removes taps all at once; those that are left go with their ports.
    pub(super) fn remove_links(&self, links: &[u32]) {
        let removed = self.opener.kernel().and_then(|mut k| k.remove_all(links));
        if let Err(e) = removed {
            warn!("the kernel removes taps one by one, which takes long: {e}");
        }
    }
}
