//! `show neighbors`, `show ip neighbors`, `show ip6 neighbors`: the neighbors whose Ethernet addresses are known.

use std::fmt;
use std::net::IpAddr;

use serde::Serialize;

use crate::Router;
use crate::family::Family;
use crate::show::text::name;

/// All neighbors.
#[derive(Debug, Clone, Serialize)]
pub struct Neighbors {
    /// By address.
    pub neighbors: Vec<Neighbor>,
}

/// One neighbor.
#[derive(Debug, Clone, Serialize)]
pub struct Neighbor {
    /// Seconds since it was last set.
    pub age_seconds: f64,
    /// IP address.
    pub address: IpAddr,
    /// Ethernet address.
    pub mac: String,
    /// Name of the interface.
    pub interface: String,
}

/// The neighbors of a family, or of both, that are resolved.
pub fn neighbors(router: &Router, family: Option<Family>) -> Neighbors {
    let all = router
        .state
        .links
        .neighbors
        .iter()
        .filter(|((address, _), _)| family.is_none_or(|of| of == Family::of(*address)));
    Neighbors {
        neighbors: all
            .map(|(&(address, interface), n)| Neighbor {
                age_seconds: n.since.elapsed().as_secs_f64(),
                address,
                mac: n.mac.to_string(),
                interface: name(router, interface),
            })
            .collect(),
    }
}

impl fmt::Display for Neighbors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "     Age                       IP                    Ethernet              Interface"
        )?;
        for n in &self.neighbors {
            writeln!(
                f,
                "{:>12.4}{:16}{:<21}{:<20} {}",
                n.age_seconds,
                "",
                n.address.to_string(),
                n.mac,
                n.interface
            )?;
        }
        Ok(())
    }
}
