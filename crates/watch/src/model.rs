//! The router's answers, as far as what shows them uses them (docs/json.md).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `show interface`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Interfaces {
    /// All, by name.
    pub interfaces: Vec<Interface>,
}

/// An interface. Counts are null for a loopback, whose packets are the kernel's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Interface {
    /// Name as configured.
    pub name: String,
    /// Up and with carrier.
    pub up: bool,
    /// Largest IP packet in bytes.
    pub mtu: Option<u16>,
    /// Ethernet address.
    pub mac: Option<String>,
    /// Interface whose packets to and from the host it carries.
    pub host_of: Option<String>,
    /// Reason why its device is absent.
    pub absent: Option<String>,
    /// Packets received.
    pub rx_packets: Option<u64>,
    /// Bytes received, without frame check sequence.
    pub rx_bytes: Option<u64>,
    /// Packets sent.
    pub tx_packets: Option<u64>,
    /// Bytes sent, without frame check sequence.
    pub tx_bytes: Option<u64>,
    /// Packets dropped that came by it.
    pub drops: Option<u64>,
    /// Packets that could not be sent by it.
    pub tx_errors: Option<u64>,
}

/// `show runtime`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Runtime {
    /// All, by number.
    pub threads: Vec<Worker>,
}

/// A worker, or an executor in the kernel, and its nodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Worker {
    /// Name.
    pub name: String,
    /// Processor that it is bound to.
    pub cpu: Option<usize>,
    /// Seconds counted.
    #[serde(default)]
    pub seconds: f64,
    /// Seconds of them in which packets were received, processed and sent.
    #[serde(default)]
    pub busy_seconds: f64,
    /// Packets a call, over all nodes.
    pub vector_rate: f64,
    /// Nodes and ports that had packets.
    pub nodes: Vec<NodeWork>,
}

/// The work of a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeWork {
    /// Node, `<interface>-rx` or `<interface>-tx`.
    pub name: String,
    /// Times it was called.
    pub calls: u64,
    /// Packets.
    pub vectors: u64,
    /// TSC cycles a packet; null where they are not measured.
    pub clocks: Option<f64>,
    /// Its work of late; null until it was asked for twice.
    #[serde(default)]
    pub rate: Option<NodeRate>,
}

/// The work of a node between two looks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeRate {
    /// Packets a second.
    pub pps: f64,
    /// Packets a call; null if it was not called.
    pub vectors_per_call: Option<f64>,
    /// TSC cycles a packet; null where they are not measured.
    pub cycles_per_packet: Option<f64>,
}

/// `show threads`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Threads {
    /// All, by number.
    pub threads: Vec<Thread>,
}

/// The rounds of a worker.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Thread {
    /// Name.
    pub name: String,
    /// True while it runs.
    pub alive: bool,
    /// Rounds.
    pub loops: u64,
    /// Rounds that moved packets.
    pub busy_loops: u64,
    /// Times it slept.
    pub sleeps: u64,
}

/// `show flows counters`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct FlowTables {
    /// All, by number.
    pub workers: Vec<FlowTable>,
}

/// The firewall's flows of a worker.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlowTable {
    /// The worker.
    pub worker: String,
    /// Flows that it holds.
    pub flows: u64,
    /// Flows that it has room for.
    pub room: u64,
    /// Those that it holds which were not answered.
    pub embryonic: u64,
    /// Flows that have begun.
    pub begun: u64,
    /// Flows that found the table full.
    pub refused: u64,
    /// Flows that went because too many were not answered.
    pub displaced: u64,
    /// Flows that were idle for too long.
    pub expired: u64,
}

/// `show bridge-domain`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Bridges {
    /// All, by number.
    pub bridge_domains: Vec<Bridge>,
}

/// A bridge domain.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Bridge {
    /// Name.
    pub name: String,
    /// Stations that it has learned.
    pub learned: u64,
    /// What has become of frames and stations.
    pub counters: BridgeCounters,
}

/// Counts of a bridge domain since it is there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BridgeCounters {
    /// Broadcast frames that were flooded.
    pub flooded_broadcast: u64,
    /// Multicast frames that were flooded.
    pub flooded_multicast: u64,
    /// Frames to stations that nobody knew, which were flooded.
    pub flooded_unknown: u64,
    /// Times that a station was seen behind another interface than before.
    pub moves: u64,
    /// Times that a station was not learned since the domain or the table was full.
    pub not_learned: u64,
    /// Frames of stations that were not learned from them since too many came at once; the
    /// stations' next frames are.
    pub learns_lost: u64,
}

/// `show errors`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Errors {
    /// All, by node and reason.
    pub errors: Vec<Loss>,
}

/// Packets that ended at a node for a reason.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Loss {
    /// Packets.
    pub count: u64,
    /// Node, `<interface>-tx`, worker or port.
    pub node: String,
    /// Reason.
    pub reason: String,
    /// `error` if they were lost, `info` if they were dealt with in another way.
    pub severity: String,
}

/// `show graph`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Graph {
    /// In the order of a packet's way.
    pub nodes: Vec<Node>,
}

/// A node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    /// Name.
    pub name: String,
    /// Its edges.
    pub edges: Vec<Edge>,
}

/// An edge of a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Edge {
    /// Stage of the node.
    pub stage: String,
    /// Name.
    pub name: String,
    /// Packets that took it.
    pub packets: u64,
    /// Packets a second; null until it was asked for twice.
    #[serde(default)]
    pub pps: Option<f64>,
    /// Nodes that it may lead to.
    pub next: Vec<String>,
    /// Reason why packets end there.
    pub drop: Option<String>,
}

/// `show version`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Version {
    /// Version of the program.
    pub version: String,
    /// Target and kind of build.
    pub build: String,
    /// Version of the kernel.
    pub kernel: String,
}

/// `show warnings`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Warnings {
    /// All.
    pub warnings: Vec<String>,
}

/// The router at a point in time. Counts are since its start or the last `clear`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub struct Snapshot {
    /// Its version.
    pub version: Version,
    /// Its interfaces, by name.
    pub interfaces: Vec<Interface>,
    /// Its workers and their nodes.
    pub workers: Vec<Worker>,
    /// Its workers' rounds.
    pub threads: Vec<Thread>,
    /// The firewall's flows, by worker.
    pub flows: Vec<FlowTable>,
    /// Its bridge domains, by number.
    pub bridges: Vec<Bridge>,
    /// Packets that ended somewhere, by node and reason.
    pub errors: Vec<Loss>,
    /// The answer of `show hardware`.
    pub hardware: serde_json::Value,
    /// Advice of the router for its operator.
    pub warnings: Vec<String>,
    /// The node graph, which has an answer of its own.
    #[serde(skip)]
    pub graph: Graph,
}
