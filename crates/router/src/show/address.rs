//! `show interface address`: the own addresses of interfaces.

use std::fmt;

use serde::Serialize;

use crate::{Interface, Kind, Router};

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

/// The addresses of all interfaces, but of those that stand for others in the kernel.
pub fn addresses(router: &Router) -> Addresses {
    let all = router.state.links.interfaces.values();
    let routed = all.filter(|i| !matches!(i.kind, Kind::Host { .. }));
    let mut interfaces: Vec<Addressed> = routed.map(|i| addressed(router, i)).collect();
    interfaces.sort_by(|a, b| a.name.cmp(&b.name));
    Addresses { interfaces }
}

fn addressed(router: &Router, i: &Interface) -> Addressed {
    let known = router.state.links.sources.addresses.get(&i.id);
    let mut addresses: Vec<_> = known.into_iter().flatten().collect();
    addresses.sort_by_key(|a| a.address.is_ipv6());
    Addressed {
        name: i.name.clone(),
        up: i.up,
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
