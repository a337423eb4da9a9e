//! The node table: the nodes of a worker's graph, in the order of a packet's way.

use graph::node::{each, node};
use graph::{Fused, Node};

use crate::arc::Arcs;
use crate::context::Cx;
use crate::{
    acl, bond, eth, firewall, icmp4, icmp6, ip4, ip6, l2, nat, neighbor, punt, sflow, vlan, vxlan,
};

/// The node that packets from ports enter.
pub const ENTRY: &str = "ethernet-input";

/// The nodes of a worker's graph, and the arcs between them.
pub struct Table {
    /// The nodes.
    pub nodes: Vec<Box<dyn Node<Cx>>>,
    /// Arcs that name the features among them.
    pub arcs: Arcs,
}

/// The nodes of one worker.
pub fn table() -> Table {
    with(
        node(Fused(ip4::Input, Fused(ip4::Lookup, ip4::Rewrite))),
        node(Fused(ip6::Input, Fused(ip6::Lookup, ip6::Rewrite))),
    )
}

/// The same with a node for each stage, so that a trace shows a packet at each.
pub(crate) fn apart() -> Table {
    with(node(ip4::Input), node(ip6::Input))
}

fn with(ip4_input: Box<dyn Node<Cx>>, ip6_input: Box<dyn Node<Cx>>) -> Table {
    Table {
        nodes: vec![
            node(eth::Input),
            node(sflow::Input::default()),
            node(bond::Input),
            each(bond::lacp::Exchange::default()),
            node(vlan::Input::default()),
            node(l2::Forward::default()),
            each(l2::Flood),
            node(ip4::InputFeatures),
            node(acl::Ip4In::default()),
            node(nat::Ip4::default()),
            ip4_input,
            node(ip4::Lookup),
            node(ip4::Rewrite),
            node(ip4::OutputFeatures),
            node(acl::Ip4Out::default()),
            node(firewall::Ip4::default()),
            each(ip4::Fragment::default()),
            each(neighbor::Resolver::<neighbor::Ip4>::default()),
            each(icmp4::Errors::default()),
            node(ip6::InputFeatures),
            node(acl::Ip6In::default()),
            ip6_input,
            node(ip6::Lookup),
            node(ip6::Rewrite),
            node(ip6::OutputFeatures),
            node(acl::Ip6Out::default()),
            node(firewall::Ip6::default()),
            each(firewall::Handoff),
            each(nat::Handoff),
            each(firewall::Ip4Reset::default()),
            each(firewall::Ip6Reset::default()),
            each(neighbor::Resolver::<neighbor::Ip6>::default()),
            each(icmp6::Errors),
            node(vxlan::Input),
            each(punt::Punt),
            node(eth::Output),
            node(l2::BviOutput),
            node(bond::Output::default()),
            each(bond::Broadcast),
            node(vxlan::Encap),
        ],
        arcs: Arcs::default(),
    }
}
