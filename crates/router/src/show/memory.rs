//! `show memory`: how full the tables are, and what did not fit.

use std::fmt;

use serde::Serialize;

use tables::ids::Usage;

use super::text::{bytes, column};
use crate::Router;

/// All tables.
#[derive(Debug, Clone, Serialize)]
pub struct Memory {
    /// In the order of a look-up.
    pub tables: Vec<Table>,
    /// IPv4 routes in the FIB, host routes of neighbors included.
    pub ip4_routes: usize,
    /// The same of IPv6.
    pub ip6_routes: usize,
    /// Routes that were not installed because the IPv4 FIB's second level was used up.
    pub fib_full: u64,
    /// Routes that were not installed because the IPv6 FIB's pages or leaves were used up.
    pub ip6_fib_full: u64,
    /// Routes that were not installed because next-hop groups or adjacencies were used up.
    pub next_hops_full: u64,
    /// Changes that have found no room yet: so far, the tables differ from the kernel's routes,
    /// neighbors or links.
    pub waiting: usize,
    /// Bytes of all tables.
    pub table_bytes: u64,
    /// Bytes of packet memory.
    pub packet_bytes: u64,
}

/// One table.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct Table {
    /// Name of its content.
    pub name: &'static str,
    /// Bytes of one entry.
    pub entry_bytes: u64,
    /// Entries.
    pub total: u64,
    /// Entries in use.
    pub used: u64,
    /// Entries that wait until no worker reads them any more.
    pub retired: u64,
    /// Entries free to be used.
    pub free: u64,
}

impl Table {
    /// Bytes of all entries.
    fn bytes(&self) -> u64 {
        self.total.saturating_mul(self.entry_bytes)
    }
}

/// Use of the tables.
pub fn memory(router: &Router) -> Memory {
    let state = &router.state;
    let ip6 = state.ip6.fib.usage();
    let tables = vec![
        first_level("ip4 fib first level", tables::ip4::FIRST_WORDS),
        table("ip4 fib second level", 1024, state.ip4.fib.usage()),
        first_level("ip6 fib first level", tables::ip6::FIRST_WORDS),
        table("ip6 fib pages", 1024, ip6.pages),
        table("ip6 fib leaves", 64, ip6.leaves),
        table("next-hop groups", 64, state.nexthops.groups.usage()),
        table("adjacencies", 64, state.nexthops.slab.usage()),
    ];
    Memory {
        table_bytes: tables.iter().map(Table::bytes).sum(),
        tables,
        ip4_routes: state.ip4.fib.routes().len(),
        ip6_routes: state.ip6.fib.routes().len(),
        fib_full: state.alarms.ip4_full,
        ip6_fib_full: state.alarms.ip6_full,
        next_hops_full: state.alarms.next_hops_full,
        waiting: router.deferred(),
        packet_bytes: router.pool().bytes() as u64,
    }
}

/// A first level is always there, as a whole.
fn first_level(name: &'static str, words: usize) -> Table {
    Table {
        name,
        entry_bytes: 4,
        total: words as u64,
        used: words as u64,
        retired: 0,
        free: 0,
    }
}

fn table(name: &'static str, entry_bytes: u64, usage: Usage) -> Table {
    Table {
        name,
        entry_bytes,
        total: usage.total as u64,
        used: usage.used() as u64,
        retired: usage.retired as u64,
        free: usage.free as u64,
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Table                         Size       Used    Retired       Free      Total"
        )?;
        for t in &self.tables {
            writeln!(
                f,
                "{}{:>10} {:>10} {:>10} {:>10} {:>10}",
                column(t.name, 24),
                bytes(t.bytes()),
                t.used,
                t.retired,
                t.free,
                t.total
            )?;
        }
        let [tables, packets] = [self.table_bytes, self.packet_bytes].map(bytes);
        writeln!(f, "tables: {tables}, packet memory: {packets}")?;
        writeln!(f, "ip4 routes: {}", self.ip4_routes)?;
        writeln!(f, "ip6 routes: {}", self.ip6_routes)?;
        let (fib, ip6, hops) = (self.fib_full, self.ip6_fib_full, self.next_hops_full);
        if fib > 0 {
            writeln!(
                f,
                "ALARM: {fib} times a route found no room in the fib's second level"
            )?;
        }
        if ip6 > 0 {
            writeln!(f, "ALARM: {ip6} times a route found no room in the ip6 fib")?;
        }
        if hops > 0 {
            writeln!(
                f,
                "ALARM: {hops} times a route found no next-hop group or adjacency"
            )?;
        }
        if self.waiting > 0 {
            writeln!(f, "ALARM: {} changes wait for room", self.waiting)?;
        }
        Ok(())
    }
}
