//! `show interface address`: the own addresses of interfaces.

use std::fmt;

use serde::Serialize;

use super::{Other, OtherState};
use crate::change::Address;
use crate::{Kind, Router};

/// Interfaces by name.
#[derive(Debug, Clone, Serialize)]
pub struct Addresses {
    /// Sorted by name.
    pub interfaces: Vec<Addressed>,
}

/// The addresses of one interface, of both families.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct Addressed {
    /// Name as configured.
    pub name: String,
    /// Up and with carrier.
    pub up: bool,
    /// Each with its prefix length, in the order in which they are to be chosen from; IPv4 first.
    pub addresses: Vec<String>,
}

/// The addresses of all interfaces, but of those that stand for others in the kernel; also of the
/// `others` that are there.
pub fn addresses(router: &Router, others: &[Other]) -> Addresses {
    let all = router.state.links.interfaces.values();
    let routed = all.filter(|i| !matches!(i.kind, Kind::Host { .. }));
    let routed = routed.map(|i| {
        let known = router.state.links.sources.addresses.get(&i.id);
        addressed(&i.name, i.up, known.into_iter().flatten())
    });
    let others = others.iter().filter_map(|i| match &i.state {
        OtherState::Kernel { up, addresses, .. } => Some(addressed(&i.name, *up, addresses)),
        OtherState::Absent(_) => None,
    });
    let mut interfaces: Vec<Addressed> = routed.chain(others).collect();
    interfaces.sort_by(|a, b| a.name.cmp(&b.name));
    Addresses { interfaces }
}

fn addressed<'a>(name: &str, up: bool, known: impl IntoIterator<Item = &'a Address>) -> Addressed {
    let mut addresses: Vec<_> = known.into_iter().collect();
    addresses.sort_by_key(|a| a.address.is_ipv6());
    Addressed {
        name: name.to_owned(),
        up,
        addresses: addresses.into_iter().map(ToString::to_string).collect(),
    }
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for i in &self.interfaces {
            writeln!(f, "{} ({}):", i.name, if i.up { "up" } else { "dn" })?;
            let mut all = i.addresses.iter();
            all.try_for_each(|address| writeln!(f, "  L3 {address}"))?;
        }
        Ok(())
    }
}
