//! `show adjacency`: where packets go and what is put in front of them.

use std::fmt;
use std::net::Ipv4Addr;

use serde::Serialize;

use tables::adjacency::{AdjacencyId, Kind};
use tables::special::Special;

use crate::Router;
use crate::show::text::name;

/// All adjacencies.
#[derive(Debug, Clone, Serialize)]
pub struct Adjacencies {
    /// By number.
    pub adjacencies: Vec<Adjacency>,
}

/// One adjacency. Its `Display` is one line without a newline.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct Adjacency {
    /// Number.
    pub id: AdjacencyId,
    /// `rewrite`, `glean`, `incomplete`, `drop`, or the decision of a special one.
    pub kind: &'static str,
    /// Interface that it sends by.
    pub interface: Option<String>,
    /// Next hop.
    pub next_hop: Option<Ipv4Addr>,
    /// Where the router's own packets by it come from.
    pub source: Option<Ipv4Addr>,
    /// Largest IP packet in bytes.
    pub mtu: u16,
    /// The Ethernet header that it writes, in hexadecimal.
    pub rewrite: Option<String>,
}

/// All live adjacencies.
pub fn adjacencies(router: &Router) -> Adjacencies {
    let ids = router.state.nexthops.slab.ids();
    Adjacencies {
        adjacencies: ids.filter_map(|id| adjacency(router, id)).collect(),
    }
}

/// An adjacency that is live or special.
pub(crate) fn adjacency(router: &Router, id: AdjacencyId) -> Option<Adjacency> {
    let a = router.state.nexthops.slab.get(id)?;
    let special = Special::of(id);
    let kind = match (special, a.kind) {
        (Some(special), _) => decision(special),
        (None, Kind::Rewrite) => "rewrite",
        (None, Kind::Glean) => "glean",
        (None, Kind::Incomplete) => "incomplete",
        (None, Kind::Free | Kind::Drop | Kind::Special) => "drop",
    };
    let used = a
        .header
        .get(..usize::from(a.header_len))
        .unwrap_or(&a.header);
    Some(Adjacency {
        id,
        kind,
        interface: special.is_none().then(|| name(router, a.tx_if)),
        next_hop: (a.next_hop != 0).then(|| a.next_hop.into()),
        source: (a.source != 0).then(|| a.source.into()),
        mtu: a.mtu,
        rewrite: (kind == "rewrite").then(|| used.iter().map(|b| format!("{b:02x}")).collect()),
    })
}

/// The word for a decision, as routes are shown.
pub(super) fn decision(special: Special) -> &'static str {
    match special {
        Special::NoRoute => "no route",
        Special::Local => "local",
        Special::Broadcast => "broadcast",
        Special::Punt => "punt",
        Special::Blackhole => "blackhole",
        Special::Unreachable => "unreachable",
        Special::Prohibit => "prohibit",
    }
}

impl fmt::Display for Adjacency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(interface) = &self.interface else {
            return write!(f, "ipv4 {}", self.kind);
        };
        let mtu = self.mtu;
        match (self.kind, self.next_hop, &self.rewrite) {
            ("rewrite", Some(hop), Some(header)) => {
                write!(f, "ipv4 via {hop} {interface}: mtu:{mtu} {header}")
            }
            ("incomplete", Some(hop), _) => {
                write!(f, "arp-ipv4: via {hop} {interface}: mtu:{mtu} unresolved")
            }
            ("glean", ..) => write!(f, "ipv4-glean: {interface}: mtu:{mtu}"),
            (kind, Some(hop), _) => write!(f, "ipv4-{kind}: via {hop} {interface}"),
            (kind, None, _) => write!(f, "ipv4-{kind}: {interface}"),
        }
    }
}

impl fmt::Display for Adjacencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for a in &self.adjacencies {
            writeln!(f, "[@{}] {a}", a.id)?;
        }
        Ok(())
    }
}
