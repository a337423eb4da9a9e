//! The targets of edges: the names in the edges and arcs of a graph, resolved.

use crate::arc::{By, FEATURES, FeatureArc, Mask};
use crate::stage::StageInfo;
use crate::{Desc, To};

/// Reason why nodes and arcs do not make a graph.
#[derive(Debug, PartialEq, Eq)]
pub enum GraphError {
    /// An edge or an arc leads to a node or arc that does not exist.
    NoSuchNode {
        /// The stage whose edge it is, or the arc.
        from: &'static str,
        /// The name it leads to.
        to: &'static str,
    },
    /// An edge leads back to its own node.
    ToItself(&'static str),
    /// A stage is fused with one that its through edge does not lead to.
    NotFused {
        /// The first of the two stages.
        from: &'static str,
        /// The one that follows.
        to: &'static str,
    },
    /// Two nodes, or two features of an arc, of one name.
    Twice(&'static str),
    /// More than 64 nodes, or more than [`FEATURES`] features on an arc.
    TooMany,
}

impl std::fmt::Display for GraphError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "graph: ")?;
        match self {
            GraphError::NoSuchNode { from, to } => {
                write!(f, "`{from}` leads to `{to}`, which does not exist")
            }
            GraphError::ToItself(name) => write!(f, "an edge of `{name}` leads back to it"),
            GraphError::NotFused { from, to } => write!(
                f,
                "`{from}` is fused with `{to}`, but its through edge leads elsewhere"
            ),
            GraphError::Twice(name) => write!(f, "two nodes named `{name}`"),
            GraphError::TooMany => write!(
                f,
                "more than 64 nodes, or more than {FEATURES} features on an arc"
            ),
        }
    }
}
impl std::error::Error for GraphError {}

/// Destination of an edge, with nodes by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Node(u16),
    /// To the first feature of arc `arc`, from feature `from` on, that the packet is to pass.
    Arc {
        arc: u8,
        from: u8,
    },
    Interface,
    Port,
    Drop,
}

struct Arc {
    features: Box<[u16]>,
    end: Target,
    by: By,
    mask: Mask,
}

/// The targets of all edges of a graph.
pub(crate) struct Targets {
    /// By node, then by edge.
    edges: Vec<Box<[Target]>>,
    arcs: Vec<Arc>,
}

impl Targets {
    /// Resolves the edges of nodes that consist of these stages, and the arcs.
    ///
    /// # Errors
    /// [`GraphError`].
    pub(crate) fn new(nodes: &[Vec<StageInfo>], arcs: Vec<FeatureArc>) -> Result<Self, GraphError> {
        let names: Vec<_> = nodes.iter().map(|stages| stages[0].name).collect();
        if names.len() > 64 || arcs.iter().any(|arc| arc.features.len() > FEATURES) {
            return Err(GraphError::TooMany);
        }
        unique(&names)?;
        let resolver = Resolver {
            names: &names,
            arcs: &arcs,
        };
        let edges = nodes.iter().map(|stages| resolver.edges(stages));
        Ok(Targets {
            edges: edges.collect::<Result<_, _>>()?,
            arcs: resolve(arcs, &names)?,
        })
    }

    /// Nodes of the graph.
    pub(crate) fn nodes(&self) -> usize {
        self.edges.len()
    }

    /// Destination of an edge of a node.
    #[inline]
    pub(crate) fn of(&self, node: usize, edge: u8) -> Target {
        self.edges[node][edge as usize]
    }

    /// The names of the nodes that each edge of a node may lead to, as [`NodeCounters::next`].
    ///
    /// [`NodeCounters::next`]: crate::counters::NodeCounters::next
    pub(crate) fn nodes_behind(
        &self,
        node: usize,
        names: &[&'static str],
    ) -> Vec<Vec<Option<&'static str>>> {
        let name = |target| match target {
            Target::Node(node) => Some(Some(names[usize::from(node)])),
            Target::Interface | Target::Port => Some(None),
            Target::Arc { .. } | Target::Drop => None,
        };
        let next = |target: &Target| {
            let (features, end) = match *target {
                Target::Arc { arc, from } => {
                    let arc = &self.arcs[usize::from(arc)];
                    (&arc.features[usize::from(from)..], arc.end)
                }
                target => (&[][..], target),
            };
            let features = features.iter().map(|node| Target::Node(*node));
            features.chain([end]).filter_map(name).collect()
        };
        self.edges[node].iter().map(next).collect()
    }

