//! Routes by prefix: a hash map for each length.
//!
//! Every prefix that covers another is one probe away, whatever the number of routes, and an entry
//! costs its address and its value and nothing for order: 9 to 21 bytes with values of 4.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A prefix of an address family.
#[expect(
    clippy::len_without_is_empty,
    reason = "a prefix length, not a number of things"
)]
pub trait Key: Copy {
    /// An address as a number.
    type Addr: Copy + Eq + Hash;

    /// Bits of an address: the length of a host's prefix.
    const BITS: u8;

    /// The prefix of this length that `address` is in. Lengths above [`Key::BITS`] count as that.
    fn cut(address: Self::Addr, len: u8) -> Self;

    /// The first address.
    fn addr(self) -> Self::Addr;

    /// The length, 0 to [`Key::BITS`].
    fn len(self) -> u8;
}

/// A map from prefixes to values.
pub struct Rib<K: Key, V> {
    /// By prefix length.
    by_len: Box<[HashMap<K::Addr, V, BuildMix>]>,
}

impl<K: Key, V> Rib<K, V> {
    /// An empty map.
    pub fn new() -> Self {
        Self {
            by_len: (0..=K::BITS).map(|_| HashMap::default()).collect(),
        }
    }

    /// Adds a prefix or replaces its value; returns the old one.
    pub fn insert(&mut self, prefix: K, value: V) -> Option<V> {
        self.by_len[usize::from(prefix.len())].insert(prefix.addr(), value)
    }

    /// Removes a prefix and returns its value.
    pub fn remove(&mut self, prefix: K) -> Option<V> {
        self.by_len[usize::from(prefix.len())].remove(&prefix.addr())
    }

    /// The value of exactly this prefix.
    pub fn get(&self, prefix: K) -> Option<&V> {
        self.by_len[usize::from(prefix.len())].get(&prefix.addr())
    }

    /// The value of exactly this prefix, to change.
    pub fn get_mut(&mut self, prefix: K) -> Option<&mut V> {
        self.by_len[usize::from(prefix.len())].get_mut(&prefix.addr())
    }

    /// The value of exactly this prefix, to change; a new one if there is none.
    pub fn get_or_default(&mut self, prefix: K) -> &mut V
    where
        V: Default,
    {
        let routes = &mut self.by_len[usize::from(prefix.len())];
        routes.entry(prefix.addr()).or_default()
    }

    /// The longest prefix that `address` is in.
    pub fn longest_match(&self, address: K::Addr) -> Option<(K, &V)> {
        self.containing(address, K::BITS + 1).next()
    }

    /// The shorter prefixes that cover this one, the longest first.
    pub fn covers(&self, prefix: K) -> impl Iterator<Item = (K, &V)> {
        self.containing(prefix.addr(), prefix.len())
    }

    /// The prefixes that `address` is in and that are shorter than `below`, the longest first.
    fn containing(&self, address: K::Addr, below: u8) -> impl Iterator<Item = (K, &V)> {
        (0..below).rev().filter_map(move |len| {
            let prefix = K::cut(address, len);
            Some((prefix, self.get(prefix)?))
        })
    }

    /// All prefixes: shorter ones first, in no other order.
    pub fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        (0..).zip(&self.by_len).flat_map(|(len, routes)| {
            let prefixes = routes.iter();
            prefixes.map(move |(&address, value)| (K::cut(address, len), value))
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

impl<K: Key, V> Default for Rib<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Key, V> fmt::Debug for Rib<K, V> {
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
    use crate::ip4::Prefix;
    use crate::random::Random;

    /// A second family, as wide as IPv6.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    struct Wide(u128, u8);

    impl Key for Wide {
        type Addr = u128;
        const BITS: u8 = 128;

        fn cut(address: u128, len: u8) -> Self {
            let len = len.min(128);
            let mask = u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0);
            Wide(address & mask, len)
        }

        fn addr(self) -> u128 {
            self.0
        }

        fn len(self) -> u8 {
            self.1
        }
    }

    /// Random changes, each compared with a search through all prefixes. `address` gives few enough
    /// addresses for prefixes to nest and to meet again.
    fn agrees_with_oracle<K: Key + Ord + fmt::Debug>(address: impl Fn(&mut Random) -> K::Addr) {
        let mut random = Random::new(0x7269_6200);
        let (mut rib, mut oracle) = (Rib::new(), BTreeMap::new());
        for step in 0..20_000u32 {
            let at = address(&mut random);
            let prefix = K::cut(at, random.below(u32::from(K::BITS) + 1) as u8);
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
            let contains = |other: &K| K::cut(at, other.len()) == *other;
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
        agrees_with_oracle::<Prefix>(|random| random.word() & 0xc000_0203);
        agrees_with_oracle::<Wide>(|random| u128::from(random.word() & 0x8001) << 111);
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
