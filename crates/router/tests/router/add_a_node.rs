//! The node of docs/add-a-node.md, added as that page says.

use graph::node::node;
use router::{Change, arc, nodes};
use wire::craft::Packet;

use crate::echo_count::EchoCount;
use crate::harness::*;

fn ping(from: u32, to: u32) -> Packet {
    Packet::echo_request(from, to, 1, 1).macs(host_mac(1, 2), own_mac(1))
}

#[test]
fn echo_requests_are_counted() {
    let table = || {
        let mut table = nodes::table();
        // In a checkout that has followed the page, it is there.
        let mut names = table.nodes.iter().map(|node| node.stages()[0].name);
        if !names.any(|name| name == "icmp4-echo-count") {
            table.nodes.push(node(EchoCount));
        }
        table.arcs.ip4_in = vec!["ip4-acl-in", "icmp4-echo-count"];
        table
    };
    let mut lab = Lab::with_table(1, 64, 8192, None, table).wired();
    let requests = || [ping(addr(1, 2), FAR), ping(addr(1, 2), addr(1, 1))].map(|p| p.frame());
    // Not yet switched on.
    lab.receive(1, requests());
    assert_eq!(lab.edge("icmp4-echo-count", "EchoRequest"), 0);
    lab.apply(vec![Change::FeatureSet {
        interface: 1,
        feature: arc::ip4_in(1),
        argument: Some(0),
    }]);
    lab.receive(1, requests());
    lab.receive(1, [udp(FAR).frame()]);
    assert_eq!(lab.edge("icmp4-echo-count", "EchoRequest"), 2);
    assert_eq!(lab.edge("icmp4-echo-count", "Other"), 1);
    // An operator sees what the page shows.
    let page = include_str!("../../../../docs/add-a-node.md");
    let graph = router::show::graph(&lab.router).to_string();
    let mut lines = graph.lines();
    let heading = lines.next().unwrap();
    let node: Vec<_> = lines
        .skip_while(|line| !line.starts_with("icmp4-echo-count"))
        .take(2)
        .collect();
    let shown = [&[heading][..], &node].concat().join("\n");
    assert!(page.contains(&shown), "docs/add-a-node.md:\n{shown}");
    // They go on: one to its receiver each time, one to the host, for which there is no port here.
    assert_eq!(lab.sent(2).len(), 3);
    lab.check_buffers(0);
}

#[test]
fn the_page_shows_this_node() {
    let page = include_str!("../../../../docs/add-a-node.md");
    // `router` here is `crate` within the crate.
    let node = include_str!("echo_count.rs").replace("use router::", "use crate::");
    assert!(page.contains(&node), "docs/add-a-node.md");
}
