//! What executors had counted at one moment, and what of it was cleared: they only ever count up,
//! so clearing is remembering and subtracting.

/// What a node had done at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NodeCounts {
    pub calls: u64,
    pub packets: u64,
    pub clocks: u64,
    pub edges: Vec<u64>,
}

/// What had gone over an interface at one executor at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct InterfaceCounts {
    pub rx_packets: u64,
    pub rx_bytes: u64,
    pub tx_packets: u64,
    pub tx_bytes: u64,
    pub drops: u64,
    pub tx_errors: u64,
    pub no_port: u64,
    pub rx_calls: u64,
    pub rx_clocks: u64,
    pub tx_calls: u64,
    pub tx_clocks: u64,
}

/// What an executor had done at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ExecutorCounts {
    /// TSC of that moment.
    pub at: u64,
    pub loops: u64,
    pub busy_loops: u64,
    pub sleeps: u64,
    pub queue_full: u64,
    pub handoff_full: u64,
    pub handoffs: u64,
    pub nodes: Vec<NodeCounts>,
    pub interfaces: Vec<InterfaceCounts>,
}

/// What each `clear` command remembers; nothing was cleared where a list is empty.
#[derive(Debug, Default)]
pub(crate) struct Cleared {
    pub runtime: Vec<ExecutorCounts>,
    pub errors: Vec<ExecutorCounts>,
    pub interface: Vec<ExecutorCounts>,
}
