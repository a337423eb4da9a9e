//! Counters: written by one worker with plain stores, read by any thread. Readers that clear them
//! keep a baseline.

use crate::stage::StageInfo;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A counter with one writer.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds; only the owner calls this.
    #[inline(always)]
    pub fn add(&self, n: u64) {
        self.0.store(
            self.0.load(Ordering::Relaxed).wrapping_add(n),
            Ordering::Relaxed,
        );
    }
    /// Replaces the value of what is a level, not a count; only the owner calls this.
    #[inline(always)]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
    /// The value.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One node's counters: its row in `show runtime`, and its edges.
#[derive(Debug)]
#[repr(align(128))]
pub struct NodeCounters {
    /// Frames that it was given.
    pub calls: Counter,
    /// Packets that it was given.
    pub packets: Counter,
    /// TSC cycles spent in it.
    pub clocks: Counter,
    /// Packets that left by each edge.
    pub edges: Box<[Counter]>,
    /// The stages it is made of.
    pub stages: Box<[StageInfo]>,
}

impl NodeCounters {
    /// Counters for a node of these stages.
    pub fn new(stages: Vec<StageInfo>) -> Arc<Self> {
        let edges = stages.iter().map(|p| p.edges.len()).sum();
        Arc::new(NodeCounters {
            calls: Counter::default(),
            packets: Counter::default(),
            clocks: Counter::default(),
            edges: (0..edges).map(|_| Counter::default()).collect(),
            stages: stages.into(),
        })
    }
}

/// One interface's counters at one worker.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct InterfaceCounters {
    /// Packets received.
    pub rx_packets: Counter,
    /// Bytes received, without FCS.
    pub rx_bytes: Counter,
    /// Packets that the port took.
    pub tx_packets: Counter,
    /// Bytes that the port took, without FCS.
    pub tx_bytes: Counter,
    /// Packets received here that ended in a drop.
    pub drops: Counter,
    /// Packets for this interface that its port did not take.
    pub tx_errors: Counter,
    /// Packets for this interface while no port served it.
    pub no_port: Counter,
    /// Calls of the port's receive function that brought packets.
    pub rx_calls: Counter,
    /// TSC cycles in the port's receive function while it brought packets.
    pub rx_clocks: Counter,
    /// Calls of the port's transmit function.
    pub tx_calls: Counter,
    /// TSC cycles in the port's transmit function.
    pub tx_clocks: Counter,
}

/// Counters of a worker's loop.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct WorkerCounters {
    /// Rounds of its loop.
    pub loops: Counter,
    /// Rounds that moved packets.
    pub busy_loops: Counter,
    /// Times it slept.
    pub sleeps: Counter,
    /// Packets lost because a node's queue and all spare frames were full.
    pub queue_full: Counter,
    /// Packets lost on the way to another worker.
    pub handoff_full: Counter,
    /// Packets handed to another worker.
    pub handoffs: Counter,
    /// Buffers in its cache, updated about once a millisecond.
    pub cached: Counter,
}

/// All counters of one executor: a worker, or an XDP program that takes packets the same way.
#[derive(Debug, Clone)]
pub struct ExecutorCounters {
    /// TSC at its start.
    pub started: u64,
    /// Counters of its loop; all 0 where it has none.
    pub worker: Arc<WorkerCounters>,
    /// Names and counters of its nodes.
    pub nodes: Vec<(&'static str, Arc<NodeCounters>)>,
    /// Counters of the interfaces, by interface.
    pub interfaces: Vec<Arc<InterfaceCounters>>,
}

impl ExecutorCounters {
    /// Counters of the same nodes and interfaces for another executor, which starts now.
    pub fn anew(&self) -> Self {
        let node = |n: &NodeCounters| NodeCounters::new(n.stages.to_vec());
        ExecutorCounters {
            started: crate::cycles::now(),
            worker: Arc::default(),
            nodes: self
                .nodes
                .iter()
                .map(|(name, n)| (*name, node(n)))
                .collect(),
            interfaces: self.interfaces.iter().map(|_| Arc::default()).collect(),
        }
    }

    /// The counter of a stage's edge, by the names of both. Of a stage in several nodes, that of
    /// the first node.
    pub fn edge(&self, stage: &str, edge: &str) -> Option<&Counter> {
        self.nodes.iter().find_map(|(_, node)| {
            let edges = node.stages.iter();
            let mut edges = edges.flat_map(|p| p.edges.iter().map(|e| (p.name, e.name)));
            let at = edges.position(|found| found == (stage, edge))?;
            node.edges.get(at)
        })
    }
}
