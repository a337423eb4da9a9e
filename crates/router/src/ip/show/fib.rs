//! `show ip fib PREFIX`, `show ip6 fib PREFIX`: what a destination leads to, from the route to the Ethernet header.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::Serialize;

use tables::Fib as _;
use tables::entry::Entry;
use tables::prefix::Prefix;
use tables::special::Special;

use super::adjacency::{Adjacency, adjacency, decision};
use crate::Router;
use crate::family::{Family, Ip};
use crate::show::text::name;
use crate::state::HasRoutes;

/// Address or prefix to look up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query<A> {
    /// The route of exactly this prefix.
    Exact(Prefix<A>),
    /// The longest prefix with this address in it.
    Longest(A),
}

impl<A: Ip> FromStr for Query<A> {
    type Err = String;

    /// `10.0.0.0/8` is exact, `10.1.2.3` asks for the longest match.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<A::Ip>() {
            Ok(address) => Ok(Query::Longest(address.into())),
            Err(_) => match text.parse() {
                Ok(prefix) => Ok(Query::Exact(prefix)),
                Err(e) => Err(format!("fib: {e}")),
            },
        }
    }
}

/// A route in full, if there is one.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct Fib {
    /// `ipv4` or `ipv6`.
    pub family: &'static str,
    /// Routes in the table.
    pub routes: usize,
    /// The route.
    pub route: Option<Route>,
}

/// One route.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct Route {
    /// Destination.
    pub prefix: String,
    /// `route` (of the kernel) or `neighbor` (a resolved neighbor on a connected network).
    pub source: &'static str,
    /// `forward`, `local`, `broadcast`, `punt`, `blackhole`, `unreachable` or `prohibit`.
    pub kind: &'static str,
    /// Number of the path list.
    pub path_list: Option<u32>,
    /// Routes that share the path list.
    pub shared_by: usize,
    /// Its paths.
    pub paths: Vec<Path>,
    /// Number of the next-hop group.
    pub group: u32,
    /// True if the flow hash chooses a bucket.
    pub multipath: bool,
    /// The group's buckets, runs of the same adjacency together.
    pub buckets: Vec<Buckets>,
}

/// One path of a route.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct Path {
    /// That of the next hop; without one, of the destination.
    #[serde(skip)]
    family: Family,
    /// Interface.
    pub interface: String,
    /// Next hop; none: the destination is on the link.
    pub gateway: Option<IpAddr>,
    /// Share of the flows.
    pub weight: u16,
    /// Largest IP packet that the route allows; none: the interface's limit alone.
    pub mtu: Option<u16>,
    /// Source address of the router's own packets, if the route says it.
    pub source: Option<IpAddr>,
}

/// Buckets of a group with one adjacency.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct Buckets {
    /// First bucket.
    pub first: usize,
    /// Last bucket.
    pub last: usize,
    /// The adjacency.
    pub adjacency: Adjacency,
}

/// The route that `query` asks for.
pub fn fib<A: HasRoutes>(router: &Router, query: Query<A>) -> Fib {
    let routes = A::routes(&router.state).fib.routes();
    let prefix = match query {
        Query::Exact(prefix) => routes.get(prefix).map(|_| prefix),
        Query::Longest(address) => routes.longest_match(address).map(|(p, _)| p),
    };
    Fib {
        family: A::FAMILY.name(),
        routes: routes.len(),
        route: prefix.and_then(|p| route(router, p)),
    }
}

fn route<A: HasRoutes>(router: &Router, prefix: Prefix<A>) -> Option<Route> {
    let entry = *A::routes(&router.state).fib.routes().get(prefix)?;
    let (source, kind) = origin(router, prefix, entry);
    let group = entry.group();
    let nexthops = &router.state.nexthops;
    let paths = nexthops.paths(group);
    Some(Route {
        prefix: prefix.to_string(),
        source,
        kind,
        path_list: (!entry.is_special()).then_some(group),
        shared_by: nexthops.routes(group),
        paths: paths.iter().map(|p| path(router, A::FAMILY, p)).collect(),
        group,
        multipath: entry.is_multi(),
        buckets: buckets(router, group, entry.is_multi()),
    })
}

/// Origin of a route, and what it does.
pub(super) fn origin<A: HasRoutes>(
    router: &Router,
    prefix: Prefix<A>,
    entry: Entry,
) -> (&'static str, &'static str) {
    let of_neighbor = A::routes(&router.state).is_neighbor(prefix);
    let source = if of_neighbor { "neighbor" } else { "route" };
    (
        source,
        Special::of(entry.group()).map_or("forward", decision),
    )
}

pub(super) fn path(router: &Router, of: Family, p: &crate::Path) -> Path {
    Path {
        family: p.gateway.map_or(of, Family::of),
        interface: name(router, p.interface),
        gateway: p.gateway,
        weight: p.weight,
        mtu: p.mtu,
        source: p.source,
    }
}

fn buckets(router: &Router, group: u32, multipath: bool) -> Vec<Buckets> {
    let all = router.state.nexthops.groups.buckets(group);
    let used = if multipath { &all[..] } else { &all[..1] };
    let mut found: Vec<Buckets> = Vec::new();
    for (i, id) in used.iter().enumerate() {
        match found.last_mut() {
            Some(run) if run.adjacency.id == *id && run.last + 1 == i => run.last = i,
            _ => found.extend(adjacency(router, *id).map(|adjacency| Buckets {
                first: i,
                last: i,
                adjacency,
            })),
        }
    }
    found
}

/// The fields that choose a flow's bucket.
pub(super) const HASH: &str = "flow hash:[src dst sport dport proto]";

impl fmt::Display for Fib {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {HASH} routes:{}", self.family, self.routes)?;
        match &self.route {
            Some(route) => write!(f, "{route}"),
            None => writeln!(f, "no such route"),
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.prefix)?;
        writeln!(f, "  {} {}", self.source, self.kind)?;
        if let Some(list) = self.path_list {
            writeln!(f, "    path-list:[{list}] routes:{}", self.shared_by)?;
            for (i, path) in self.paths.iter().enumerate() {
                write!(f, "      path:[{i}] {path}")?;
            }
        }
        let count = self.buckets.last().map_or(0, |b| b.last + 1);
        writeln!(f, "\n forwarding:")?;
        writeln!(f, "  next-hop-group:[{}] buckets:{count}", self.group)?;
        for b in &self.buckets {
            let id = b.adjacency.id;
            if b.first == b.last {
                writeln!(f, "    [{}] [@{id}]: {}", b.first, b.adjacency)?;
            } else {
                writeln!(f, "    [{}-{}] [@{id}]: {}", b.first, b.last, b.adjacency)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = match self.family {
            Family::V4 => "ip4",
            Family::V6 => "ip6",
        };
        write!(f, "{family} weight={}", self.weight)?;
        if let Some(mtu) = self.mtu {
            write!(f, " mtu={mtu}")?;
        }
        if let Some(source) = self.source {
            write!(f, " src={source}")?;
        }
        match self.gateway {
            Some(gateway) => writeln!(
                f,
                " attached-nexthop:\n        {gateway} {}",
                self.interface
            ),
            None => writeln!(f, " attached:\n        {}", self.interface),
        }
    }
}
