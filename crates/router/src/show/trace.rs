//! `trace add`, `show trace`, `clear trace`: packets as each node on their way saw them.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use graph::counters::{ExecutorCounters, NodeCounters};
use graph::trace::{self, Names, Reader, Record};
use graph::{Command, To};
use wire::text::{Frame, Ip4, Ip6};

use super::text::{hex, name};
use crate::acl::show::judged;
use crate::ip::show::adjacency;
use crate::l2::show::bridged;
use crate::{InterfaceId, Router, worker_name};

/// Reason why no trace was started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// Neither a node nor `<interface>-rx`.
    #[error("trace: unknown node `{name}`; nodes are {nodes}, and an interface's name with -rx")]
    Unknown {
        /// Name that was asked for.
        name: String,
        /// Names of the nodes.
        nodes: String,
    },
    /// No packets at all, or more than a trace holds.
    #[error("trace: {0} packets; a trace takes 1 to 10000")]
    Packets(u32),
    /// A worker takes no commands.
    #[error("trace: worker {0} does not answer")]
    Busy(usize),
}

impl Router {
    /// Traces the next `packets` packets of each worker that come to `node`: a node's name, or an
    /// interface's with `-rx`. Forgets an earlier trace.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn trace_add(&mut self, node: &str, packets: u32) -> Result<(), TraceError> {
        if !(1..=10_000).contains(&packets) {
            return Err(TraceError::Packets(packets));
        }
        let (node, interface) = self.trace_point(node)?;
        self.traces.clear();
        for (i, worker) in self.workers.iter_mut().enumerate() {
            let (writer, reader) = trace::trace(node, interface, packets);
            let command = Command::Trace(Some(writer));
            worker.command(command).map_err(|_| TraceError::Busy(i))?;
            self.traces.push(reader);
        }
        Ok(())
    }

    /// Ends tracing and forgets what was traced.
    pub fn trace_clear(&mut self) {
        self.traces.clear();
        for worker in &mut self.workers {
            // A worker that takes no command now writes into a buffer that nobody shows.
            let _ = worker.command(Command::Trace(None));
        }
    }

    fn trace_point(&self, asked: &str) -> Result<(u16, u16), TraceError> {
        let nodes = self.workers.first().map_or(&[][..], |w| &w.counters.nodes);
        // A stage inside of a fused node is entered with that node.
        let has = |n: &NodeCounters| n.stages.iter().any(|p| p.name == asked);
        if let Some(i) = nodes.iter().position(|(_, n)| has(n)) {
            return Ok((i as u16, 0));
        }
        let interfaces = self.state.links.interfaces.values();
        let mut with_rx = interfaces.filter(|i| asked.strip_suffix("-rx") == Some(&i.name));
        match with_rx.next() {
            Some(i) => Ok((Record::INTERFACE_RX, i.id)),
            None => Err(TraceError::Unknown {
                name: asked.into(),
                nodes: nodes.iter().map(|(n, _)| *n).collect::<Vec<_>>().join(", "),
            }),
        }
    }
}

/// Packets that were traced.
#[derive(Debug, Clone, Serialize)]
pub struct Trace {
    /// By worker.
    pub threads: Vec<Thread>,
}

/// The packets that one worker traced.
#[derive(Debug, Clone, Serialize)]
pub struct Thread {
    /// Number of the thread; workers count from 1.
    pub id: usize,
    /// Name.
    pub name: String,
    /// In the order in which they came.
    pub packets: Vec<Packet>,
}

/// One packet's way.
#[derive(Debug, Clone, Serialize)]
pub struct Packet {
    /// From 1.
    pub number: u32,
    /// Node by node.
    pub steps: Vec<Step>,
}

/// One packet at one node.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Step {
    /// Seconds since the worker's start.
    pub seconds: f64,
    /// Node, `<interface>-rx` or `<interface>-tx`.
    pub node: String,
    /// Content that the node was given, line by line.
    pub text: Vec<String>,
    /// Reason why it ended here.
    pub dropped: Option<String>,
    /// Length of the packet in bytes.
    pub length: u32,
    /// Its first bytes, in hexadecimal.
    pub bytes: String,
}

/// Packets that have been traced since the last `trace add`.
pub fn trace(router: &Router) -> Trace {
    let workers = router.workers.iter().enumerate();
    Trace {
        threads: workers
            .map(|(i, worker)| Thread {
                id: i + 1,
                name: worker_name(i),
                packets: router
                    .traces
                    .get(i)
                    .map_or(Vec::new(), |b| packets(router, &worker.counters, b)),
            })
            .collect(),
    }
}

fn packets(router: &Router, worker: &ExecutorCounters, reader: &Reader) -> Vec<Packet> {
    let mut found: BTreeMap<u32, Vec<Step>> = BTreeMap::new();
    for record in reader.records() {
        let steps = found.entry(record.packet).or_default();
        steps.push(step(router, worker, record));
    }
    let found = found.into_iter();
    found
        .map(|(number, steps)| Packet { number, steps })
        .collect()
}

