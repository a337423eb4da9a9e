//! `show adjacency`: where packets go and what is put in front of them.

use std::fmt;
use std::net::IpAddr;

use serde::Serialize;

use tables::adjacency::{AdjacencyId, Kind};
use tables::special::Special;

use crate::Router;
use crate::family::Family;
use crate::show::text::{hex, name};

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
    /// Family of its packets, `ipv4` or `ipv6`; none: of both.
    pub family: Option<&'static str>,
    /// `rewrite`, `glean`, `incomplete`, `drop`, or the decision of a special one.
    pub kind: &'static str,
    /// Interface that it sends by.
    pub interface: Option<String>,
    /// Next hop.
    pub next_hop: Option<IpAddr>,
    /// Source address of the router's own packets by it.
    pub source: Option<IpAddr>,
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
        family: Family::of_ethertype(a.ethertype()).map(Family::name),
        kind,
        interface: special.is_none().then(|| name(router, a.tx_if)),
        next_hop: a.next_hop,
        source: a.source,
        mtu: a.mtu,
        rewrite: (kind == "rewrite").then(|| hex(used)),
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
        let family = self.family.unwrap_or("ip");
        let Some(interface) = &self.interface else {
            return write!(f, "{family} {}", self.kind);
        };
        let mtu = self.mtu;
        match (self.kind, self.next_hop, &self.rewrite) {
            ("rewrite", Some(hop), Some(header)) => {
                write!(f, "{family} via {hop} {interface}: mtu:{mtu} {header}")
            }
            ("incomplete", Some(hop), _) => {
                write!(
                    f,
                    "arp-{family}: via {hop} {interface}: mtu:{mtu} unresolved"
                )
            }
            ("glean", ..) => write!(f, "{family}-glean: {interface}: mtu:{mtu}"),
            (kind, Some(hop), _) => write!(f, "{family}-{kind}: via {hop} {interface}"),
            (kind, None, _) => write!(f, "{family}-{kind}: {interface}"),
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
