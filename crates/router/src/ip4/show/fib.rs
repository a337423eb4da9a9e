//! `show ip fib`: what a destination leads to, from the route to the Ethernet header.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use serde::Serialize;

use tables::ip4::Entry;
use tables::special::Special;

use super::adjacency::{Adjacency, adjacency, decision};
use crate::show::text::name;
use crate::{Prefix, Router};

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// The route of exactly this prefix.
    Exact(Prefix),
    /// The longest prefix with this address in it.
    Longest(Ipv4Addr),
}

impl FromStr for Query {
    type Err = String;

    /// `10.0.0.0/8` is exact, `10.1.2.3` asks for the longest match.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(address) => Ok(Query::Longest(address)),
            Err(_) => match text.parse() {
                Ok(prefix) => Ok(Query::Exact(prefix)),
                Err(e) => Err(format!("ip fib: {e}")),
            },
        }
    }
}

/// A route in full, or that there is none.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct Fib {
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
    /// Whether the flow hash chooses a bucket.
    pub multipath: bool,
    /// The group's buckets, runs of the same adjacency together.
    pub buckets: Vec<Buckets>,
}

/// One way of a route.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct Path {
    /// Interface.
    pub interface: String,
    /// Next hop; none: the destination is on the link.
    pub gateway: Option<Ipv4Addr>,
    /// Share of the flows.
    pub weight: u16,
    /// Largest IP packet that the route allows; none: the interface's limit alone.
    pub mtu: Option<u16>,
    /// Where the router's own packets come from, if the route says it.
    pub source: Option<Ipv4Addr>,
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
pub fn fib(router: &Router, query: Query) -> Fib {
    let fib = &router.state.fib;
    let prefix = match query {
        Query::Exact(prefix) => fib.get(prefix).map(|_| prefix),
        Query::Longest(address) => fib.longest_match(address.into()).map(|(p, _)| p),
    };
    Fib {
        routes: fib.len(),
        route: prefix.and_then(|p| route(router, p)),
    }
}

fn route(router: &Router, prefix: Prefix) -> Option<Route> {
    let entry = router.state.fib.get(prefix)?;
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
        paths: paths.iter().map(|p| path(router, p)).collect(),
        group,
        multipath: entry.is_multi(),
        buckets: buckets(router, group, entry.is_multi()),
    })
}

/// Where a route comes from and what it does.
fn origin(router: &Router, prefix: Prefix, entry: Entry) -> (&'static str, &'static str) {
    let of_neighbor = router.state.hosts.contains_key(&prefix);
    let source = if of_neighbor { "neighbor" } else { "route" };
    (
        source,
        Special::of(entry.group()).map_or("forward", decision),
    )
}

