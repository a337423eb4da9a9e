//! All routes by prefix: what the forwarding table is made from.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::{Entry, Prefix};

/// A hash map for every length: 9 to 21 bytes a route, and the next shorter prefix is a probe a length away.
#[derive(Debug)]
pub(super) struct Rib {
    by_len: [HashMap<u32, Entry, BuildHasherDefault<Mix>>; 33],
}

impl Rib {
    pub fn new() -> Self {
        Self {
            by_len: std::array::from_fn(|_| HashMap::default()),
        }
    }

    pub fn insert(&mut self, prefix: Prefix, entry: Entry) -> Option<Entry> {
        self.by_len[usize::from(prefix.len())].insert(prefix.addr(), entry)
    }

    pub fn remove(&mut self, prefix: Prefix) -> Option<Entry> {
        self.by_len[usize::from(prefix.len())].remove(&prefix.addr())
    }

    pub fn get(&self, prefix: Prefix) -> Option<Entry> {
        self.by_len[usize::from(prefix.len())]
            .get(&prefix.addr())
            .copied()
    }

    /// The longest prefix with `addr` in it whose length is below `below` (0 to 33).
    pub fn longest_match(&self, addr: u32, below: u8) -> Option<(Prefix, Entry)> {
        (0..below).rev().find_map(|len| {
            let prefix = Prefix::of_len(addr, len);
            Some((prefix, self.get(prefix)?))
        })
    }

    /// Shorter prefixes first, in no other order.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix, Entry)> {
        (0..=32).zip(&self.by_len).flat_map(|(len, routes)| {
            routes
                .iter()
                .map(move |(&addr, &entry)| (Prefix::of_len(addr, len), entry))
        })
    }

    pub fn len(&self) -> usize {
        self.by_len.iter().map(HashMap::len).sum()
    }
}

/// A multiplicative hash of one `u32`, folded, because the map takes both the lowest and the highest bits.
#[derive(Debug, Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn write_u32(&mut self, addr: u32) {
        let product = u64::from(addr).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ (product >> 32);
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(self.0 as u32 ^ u32::from(byte));
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
