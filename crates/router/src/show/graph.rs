//! `show graph`: the nodes of a worker, where their packets go, and how many went there.

use std::collections::BTreeSet;
use std::fmt;
use std::mem::take;

use serde::Serialize;

use graph::To;
use graph::counters::{NodeCounters, NodeCounts};

use super::counts::{since, stages};
use super::text::{column, heading};
use crate::Router;

/// Name of the end of the graph at which packets leave by an interface.
const OUTPUT: &str = "interface-output";

/// All nodes.
#[derive(Debug, Clone, Serialize)]
pub struct Graph {
    /// In the order of a packet's way.
    pub nodes: Vec<Node>,
}

/// One node.
#[derive(Debug, Clone, Serialize)]
pub struct Node {
    /// Its name.
    pub name: &'static str,
    /// Its stages; more than one if they are fused.
    pub stages: Vec<&'static str>,
    /// The edges of its stages, in order.
    pub edges: Vec<Edge>,
    /// The nodes that its packets go to; `interface-output` where they leave by an interface.
    pub next: Vec<&'static str>,
    /// The nodes that its packets come from; a port where there is none.
    pub previous: Vec<&'static str>,
    /// Reasons for which it drops packets.
    pub drops: Vec<&'static str>,
}

/// One way out of a stage. With neither `next` nor `drop` it leads to the next stage of its node.
#[derive(Debug, Clone, Serialize)]
pub struct Edge {
    /// The stage.
    pub stage: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Packets that took it since the start or the last `clear runtime`, over all executors.
    pub packets: u64,
    /// The nodes that it may lead to, as [`Node::next`]; several along an arc of features.
    pub next: Vec<&'static str>,
    /// Reason why packets end there.
    pub drop: Option<&'static str>,
}

/// The graph that every worker runs; without nodes if there is no worker.
pub fn graph(router: &Router) -> Graph {
    let executors = since(router, &router.cleared.runtime);
    let counters = router.workers.first().map(|w| &w.counters.nodes[..]);
    let all = counters.unwrap_or_default().iter().enumerate();
    let mut nodes: Vec<_> = all
        .map(|(i, (name, counters))| {
            let mut total = NodeCounts::default();
            total.edges.resize(counters.edges.len(), 0);
            let counts = executors.iter().filter_map(|e| e.nodes.get(i));
            counts.for_each(|counts| total.add(counts));
            node(name, counters, &total)
        })
        .collect();
    for i in 0..nodes.len() {
        let name = nodes[i].name;
        let before = nodes.iter().filter(|other| other.next.contains(&name));
        nodes[i].previous = before.map(|other| other.name).collect();
    }
    Graph { nodes }
}

fn node(name: &'static str, counters: &NodeCounters, counts: &NodeCounts) -> Node {
    let mut next = counters.next.iter();
    let mut edges = Vec::new();
    for stage in stages(counters, counts) {
        for ((edge, packets), next) in stage.edges().zip(&mut next) {
            edges.push(Edge {
                stage: stage.info.name,
                name: edge.name,
                packets,
                next: next.iter().map(|node| node.unwrap_or(OUTPUT)).collect(),
                drop: match edge.to {
                    To::Drop(reason) => Some(reason),
                    To::Node(_) | To::Arc(_) | To::Interface | To::Port => None,
                },
            });
        }
    }
    let next: BTreeSet<_> = edges.iter().flat_map(|edge| &edge.next).copied().collect();
    Node {
        name,
        stages: counters.stages.iter().map(|stage| stage.name).collect(),
        next: next.into_iter().collect(),
        previous: Vec::new(),
        drops: edges.iter().filter_map(|edge| edge.drop).collect(),
        edges,
    }
}

impl Graph {
    /// The graph in Graphviz's language, without drops and counts.
    pub fn dot(&self) -> String {
        let mut text = String::from("digraph {\n  rankdir=LR;\n  node [shape=box];\n");
        if let Some(entry) = self.nodes.first() {
            text += &format!("  \"port\" -> \"{}\";\n", entry.name);
        }
        for node in &self.nodes {
            let label = node.stages.join("\\n");
            text += &format!("  \"{}\" [label=\"{label}\"];\n", node.name);
            for next in &node.next {
                text += &format!("  \"{}\" -> \"{next}\";\n", node.name);
            }
        }
        text + "}\n"
    }
}

const COLUMNS: [(&str, usize); 5] = [
    ("Name", 24),
    ("Edge", 24),
    ("Packets", 16),
    ("Next", 26),
    ("Previous", 20),
];

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", heading(&COLUMNS))?;
        self.nodes.iter().try_for_each(|node| write!(f, "{node}"))
    }
}

/// Without drops, which `show errors` has.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.rows();
        for i in 0..rows.len().max(self.previous.len()) {
            let [name, edge, packets, next] = rows.get(i).cloned().unwrap_or_default();
            let line = column(&name, COLUMNS[0].1)
                + &column(&edge, COLUMNS[1].1)
                + &format!("{packets:>14}  ")
                + &column(&next, COLUMNS[3].1)
                + self.previous.get(i).unwrap_or(&"");
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

impl Node {
    /// Name, edge, packets and next: a row for each edge that is no drop, and one more for each
    /// further node that it may lead to.
    fn rows(&self) -> Vec<[String; 4]> {
        let mut rows = Vec::new();
        for (i, stage) in self.stages.iter().enumerate() {
            let fused = if i > 0 { "  + " } else { "" };
            let mut name = format!("{fused}{stage}");
            let within = self.stages.get(i + 1).map(|stage| format!("+ {stage}"));
            let own = self.edges.iter().filter(|edge| edge.stage == *stage);
            for edge in own.filter(|edge| edge.drop.is_none()) {
                let within = within.clone().filter(|_| edge.next.is_empty());
                let mut next = edge.next.iter().map(ToString::to_string).chain(within);
                let first = next.next().unwrap_or_default();
                let (name, packets) = (take(&mut name), edge.packets.to_string());
                rows.push([name, edge.name.into(), packets, first]);
                rows.extend(next.map(|next| [String::new(), String::new(), String::new(), next]));
            }
            if !name.is_empty() {
                rows.push([name, String::new(), String::new(), String::new()]);
            }
        }
        rows
    }
}
