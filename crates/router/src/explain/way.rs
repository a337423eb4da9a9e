//! A packet's way through the nodes, and the reasons: rules, routes, neighbors, stations.

use graph::trace::Record;
use serde::Serialize;
use wire::{ip4, ip6};

use super::dry::Ran;
use super::packet::{link, words};
use crate::acl::show::judged;
use crate::acl::{Direction, key};
use crate::icmp::Error;
use crate::ip::show::{Path, Query, fib};
use crate::l2::show::bridged;
use crate::show::text::{hex, name};
use crate::show::trace::{node, note, reason};
use crate::{InterfaceId, Router};

/// A packet at a node.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct Step {
    /// 1, or the number of a packet that the router has made, such as a fragment.
    pub packet: u32,
    /// Node, `<interface>-rx` or `<interface>-tx`.
    pub node: String,
    /// What decides there, line by line.
    pub why: Vec<String>,
    /// Reason why it ended here.
    pub dropped: Option<String>,
    /// Length of the packet in bytes.
    pub length: u32,
    /// Its first bytes, in hexadecimal.
    pub bytes: String,
    /// What was seen.
    #[serde(skip)]
    pub(super) record: Box<Seen>,
}

/// What the outcome needs of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    /// The packet came in by an interface.
    pub received: InterfaceId,
    /// It is given to this interface.
    pub sent: Option<InterfaceId>,
    /// The descriptor's word.
    pub word: u32,
    /// The packet's first bytes.
    pub bytes: Vec<u8>,
}

/// Node by node, in the order in which packets passed them.
pub(super) fn steps(router: &Router, ran: &Ran) -> Vec<Step> {
    let records: Vec<&Record> = ran.records.records().collect();
    let mut steps: Vec<Step> = Vec::new();
    for (at, record) in records.iter().enumerate() {
        if let Some(edge) = record.dropped {
            let (stage, why) = reason(&ran.nodes, record.node, edge);
            let of_node = |step: &&mut Step| step.packet == record.packet && step.node == stage;
            if let Some(step) = steps.iter_mut().rev().find(of_node) {
                step.dropped = Some(why);
            }
            continue;
        }
        let node = node(router, &ran.nodes, record);
        let mut rest = records[at + 1..].iter();
        let next = rest.find(|next| next.packet == record.packet);
        // The router's own packets are nobody's to judge.
        let own = steps.iter().any(|step| {
            step.packet == record.packet && OWN.contains(&&*step.node) && step.dropped.is_none()
        });
        let why = match own && node.ends_with("-firewall") {
            true => Vec::new(),
            false => why(router, ran, (&node, record), next.copied()),
        };
        let sent = (record.node == Record::INTERFACE_TX).then(|| record.tx_if());
        steps.push(Step {
            packet: record.packet,
            node,
            why,
            dropped: None,
            length: record.len,
            bytes: hex(record.packet_bytes()),
            record: Box::new(Seen {
                received: record.rx_if,
                sent,
                word: record.argument(),
                bytes: record.packet_bytes().to_vec(),
            }),
        });
    }
    steps
}

/// Nodes behind which a packet is the router's own.
const OWN: [&str; 5] = [
    "icmp4-error",
    "icmp6-error",
    "ip4-tcp-reset",
    "ip6-tcp-reset",
    "vxlan-encap",
];

/// What decides about a packet at a node.
fn why(
    router: &Router,
    ran: &Ran,
    (node, record): (&str, &Record),
    next: Option<&Record>,
) -> Vec<String> {
    let bytes = record.packet_bytes();
    let packet = bytes.get(usize::from(record.l3)..).unwrap_or_default();
    if record.node == Record::INTERFACE_TX {
        return vec![format!("{}, {}", words(bytes), link(bytes))];
    }
    match node {
        "ip4-lookup" => route4(router, packet).into_iter().collect(),
        "ip6-lookup" => route6(router, packet).into_iter().collect(),
        "ip4-acl-in" | "ip6-acl-in" | "ip4-acl-out" | "ip6-acl-out" => {
            judged(router, node, record).into_iter().collect()
        }
        "ip4-firewall" | "ip6-firewall" => policies(router, record, packet),
        "icmp4-error" | "icmp6-error" => {
            let error = in_words(Error::from_number(record.argument()));
            let note = note(router, &ran.nodes, record);
            vec![format!("{error}: {}", note.unwrap_or_default())]
        }
        "l2-forward" => bridged(router, "l2-forward", record).into_iter().collect(),
        "vlan-input" | "bond-input" | "vxlan-input" => {
            let now = next.map(|next| next.rx_if).filter(|of| *of != record.rx_if);
            now.map(|of| format!("comes in by {}", name(router, of)))
                .into_iter()
                .collect()
        }
        "bond-output" | "vxlan-encap" => {
            vec![format!("leaves by {}", name(router, record.tx_if()))]
        }
        _ => note(router, &ran.nodes, record).into_iter().collect(),
    }
}

/// The reason of an ICMP error.
fn in_words(error: Error) -> String {
    match error {
        Error::NoRoute => "no route".to_owned(),
        Error::Unreachable => "the destination is unreachable".to_owned(),
        Error::Prohibited => "administratively prohibited".to_owned(),
        Error::Expired => "its time to live has run out".to_owned(),
        Error::TooBig(mtu) => format!("it is longer than {mtu} bytes, the MTU"),
    }
}

fn route4(router: &Router, packet: &[u8]) -> Option<String> {
    let (header, _) = ip4::Header::parse(packet)?;
    Some(route(
        fib::<u32>(router, Query::Longest(header.dst())).route,
    ))
}

fn route6(router: &Router, packet: &[u8]) -> Option<String> {
    let (header, _) = ip6::Header::parse(packet)?;
    let destination = u128::from_be_bytes(header.dst);
    Some(route(
        fib::<u128>(router, Query::Longest(destination)).route,
    ))
}

fn route(found: Option<crate::ip::show::Route>) -> String {
    let Some(found) = found else {
        return "no route".to_owned();
    };
    let path = |path: &Path| match path.gateway {
        Some(gateway) => format!("via {gateway} {}", path.interface),
        None => format!("on {}", path.interface),
    };
    let paths: Vec<_> = found.paths.iter().map(path).collect();
    let (source, prefix, kind) = (found.source, found.prefix, found.kind);
    match &*paths {
        [] => format!("{source} {prefix}: {kind}"),
        [one] => format!("{source} {prefix}: {one}"),
        all => format!("{source} {prefix}: by flow, one of {}", all.join(", ")),
    }
}

/// What the policies of both interfaces have said.
fn policies(router: &Router, record: &Record, packet: &[u8]) -> Vec<String> {
    let policies = router.state.policies.attached();
    let asked = [
        (record.rx_if, Direction::Input),
        (record.tx_if(), Direction::Output),
    ];
    let said = asked.into_iter().filter_map(|(interface, direction)| {
        let policy = policies.of(interface, direction)?;
        let decided = match packet.first()? >> 4 {
            4 => policy.decided4(&key::ip4_bytes(packet)?),
            _ => policy.decided6(&key::ip6_bytes(packet)?),
        }?;
        let action = decided.action.name();
        let rule = match decided.rule {
            Some(rule) => format!("rule {rule}: {action}"),
            None => format!("no rule matches: {action}"),
        };
        let limit = decided
            .limit
            .map(|limit| format!(", at most {limit} a second"));
        Some(format!(
            "policy {}, {rule}{}",
            decided.policy,
            limit.unwrap_or_default()
        ))
    });
    said.collect()
}
