//! What an interface does at layer 2.

/// What an interface in [`Mode::L2`](super::Mode::L2) does with the frames that come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum L2 {
    /// All of them leave by this interface.
    CrossConnect(u16),
    /// They go where their bridge domain has their destination.
    Bridge(u16),
    /// They are frames of this bond.
    Bond(u16),
}

/// [`L2::CrossConnect`], [`L2::Bridge`] and [`L2::Bond`], as a line has them.
const CROSS_CONNECT: u32 = 1;
const BRIDGE: u32 = 2;
const BOND: u32 = 3;

impl L2 {
    /// As it lies in a line: what it does, and the number that goes with it.
    pub(super) const fn bits(of: Option<Self>) -> (u32, u32) {
        match of {
            None => (0, 0),
            Some(Self::CrossConnect(to)) => (CROSS_CONNECT, to as u32),
            Some(Self::Bridge(domain)) => (BRIDGE, domain as u32),
            Some(Self::Bond(bond)) => (BOND, bond as u32),
        }
    }

    /// The same from a line.
    #[inline(always)]
    pub(super) const fn of_bits(what: u32, number: u32) -> Option<Self> {
        match what {
            CROSS_CONNECT => Some(Self::CrossConnect(number as u16)),
            BRIDGE => Some(Self::Bridge(number as u16)),
            BOND => Some(Self::Bond(number as u16)),
            _ => None,
        }
    }
}
