//! Counters: written by one worker with plain stores, read by any thread. They only count up; to
//! count from 0 again, a reader remembers what they were and subtracts that.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::stage::StageInfo;

/// A counter with one writer.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds; only the owner calls this.
    #[inline(always)]
    pub fn add(&self, n: u64) {
        self.0.store(
            // No `fetch_add`: with one writer nothing is lost, and a locked addition would cost
            // more than all else that is done to count.
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

/// Makes two structs of one list of counters: the counters themselves, and their values at one
/// moment. A counter that `show` prints on a line of its own has its text there behind it.
macro_rules! counters {
    (
        $(#[$counters_meta:meta])* struct $Counters:ident;
        $(#[$counts_meta:meta])* struct $Counts:ident;
        $($(#[$meta:meta])* $counter:ident $($text:literal)?,)+
    ) => {
        $(#[$counters_meta])*
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub struct $Counters {
            $($(#[$meta])* pub $counter: Counter,)+
        }

        impl $Counters {
            /// The values now.
            pub fn read(&self) -> $Counts {
                $Counts { $($counter: self.$counter.get(),)+ }
            }
        }

        $(#[$counts_meta])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct $Counts {
            $($(#[$meta])* pub $counter: u64,)+
        }

        impl $Counts {
            /// Adds what another executor counted. Counters wrap around, and so do sums.
            pub fn add(&mut self, other: &Self) {
                $(self.$counter = self.$counter.wrapping_add(other.$counter);)+
            }

            /// Subtracts what had been counted before. Counters wrap around, and so do differences.
            pub fn subtract(&mut self, base: &Self) {
                $(self.$counter = self.$counter.wrapping_sub(base.$counter);)+
            }

            /// Those with a text, in order: name, text, value.
            pub fn texts(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$($((stringify!($counter), $text, self.$counter),)?)+].into_iter()
            }
        }
    };
}

counters! {
    /// One interface's counters at one worker.
    struct InterfaceCounters;
    /// Values of [`InterfaceCounters`], of one executor or of several; the texts are those of
    /// `show interface`.
    struct InterfaceCounts;

    /// Packets received.
    rx_packets "rx packets",
    /// Bytes received, without FCS.
    rx_bytes "rx bytes",
    /// Packets that the port took.
    tx_packets "tx packets",
    /// Bytes that the port took, without FCS.
    tx_bytes "tx bytes",
    /// Packets received here that ended in a drop.
    drops "drops",
    /// Packets for this interface that its port did not take.
    tx_errors "tx-error",
    /// Packets for this interface while no port served it.
    no_port,
    /// Calls of the port's receive function that brought packets.
    rx_calls,
    /// TSC cycles in the port's receive function while it brought packets.
    rx_clocks,
    /// Calls of the port's transmit function.
    tx_calls,
    /// TSC cycles in the port's transmit function.
    tx_clocks,
}

counters! {
    /// Counters of a worker's loop.
    struct WorkerCounters;
    /// Values of [`WorkerCounters`]; the texts are the reasons in `show errors`.
    struct WorkerCounts;

    /// Rounds of its loop.
    loops,
    /// Rounds that moved packets.
    busy_loops,
    /// Times it slept.
    sleeps,
    /// Packets lost because a node's queue and all spare frames were full.
    queue_full "node queue full",
    /// Packets lost on the way to another worker.
    handoff_full "ring to another worker full",
    /// Packets handed to another worker.
    handoffs,
    /// Buffers in its cache, updated about once a millisecond: a level, so a difference of it says
    /// nothing.
    cached,
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
    /// The nodes that each edge may lead to, `None` standing for an interface. By an edge without
    /// any, packets end there or go on to the node's next stage.
    pub next: Box<[Vec<Option<&'static str>>]>,
}

impl NodeCounters {
    /// Counters for a node of these stages, whose edges lead to these nodes.
    pub fn new(stages: Vec<StageInfo>, next: Vec<Vec<Option<&'static str>>>) -> Arc<Self> {
        Arc::new(NodeCounters {
            calls: Counter::default(),
            packets: Counter::default(),
            clocks: Counter::default(),
            edges: next.iter().map(|_| Counter::default()).collect(),
            stages: stages.into(),
            next: next.into(),
        })
    }

    /// The values now.
    pub fn read(&self) -> NodeCounts {
        NodeCounts {
            calls: self.calls.get(),
            packets: self.packets.get(),
            clocks: self.clocks.get(),
            edges: self.edges.iter().map(Counter::get).collect(),
        }
    }
}

/// Values of [`NodeCounters`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// Frames that it was given.
    pub calls: u64,
    /// Packets that it was given.
    pub packets: u64,
    /// TSC cycles spent in it.
    pub clocks: u64,
    /// Packets that left by each edge.
    pub edges: Vec<u64>,
}

impl NodeCounts {
    /// Adds what another executor counted. Counters wrap around, and so do sums.
    pub fn add(&mut self, other: &NodeCounts) {
        self.combine(other, u64::wrapping_add);
    }

    /// Subtracts what had been counted before. Counters wrap around, and so do differences.
    pub fn subtract(&mut self, base: &NodeCounts) {
        self.combine(base, u64::wrapping_sub);
    }

    fn combine(&mut self, other: &NodeCounts, f: fn(u64, u64) -> u64) {
        self.calls = f(self.calls, other.calls);
        self.packets = f(self.packets, other.packets);
        self.clocks = f(self.clocks, other.clocks);
        for (edge, other) in self.edges.iter_mut().zip(&other.edges) {
            *edge = f(*edge, *other);
        }
    }
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
    pub interfaces: Arc<[InterfaceCounters]>,
}

impl ExecutorCounters {
    /// Counters of the same nodes and interfaces for another executor, which starts now.
    pub fn anew(&self) -> Self {
        let node = |n: &NodeCounters| NodeCounters::new(n.stages.to_vec(), n.next.to_vec());
        ExecutorCounters {
            started: crate::cycles::now(),
            worker: Arc::default(),
            nodes: self
                .nodes
                .iter()
                .map(|(name, n)| (*name, node(n)))
                .collect(),
            interfaces: self.interfaces.iter().map(|_| Default::default()).collect(),
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

    /// The values now, and the cycles since its start.
    pub fn read(&self) -> ExecutorCounts {
        ExecutorCounts {
            cycles: crate::cycles::now().saturating_sub(self.started),
            worker: self.worker.read(),
            nodes: self.nodes.iter().map(|(_, node)| node.read()).collect(),
            interfaces: self.interfaces.iter().map(|i| i.read()).collect(),
        }
    }
}

/// Values of [`ExecutorCounters`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecutorCounts {
    /// TSC cycles in which this was counted.
    pub cycles: u64,
    /// Of its loop.
    pub worker: WorkerCounts,
    /// Of its nodes, in order.
    pub nodes: Vec<NodeCounts>,
    /// Of the interfaces, by interface.
    pub interfaces: Vec<InterfaceCounts>,
}

impl ExecutorCounts {
    /// Subtracts what had been counted before; a node or interface that `base` lacks stays.
    pub fn subtract(&mut self, base: &ExecutorCounts) {
        self.cycles = self.cycles.saturating_sub(base.cycles);
        self.worker.subtract(&base.worker);
        for (node, base) in self.nodes.iter_mut().zip(&base.nodes) {
            node.subtract(base);
        }
        for (interface, base) in self.interfaces.iter_mut().zip(&base.interfaces) {
            interface.subtract(base);
        }
    }
}
