//! The graph: nodes by name, their edges resolved, and the loop that runs them.

use crate::counters::{ExecutorCounters, NodeCounters, WorkerCounters};
use crate::node::{Out, Target};
use crate::{Buffers, Frame, Node, To};
use std::sync::Arc;

/// The nodes of one worker. Every worker has a graph of its own; they share tables and snapshots only.
pub struct Graph<C> {
    nodes: Vec<Box<dyn Node<C>>>,
    pollers: Vec<usize>,
    work: Frame,
    /// Frames between the nodes, buffers, ports.
    pub out: Out,
}

/// Why a set of nodes is no graph.
#[derive(Debug, PartialEq, Eq)]
pub enum GraphError {
    /// An edge leads to a node that is not there.
    NoSuchNode {
        /// The node whose edge it is.
        from: &'static str,
        /// The name it leads to.
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
            GraphError::NoSuchNode { from, to } => write!(
                f,
                "graph: an edge of `{from}` leads to `{to}`, which is not there"
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
    /// [`GraphError`]: an edge to nowhere, two nodes of one name, too many nodes.
    pub fn new(
        nodes: Vec<Box<dyn Node<C>>>,
        bufs: Buffers,
        interfaces: usize,
        worker: Arc<WorkerCounters>,
    ) -> Result<Self, GraphError> {
        if nodes.len() > 64 {
            return Err(GraphError::TooMany);
        }
        let names: Vec<&'static str> = nodes.iter().map(|n| n.name()).collect();
        for (i, name) in names.iter().enumerate() {
            if names[..i].contains(name) {
                return Err(GraphError::Twice(name));
            }
        }
        let mut targets = Vec::new();
        for node in &nodes {
            let mut resolved = Vec::new();
            let stages = node.stages();
            let edges = stages.iter().zip(1..).flat_map(|(part, next)| {
                let next = stages.get(next).map(|next| next.name);
                let edges = part.edges.iter().enumerate();
                edges.map(move |(i, edge)| (edge, next.filter(|_| i == part.thru)))
            });
            for (edge, through) in edges {
                resolved.push(match edge.to {
                    To::Drop(_) => Target::Drop,
                    To::Interface => Target::Interface,
                    To::Node(to) => match names.iter().position(|n| *n == to) {
                        Some(i) => Target::Node(i as u16),
                        // A fused stage's through edge is never taken: its packets go on inside of the node.
                        None if through == Some(to) => Target::Drop,
                        None => {
                            return Err(GraphError::NoSuchNode {
                                from: node.name(),
                                to,
                            });
                        }
                    },
                });
            }
            targets.push(resolved.into_boxed_slice());
        }
        let counters = nodes
            .iter()
            .map(|n| NodeCounters::new(n.stages()))
            .collect();
        let pollers = nodes
            .iter()
            .enumerate()
            .filter(|(_, n)| n.polls())
            .map(|(i, _)| i)
            .collect();
        Ok(Graph {
            nodes,
            pollers,
            work: Frame::default(),
            out: Out::new(bufs, targets, counters, interfaces, worker),
        })
    }

    /// All counters; time counts from now.
    pub fn counters(&self) -> ExecutorCounters {
        let names = self.nodes.iter().map(|n| n.name());
        let interfaces = self.out.transmit.iter();
        ExecutorCounters {
            started: crate::cycles::now(),
            worker: self.out.worker.clone(),
            nodes: names.zip(self.out.counters.iter().cloned()).collect(),
            interfaces: interfaces.map(|t| t.counters.clone()).collect(),
        }
    }

    /// Index of a node.
    pub fn index_of(&self, name: &str) -> Option<u16> {
        self.nodes
            .iter()
            .position(|n| n.name() == name)
            .map(|i| i as u16)
    }

    /// Runs nodes until none has packets.
    #[inline]
    #[allow(unsafe_code)]
    pub fn run(&mut self, cx: &C) {
        let mut clock = crate::cycles::now();
        while self.out.ready != 0 {
            let i = self.out.ready.trailing_zeros() as usize;
            self.out.ready &= !(1 << i);
            std::mem::swap(&mut self.work, &mut self.out.pending[i]);
            self.out.unspill(i);
            let packets = self.work.len() as u64;
            self.out.trace_node(i, &mut self.work);
            self.out.current = i;
            // SAFETY: what is pending came by `Out::admit` or `Out::push`, which let in packets of its pool only.
            unsafe { self.nodes[i].frame(cx, &mut self.out, &mut self.work) };
            self.work.clear();
            let now = crate::cycles::now();
            let c = &self.out.counters[i];
            c.calls.add(1);
            c.packets.add(packets);
            c.clocks.add(now.wrapping_sub(clock));
            clock = now;
        }
    }

    /// Gives all that waits for interfaces to their ports.
    #[inline]
    pub fn send(&mut self) {
        while let Some(interface) = self.out.outgoing.pop() {
            self.out.send(interface as usize);
        }
    }

    /// Calls the nodes that hold packets.
    pub fn poll(&mut self, cx: &C) {
        for i in 0..self.pollers.len() {
            let node = self.pollers[i];
            self.out.current = node;
            self.nodes[node].poll(cx, &mut self.out);
        }
    }
}