fn path(router: &Router, p: &crate::Path) -> Path {
    Path {
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

const TABLE: &str = "ipv4-VRF:0, fib_index:0, flow hash:[src dst sport dport proto ]";

impl fmt::Display for Fib {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{TABLE} routes:{}", self.routes)?;
        match &self.route {
            Some(route) => write!(f, "{route}"),
            None => writeln!(f, "no such route"),
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} fib:0", self.prefix)?;
        writeln!(f, "  {} {}", self.source, self.kind)?;
        if let Some(list) = self.path_list {
            let shared = if self.shared_by > 1 { "shared," } else { "" };
            writeln!(
                f,
                "    path-list:[{list}] locks:{} flags:{shared}",
                self.shared_by
            )?;
            for (i, p) in self.paths.iter().enumerate() {
                let kind = match p.gateway {
                    Some(_) => "attached-nexthop:",
                    None => "attached:",
                };
                let mtu = p.mtu.map_or(String::new(), |mtu| format!(" mtu={mtu}"));
                let source = p.source.map_or(String::new(), |a| format!(" src={a}"));
                writeln!(
                    f,
                    "      path:[{i}] pl-index:{list} ip4 weight={}{mtu}{source} {kind}",
                    p.weight
                )?;
                match p.gateway {
                    Some(gateway) => writeln!(f, "        {gateway} {}", p.interface)?,
                    None => writeln!(f, "        {}", p.interface)?,
                }
            }
        }
        let count = self.buckets.last().map_or(0, |b| b.last + 1);
        writeln!(f, "\n forwarding:   unicast-ip4-chain")?;
        writeln!(
            f,
            "  [@0]: dpo-load-balance: [proto:ip4 index:{} buckets:{count}]",
            self.group
        )?;
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

/// The table's routes in short, up to a limit.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct FibList {
    /// Routes in the table.
    pub routes: usize,
    /// Second-level groups in use.
    pub second_level_groups: usize,
    /// Routes by address, then length.
    pub list: Vec<Listed>,
    /// Routes that follow those in `list`, which was to have no more.
    pub left_out: usize,
}

/// A route in short.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct Listed {
    /// Destination.
    pub prefix: String,
    /// As [`Route::source`].
    pub source: &'static str,
    /// As [`Route::kind`].
    pub kind: &'static str,
    /// Its paths.
    pub paths: Vec<Path>,
}

/// The first `limit` routes of the table, or the first that follow `after`, by address, then length.
pub fn fib_list(router: &Router, after: Option<Prefix>, limit: usize) -> FibList {
    let fib = &router.state.fib;
    let wanted = |p: &Prefix| after.is_none_or(|a| *p > a);
    let mut prefixes: Vec<Prefix> = fib.iter().map(|(p, _)| p).filter(wanted).collect();
    let left_out = prefixes.len().saturating_sub(limit);
    if left_out > 0 && limit > 0 {
        prefixes.select_nth_unstable(limit - 1);
    }
    prefixes.truncate(limit);
    prefixes.sort_unstable();
    let usage = fib.usage();
    FibList {
        routes: fib.len(),
        second_level_groups: usage.total.saturating_sub(usage.free + usage.retired),
        list: prefixes
            .into_iter()
            .filter_map(|p| listed(router, p))
            .collect(),
        left_out,
    }
}

fn listed(router: &Router, prefix: Prefix) -> Option<Listed> {
    let entry = router.state.fib.get(prefix)?;
    let (source, kind) = origin(router, prefix, entry);
    let paths = router.state.nexthops.paths(entry.group());
    Some(Listed {
        prefix: prefix.to_string(),
        source,
        kind,
        paths: paths.iter().map(|p| path(router, p)).collect(),
    })
}

impl fmt::Display for FibList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (routes, groups) = (self.routes, self.second_level_groups);
        writeln!(f, "{TABLE} routes:{routes} second-level:{groups}")?;
        for route in &self.list {
            if route.kind != "forward" {
                writeln!(f, "{} {}", route.prefix, route.kind)?;
                continue;
            }
            for (i, p) in route.paths.iter().enumerate() {
                let prefix = if i == 0 { &route.prefix } else { "" };
                write!(f, "{prefix:<18}")?;
                if let Some(gateway) = p.gateway {
                    write!(f, " via {gateway}")?;
                }
                write!(f, " {}", p.interface)?;
                if route.paths.len() > 1 {
                    write!(f, " weight {}", p.weight)?;
                }
                if let Some(mtu) = p.mtu {
                    write!(f, " mtu {mtu}")?;
                }
                if let Some(source) = p.source {
                    write!(f, " src {source}")?;
                }
                writeln!(
                    f,
                    "{}",
                    if route.source == "neighbor" {
                        " (neighbor)"
                    } else {
                        ""
                    }
                )?;
            }
        }
        match self.left_out {
            0 => Ok(()),
            n => {
                let last = self.list.last().map_or("0.0.0.0/0", |route| &route.prefix);
                writeln!(f, "... and {n} more routes: show ip fib after {last}")
            }
        }
    }
}
