//! `show nat`.

use std::fmt;

use serde::Serialize;
use tables::acl::Rule as Match;

use super::compiled::Rule;
use super::{DestinationRule, SourceRule, Static, To};
use crate::Router;
use crate::acl::Packets;
use crate::acl::show::Matched;

/// `show nat`: the rules, each kind in order.
#[derive(Debug, Clone, Serialize)]
pub struct Shown {
    /// Addresses that stand for others.
    pub r#static: Vec<Fixed>,
    /// Rules for destinations.
    pub destination: Vec<Row>,
    /// Rules for sources.
    pub source: Vec<Row>,
}

/// A network that stands for another one.
#[derive(Debug, Clone, Serialize)]
pub struct Fixed {
    /// The interface that packets leave by; null: any.
    pub interface: Option<String>,
    /// As it is seen.
    pub outside: String,
    /// What it stands for.
    pub inside: String,
    /// Flows that it has begun.
    pub flows: u64,
}

/// A rule.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The interface that packets leave by, or come in by; null: any.
    pub interface: Option<String>,
    /// The packets that it matches.
    pub packets: Vec<Matched>,
    /// What the address becomes: as configured.
    pub to: String,
    /// The ports to choose from, or what the first one becomes; null: it stays.
    pub ports: Option<String>,
    /// Ports of each source; null: as they are asked for.
    pub ports_per_host: Option<u16>,
    /// Flows that it has begun.
    pub flows: u64,
}

/// The rules of translation.
pub fn nat(router: &Router) -> Shown {
    let nat = &router.state.nat;
    let flows = |rule| nat.hits.of(rule);
    let (rules, all) = (&nat.rules, 0..);
    Shown {
        r#static: rules
            .fixed
            .iter()
            .zip(all.clone())
            .map(|(rule, number)| fixed(rule, flows(Rule::Static(number))))
            .collect(),
        destination: rules
            .destination
            .iter()
            .zip(all.clone())
            .map(|(rule, number)| destination(rule, flows(Rule::Destination(number))))
            .collect(),
        source: rules
            .source
            .iter()
            .zip(all)
            .map(|(rule, number)| source(rule, flows(Rule::Source(number))))
            .collect(),
    }
}

fn fixed(rule: &Static, flows: u64) -> Fixed {
    Fixed {
        interface: rule.interface.clone(),
        outside: format!("{}/{}", rule.outside, rule.length),
        inside: format!("{}/{}", rule.inside, rule.length),
        flows,
    }
}

fn matched(packets: &[Match<u32>]) -> Vec<Matched> {
    let packets = packets.iter().cloned().map(Packets::V4);
    packets.map(|packets| Matched::from(&packets)).collect()
}

fn destination(rule: &DestinationRule, flows: u64) -> Row {
    Row {
        interface: rule.interface.clone(),
        packets: matched(&rule.packets),
        to: rule.to.to_string(),
        ports: rule.port.map(|port| port.to_string()),
        ports_per_host: None,
        flows,
    }
}

fn source(rule: &SourceRule, flows: u64) -> Row {
    let (to, ports, blocks) = match &rule.to {
        To::Same => ("none".to_owned(), None, None),
        To::Interface { ports } => ("interface".to_owned(), Some(ports), None),
        To::Pool {
            addresses,
            ports,
            blocks,
        } => {
            let (first, last) = (addresses.start(), addresses.end());
            (format!("{first}-{last}"), Some(ports), *blocks)
        }
    };
    Row {
        interface: rule.interface.clone(),
        packets: matched(&rule.packets),
        to,
        ports: ports.map(|ports| format!("{}-{}", ports.start(), ports.end())),
        ports_per_host: blocks.map(|blocks| blocks.ports),
        flows,
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let none =
            self.r#static.is_empty() && self.destination.is_empty() && self.source.is_empty();
        if none {
            return writeln!(f, "nothing is translated");
        }
        for rule in &self.r#static {
            rule.fmt(f)?;
        }
        for (kind, by, rows) in [
            ("destination", "from", &self.destination),
            ("source", "by", &self.source),
        ] {
            for (row, number) in rows.iter().zip(1..) {
                write!(f, "{kind} {number}")?;
                row.write(f, by)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "static {} for {}", self.outside, self.inside)?;
        if let Some(interface) = &self.interface {
            write!(f, " by {interface}")?;
        }
        writeln!(f, " flows {}", self.flows)
    }
}

impl Row {
    fn write(&self, f: &mut fmt::Formatter<'_>, by: &str) -> fmt::Result {
        if let Some(interface) = &self.interface {
            write!(f, " {by} {interface}")?;
        }
        write!(f, " to {}", self.to)?;
        if let Some(ports) = &self.ports {
            write!(f, " ports {ports}")?;
        }
        if let Some(ports) = self.ports_per_host {
            write!(f, " ports-per-host {ports}")?;
        }
        writeln!(f, " flows {}", self.flows)?;
        for packets in &self.packets {
            writeln!(f, "    {} {packets}", packets.family)?;
        }
        Ok(())
    }
}
