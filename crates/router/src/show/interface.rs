//! `show interface` and `show interface addr`: interfaces, their state and counters, their addresses.

use std::fmt;

use graph::counters::InterfaceCounts;
use serde::{Serialize, Serializer};

use super::counts::since;
use super::text::{center, column, heading};
use crate::{Kind, Router};

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
    /// Largest IP packet in bytes.
    pub mtu: u16,
    /// Ethernet address.
    pub mac: String,
    /// Name of the interface whose packets to and from the host it carries.
    pub twin_of: Option<String>,
    /// What it has counted; `tx_errors` are all packets that could not be sent here, for want of a
    /// port too.
    #[serde(flatten, serialize_with = "by_name")]
    pub counts: InterfaceCounts,
}

/// The counts that the text has, too, under their names.
fn by_name<S: Serializer>(counts: &InterfaceCounts, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(counts.texts().map(|(name, _, n)| (name, n)))
}

/// There is no interface of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown interface `{0}`")]
pub struct NoInterface(pub String);

/// One interface, or all.
///
/// # Errors
/// [`NoInterface`].
pub fn interfaces(router: &Router, name: Option<&str>) -> Result<Interfaces, NoInterface> {
    let counts = since(router, &router.cleared.interface);
    let mut found: Vec<Interface> = selected(router, name)?
        .into_iter()
        .map(|i| {
            let mut sum = InterfaceCounts::default();
            let executors = counts.iter();
            executors
                .filter_map(|e| e.interfaces.get(usize::from(i.id)))
                .for_each(|counts| sum.add(counts));
            sum.tx_errors = sum.tx_errors.wrapping_add(sum.no_port);
            interface(router, i, sum)
        })
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Interfaces { interfaces: found })
}

fn selected<'a>(
    router: &'a Router,
    name: Option<&str>,
) -> Result<Vec<&'a crate::Interface>, NoInterface> {
    let all = router.state.links.interfaces.values();
    let found: Vec<_> = all.filter(|i| name.is_none_or(|n| n == i.name)).collect();
    match name {
        Some(name) if found.is_empty() => Err(NoInterface(name.into())),
        _ => Ok(found),
    }
}

fn interface(router: &Router, i: &crate::Interface, counts: InterfaceCounts) -> Interface {
    Interface {
        name: i.name.clone(),
        index: i.id,
        up: i.up,
        mtu: i.mtu,
        mac: i.mac.to_string(),
        twin_of: match i.kind {
            Kind::Twin { of } => Some(super::text::name(router, of)),
            Kind::Routed { .. } => None,
        },
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
                + &center(&i.mtu.to_string(), 10);
            let mut counts = i.counts.texts().filter(|(.., n)| *n > 0);
            match counts.next() {
                None => writeln!(f, "{}", line.trim_end())?,
                Some((_, text, n)) => writeln!(f, "{line}{text:<16}{n:>16}")?,
            }
            for (_, text, n) in counts {
                writeln!(f, "{:57}{text:<16}{n:>16}", "")?;
            }
        }
        Ok(())
    }
}

/// Addresses of interfaces.
#[derive(Debug, Clone, Serialize)]
pub struct Addresses {
    /// Sorted by interface name.
    pub interfaces: Vec<Addressed>,
}

/// One interface with its addresses.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct Addressed {
    /// Name as configured.
    pub name: String,
    /// Up and with carrier.
    pub up: bool,
    /// `address/length`, in the order in which they were configured.
    pub addresses: Vec<String>,
}

/// Addresses of one interface, or of all.
///
/// # Errors
/// [`NoInterface`].
pub fn addresses(router: &Router, name: Option<&str>) -> Result<Addresses, NoInterface> {
    let mut found: Vec<Addressed> = selected(router, name)?
        .into_iter()
        .map(|i| {
            let list = router.state.links.sources.addresses.get(&i.id);
            let list = list.into_iter().flatten();
            Addressed {
                name: i.name.clone(),
                up: i.up,
                addresses: list.map(ToString::to_string).collect(),
            }
        })
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Addresses { interfaces: found })
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for i in &self.interfaces {
            writeln!(f, "{} ({}):", i.name, if i.up { "up" } else { "dn" })?;
            for address in &i.addresses {
                writeln!(f, "  L3 {address}")?;
            }
        }
        Ok(())
    }
}
