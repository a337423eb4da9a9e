//! `show interface`: interfaces, their state and counters.

use std::fmt;

use serde::{Serialize, Serializer};

use graph::counters::{ExecutorCounts, InterfaceCounts};

use super::counts::{executors, since};
use super::text::{center, column, heading};
use crate::change::Address;
use crate::{InterfaceId, Kind, Mac, Router};

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
    /// Our number; null for a loopback, whose packets are the kernel's.
    pub index: Option<u16>,
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
    /// want of a port. Each is null for a loopback.
    #[serde(flatten, serialize_with = "by_name")]
    pub counts: Option<InterfaceCounts>,
}

/// An interface that the router does not know, now or ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Other {
    /// Name as configured.
    pub name: String,
    /// Our number; `None`: a loopback has none.
    pub index: Option<InterfaceId>,
    /// Its state.
    pub state: OtherState,
}

/// The state of an interface that the router does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OtherState {
    /// It is wanted, and its device absent: the part that is missing.
    Absent(String),
    /// It is there, and its packets are the kernel's.
    Kernel {
        /// Up and with carrier.
        up: bool,
        /// Largest IP packet in bytes.
        mtu: u16,
        /// Ethernet address.
        mac: Mac,
        /// Own addresses, in the kernel's order.
        addresses: Vec<Address>,
    },
}

/// The counts that the text has, by their names.
fn by_name<S: Serializer>(
    counts: &Option<InterfaceCounts>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let all = counts.unwrap_or_default();
    let known = |n| counts.map(|_| n);
    serializer.collect_map(all.texts().map(|(name, _, n)| (name, known(n))))
}

/// There is no interface of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown interface `{0}`; `show interface` lists those that there are")]
pub struct NoInterface(pub String);

/// The number of an interface.
///
/// # Errors
/// [`NoInterface`].
pub fn number_of(router: &Router, name: &str) -> Result<InterfaceId, NoInterface> {
    let mut known = router.state.links.interfaces.values();
    let found = known.find(|interface| interface.name == name);
    found
        .map(|interface| interface.id)
        .ok_or_else(|| NoInterface(name.to_owned()))
}

/// One interface, or all; also the `others`.
///
/// # Errors
/// [`NoInterface`].
pub fn interfaces(
    router: &Router,
    name: Option<&str>,
    others: &[Other],
) -> Result<Interfaces, NoInterface> {
    let counts = since(router, &router.cleared.interface);
    let known = &router.state.links.interfaces;
    let is_asked = |its: &str| name.is_none_or(|name| name == its);
    let there = known
        .values()
        .filter(|i| is_asked(&i.name))
        .map(|i| interface(router, i, total(&counts, i.id)));
    let is_known = |index: Option<InterfaceId>| index.is_some_and(|id| known.contains_key(&id));
    let others = others
        .iter()
        .filter(|i| is_asked(&i.name) && !is_known(i.index));
    let others = others.map(|i| other(i, i.index.map(|id| total(&counts, id))));
    let mut found: Vec<Interface> = there.chain(others).collect();
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
    let counts = executors.iter();
    sum(counts.filter_map(|e| e.interfaces.get(usize::from(id)).copied()))
}

fn sum(counts: impl Iterator<Item = InterfaceCounts>) -> InterfaceCounts {
    let mut total = InterfaceCounts::default();
    counts.for_each(|counts| total.add(&counts));
    total.tx_errors = total.tx_errors.wrapping_add(total.no_port);
    total
}

/// Counts of an interface since the start, of all executors together, whatever was cleared.
pub(crate) fn counts_of(router: &Router, id: InterfaceId) -> InterfaceCounts {
    let executors = executors(router);
    let own = executors.iter().filter_map(|executor| {
        let all = &executor.counters.interfaces;
        all.get(usize::from(id)).map(|counters| counters.read())
    });
    sum(own)
}

fn interface(router: &Router, i: &crate::Interface, counts: InterfaceCounts) -> Interface {
    Interface {
        name: i.name.clone(),
        index: Some(i.id),
        up: i.up,
        mtu: Some(i.mtu),
        mac: Some(i.mac.to_string()),
        host_of: match i.kind {
            Kind::Host { of } => Some(super::text::name(router, of)),
            Kind::Routed { .. } | Kind::Bond { .. } | Kind::Vxlan { .. } | Kind::Sub { .. } => None,
        },
        absent: None,
        counts: Some(counts),
    }
}

fn other(i: &Other, counts: Option<InterfaceCounts>) -> Interface {
    let (up, mtu, mac, absent) = match &i.state {
        OtherState::Absent(why) => (false, None, None, Some(why.clone())),
        OtherState::Kernel { up, mtu, mac, .. } => (*up, Some(*mtu), Some(mac.to_string()), None),
    };
    Interface {
        name: i.name.clone(),
        index: i.index,
        up,
        mtu,
        mac,
        host_of: None,
        absent,
        counts,
    }
}

/// A number, or a dash where there is none.
fn or_dash(number: Option<u16>) -> String {
    number.map_or("-".into(), |number| number.to_string())
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
                + &center(&or_dash(i.index), 5)
                + &center(if i.up { "up" } else { "down" }, 10)
                + &center(&or_dash(i.mtu), 10);
            let counts = i.counts.unwrap_or_default();
            let mut counts = counts.texts().filter(|(.., n)| *n > 0);
            match counts.next() {
                None => writeln!(f, "{}", line.trim_end())?,
                Some((_, text, n)) => writeln!(f, "{line}{text:<16}{n:>16}")?,
            }
            for (_, text, n) in counts {
                writeln!(f, "{:57}{text:<16}{n:>16}", "")?;
            }
            if let Some(why) = &i.absent {
                writeln!(f, "  absent: {why}")?;
            } else if i.index.is_none() {
                writeln!(
                    f,
                    "  loopback: its packets are the kernel's, and not counted here"
                )?;
            }
        }
        Ok(())
    }
}
