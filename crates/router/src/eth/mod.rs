//! Ethernet (IEEE 802.3).

mod input;
mod output;

pub(crate) use input::{GROUP, is_dhcp_reply, mac};
pub use input::{Input, Next};
pub use output::Output;

use graph::Pkt;
use wire::eth::Header;

/// Whether the frame has the address of a group as its source.
#[inline(always)]
pub(crate) fn is_from_group(p: &Pkt<'_>) -> bool {
    p.header::<Header>(0).src.is_group()
}
