//! The graph: nodes by name, their edges resolved, and the loop that runs them.

use crate::counters::{ExecutorCounters, NodeCounters, WorkerCounters};
use crate::out::{Out, Target};
use crate::stage::StageInfo;
use crate::{Buffers, Frame, Node, To};
use std::sync::Arc;

/// The nodes of one worker. Every worker has a graph of its own; they share tables and snapshots only.
pub struct Graph<C> {
    nodes: Vec<Box<dyn Node<C>>>,
    names: Vec<&'static str>,
    pollers: Vec<usize>,
    work: Frame,
    out: Out,
}

/// Why a set of nodes is no graph.
#[derive(Debug, PartialEq, Eq)]
pub enum GraphError {
    /// An edge leads to a node that is not there.
    NoSuchNode {
        /// The stage whose edge it is.
        from: &'static str,
        /// The name it leads to.
        to: &'static str,
    },
    /// An edge leads to the node whose own it is.
    ToItself(&'static str),
    /// A stage is fused with another than its through edge leads to.
    NotFused {
        /// The first of the two stages.
        from: &'static str,
        /// The one that follows.
        to: &'static str,
    },
    /// Two nodes of one name.
    Twice(&'static str),
    /// More than 64 nodes.
    TooMany,
}

impl std::fmt::Display for GraphError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            GraphError::NoSuchNode { from, to } => {
                write!(
                    f,
                    "graph: an edge of `{from}` leads to `{to}`, which does not exist"
                )
            }
            GraphError::ToItself(name) => {
                write!(f, "graph: an edge of `{name}` leads back to it")
            }
            GraphError::NotFused { from, to } => write!(
                f,
                "graph: `{from}` is fused with `{to}`, but its through edge leads elsewhere"
            ),
            GraphError::Twice(name) => write!(f, "graph: two nodes named `{name}`"),
            GraphError::TooMany => write!(f, "graph: more than 64 nodes"),
        }
    }
}
impl std::error::Error for GraphError {}

impl<C> Graph<C> {
    /// Builds the graph. Nodes earlier in the list run first: list them in a packet's usual order.
    ///
    /// # Errors
    /// [`GraphError`]: an edge to nowhere or back to its own node, stages fused against their edges, two nodes of one name,
    /// too many nodes.
    pub fn new(
        nodes: Vec<Box<dyn Node<C>>>,
        bufs: Buffers,
        interfaces: usize,
        worker: Arc<WorkerCounters>,
    ) -> Result<Self, GraphError> {
        if nodes.len() > 64 {
            return Err(GraphError::TooMany);
        }
        let stages: Vec<Vec<StageInfo>> = nodes.iter().map(|n| n.stages()).collect();
        let names: Vec<&'static str> = stages.iter().map(|s| s[0].name).collect();
        let mut seen = names.iter().enumerate();
        if let Some((_, name)) = seen.find(|(i, name)| names[..*i].contains(name)) {
            return Err(GraphError::Twice(name));
        }
        let targets = stages.iter().map(|s| resolve(s, &names));
        let targets = targets.collect::<Result<_, _>>()?;
        let counters = stages.into_iter().map(NodeCounters::new).collect();
        let pollers = (0..nodes.len()).filter(|i| nodes[*i].polls()).collect();
        Ok(Graph {
            nodes,
            names,
            pollers,
            work: Frame::default(),
            out: Out::new(bufs, targets, counters, interfaces, worker),
        })
    }

    /// All counters; time counts from now.
    pub fn counters(&mut self) -> ExecutorCounters {
        let names = self.names.iter().copied();
        ExecutorCounters {
            started: crate::cycles::now(),
            worker: self.out.worker().clone(),
            nodes: names
                .zip(self.out.node_counters().iter().cloned())
                .collect(),
            interfaces: self.out.transmit().all_counters(),
        }
    }

    /// Index of a node.
    pub fn index_of(&self, name: &str) -> Option<u16> {
        let found = self.names.iter().position(|n| *n == name);
        found.map(|i| i as u16)
    }

    /// The worker's buffers.
    pub fn bufs(&self) -> &Buffers {
        self.out.bufs()
    }

    /// What lies between the nodes.
    #[inline]
    pub(crate) fn out(&mut self) -> &mut Out {
        &mut self.out
    }

    /// Runs nodes until none has packets, then sends what they gave to interfaces and other workers.
    #[inline]
    #[allow(unsafe_code)]
    pub(crate) fn run(&mut self, cx: &C) {
        let mut clock = crate::cycles::now();
        while let Some(node) = self.out.next_node(&mut self.work) {
            let packets = self.work.len() as u64;
            // SAFETY: packets come between the nodes by `Out::receive`, `Out::take_over`, `Out::push` and `Out::hand_over`
            // only, which let in those of its pool.
            unsafe { self.nodes[node].frame(cx, &mut self.out, &mut self.work) };
            self.work.clear();
            clock = self.out.count_call(packets, clock);
        }
        self.out.send_all();
    }

    /// Calls the nodes that hold packets.
    pub(crate) fn poll(&mut self, cx: &C) {
        for &node in &self.pollers {
            self.out.enter(node);
            self.nodes[node].poll(cx, &mut self.out);
        }
    }
}

/// Where the edges of a node of these stages lead, among nodes of these names.
fn resolve(stages: &[StageInfo], names: &[&'static str]) -> Result<Box<[Target]>, GraphError> {
    let mut targets = Vec::new();
    for (i, stage) in stages.iter().enumerate() {
        let from = stage.name;
        let fused_with = stages.get(i + 1).map(|next| next.name);
        for (j, edge) in stage.edges.iter().enumerate() {
            let inner = fused_with.filter(|_| j == stage.thru);
            targets.push(match (inner, edge.to) {
                // Never taken: its packets go on inside the node.
                (Some(next), To::Node(to)) if to == next => Target::Drop,
                (Some(to), _) => return Err(GraphError::NotFused { from, to }),
                (None, To::Drop(_)) => Target::Drop,
                (None, To::Interface) => Target::Interface,
                (None, To::Node(to)) if to == stages[0].name => {
                    return Err(GraphError::ToItself(to));
                }
                (None, To::Node(to)) => match names.iter().position(|n| *n == to) {
                    Some(node) => Target::Node(node as u16),
                    None => return Err(GraphError::NoSuchNode { from, to }),
                },
            });
        }
    }
    Ok(targets.into_boxed_slice())
}
