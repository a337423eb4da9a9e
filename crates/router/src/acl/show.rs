//! `show acl`.

use std::fmt;
use std::ops::RangeInclusive;

use graph::trace::Record;
use serde::Serialize;

use super::list::Acl;
use super::{Direction, Packets, Rule, key};
use crate::show::text::name;
use crate::{InterfaceId, Router};

/// `show acl`.
#[derive(Debug, Clone, Serialize)]
pub struct Shown {
    /// By name.
    pub acls: Vec<List>,
}

/// An access list.
#[derive(Debug, Clone, Serialize)]
pub struct List {
    /// Its name.
    pub name: String,
    /// In their order.
    pub rules: Vec<Row>,
    /// The interfaces that have it.
    #[serde(flatten)]
    pub bound: Bound,
}

/// A rule.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What it matches may pass.
    pub permit: bool,
    /// What it matches.
    #[serde(flatten)]
    pub packets: Matched,
    /// Packets that it has matched.
    pub hits: u64,
}

/// The packets that a rule matches.
#[derive(Debug, Clone, Serialize)]
pub struct Matched {
    /// `ipv4` or `ipv6`.
    pub family: &'static str,
    /// Where packets come from.
    pub source: String,
    /// Where they go to.
    pub destination: String,
    /// Their protocol; null: any.
    pub protocol: Option<u8>,
    /// First and last source port, or ICMP type.
    pub source_ports: (u16, u16),
    /// First and last destination port, or ICMP code.
    pub destination_ports: (u16, u16),
}

/// The interfaces that an access list or a policy is bound to, in order of their names.
#[derive(Debug, Clone, Serialize)]
pub struct Bound {
    /// Interfaces whose packets pass it when they come in, by name.
    pub input: Vec<String>,
    /// Interfaces whose packets pass it when they leave, by name.
    pub output: Vec<String>,
}

/// No access list has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no access list {0}; `show acl` lists those that there are")]
pub struct NoAcl(pub String);

/// One access list, or all.
///
/// # Errors
/// [`NoAcl`].
pub fn acls(router: &Router, which: Option<&str>) -> Result<Shown, NoAcl> {
    let all = router.state.acls.iter();
    let asked = all.filter(|acl| which.is_none_or(|which| which == acl.name));
    let acls: Vec<List> = asked.map(|acl| list(router, acl)).collect();
    match which {
        Some(which) if acls.is_empty() => Err(NoAcl(which.to_owned())),
        _ => Ok(Shown { acls }),
    }
}

fn list(router: &Router, acl: &Acl) -> List {
    let rules = acl.rules.iter().enumerate();
    let acls = &router.state.acls;
    List {
        name: acl.name.clone(),
        rules: rules.map(|(at, rule)| row(rule, acl.hits(at))).collect(),
        bound: Bound::new(router, |direction| acls.interfaces(&acl.name, direction)),
    }
}

impl Bound {
    /// To these interfaces by direction.
    pub(crate) fn new<I: Iterator<Item = InterfaceId>>(
        router: &Router,
        interfaces: impl Fn(Direction) -> I,
    ) -> Self {
        let [input, output] = Direction::ALL.map(|direction| {
            let mut names: Vec<_> = interfaces(direction).map(|of| name(router, of)).collect();
            names.sort();
            names
        });
        Bound { input, output }
    }
}

fn row(rule: &Rule, hits: u64) -> Row {
    Row {
        permit: rule.permit,
        packets: Matched::from(&rule.packets),
        hits,
    }
}

impl From<&Packets> for Matched {
    fn from(packets: &Packets) -> Self {
        let (source, destination) = packets.prefixes();
        let ends = |range: &RangeInclusive<u16>| (*range.start(), *range.end());
        let (family, protocol, source_ports, destination_ports) = match packets {
            Packets::V4(p) => ("ipv4", p.protocol, &p.source_ports, &p.destination_ports),
            Packets::V6(p) => ("ipv6", p.protocol, &p.source_ports, &p.destination_ports),
        };
        Matched {
            family,
            source: source.to_string(),
            destination: destination.to_string(),
            protocol,
            source_ports: ends(source_ports),
            destination_ports: ends(destination_ports),
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.acls.is_empty() {
            return writeln!(f, "no access lists");
        }
        self.acls.iter().try_for_each(|list| list.fmt(f))
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "acl {} count {}", self.name, self.rules.len())?;
        for (at, rule) in self.rules.iter().enumerate() {
            writeln!(f, "{at:>11}: {rule}")?;
        }
        self.bound.fmt(f)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (word, interfaces) in [("inbound", &self.input), ("outbound", &self.output)] {
            if !interfaces.is_empty() {
                writeln!(f, "  applied {word} on: {}", interfaces.join(", "))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = if self.permit { "permit" } else { "deny" };
        let Row { packets, hits, .. } = self;
        write!(f, "{} {action} {packets} hits {hits}", packets.family)
    }
}

/// All but its family.
impl fmt::Display for Matched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = |(first, last): (u16, u16)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        };
        write!(
            f,
            "src {} dst {} proto {} sport {} dport {}",
            self.source,
            self.destination,
            self.protocol.map_or("any".to_owned(), |p| p.to_string()),
            range(self.source_ports),
            range(self.destination_ports),
        )
    }
}

/// What the access lists say now of a packet that was seen at a node; `None`: the node does not ask
/// them.
pub(crate) fn judged(router: &Router, node: &str, record: &Record) -> Option<String> {
    let (interface, direction) = match node {
        "ip4-acl-in" | "ip6-acl-in" => (record.rx_if, Direction::Input),
        "ip4-acl-out" | "ip6-acl-out" => (record.tx_if(), Direction::Output),
        _ => return None,
    };
    let lists = router.state.acls.lists();
    let Some(list) = lists.of(interface, direction) else {
        return Some(format!("{} has no access list", name(router, interface)));
    };
    let packet = record.packet_bytes().get(usize::from(record.l3)..)?;
    let decided = match packet.first().map(|first| first >> 4) {
        Some(4) => key::ip4_bytes(packet).and_then(|key| list.decide4(key)),
        Some(6) => key::ip6_bytes(packet).and_then(|key| list.decide6(key)),
        _ => None,
    };
    Some(match decided {
        Some(rule) => {
            let action = if rule.permit { "permit" } else { "deny" };
            format!("acl {}, rule {}: {action}", rule.acl, rule.rule)
        }
        None => "no rule of the access lists matches".to_owned(),
    })
}
