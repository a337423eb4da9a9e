//! Longest match by trying every length: what the tests compare the tables with.

use std::collections::HashMap;

use crate::entry::Entry;
use crate::prefix::{Address, Prefix};
use crate::rib::Rib;

/// Routes by prefix.
pub(crate) struct Oracle<A>(pub HashMap<Prefix<A>, Entry>);

impl<A: Neighbors> Oracle<A> {
    pub fn new() -> Self {
        Self(HashMap::new())
    }

    pub fn lookup(&self, dst: A) -> Entry {
        let candidates = (0..=A::BITS).rev().filter_map(|len| Prefix::new(dst, len));
        candidates
            .filter_map(|prefix| self.0.get(&prefix))
            .next()
            .copied()
            .unwrap_or(Entry::NO_ROUTE)
    }

    /// Addresses at and just outside the edges of every route.
    pub fn edges(&self) -> impl Iterator<Item = A> {
        self.0.keys().flat_map(|prefix| around(*prefix))
    }
}

/// All routes of a table.
pub(crate) fn entries<A: Address>(routes: &Rib<A, Entry>) -> HashMap<Prefix<A>, Entry> {
    routes
        .iter()
        .map(|(prefix, entry)| (prefix, *entry))
        .collect()
}

/// Addresses at and just outside the edges of a prefix.
pub(crate) fn around<A: Neighbors>(prefix: Prefix<A>) -> [A; 4] {
    [
        prefix.addr().before(),
        prefix.addr(),
        prefix.last(),
        prefix.last().after(),
    ]
}

/// Addresses whose neighbors are known; the first and the last are neighbors.
pub(crate) trait Neighbors: Address {
    fn before(self) -> Self;
    fn after(self) -> Self;
}

impl Neighbors for u32 {
    fn before(self) -> Self {
        self.wrapping_sub(1)
    }
    fn after(self) -> Self {
        self.wrapping_add(1)
    }
}

impl Neighbors for u128 {
    fn before(self) -> Self {
        self.wrapping_sub(1)
    }
    fn after(self) -> Self {
        self.wrapping_add(1)
    }
}
