//! `show runtime`: what each worker and each of its nodes did.

use std::fmt;

use serde::Serialize;

use graph::Class;
use graph::counters::{ExecutorCounts, InterfaceCounts, NodeCounters, NodeCounts};

use super::counts::{Executor, StageCounts, executors, since, stages};
use super::text::{center, column, heading, name, ratio};
use crate::Router;

/// All workers, then what else moves packets.
#[derive(Debug, Clone, Serialize)]
pub struct Runtime {
    /// By number.
    pub threads: Vec<Thread>,
}

/// One worker, or one of the others, since its start or the last `clear runtime`.
#[derive(Debug, Clone, Serialize)]
pub struct Thread {
    /// Number of the thread; workers count from 1.
    pub id: usize,
    /// Name.
    pub name: String,
    /// Processor that it is pinned to.
    pub cpu: Option<usize>,
    /// Seconds counted.
    pub seconds: f64,
    /// Seconds of them in which packets were received, processed and sent; 0 where cycles are not
    /// measured.
    pub busy_seconds: f64,
    /// Packets a call, over all nodes.
    pub vector_rate: f64,
    /// Rounds a second.
    pub loops_per_second: f64,
    /// Packets received a second.
    pub in_per_second: f64,
    /// Packets given to ports a second.
    pub out_per_second: f64,
    /// Packets dropped a second.
    pub drop_per_second: f64,
    /// Packets for the host a second.
    pub punt_per_second: f64,
    /// Nodes and ports that had packets, by name.
    pub nodes: Vec<Row>,
}

/// One node, or one direction of an interface's port.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Row {
    /// Node, `<interface>-rx` or `<interface>-tx`.
    pub name: String,
    /// State of its work.
    pub state: RowState,
    /// Times it was called.
    pub calls: u64,
    /// Packets.
    pub vectors: u64,
    /// TSC cycles a packet; none where they are not measured: in an XDP program, and behind the
    /// first stage of a fused node, whose row has those of the whole node.
    pub clocks: Option<f64>,
    /// Packets a call.
    pub vectors_per_call: f64,
}

/// State of a node's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RowState {
    /// Runs when packets come.
    Active,
    /// Runs every round.
    Polling,
    /// Inside of the node that the row above names.
    Fused,
}

/// Work of each worker and node.
pub fn runtime(router: &Router) -> Runtime {
    let counts = since(router, &router.cleared.runtime);
    let executors = executors(router);
    let threads = executors.iter().zip(&counts).zip(1..);
    Runtime {
        threads: threads
            .map(|((executor, counts), id)| thread(router, id, executor, counts))
            .collect(),
    }
}

fn thread(router: &Router, id: usize, executor: &Executor<'_>, counts: &ExecutorCounts) -> Thread {
    let per_second = graph::cycles::per_second();
    let seconds = counts.cycles as f64 / per_second;
    let rate = |n: u64| {
        if seconds > 0.0 {
            n as f64 / seconds
        } else {
            0.0
        }
    };
    let (mut nodes, mut ports) = (NodeCounts::default(), InterfaceCounts::default());
    counts.nodes.iter().for_each(|node| nodes.add(node));
    counts.interfaces.iter().for_each(|port| ports.add(port));
    let busy = [nodes.clocks, ports.rx_clocks, ports.tx_clocks];
    let busy = busy.into_iter().fold(0, u64::wrapping_add);
    let of = |class| {
        let named = executor.counters.nodes.iter().zip(&counts.nodes);
        let all = named.map(|((_, node), counts)| packets_of(class, node, counts));
        all.fold(0, u64::wrapping_add)
    };
    Thread {
        id,
        name: executor.name.clone(),
        cpu: executor.cpu,
        seconds,
        busy_seconds: busy as f64 / per_second,
        vector_rate: ratio(nodes.packets, nodes.calls),
        loops_per_second: rate(counts.worker.loops),
        in_per_second: rate(ports.rx_packets),
        out_per_second: rate(ports.tx_packets),
        drop_per_second: rate(of(Class::Lost)),
        punt_per_second: rate(of(Class::Punted)),
        nodes: rows(router, executor, counts),
    }
}

