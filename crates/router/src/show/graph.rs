//! `show graph`: the nodes of a worker, and where their packets go.

use std::collections::BTreeSet;
use std::fmt;

use graph::To;
use graph::stage::StageInfo;
use serde::Serialize;

use super::text::{column, heading};
use crate::arc::Arcs;
use crate::nodes;

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
    /// The nodes that its packets go to; `interface-output` where they leave by an interface.
    pub next: Vec<&'static str>,
    /// The nodes that its packets come from; a port where there is none.
    pub previous: Vec<&'static str>,
    /// Reasons for which it drops packets.
    pub drops: Vec<&'static str>,
}

/// The graph of the node table.
pub fn graph() -> Graph {
    let table = nodes::table();
    let all = table.nodes.iter();
    let mut nodes: Vec<_> = all.map(|n| node(&table.arcs, n.stages())).collect();
    for i in 0..nodes.len() {
        let name = nodes[i].name;
        let before = nodes.iter().filter(|other| other.next.contains(&name));
        nodes[i].previous = before.map(|other| other.name).collect();
    }
    Graph { nodes }
}

fn node(arcs: &Arcs, stages: Vec<StageInfo>) -> Node {
    let (mut next, mut drops) = (BTreeSet::new(), Vec::new());
    let last = stages.len() - 1;
    for (i, stage) in stages.iter().enumerate() {
        for (edge, to) in stage.edges.iter().map(|edge| edge.to).enumerate() {
            match to {
                // Inside the node, to the next stage.
                _ if edge == stage.thru && i < last => {}
                To::Node(name) => _ = next.insert(name),
                To::Arc(arc) => {
                    let to = arcs.along(arc, stages[0].name).into_iter();
                    next.extend(to.map(|to| to.unwrap_or(OUTPUT)));
                }
                To::Interface => _ = next.insert(OUTPUT),
                To::Drop(reason) => drops.push(reason),
            }
        }
    }
    Node {
        name: stages[0].name,
        stages: stages.iter().map(|stage| stage.name).collect(),
        next: next.into_iter().collect(),
        previous: Vec::new(),
        drops,
    }
}

impl Graph {
    /// The graph in Graphviz's language, without drops.
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

const COLUMNS: [(&str, usize); 3] = [("Name", 24), ("Next", 24), ("Previous", 24)];

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", heading(&COLUMNS))?;
        for node in &self.nodes {
            let fused = node.stages[1..].iter().map(|stage| format!("  + {stage}"));
            let names: Vec<_> = [node.name.to_owned()].into_iter().chain(fused).collect();
            let lines = names.len().max(node.next.len()).max(node.previous.len());
            for i in 0..lines {
                let name = column(names.get(i).map_or("", String::as_str), COLUMNS[0].1);
                let next = column(node.next.get(i).unwrap_or(&""), COLUMNS[1].1);
                let previous = node.previous.get(i).unwrap_or(&"");
                writeln!(f, "{}", format!("{name}{next}{previous}").trim_end())?;
            }
        }
        Ok(())
    }
}
