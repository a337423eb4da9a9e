//! The node table: what a worker's graph is made of, in the order of a packet's way.

use crate::arc::Arcs;
use crate::context::Cx;
use crate::{arp, eth, icmp4, ip4, punt};
use graph::node::{each, node};
use graph::{Fused, Node};

/// Where packets of a port enter.
pub const ENTRY: &str = "ethernet-input";

/// What a worker's graph is made of.
pub struct Table {
    /// The nodes.
    pub nodes: Vec<Box<dyn Node<Cx>>>,
    /// Which of them are features.
    pub arcs: Arcs,
}

/// The nodes of one worker.
pub fn table() -> Table {
    Table {
        nodes: vec![
            node(eth::Input),
            node(ip4::InputFeatures),
            node(Fused(ip4::Input, Fused(ip4::Lookup, ip4::Rewrite))),
            node(ip4::Lookup),
            node(ip4::Rewrite),
            node(ip4::OutputFeatures),
            each(ip4::Fragment::default()),
            each(arp::Resolver::default()),
            each(icmp4::Errors::default()),
            each(punt::Punt),
        ],
        arcs: Arcs::default(),
    }
}
