//! All counters at one moment, and what was cleared: executors only ever count up, so clearing is remembering and subtracting.

use super::text::worker_name;
use crate::Router;
use crate::counts::{ExecutorCounts, InterfaceCounts, NodeCounts};
use graph::counters::{ExecutorCounters, InterfaceCounters, NodeCounters};

/// What can be cleared.
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
        let now = all(self);
        match what {
            Clear::Runtime => self.cleared.runtime = now,
            Clear::Errors => self.cleared.errors = now,
            Clear::Interface => self.cleared.interface = now,
        }
    }

    /// A new interface counts from 0, whatever an earlier one of its number had counted.
    pub(crate) fn clear_interface(&mut self, id: crate::InterfaceId) {
        let id = usize::from(id);
        let now = all(self);
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

/// Counters of all executors now.
pub(crate) fn all(router: &Router) -> Vec<ExecutorCounts> {
    let at = graph::cycles::now();
    let count = |e: Executor<'_>| ExecutorCounts {
        at,
        loops: e.counters.worker.loops.get(),
        busy_loops: e.counters.worker.busy_loops.get(),
        sleeps: e.counters.worker.sleeps.get(),
        queue_full: e.counters.worker.queue_full.get(),
        handoff_full: e.counters.worker.handoff_full.get(),
        handoffs: e.counters.worker.handoffs.get(),
        nodes: e.counters.nodes.iter().map(|(_, n)| node(n)).collect(),
        interfaces: e.counters.interfaces.iter().map(|i| interface(i)).collect(),
    };
    executors(router).into_iter().map(count).collect()
}

/// Counters of all executors since `cleared`. `at` becomes the TSC cycles that have passed since then, or since the executor's start.
pub(crate) fn since(router: &Router, cleared: &[ExecutorCounts]) -> Vec<ExecutorCounts> {
    let mut all = all(router);
    for (i, (counts, executor)) in all.iter_mut().zip(executors(router)).enumerate() {
        match cleared.get(i) {
            Some(base) => counts.subtract(base),
            None => counts.at = counts.at.saturating_sub(executor.counters.started),
        }
    }
    all
}

fn node(n: &NodeCounters) -> NodeCounts {
    NodeCounts {
        calls: n.calls.get(),
        packets: n.packets.get(),
        clocks: n.clocks.get(),
        edges: n.edges.iter().map(|e| e.get()).collect(),
    }
}

fn interface(i: &InterfaceCounters) -> InterfaceCounts {
    InterfaceCounts {
        rx_packets: i.rx_packets.get(),
        rx_bytes: i.rx_bytes.get(),
        tx_packets: i.tx_packets.get(),
        tx_bytes: i.tx_bytes.get(),
        drops: i.drops.get(),
        tx_errors: i.tx_errors.get(),
        no_port: i.no_port.get(),
        rx_calls: i.rx_calls.get(),
        rx_clocks: i.rx_clocks.get(),
        tx_calls: i.tx_calls.get(),
        tx_clocks: i.tx_clocks.get(),
    }
}

/// Counters wrap around, and so do their differences.
fn less(now: &mut u64, base: u64) {
    *now = now.wrapping_sub(base);
}

impl ExecutorCounts {
    fn subtract(&mut self, base: &ExecutorCounts) {
        less(&mut self.at, base.at);
        less(&mut self.loops, base.loops);
        less(&mut self.busy_loops, base.busy_loops);
        less(&mut self.sleeps, base.sleeps);
        less(&mut self.queue_full, base.queue_full);
        less(&mut self.handoff_full, base.handoff_full);
        less(&mut self.handoffs, base.handoffs);
        for (now, base) in self.nodes.iter_mut().zip(&base.nodes) {
            less(&mut now.calls, base.calls);
            less(&mut now.packets, base.packets);
            less(&mut now.clocks, base.clocks);
            for (now, base) in now.edges.iter_mut().zip(&base.edges) {
                less(now, *base);
            }
        }
        for (now, base) in self.interfaces.iter_mut().zip(&base.interfaces) {
            now.combine(base, u64::wrapping_sub);
        }
    }
}

impl InterfaceCounts {
    /// Adds what another executor counted.
    pub fn add(&mut self, other: &InterfaceCounts) {
        self.combine(other, u64::wrapping_add);
    }

    fn combine(&mut self, other: &InterfaceCounts, f: fn(u64, u64) -> u64) {
        let pairs = [
            (&mut self.rx_packets, other.rx_packets),
            (&mut self.rx_bytes, other.rx_bytes),
            (&mut self.tx_packets, other.tx_packets),
            (&mut self.tx_bytes, other.tx_bytes),
            (&mut self.drops, other.drops),
            (&mut self.tx_errors, other.tx_errors),
            (&mut self.no_port, other.no_port),
            (&mut self.rx_calls, other.rx_calls),
            (&mut self.rx_clocks, other.rx_clocks),
            (&mut self.tx_calls, other.tx_calls),
            (&mut self.tx_clocks, other.tx_clocks),
        ];
        for (mine, other) in pairs {
            *mine = f(*mine, other);
        }
    }
}
