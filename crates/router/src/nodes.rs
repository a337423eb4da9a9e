//! The node table: what a worker's graph is made of, in the order of a packet's way.

use crate::arp::{Resolve, Resolver};
use crate::context::Cx;
use crate::{eth, icmp4, ip4, punt};
use graph::Node;
use graph::node::{each, node};
use graph::ring::Producer;
use graph::stage::Fused;

/// Where packets of a port enter.
pub const ENTRY: &str = "ethernet-input";

/// The nodes of one worker, which asks for neighbors by `requests`.
pub fn table(requests: Producer<Resolve>) -> Vec<Box<dyn Node<Cx>>> {
    vec![
        node("ethernet-input", eth::Input),
        node(
            "ip4-input",
            Fused(ip4::Input, Fused(ip4::Lookup, ip4::Rewrite)),
        ),
        node("ip4-lookup", ip4::Lookup),
        node("ip4-rewrite", ip4::Rewrite),
        each(ip4::Fragment::default()),
        each(Resolver::new(requests)),
        each(icmp4::Errors::default()),
        each(punt::Punt),
    ]
}
