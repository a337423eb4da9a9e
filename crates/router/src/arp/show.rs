//! `show neighbors`: the neighbors whose Ethernet addresses are known.

use std::fmt;
use std::net::Ipv4Addr;

use serde::Serialize;

use crate::Router;
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
    /// IPv4 address.
    pub address: Ipv4Addr,
    /// Ethernet address.
    pub mac: String,
    /// Name of the interface.
    pub interface: String,
}

/// All neighbors that are resolved.
pub fn neighbors(router: &Router) -> Neighbors {
    let all = router.state.links.neighbors.iter();
    Neighbors {
        neighbors: all
            .map(|(&(address, interface), n)| Neighbor {
                age_seconds: n.since.elapsed().as_secs_f64(),
                address: address.into(),
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
                n.age_seconds, "", n.address, n.mac, n.interface
            )?;
        }
        Ok(())
    }
}
