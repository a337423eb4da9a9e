//! Longest match by trying every length: slow, short and right.

use std::collections::HashMap;

use tables::ip4::Prefix;

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
    pub fn lookup(&self, address: u32) -> Option<u32> {
        (0..=32)
            .rev()
            .filter_map(|len| Prefix::new(address, len))
            .find_map(|p| self.routes.get(&p).copied())
    }
}
