//! Routes by prefix: a hash map for each length.
//!
//! Every prefix that covers another is one probe away, whatever the number of routes, and an entry
//! costs its address and its value and nothing for order: 9 to 21 bytes with values of 4.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

use crate::prefix::{Address, Prefix};

/// A map from prefixes to values.
pub struct Rib<A, V> {
    /// By prefix length.
    by_len: Box<[HashMap<A, V, BuildMix>]>,
}

impl<A: Address, V> Rib<A, V> {
    /// An empty map.
    pub fn new() -> Self {
        Self {
            by_len: (0..=A::BITS).map(|_| HashMap::default()).collect(),
        }
    }

    /// Adds a prefix or replaces its value; returns the old one.
    pub fn insert(&mut self, prefix: Prefix<A>, value: V) -> Option<V> {
        self.by_len[usize::from(prefix.len())].insert(prefix.addr(), value)
    }

    /// Removes a prefix and returns its value.
    pub fn remove(&mut self, prefix: Prefix<A>) -> Option<V> {
        self.by_len[usize::from(prefix.len())].remove(&prefix.addr())
    }

    /// The value of exactly this prefix.
    pub fn get(&self, prefix: Prefix<A>) -> Option<&V> {
        self.by_len[usize::from(prefix.len())].get(&prefix.addr())
    }

    /// The value of exactly this prefix, to change.
    pub fn get_mut(&mut self, prefix: Prefix<A>) -> Option<&mut V> {
        self.by_len[usize::from(prefix.len())].get_mut(&prefix.addr())
    }

    /// The value of exactly this prefix, to change; a new one if there is none.
    pub fn get_or_default(&mut self, prefix: Prefix<A>) -> &mut V
    where
        V: Default,
    {
        let routes = &mut self.by_len[usize::from(prefix.len())];
        routes.entry(prefix.addr()).or_default()
    }

    /// The longest prefix that `address` is in.
    pub fn longest_match(&self, address: A) -> Option<(Prefix<A>, &V)> {
        self.containing(address, A::BITS + 1).next()
    }

    /// The shorter prefixes that cover this one, the longest first.
    pub fn covers(&self, prefix: Prefix<A>) -> impl Iterator<Item = (Prefix<A>, &V)> {
        self.containing(prefix.addr(), prefix.len())
    }

    /// The prefixes that `address` is in and that are shorter than `below`, the longest first.
    fn containing(&self, address: A, below: u8) -> impl Iterator<Item = (Prefix<A>, &V)> {
        (0..below).rev().filter_map(move |len| {
            let prefix = Prefix::cut(address, len);
            Some((prefix, self.get(prefix)?))
        })
    }

    /// All prefixes: shorter ones first, in no other order.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix<A>, &V)> {
        (0..).zip(&self.by_len).flat_map(|(len, routes)| {
            let prefixes = routes.iter();
            prefixes.map(move |(&address, value)| (Prefix::cut(address, len), value))
        })
    }

    /// Number of prefixes.
    pub fn len(&self) -> usize {
        self.by_len.iter().map(HashMap::len).sum()
    }

    /// No prefix at all.
    pub fn is_empty(&self) -> bool {
        self.by_len.iter().all(HashMap::is_empty)
    }
}

impl<A: Address, V> Default for Rib<A, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Address, V> fmt::Debug for Rib<A, V> {
    /// Without the routes, which may be a million.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rib({} routes)", self.len())
    }
}

/// Makes a [`Mix`].
pub type BuildMix = BuildHasherDefault<Mix>;

/// A hasher for addresses and prefixes: multiplication by an odd constant, then the high bits down,
/// because the map takes both the lowest and the highest. It does not resist chosen keys: the keys
/// come from the kernel's table, whose writer is as privileged as we are.
#[derive(Debug, Default)]
pub struct Mix(u64);

impl Hasher for Mix {
    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u8(byte);
        }
    }

    #[inline]
    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(8) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    #[inline]
    fn write_u128(&mut self, value: u128) {
        self.write_u64((value >> 64) as u64);
        self.write_u64(value as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};
    use std::hash::BuildHasher;

    use super::*;
    use crate::random::Random;

    /// Random changes, each compared with a search through all prefixes. `address` gives few enough
    /// addresses for prefixes to nest and to meet again.
    fn agrees_with_oracle<A: Address>(address: impl Fn(&mut Random) -> A) {
        let mut random = Random::new(0x7269_6200);
        let (mut rib, mut oracle) = (Rib::new(), BTreeMap::new());
        for step in 0..20_000u32 {
            let at = address(&mut random);
            let prefix = Prefix::cut(at, random.below(u32::from(A::BITS) + 1) as u8);
            match random.below(4) {
                0 => assert_eq!(rib.remove(prefix), oracle.remove(&prefix)),
                1 => {
                    *rib.get_or_default(prefix) += step;
                    *oracle.entry(prefix).or_default() += step;
                }
                2 => assert_eq!(rib.get_mut(prefix), oracle.get_mut(&prefix)),
                _ => assert_eq!(rib.insert(prefix, step), oracle.insert(prefix, step)),
            }
            let at = address(&mut random);
            let contains = |other: &Prefix<A>| Prefix::cut(at, other.len()) == *other;
            let mut found: Vec<_> = oracle.iter().filter(|(key, _)| contains(key)).collect();
            found.sort_by_key(|(key, _)| std::cmp::Reverse(key.len()));
            let mut found = found.into_iter().map(|(key, value)| (*key, value));
            let longest = found.clone().next();
            assert_eq!(rib.longest_match(at), longest);
            if let Some((longest, _)) = found.next() {
                assert!(rib.covers(longest).eq(found));
            }
            if step % 1000 == 0 {
                let mut all: Vec<_> = rib.iter().collect();
                assert!(all.is_sorted_by_key(|(key, _)| key.len()));
                all.sort();
                assert!(all.into_iter().eq(oracle.iter().map(|(k, v)| (*k, v))));
                assert_eq!(
                    (rib.len(), rib.is_empty()),
                    (oracle.len(), oracle.is_empty())
                );
            }
        }
    }

    #[test]
    fn routes_of_two_families_agree_with_an_oracle() {
        agrees_with_oracle(|random| random.word() & 0xc000_0203);
        agrees_with_oracle(|random| u128::from(random.word() & 0x8001) << 111);
    }

    /// The map needs both ends of a hash: the low bits choose a place, the seven highest a tag.
    #[test]
    fn networks_in_a_row_have_hashes_of_their_own() {
        let hash = |number: u32| BuildMix::default().hash_one(number << 8);
        let low: HashSet<u64> = (0..1 << 16).map(|n| hash(n) & 0xffff).collect();
        let high: HashSet<u64> = (0..1 << 10).map(|n| hash(n) >> 57).collect();
        assert!(low.len() > 1 << 15, "{} of 65536", low.len());
        assert_eq!(high.len(), 128);
    }
}