/// The rows of nodes and ports that were called.
fn rows(router: &Router, executor: &Executor<'_>, counts: &ExecutorCounts) -> Vec<Row> {
    let nodes = executor
        .counters
        .nodes
        .iter()
        .zip(&counts.nodes)
        .map(|((_, node), counts)| stage_rows(node, counts));
    // What an interface that is gone did is history.
    let is_there = |id: &usize| router.state.links.interfaces.contains_key(&(*id as u16));
    let ports = counts.interfaces.iter().enumerate();
    let ports = ports.filter(|(id, _)| is_there(id));
    let ports = ports.flat_map(|(i, c)| {
        let direction = |direction, state, calls, packets, clocks| {
            let name = format!("{}-{direction}", name(router, i as u16));
            vec![row(name, state, calls, packets, clocks)]
        };
        let (polled, active) = (RowState::Polling, RowState::Active);
        [
            direction("rx", polled, c.rx_calls, c.rx_packets, c.rx_clocks),
            direction("tx", active, c.tx_calls, c.tx_packets, c.tx_clocks),
        ]
    });
    let mut groups: Vec<Vec<Row>> = nodes.chain(ports).collect();
    groups.retain(|rows| rows.first().is_some_and(|row| row.calls > 0));
    groups.sort_by(|a, b| a[0].name.cmp(&b[0].name));
    groups.into_iter().flatten().collect()
}

/// The rows of a node's stages.
fn stage_rows(node: &NodeCounters, counts: &NodeCounts) -> Vec<Row> {
    let stages = stages(node, counts).into_iter().enumerate();
    stages
        .map(|(i, stage)| {
            let (state, clocks) = match i {
                0 => (RowState::Active, counts.clocks),
                _ => (RowState::Fused, 0),
            };
            let name = stage.info.name.into();
            row(name, state, counts.calls, stage.packets, clocks)
        })
        .collect()
}

fn row(name: String, state: RowState, calls: u64, vectors: u64, clocks: u64) -> Row {
    Row {
        name,
        state,
        calls,
        vectors,
        clocks: (clocks > 0).then(|| ratio(clocks, vectors)),
        vectors_per_call: ratio(vectors, calls),
    }
}

/// Packets that left a node by edges of this class.
fn packets_of(class: Class, node: &NodeCounters, counts: &NodeCounts) -> u64 {
    let stages = stages(node, counts);
    let edges = stages.iter().flat_map(StageCounts::edges);
    let of_class = edges.filter(|(edge, _)| edge.class == class);
    of_class.map(|(_, n)| n).fold(0, u64::wrapping_add)
}

impl fmt::Display for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, thread) in self.threads.iter().enumerate() {
            if i > 0 {
                writeln!(f, "---------------")?;
            }
            write!(f, "{thread}")?;
        }
        Ok(())
    }
}

const COLUMNS: [(&str, usize); 6] = [
    ("Name", 30),
    ("State", 12),
    ("Calls", 16),
    ("Vectors", 16),
    ("Packet-Clocks", 16),
    ("Vectors/Call", 16),
];

impl fmt::Display for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Thread {} {}", self.id, self.name)?;
        match self.cpu {
            Some(cpu) => writeln!(f, " (cpu {cpu})")?,
            None => writeln!(f)?,
        }
        writeln!(
            f,
            "Time {:.1}, internal node vector rate {:.2} loops/sec {:.2}",
            self.seconds, self.vector_rate, self.loops_per_second
        )?;
        writeln!(
            f,
            "  vector rates in {:.4e}, out {:.4e}, drop {:.4e}, punt {:.4e}",
            self.in_per_second, self.out_per_second, self.drop_per_second, self.punt_per_second
        )?;
        writeln!(f, "{}", heading(&COLUMNS))?;
        for r in &self.nodes {
            let state = match r.state {
                RowState::Active => "active",
                RowState::Polling => "polling",
                RowState::Fused => "fused",
            };
            writeln!(
                f,
                "{}{}{:>16}{:>16}{:>16}{:>16.2}",
                column(&r.name, 30),
                center(state, 12),
                r.calls,
                r.vectors,
                r.clocks
                    .map_or("-".into(), |clocks| format!("{clocks:.2e}")),
                r.vectors_per_call
            )?;
        }
        Ok(())
    }
}