    /// How many packets from the front of `run` have one next destination along an arc: those of
    /// the interface of the first.
    #[inline]
    pub(crate) fn together(&self, arc: u8, run: &[Desc]) -> usize {
        let Some(first) = run.first() else {
            return 0;
        };
        // A loop for each: a choice for each packet costs more.
        match self.arcs[arc as usize].by {
            By::Rx => run.iter().take_while(|d| d.rx_if == first.rx_if).count(),
            By::Tx => run
                .iter()
                .take_while(|d| d.tx_if() == first.tx_if())
                .count(),
        }
    }

    /// Next destination of a packet along arc `arc`, from feature `from` on.
    pub(crate) fn next(&self, arc: u8, from: u8, d: &Desc) -> Target {
        let arc = &self.arcs[arc as usize];
        let behind = u32::MAX.checked_shl(from.into()).unwrap_or(0);
        let next = ((arc.mask)(arc.by.of(d)) & behind).trailing_zeros();
        let feature = arc.features.get(next as usize);
        feature.map_or(arc.end, |node| Target::Node(*node))
    }
}

fn unique(names: &[&'static str]) -> Result<(), GraphError> {
    let mut all = names.iter().enumerate();
    match all.find(|(i, name)| names[..*i].contains(name)) {
        Some((_, name)) => Err(GraphError::Twice(name)),
        None => Ok(()),
    }
}

fn node(from: &'static str, to: &'static str, names: &[&'static str]) -> Result<u16, GraphError> {
    let found = names.iter().position(|name| *name == to);
    found
        .map(|node| node as u16)
        .ok_or(GraphError::NoSuchNode { from, to })
}

fn resolve(arcs: Vec<FeatureArc>, names: &[&'static str]) -> Result<Vec<Arc>, GraphError> {
    let resolved = arcs.into_iter().map(|arc| {
        unique(&arc.features)?;
        let features = arc.features.iter().map(|to| node(arc.name, to, names));
        let end = match arc.end {
            To::Node(to) => Target::Node(node(arc.name, to, names)?),
            To::Arc(to) => return Err(GraphError::NoSuchNode { from: arc.name, to }),
            To::Interface => Target::Interface,
            To::Port => Target::Port,
            To::Drop(_) => Target::Drop,
        };
        Ok(Arc {
            features: features.collect::<Result<_, _>>()?,
            end,
            by: arc.by,
            mask: arc.mask,
        })
    });
    resolved.collect()
}

/// Resolves edges by the names that they may lead to.
struct Resolver<'a> {
    names: &'a [&'static str],
    arcs: &'a [FeatureArc],
}

impl Resolver<'_> {
    /// The edges of a node that consists of these stages.
    fn edges(&self, stages: &[StageInfo]) -> Result<Box<[Target]>, GraphError> {
        let mut targets = Vec::new();
        for (i, stage) in stages.iter().enumerate() {
            let fused_with = stages.get(i + 1).map(|next| next.name);
            for (j, edge) in stage.edges.iter().enumerate() {
                let inner = fused_with.filter(|_| j == stage.thru);
                targets.push(match (inner, edge.to) {
                    // Never taken: its packets go on inside the node.
                    (Some(next), To::Node(to)) if to == next => Target::Drop,
                    (Some(to), _) => {
                        let from = stage.name;
                        return Err(GraphError::NotFused { from, to });
                    }
                    (None, to) => self.edge(stages[0].name, stage.name, to)?,
                });
            }
        }
        Ok(targets.into_boxed_slice())
    }

    /// Destination of an edge of stage `from` in node `of`.
    fn edge(&self, of: &'static str, from: &'static str, to: To) -> Result<Target, GraphError> {
        Ok(match to {
            To::Drop(_) => Target::Drop,
            To::Interface => Target::Interface,
            To::Port => Target::Port,
            To::Node(to) if to == of => return Err(GraphError::ToItself(to)),
            To::Node(to) => Target::Node(node(from, to, self.names)?),
            To::Arc(to) => {
                let arc = self
                    .arcs
                    .iter()
                    .position(|arc| arc.name == to)
                    .ok_or(GraphError::NoSuchNode { from, to })?;
                let features = &self.arcs[arc].features;
                let own = features.iter().position(|name| *name == of);
                Target::Arc {
                    arc: arc as u8,
                    from: own.map_or(0, |own| own as u8 + 1),
                }
            }
        })
    }
}
