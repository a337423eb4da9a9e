//! `show errors`: every edge that packets ended on, and every other place where packets are lost.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use graph::counters::{NodeCounters, NodeCounts};
use graph::{Class, Edge, PortCounters, To};

use super::counts::{executors, since, stages};
use super::text::{center, column, heading, name};
use crate::Router;

/// Packets that were lost or answered, by node and reason.
#[derive(Debug, Clone, Serialize)]
pub struct Errors {
    /// Sorted by node, then reason.
    pub errors: Vec<Error>,
}

/// One reason at one node.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct Error {
    /// Packets.
    pub count: u64,
    /// Node, `<interface>-tx`, worker or port.
    pub node: String,
    /// Reason.
    pub reason: String,
    /// Severity of the reason.
    pub severity: Severity,
}

/// Severity of a reason: whether packets were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Lost.
    Error,
    /// Dealt with in another way.
    Info,
}

/// Losses since the start or the last `clear errors`. `ports` are the counters of ports with their
/// names; whoever has the ports clears these.
pub fn errors(router: &Router, ports: &[(String, PortCounters)]) -> Errors {
    let mut found = Found::default();
    let counts = since(router, &router.cleared.errors);
    for (executor, counts) in executors(router).iter().zip(&counts) {
        for ((_, node), counts) in executor.counters.nodes.iter().zip(&counts.nodes) {
            found.add_edges(node, counts);
        }
        for (i, c) in counts.interfaces.iter().enumerate() {
            let tx = || format!("{}-tx", name(router, i as u16));
            found.lost(tx, "port took no more packets", c.tx_errors);
            found.lost(tx, "no port serves the interface", c.no_port);
        }
        for (_, reason, n) in counts.worker.texts() {
            found.lost(|| executor.name.clone(), reason, n);
        }
    }
    for (port, counters) in ports {
        for (reason, n) in counters.since_cleared() {
            found.lost(|| port.clone(), reason, n);
        }
    }
    found.errors()
}

/// Packets by node, reason and severity; those of several executors together.
#[derive(Default)]
struct Found(BTreeMap<(String, String, Severity), u64>);

impl Found {
    fn add(&mut self, node: String, reason: String, severity: Severity, n: u64) {
        let count = self.0.entry((node, reason, severity)).or_default();
        *count = count.wrapping_add(n);
    }

    fn lost(&mut self, node: impl Fn() -> String, reason: &str, n: u64) {
        if n > 0 {
            self.add(node(), reason.into(), Severity::Error, n);
        }
    }

    fn add_edges(&mut self, node: &NodeCounters, counts: &NodeCounts) {
        for stage in stages(node, counts) {
            for (edge, n) in stage.edges().filter(|(_, n)| *n > 0) {
                let severity = match edge.class {
                    Class::Lost => Severity::Error,
                    Class::Answered | Class::Done => Severity::Info,
                    Class::Passed | Class::Punted => continue,
                };
                self.add(stage.info.name.into(), reason(edge), severity, n);
            }
        }
    }

    fn errors(self) -> Errors {
        let found = self.0.into_iter();
        let errors = found.map(|((node, reason, severity), count)| Error {
            count,
            node,
            reason,
            severity,
        });
        Errors {
            errors: errors.collect(),
        }
    }
}

/// Reason why packets take an edge: the one that a drop gives; else the edge's name in words and
/// the node that it leads to, `TtlExpired` as "ttl expired: to icmp4-error".
fn reason(edge: &Edge) -> String {
    let words = || {
        let letters = edge.name.char_indices().flat_map(|(i, letter)| {
            let space = (letter.is_uppercase() && i > 0).then_some(' ');
            space.into_iter().chain(letter.to_lowercase())
        });
        letters.collect::<String>()
    };
    match edge.to {
        To::Drop(reason) => reason.into(),
        To::Node(node) => format!("{}: to {node}", words()),
        To::Arc(_) | To::Interface | To::Port => words(),
    }
}

const COLUMNS: [(&str, usize); 4] = [
    ("Count", 12),
    ("Node", 30),
    ("Reason", 50),
    ("Severity", 10),
];

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", heading(&COLUMNS))?;
        for e in &self.errors {
            let severity = match e.severity {
                Severity::Error => "error",
                Severity::Info => "info",
            };
            let severity = center(severity, 10);
            let (node, reason) = (column(&e.node, 28), column(&e.reason, 50));
            writeln!(f, "{:>12}  {node}{reason}{}", e.count, severity.trim_end())?;
        }
        Ok(())
    }
}
