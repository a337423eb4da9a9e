//! Ethernet (IEEE 802.3).

mod input;
mod output;

pub(crate) use input::{GROUP, is_dhcp_reply, is_from_group, mac};
pub use input::{Input, Next};
pub use output::Output;
