//! The node table: what a worker's graph is made of, in the order of a packet's way.

use crate::context::Cx;
use crate::{arp, eth, icmp4, ip4, punt};
use graph::node::{each, node};
use graph::{Fused, Node};

/// Where packets of a port enter.
pub const ENTRY: &str = "ethernet-input";

/// The nodes of one worker.
pub fn table() -> Vec<Box<dyn Node<Cx>>> {
    vec![
        node(eth::Input),
        node(Fused(ip4::Input, Fused(ip4::Lookup, ip4::Rewrite))),
        node(ip4::Lookup),
        node(ip4::Rewrite),
        each(ip4::Fragment::default()),
        each(arp::Resolver::default()),
        each(icmp4::Errors::default()),
        each(punt::Punt),
    ]
}
