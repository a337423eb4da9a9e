//! Entries of the tables of both families: the next-hop group or decision that a prefix leads to.

use crate::special::{FIRST_FREE, Special};

/// In a word of a table: it leads to another part of the table. Never set in an entry.
pub(crate) const EXT: u32 = 1 << 31;
const MULTI: u32 = 1 << 30;
const GROUP: u32 = MULTI - 1;

/// Names of an entry's bits in C.
pub(crate) const ENTRY_BITS: [(&str, u32); 3] = [("EXT", EXT), ("MULTI", MULTI), ("GROUP", GROUP)];

/// A next-hop group and whether its buckets differ, in 32 bits: bit 30 is set if the group needs
/// the flow hash, the 30 bits below are the group. Bit 31 is never set in what a look-up gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entry(u32);

impl Entry {
    /// The entry of an address that no prefix covers.
    pub const NO_ROUTE: Self = Self::special(Special::NoRoute);

    /// An entry for the next-hop group `group` (below 2^30; higher bits are cut off). With `multi`
    /// not set the group is asked with hash 0.
    pub const fn new(group: u32, multi: bool) -> Self {
        Self(group & GROUP | if multi { MULTI } else { 0 })
    }

    /// The entry of a decision.
    pub const fn special(special: Special) -> Self {
        Self::new(special.number(), false)
    }

    /// The next-hop group.
    #[inline(always)]
    pub const fn group(self) -> u32 {
        self.0 & GROUP
    }

    /// The group's buckets differ: the flow hash has to choose.
    #[inline(always)]
    pub const fn is_multi(self) -> bool {
        self.0 & MULTI != 0
    }

    /// A decision, not a next hop: see [`Special::of`] its group.
    #[inline(always)]
    pub const fn is_special(self) -> bool {
        self.group() < FIRST_FREE
    }

    /// The decision about its packets, where the bucket that they take names `adjacency`, a special
    /// one: the entry's own, or that of an ordinary group that has lost all its members.
    #[inline]
    pub fn decision(self, adjacency: u32) -> Special {
        let number = if self.is_special() {
            self.group()
        } else {
            adjacency
        };
        Special::of(number).unwrap_or(Special::NoRoute)
    }

    /// The 32 bits, as they lie in the table.
    #[inline(always)]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The entry of [`bits`](Self::bits).
    #[inline(always)]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits() {
        let entry = Entry::new(u32::MAX, true);
        assert_eq!(
            (entry.group(), entry.is_multi(), entry.is_special()),
            (GROUP, true, false)
        );
        assert_eq!(entry.bits() & EXT, 0);
        assert!(Entry::special(Special::Prohibit).is_special());
        assert_eq!(Entry::NO_ROUTE.bits(), 0);
    }
}
