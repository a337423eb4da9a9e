//! The Ethernet addresses of a frame.

use graph::Pkt;
use wire::eth;

/// The bit of multicast and broadcast in an address of [`mac`].
pub(crate) const GROUP: u64 = 1;

/// The Ethernet address at `at`, its first byte lowest, below 16 bits of what follows: one load, as
/// [`Hot::is`](tables::interface::Hot::is) takes it.
#[inline(always)]
pub(crate) fn mac(p: &Pkt<'_>, at: u8) -> u64 {
    u64::from_le_bytes(*p.header(at))
}

/// Whether the frame has the address of a group as its source.
#[inline(always)]
pub(crate) fn is_from_group(p: &Pkt<'_>) -> bool {
    p.header::<eth::Header>(0).src.0[0] & GROUP as u8 != 0
}
