//! The graph: nodes by name, their edges resolved, and the loop that runs them.

use std::sync::Arc;

use crate::counters::{ExecutorCounters, NodeCounters, WorkerCounters};
use crate::out::Out;
use crate::stage::StageInfo;
use crate::targets::{GraphError, Targets};
use crate::{Buffers, FeatureArc, Frame, Node};

/// The nodes of one worker. Every worker has a graph of its own; they share tables and snapshots
/// only.
pub struct Graph<C> {
    nodes: Vec<Box<dyn Node<C>>>,
    names: Vec<&'static str>,
    pollers: Vec<usize>,
    work: Frame,
    out: Out,
}

impl<C> Graph<C> {
    /// Builds the graph. Nodes earlier in the list run first: list them in a packet's usual order.
    ///
    /// # Errors
    /// [`GraphError`]: an edge to nowhere or back to its own node, stages fused against their
    /// edges, two nodes of one name, too many nodes.
    pub fn new(
        nodes: Vec<Box<dyn Node<C>>>,
        bufs: Buffers,
        interfaces: usize,
        worker: Arc<WorkerCounters>,
    ) -> Result<Self, GraphError> {
        Self::with_arcs(nodes, Vec::new(), bufs, interfaces, worker)
    }

    /// As [`Graph::new`], with feature arcs between the nodes.
    ///
    /// # Errors
    /// As [`Graph::new`]; an arc to nowhere, with a feature twice, or with too many.
    pub fn with_arcs(
        nodes: Vec<Box<dyn Node<C>>>,
        arcs: Vec<FeatureArc>,
        bufs: Buffers,
        interfaces: usize,
        worker: Arc<WorkerCounters>,
    ) -> Result<Self, GraphError> {
        let stages: Vec<Vec<StageInfo>> = nodes.iter().map(|n| n.stages()).collect();
        let names: Vec<_> = stages.iter().map(|s| s[0].name).collect();
        let targets = Targets::new(&stages, arcs)?;
        let next = (0..names.len()).map(|node| targets.nodes_behind(node, &names));
        let counters = stages
            .into_iter()
            .zip(next)
            .map(|(stages, next)| NodeCounters::new(stages, next))
            .collect();
        let pollers = (0..nodes.len()).filter(|i| nodes[*i].polls()).collect();
        Ok(Graph {
            nodes,
            names,
            pollers,
            work: Frame::default(),
            out: Out::new(bufs, targets, counters, interfaces, worker),
        })
    }

    /// All counters; their time starts now.
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

    /// The queues between the nodes and behind them.
    #[inline]
    pub(crate) fn out(&mut self) -> &mut Out {
        &mut self.out
    }

    /// Runs nodes until none has packets, then sends what they gave to interfaces and other
    /// workers.
    #[inline]
    #[allow(unsafe_code)]
    pub(crate) fn run(&mut self, cx: &C) {
        let mut clock = crate::cycles::now();
        loop {
            while let Some(node) = self.out.next_node(&mut self.work) {
                let packets = self.work.len() as u64;
                // SAFETY: packets come between the nodes by `Out::receive`, `Out::take_over`,
                // `Out::push` and `Out::hand_over` only, which let in those of its pool.
                unsafe { self.nodes[node].frame(cx, &mut self.out, &mut self.work) };
                self.work.clear();
                clock = self.out.count_call(packets, clock);
            }
            if !self.out.send_all() {
                break;
            }
        }
    }

    /// Calls the nodes that hold packets.
    pub(crate) fn poll(&mut self, cx: &C) {
        for &node in &self.pollers {
            self.out.enter(node);
            self.nodes[node].poll(cx, &mut self.out);
        }
    }
}