/// A record as text; tolerates any content.
fn step(router: &Router, worker: &ExecutorCounters, r: &Record) -> Step {
    let cycles = r.clock.saturating_sub(worker.started);
    let dropped = r.dropped.map(|edge| reason(worker, r.node, edge));
    let text = match dropped {
        Some(_) => Vec::new(),
        None => describe(router, worker, r),
    };
    let (stage, dropped) = dropped.unzip();
    Step {
        seconds: cycles as f64 / graph::cycles::per_second(),
        node: stage.unwrap_or_else(|| node(router, worker, r)),
        text,
        dropped,
        length: r.len,
        bytes: hex(r.packet_bytes()),
    }
}

/// The name of a record's node, or port.
pub(crate) fn node(router: &Router, worker: &ExecutorCounters, r: &Record) -> String {
    match r.node {
        Record::INTERFACE_RX => format!("{}-rx", name(router, r.rx_if)),
        Record::INTERFACE_TX => format!("{}-tx", name(router, r.tx_if())),
        n => match worker.nodes.get(usize::from(n)) {
            Some((name, _)) => (*name).to_owned(),
            None => format!("node{n}"),
        },
    }
}

/// The stage inside of a node to which an edge belongs, and why packets end on it.
pub(crate) fn reason(worker: &ExecutorCounters, node: u16, edge: u8) -> (String, String) {
    let node = worker.nodes.get(usize::from(node));
    let parts = node.iter().flat_map(|(_, n)| n.stages.iter());
    let mut edges = parts.flat_map(|p| p.edges.iter().map(move |e| (p.name, e.to)));
    match edges.nth(usize::from(edge)) {
        Some((stage, To::Drop(reason))) => (stage.into(), reason.into()),
        _ => ("drop".into(), "unknown reason".into()),
    }
}

/// Description of what a port or a node was given.
fn describe(router: &Router, worker: &ExecutorCounters, r: &Record) -> Vec<String> {
    let (mut lines, l3) = match r.node {
        Record::INTERFACE_RX => (vec![of_port(r, r.rx_if)], 0),
        Record::INTERFACE_TX => (vec![of_port(r, r.tx_if())], 0),
        _ => (of_node(router, worker, r), usize::from(r.l3)),
    };
    let bytes = r.packet_bytes();
    let packet = bytes.get(l3..).filter(|_| l3 > 0);
    let text = match packet {
        None => format!("{:#}", Frame(bytes)),
        Some(packet) if packet.first().is_some_and(|first| first >> 4 == 6) => {
            format!("{:#}", Ip6(packet))
        }
        Some(packet) => format!("{:#}", Ip4(packet)),
    };
    lines.extend(text.lines().map(str::to_owned));
    lines
}

fn of_port(r: &Record, interface: InterfaceId) -> String {
    format!("{} bytes, sw_if_index {interface}", r.len)
}

/// The stages of a node that has several, and what the first one says of the packet.
fn of_node(router: &Router, worker: &ExecutorCounters, r: &Record) -> Vec<String> {
    let Some((name, node)) = worker.nodes.get(usize::from(r.node)) else {
        return Vec::new();
    };
    let fused = (node.stages.len() > 1).then(|| {
        let stages: Vec<&str> = node.stages.iter().map(|stage| stage.name).collect();
        format!("fused stages {}", stages.join(", "))
    });
    let note = note(router, worker, r)
        .or_else(|| judged(router, name, r))
        .or_else(|| bridged(router, name, r));
    fused.into_iter().chain(note).collect()
}

/// What the descriptor's word says to a node.
pub(crate) fn note(router: &Router, worker: &ExecutorCounters, r: &Record) -> Option<String> {
    let (_, node) = worker.nodes.get(usize::from(r.node))?;
    (node.stages.first()?.note)(r, &Known(router))
}

/// Names that the router knows for the numbers in a record.
struct Known<'a>(&'a Router);

impl Names for Known<'_> {
    fn adjacency(&self, id: u32) -> Option<String> {
        let adjacency = adjacency(self.0, id)?;
        Some(format!("adjacency {id}: {adjacency}"))
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for t in &self.threads {
            let dashes = "-------------------";
            writeln!(f, "{dashes} Start of thread {} {} {dashes}", t.id, t.name)?;
            if t.packets.is_empty() {
                writeln!(f, "No packets in trace buffer")?;
            }
            for packet in &t.packets {
                writeln!(f, "Packet {}\n", packet.number)?;
                for step in &packet.steps {
                    write!(f, "{step}")?;
                }
                writeln!(f)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = (self.seconds * 1e6) as u64;
        let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        let seconds = seconds % 60;
        write!(
            f,
            "{hours:02}:{minutes:02}:{seconds:02}:{micros:06}: {}",
            self.node
        )?;
        match &self.dropped {
            Some(reason) => writeln!(f, "\n  dropped: {reason}"),
            None => {
                writeln!(f)?;
                self.text
                    .iter()
                    .try_for_each(|line| writeln!(f, "  {line}"))
            }
        }
    }
}
