//! Longest match by trying every length: slow, short and right.

use std::collections::HashMap;
use std::net::IpAddr;

use router::Prefix;

/// Prefixes and the number of their next hop.
#[derive(Default)]
pub struct Oracle {
    routes: HashMap<Prefix, u32>,
}

impl Oracle {
    /// Adds or replaces a route.
    pub fn insert(&mut self, prefix: Prefix, hop: u32) {
        self.routes.insert(prefix, hop);
    }

    /// The next hop of `address`.
    pub fn lookup(&self, address: IpAddr) -> Option<u32> {
        (0..=128)
            .rev()
            .filter_map(|length| Prefix::new(address, length))
            .find_map(|prefix| self.routes.get(&prefix).copied())
    }
}
