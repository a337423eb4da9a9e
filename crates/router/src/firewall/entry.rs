//! What the words of a flow's entry mean.

use graph::Pkt;
use tables::flow::Flows;

use crate::nat::place;

/// A bit of `Entry::flags`: the first packet's source was the second end of the key.
pub(super) const SWAPPED: u8 = 1;
/// Another: an end of it is seen as another one. The flow's words say as which.
pub(super) const TRANSLATED: u8 = 1 << 4;

/// The places outside of a flow's ends, in the order of its first packet.
#[inline(always)]
pub(super) fn outside(flows: &Flows, number: u32) -> [u64; 2] {
    if flows.at(number).0.flags & TRANSLATED == 0 {
        return [place::NONE; 2];
    }
    flows.words(number)
}

/// The interfaces that a packet uses: where it came in, where it leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interfaces(pub u32);

impl Interfaces {
    #[inline(always)]
    pub fn of(p: &Pkt<'_>) -> Self {
        Interfaces(u32::from(p.rx_if) | u32::from(p.tx_if()) << 16)
    }

    /// Each of them; 0: not known.
    pub const fn both(self) -> [u16; 2] {
        [self.0 as u16, (self.0 >> 16) as u16]
    }
}
