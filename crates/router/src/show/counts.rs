//! The counters of everything that moves packets, and how they are cleared.

use graph::Edge;
use graph::counters::{
    ExecutorCounters, ExecutorCounts, InterfaceCounts, NodeCounters, NodeCounts,
};
use graph::stage::StageInfo;

use crate::{InterfaceId, Router, worker_name};

/// Counters that can be cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clear {
    /// `clear runtime`.
    Runtime,
    /// `clear errors`.
    Errors,
    /// `clear interface`: all interfaces.
    Interface,
}

impl Router {
    /// Counts from 0 again in what is shown.
    pub fn clear(&mut self, what: Clear) {
        let now = since(self, &[]);
        match what {
            Clear::Runtime => self.cleared.runtime = now,
            Clear::Errors => self.cleared.errors = now,
            Clear::Interface => self.cleared.interface = now,
        }
    }

    /// An interface counts from 0, whatever an earlier one of its number had counted.
    pub(crate) fn clear_interface(&mut self, id: InterfaceId) {
        let id = usize::from(id);
        let now = since(self, &[]);
        let base = &mut self.cleared.interface;
        base.resize_with(now.len(), ExecutorCounts::default);
        for (base, now) in base.iter_mut().zip(&now) {
            let known = base.interfaces.len().max(now.interfaces.len());
            base.interfaces.resize_with(known, InterfaceCounts::default);
            if let (Some(base), Some(now)) = (base.interfaces.get_mut(id), now.interfaces.get(id)) {
                *base = *now;
            }
        }
    }
}

/// Something that moves packets.
pub(crate) struct Executor<'a> {
    pub name: String,
    /// The processor that it is pinned to.
    pub cpu: Option<usize>,
    pub counters: &'a ExecutorCounters,
}

/// The workers, then what else moves packets.
pub(crate) fn executors(router: &Router) -> Vec<Executor<'_>> {
    let workers = router.workers.iter().enumerate();
    let workers = workers.map(|(i, worker)| Executor {
        name: worker_name(i),
        cpu: worker.cpu,
        counters: &worker.counters,
    });
    let others = router.others.iter().map(|(name, counters)| Executor {
        name: (*name).into(),
        cpu: None,
        counters,
    });
    workers.chain(others).collect()
}

/// Counts of all executors since `cleared`, or since their start if it does not have them.
pub(crate) fn since(router: &Router, cleared: &[ExecutorCounts]) -> Vec<ExecutorCounts> {
    let executors = executors(router).into_iter();
    let mut all: Vec<_> = executors.map(|e| e.counters.read()).collect();
    for (now, base) in all.iter_mut().zip(cleared) {
        now.subtract(base);
    }
    all
}

/// Counts of one stage of a node.
pub(crate) struct StageCounts<'a> {
    pub info: &'a StageInfo,
    /// Packets that came to it.
    pub packets: u64,
    edges: Vec<u64>,
}

impl<'a> StageCounts<'a> {
    /// Its edges, in order, with the packets that took each.
    pub fn edges(&self) -> impl Iterator<Item = (&'a Edge, u64)> {
        self.info.edges.iter().zip(self.edges.iter().copied())
    }
}

/// Counts of each stage of a node. The engine does not count the edge to the next stage of the same
/// node: every packet took it that took no other.
pub(crate) fn stages<'a>(node: &'a NodeCounters, counts: &NodeCounts) -> Vec<StageCounts<'a>> {
    let (mut packets, mut counted) = (counts.packets, counts.edges.iter().copied());
    let stages = node.stages.iter().enumerate();
    stages
        .map(|(i, info)| {
            let mut edges: Vec<u64> = counted.by_ref().take(info.edges.len()).collect();
            let came = packets;
            if i + 1 < node.stages.len() {
                let others = edges
                    .iter()
                    .enumerate()
                    .filter(|(edge, _)| *edge != info.thru);
                packets = others.fold(packets, |n, (_, left)| n.saturating_sub(*left));
                if let Some(within) = edges.get_mut(info.thru) {
                    *within = packets;
                }
            }
            StageCounts {
                info,
                packets: came,
                edges,
            }
        })
        .collect()
}
