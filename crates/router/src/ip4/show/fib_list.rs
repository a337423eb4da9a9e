//! `show ip fib`: many routes, a line or two each.

use std::fmt;

use serde::Serialize;

use super::fib::{HASH, Path, origin, path};
use crate::{Prefix, Router};

/// The table's routes in short, up to a limit.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct FibList {
    /// Routes in the table.
    pub routes: usize,
    /// Second-level groups in use.
    pub second_level_groups: usize,
    /// Routes by address, then length.
    pub list: Vec<Listed>,
    /// Routes that follow those in `list`, beyond the limit.
    pub left_out: usize,
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
pub fn fib_list(router: &Router, after: Option<Prefix>, limit: usize) -> FibList {
    let fib = &router.state.fib;
    let routes = fib.routes();
    let wanted = |p: &Prefix| after.is_none_or(|a| *p > a);
    let mut prefixes: Vec<Prefix> = routes.iter().map(|(p, _)| p).filter(wanted).collect();
    let left_out = prefixes.len().saturating_sub(limit);
    if left_out > 0 && limit > 0 {
        prefixes.select_nth_unstable(limit - 1);
    }
    prefixes.truncate(limit);
    prefixes.sort_unstable();
    let usage = fib.usage();
    FibList {
        routes: routes.len(),
        second_level_groups: usage.total.saturating_sub(usage.free + usage.retired),
        list: prefixes
            .into_iter()
            .filter_map(|p| listed(router, p))
            .collect(),
        left_out,
    }
}

fn listed(router: &Router, prefix: Prefix) -> Option<Listed> {
    let entry = *router.state.fib.routes().get(prefix)?;
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
        writeln!(f, "ipv4 {HASH} routes:{routes} second-level:{groups}")?;
        self.list
            .iter()
            .try_for_each(|route| write!(f, "{route}"))?;
        match self.left_out {
            0 => Ok(()),
            n => {
                let last = self.list.last().map_or("0.0.0.0/0", |route| &route.prefix);
                writeln!(f, "... and {n} more routes: show ip fib after {last}")
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
