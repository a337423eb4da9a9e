//! `show ip fib`, `show ip6 fib`: many routes, a line or two each.

use std::fmt;

use serde::Serialize;

use tables::Fib as _;
use tables::prefix::Prefix;

use super::fib::{HASH, Path, origin, path};
use crate::Router;
use crate::family::Family;
use crate::state::HasRoutes;

/// The table's routes in short, up to a limit.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct FibList {
    /// `ipv4` or `ipv6`.
    pub family: &'static str,
    /// Routes in the table.
    pub routes: usize,
    /// Of IPv4: second-level groups in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_level_groups: Option<usize>,
    /// Of IPv6: pages and leaves in use.
    #[serde(flatten)]
    pub nodes: Option<Nodes>,
    /// Routes by address, then length.
    pub list: Vec<Listed>,
    /// Routes that follow those in `list`, beyond the limit.
    pub left_out: usize,
}

/// Nodes of the IPv6 table in use.
#[derive(Debug, Clone, Copy, Serialize, PartialEq, Eq)]
pub struct Nodes {
    /// Pages.
    pub pages: usize,
    /// Leaves.
    pub leaves: usize,
}

/// A route in short.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct Listed {
    /// Destination.
    pub prefix: String,
    /// As [`Route::source`](super::Route::source).
    pub source: &'static str,
    /// As [`Route::kind`](super::Route::kind).
    pub kind: &'static str,
    /// Its paths.
    pub paths: Vec<Path>,
}

/// The first `limit` routes of the table, or the first that follow `after`, by address, then
/// length.
pub fn fib_list<A: HasRoutes>(router: &Router, after: Option<Prefix<A>>, limit: usize) -> FibList {
    let routes = A::routes(&router.state).fib.routes();
    let wanted = |p: &Prefix<A>| after.is_none_or(|a| *p > a);
    let mut prefixes: Vec<Prefix<A>> = routes.iter().map(|(p, _)| p).filter(wanted).collect();
    let left_out = prefixes.len().saturating_sub(limit);
    if left_out > 0 && limit > 0 {
        prefixes.select_nth_unstable(limit - 1);
    }
    prefixes.truncate(limit);
    prefixes.sort_unstable();
    let (ip4, ip6) = (router.state.ip4.fib.usage(), router.state.ip6.fib.usage());
    let nodes = Nodes {
        pages: ip6.pages.used(),
        leaves: ip6.leaves.used(),
    };
    FibList {
        family: A::FAMILY.name(),
        routes: routes.len(),
        second_level_groups: (A::FAMILY == Family::V4).then(|| ip4.used()),
        nodes: (A::FAMILY == Family::V6).then_some(nodes),
        list: prefixes
            .into_iter()
            .filter_map(|p| listed(router, p))
            .collect(),
        left_out,
    }
}

fn listed<A: HasRoutes>(router: &Router, prefix: Prefix<A>) -> Option<Listed> {
    let entry = *A::routes(&router.state).fib.routes().get(prefix)?;
    let (source, kind) = origin(router, prefix, entry);
    let paths = router.state.nexthops.paths(entry.group());
    Some(Listed {
        prefix: prefix.to_string(),
        source,
        kind,
        paths: paths.iter().map(|p| path(router, A::FAMILY, p)).collect(),
    })
}

impl fmt::Display for FibList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {HASH} routes:{}", self.family, self.routes)?;
        if let Some(groups) = self.second_level_groups {
            write!(f, " second-level:{groups}")?;
        }
        if let Some(Nodes { pages, leaves }) = self.nodes {
            write!(f, " pages:{pages} leaves:{leaves}")?;
        }
        writeln!(f)?;
        self.list
            .iter()
            .try_for_each(|route| write!(f, "{route}"))?;
        match self.left_out {
            0 => Ok(()),
            n => {
                let (command, first) = match self.nodes {
                    None => ("ip", "0.0.0.0/0"),
                    Some(_) => ("ip6", "::/0"),
                };
                let last = self.list.last().map_or(first, |route| &route.prefix);
                writeln!(
                    f,
                    "... and {n} more routes: show {command} fib after {last}"
                )
            }
        }
    }
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind != "forward" {
            return writeln!(f, "{:<18} {}", self.prefix, self.kind);
        }
        for (i, p) in self.paths.iter().enumerate() {
            let prefix = if i == 0 { &self.prefix } else { "" };
            write!(f, "{prefix:<18}")?;
            if let Some(gateway) = p.gateway {
                write!(f, " via {gateway}")?;
            }
            write!(f, " {}", p.interface)?;
            if self.paths.len() > 1 {
                write!(f, " weight {}", p.weight)?;
            }
            if let Some(mtu) = p.mtu {
                write!(f, " mtu {mtu}")?;
            }
            if let Some(source) = p.source {
                write!(f, " src {source}")?;
            }
            let neighbor = if self.source == "neighbor" {
                " (neighbor)"
            } else {
                ""
            };
            writeln!(f, "{neighbor}")?;
        }
        Ok(())
    }
}
