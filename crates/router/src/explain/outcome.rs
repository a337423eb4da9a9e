//! What becomes of a packet in the end, in a sentence.

use std::net::IpAddr;

use serde::Serialize;
use wire::eth;

use super::packet::{in_vlans, vlans};
use super::way::Step;
use crate::change::Kind;
use crate::show::text::name;
use crate::{InterfaceId, Mac, Router};

/// The end of a packet.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct Outcome {
    /// What becomes of it.
    pub kind: Fate,
    /// The same in a sentence.
    pub text: String,
    /// Node where it is dropped or waits.
    pub node: Option<String>,
    /// Reason why it is dropped.
    pub reason: Option<String>,
    /// Interface that it leaves by.
    pub interface: Option<String>,
    /// Next hop.
    pub next_hop: Option<IpAddr>,
    /// Ethernet address that it is sent to.
    pub mac: Option<String>,
    /// VLANs of its tags, the outer one first.
    pub vlans: Vec<u16>,
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// It leaves by an interface.
    Sent,
    /// It goes to the host.
    Host,
    /// It waits for a neighbor, who is asked for.
    Waits,
    /// It is dropped, and its source is told.
    Refused,
    /// It is dropped.
    Dropped,
}

impl Outcome {
    fn new(kind: Fate, text: String) -> Self {
        Outcome {
            kind,
            text,
            node: None,
            reason: None,
            interface: None,
            next_hop: None,
            mac: None,
            vlans: Vec::new(),
        }
    }
}

/// All ends that the packet, its copies and what is made of it have.
pub(super) fn outcomes(router: &Router, steps: &[Step]) -> Vec<Outcome> {
    let mut all: Vec<Outcome> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let before = &steps[..at];
        let end = match (&step.dropped, step.record.sent) {
            (Some(reason), _) => Some(dropped(router, before, step, reason)),
            (None, Some(by)) => Some(sent(router, before, step, by)),
            (None, None) => refused_or_waits(before, step),
        };
        // The pieces of a packet have the same one, for example.
        if let Some(end) = end
            && !all.contains(&end)
        {
            all.push(end);
        }
    }
    if all.is_empty() {
        all.push(match steps {
            [] => Outcome::new(Fate::Dropped, "It is not taken in.".to_owned()),
            // LACPDUs, for example.
            [.., last] => Outcome {
                node: Some(last.node.clone()),
                ..Outcome::new(Fate::Host, format!("It ends in {}.", last.node))
            },
        });
    }
    all
}

/// What decides about a packet that ends at a node: of several policies, the last that was asked.
fn decisive(step: &Step) -> Option<&str> {
    step.why.last().map(String::as_str)
}

/// `; policy lan, rule 3: drop`, or nothing.
fn because(why: Option<&str>) -> String {
    why.map_or(String::new(), |why| format!("; {why}"))
}

fn dropped(router: &Router, before: &[Step], step: &Step, reason: &str) -> Outcome {
    let (node, of) = (&step.node, name(router, step.record.received));
    let text = match (&**node, reason) {
        ("punt", "interface has no host interface") => format!(
            "It is for the host, which takes such packets from {of} before the router does; one \
             that comes here all the same is dropped in punt: {reason}."
        ),
        ("vlan-input", "no sub-interface has these tags") => format!(
            "No sub-interface of {of} has these tags. It is for the host, if that takes such packets \
             from {of} before the router does; one that comes here is dropped in vlan-input."
        ),
        _ => {
            let subject = subject(before, step.packet);
            let why = decisive(step).filter(|why| *why != reason);
            format!("{subject} is dropped in {node}: {reason}{}.", because(why))
        }
    };
    Outcome {
        node: Some(node.clone()),
        reason: Some(reason.to_owned()),
        ..Outcome::new(Fate::Dropped, text)
    }
}

/// The end of a packet at a node that makes an answer to it, or holds it.
fn refused_or_waits(before: &[Step], step: &Step) -> Option<Outcome> {
    let why = step.why.join("; ");
    let (kind, text, at) = match &*step.node {
        "ip4-arp" | "ip6-discover-neighbor" => {
            let text = format!(
                "{} waits in {} for its neighbor, for whom the kernel is asked: {why}.",
                subject(before, step.packet),
                step.node
            );
            (Fate::Waits, text, step)
        }
        "icmp4-error" | "icmp6-error" | "ip4-tcp-reset" | "ip6-tcp-reset" => {
            let at = before.iter().rfind(|of| of.packet == step.packet)?;
            let why = match step.why.is_empty() {
                true => "it is answered by a TCP reset".to_owned(),
                false => why,
            };
            let rule = because(decisive(at).filter(|_| at.node.ends_with("-firewall")));
            let text = format!("It is dropped in {}: {why}{rule}.", at.node);
            (Fate::Refused, text, at)
        }
        _ => return None,
    };
    Some(Outcome {
        node: Some(at.node.clone()),
        ..Outcome::new(kind, text)
    })
}

fn sent(router: &Router, before: &[Step], step: &Step, by: InterfaceId) -> Outcome {
    let bytes = &step.record.bytes;
    let (to, vlans) = (
        eth::Header::parse(bytes).map(|(header, _)| header.dst),
        vlans(bytes),
    );
    let interface = name(router, by);
    let of = router.state.links.interfaces.get(&by);
    let is_host = of.is_some_and(|of| matches!(of.kind, Kind::Host { .. }));
    let next_hop = to.and_then(|to| next_hop(router, before, to));
    let subject = subject(before, step.packet);
    let text = if is_host {
        format!("{subject} goes to the host, by {interface}.")
    } else {
        let to = match (next_hop, to) {
            (Some(hop), Some(mac)) => format!(", to {hop} at {mac}"),
            (None, Some(mac)) => format!(", to {mac}"),
            _ => String::new(),
        };
        format!("{subject} leaves by {interface}{to}{}.", in_vlans(&vlans))
    };
    Outcome {
        interface: Some(interface),
        next_hop,
        mac: to.map(|mac| mac.to_string()),
        vlans,
        ..Outcome::new(if is_host { Fate::Host } else { Fate::Sent }, text)
    }
}

/// The next hop that the last adjacency names, if it has this Ethernet address.
fn next_hop(router: &Router, before: &[Step], to: Mac) -> Option<IpAddr> {
    let named = ["ip4-rewrite", "ip6-rewrite", "ip4-fragment"];
    let last = before.iter().rfind(|step| named.contains(&&*step.node))?;
    let adjacency = router.state.nexthops.slab.get(last.record.word)?;
    adjacency
        .next_hop
        .filter(|_| adjacency.header.starts_with(&to.0))
}

/// What the packet is by now.
fn subject(before: &[Step], packet: u32) -> &'static str {
    let mut own = before.iter().rev();
    let last = own.find_map(|step| match &*step.node {
        "icmp4-error" | "icmp6-error" if step.packet == packet => Some("The ICMP error"),
        "ip4-tcp-reset" | "ip6-tcp-reset" if step.packet == packet => Some("The TCP reset"),
        "ip4-fragment" if step.packet != packet => Some("A fragment"),
        _ => None,
    });
    last.unwrap_or("It")
}
