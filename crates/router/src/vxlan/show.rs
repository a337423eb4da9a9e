//! `show vxlan tunnel`.

use std::fmt;
use std::net::IpAddr;

use serde::Serialize;

use super::tunnels::tunnel;
use crate::show::text::row;
use crate::{InterfaceId, Router};

/// `show vxlan tunnel`.
#[derive(Debug, Clone, Serialize)]
pub struct Tunnels {
    /// By the number of the interface.
    pub tunnels: Vec<Tunnel>,
}

/// A tunnel.
#[derive(Debug, Clone, Serialize)]
pub struct Tunnel {
    /// Name as configured.
    pub name: String,
    /// Its number.
    pub index: InterfaceId,
    /// It is up.
    pub up: bool,
    /// The own end.
    pub local: IpAddr,
    /// The other end.
    pub remote: IpAddr,
    /// The network identifier.
    pub vni: u32,
}

/// All tunnels.
pub fn tunnels(router: &Router) -> Tunnels {
    let interfaces = router.state.links.interfaces.values();
    let shown = interfaces.filter_map(|i| {
        let tunnel = tunnel(i.kind)?;
        Some(Tunnel {
            name: i.name.clone(),
            index: i.id,
            up: i.up,
            local: tunnel.local(),
            remote: tunnel.remote(),
            vni: tunnel.vni(),
        })
    });
    Tunnels {
        tunnels: shown.collect(),
    }
}

impl fmt::Display for Tunnels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.tunnels.is_empty() {
            return writeln!(f, "no VXLAN tunnels");
        }
        let width = |of: fn(&Tunnel) -> IpAddr| {
            let all = self
                .tunnels
                .iter()
                .map(|tunnel| of(tunnel).to_string().len());
            all.max().unwrap_or(0).max(7) + 2
        };
        let (local, remote) = (width(|tunnel| tunnel.local), width(|tunnel| tunnel.remote));
        let widths = [25, 13, 7, local, remote, 0];
        let headings = [
            "interface name",
            "sw_if_index",
            "state",
            "src",
            "dst",
            "vni",
        ];
        writeln!(f, "{}", row(headings, widths))?;
        for tunnel in &self.tunnels {
            let cells = [
                tunnel.name.as_str(),
                &tunnel.index.to_string(),
                if tunnel.up { "up" } else { "down" },
                &tunnel.local.to_string(),
                &tunnel.remote.to_string(),
                &tunnel.vni.to_string(),
            ];
            writeln!(f, "{}", row(cells, widths))?;
        }
        Ok(())
    }
}
