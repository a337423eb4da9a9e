//! `show interface`: interfaces, their state and counters.

use std::fmt;

use serde::{Serialize, Serializer};

use graph::counters::{ExecutorCounts, InterfaceCounts};

use super::counts::since;
use super::text::{center, column, heading};
use crate::{InterfaceId, Kind, Router};

/// Interfaces by name.
#[derive(Debug, Clone, Serialize)]
pub struct Interfaces {
    /// Sorted by name.
    pub interfaces: Vec<Interface>,
}

/// One interface; it counts since the start or the last `clear interface`, over all workers.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct Interface {
    /// Name as configured.
    pub name: String,
    /// Our number.
    pub index: u16,
    /// Up and with carrier.
    pub up: bool,
    /// Largest IP packet in bytes; null while its device is absent.
    pub mtu: Option<u16>,
    /// Ethernet address; null while its device is absent.
    pub mac: Option<String>,
    /// Name of the interface whose packets to and from the host it carries.
    pub host_of: Option<String>,
    /// Reason why its device is absent; null if it is there.
    pub absent: Option<String>,
    /// Counts of the interface; `tx_errors` are all packets that could not be sent here, also for
    /// want of a port.
    #[serde(flatten, serialize_with = "by_name")]
    pub counts: InterfaceCounts,
}

/// An interface that is wanted, and whose device is absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absent {
    /// Name as configured.
    pub name: String,
    /// Our number.
    pub index: InterfaceId,
    /// Part that is missing.
    pub why: String,
}

/// The counts that the text has, by their names.
fn by_name<S: Serializer>(counts: &InterfaceCounts, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(counts.texts().map(|(name, _, n)| (name, n)))
}

/// There is no interface of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown interface `{0}`")]
pub struct NoInterface(pub String);

/// One interface, or all; also those that are wanted and `absent`.
///
/// # Errors
/// [`NoInterface`].
pub fn interfaces(
    router: &Router,
    name: Option<&str>,
    absent: &[Absent],
) -> Result<Interfaces, NoInterface> {
    let counts = since(router, &router.cleared.interface);
    let known = &router.state.links.interfaces;
    let is_asked = |its: &str| name.is_none_or(|name| name == its);
    let there = known
        .values()
        .filter(|i| is_asked(&i.name))
        .map(|i| interface(router, i, total(&counts, i.id)));
    let absent = absent
        .iter()
        .filter(|i| is_asked(&i.name) && !known.contains_key(&i.index));
    let absent = absent.map(|i| absent_interface(i, total(&counts, i.index)));
    let mut found: Vec<Interface> = there.chain(absent).collect();
    if let Some(name) = name
        && found.is_empty()
    {
        return Err(NoInterface(name.into()));
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Interfaces { interfaces: found })
}

/// Counts of an interface, of all executors together.
fn total(executors: &[ExecutorCounts], id: InterfaceId) -> InterfaceCounts {
    let mut total = InterfaceCounts::default();
    let counts = executors.iter();
    counts
        .filter_map(|e| e.interfaces.get(usize::from(id)))
        .for_each(|counts| total.add(counts));
    total.tx_errors = total.tx_errors.wrapping_add(total.no_port);
    total
}

fn interface(router: &Router, i: &crate::Interface, counts: InterfaceCounts) -> Interface {
    Interface {
        name: i.name.clone(),
        index: i.id,
        up: i.up,
        mtu: Some(i.mtu),
        mac: Some(i.mac.to_string()),
        host_of: match i.kind {
            Kind::Host { of } => Some(super::text::name(router, of)),
            Kind::Routed { .. } | Kind::Sub { .. } => None,
        },
        absent: None,
        counts,
    }
}

fn absent_interface(i: &Absent, counts: InterfaceCounts) -> Interface {
    Interface {
        name: i.name.clone(),
        index: i.index,
        up: false,
        mtu: None,
        mac: None,
        host_of: None,
        absent: Some(i.why.clone()),
        counts,
    }
}

const COLUMNS: [(&str, usize); 6] = [
    ("Name", 32),
    ("Idx", 5),
    ("State", 10),
    ("MTU (L3)", 10),
    ("Counter", 16),
    ("Count", 16),
];

impl fmt::Display for Interfaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", heading(&COLUMNS))?;
        for i in &self.interfaces {
            let line = column(&i.name, 32)
                + &center(&i.index.to_string(), 5)
                + &center(if i.up { "up" } else { "down" }, 10)
                + &center(&i.mtu.map_or("-".into(), |mtu| mtu.to_string()), 10);
            let mut counts = i.counts.texts().filter(|(.., n)| *n > 0);
            match counts.next() {
                None => writeln!(f, "{}", line.trim_end())?,
                Some((_, text, n)) => writeln!(f, "{line}{text:<16}{n:>16}")?,
            }
            for (_, text, n) in counts {
                writeln!(f, "{:57}{text:<16}{n:>16}", "")?;
            }
            if let Some(why) = &i.absent {
                writeln!(f, "  absent: {why}")?;
            }
        }
        Ok(())
    }
}
