//! The numbers that stand for a decision instead of a next hop.
//!
//! A FIB entry's group, a next-hop group's bucket and an adjacency of the same number below
//! [`FIRST_FREE`] mean the same, so a packet may be followed through all three tables without a
//! test in between.

/// The first number of an ordinary next-hop group or adjacency.
pub const FIRST_FREE: u32 = 16;

/// A decision about a packet that is not simply forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Special {
    /// No route: ICMP network unreachable.
    NoRoute = 0,
    /// An own address: to the host.
    Local = 1,
    /// A directed broadcast of a connected network (RFC 2644): to the host, never forwarded.
    Broadcast = 2,
    /// The kernel forwards it, by an interface that is not ours: to the host.
    Punt = 3,
    /// Dropped without a word.
    Blackhole = 4,
    /// Dropped, ICMP host unreachable.
    Unreachable = 5,
    /// Dropped, ICMP administratively prohibited.
    Prohibit = 6,
}

impl Special {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::NoRoute,
        Self::Local,
        Self::Broadcast,
        Self::Punt,
        Self::Blackhole,
        Self::Unreachable,
        Self::Prohibit,
    ];

    /// The decision of this number; `None` for an ordinary number. Numbers below [`FIRST_FREE`]
    /// without a meaning are `NoRoute`.
    #[inline]
    pub fn of(number: u32) -> Option<Self> {
        match number {
            1..=6 => Some(Self::ALL[number as usize]),
            0 | 7..FIRST_FREE => Some(Self::NoRoute),
            _ => None,
        }
    }

    /// Its number.
    pub const fn number(self) -> u32 {
        self as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_decisions_agree() {
        for special in Special::ALL {
            assert_eq!(Special::of(special.number()), Some(special));
        }
        assert_eq!(Special::of(15), Some(Special::NoRoute));
        assert_eq!(Special::of(FIRST_FREE), None);
    }
}
