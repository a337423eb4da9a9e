//! `show buffers`: where the packet memory is.

use std::fmt;

use serde::Serialize;

use graph::pool::{DATA, Pages};

use crate::Router;

/// The packet memory.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct Buffers {
    /// All pools.
    pub pools: Vec<PoolUse>,
}

/// One pool.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct PoolUse {
    /// Name.
    pub name: &'static str,
    /// Distance between two buffers in bytes.
    pub size: usize,
    /// Bytes of packet in one buffer.
    pub data_size: usize,
    /// Buffers.
    pub total: u64,
    /// In the shared free list.
    pub available: u64,
    /// In the workers' caches, as each last said (at most a millisecond ago while it runs).
    pub cached: u64,
    /// In the rings of ports, or in packets on their way.
    pub used: u64,
    /// `huge` or `transparent`.
    pub pages: &'static str,
}

/// Use of the packet memory.
pub fn buffers(router: &Router) -> Buffers {
    let pool = router.pool();
    let total = u64::from(pool.count());
    let available = u64::from(pool.available());
    let workers = router.workers.iter();
    let cached = workers
        .map(|w| w.counters.worker.cached.get())
        .fold(0, u64::saturating_add);
    // The counts are of different moments; together they must not exceed the total.
    let cached = cached.min(total.saturating_sub(available));
    Buffers {
        pools: vec![PoolUse {
            name: "default",
            size: pool.stride(),
            data_size: pool.stride() - usize::from(DATA),
            total,
            available,
            cached,
            used: total.saturating_sub(available + cached),
            pages: match pool.pages() {
                Pages::Huge => "huge",
                Pages::Transparent => "transparent",
            },
        }],
    }
}

impl fmt::Display for Buffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Pool Name             Size  Data Size      Total      Avail     Cached       Used  Pages"
        )?;
        for p in &self.pools {
            writeln!(
                f,
                "{:<20} {:>5} {:>10} {:>10} {:>10} {:>10} {:>10}  {}",
                p.name, p.size, p.data_size, p.total, p.available, p.cached, p.used, p.pages
            )?;
        }
        Ok(())
    }
}
