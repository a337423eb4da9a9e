//! What the words of a flow's entry mean.

use graph::Pkt;

/// A bit of `Entry::flags`: the first packet's source was the second end of the key.
pub(super) const SWAPPED: u8 = 1;

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
