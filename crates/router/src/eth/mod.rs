//! Ethernet (IEEE 802.3).

mod address;
mod input;
mod output;

pub(crate) use address::{GROUP, is_from_group, mac};
pub(crate) use input::is_dhcp_reply;
pub use input::{Input, Next};
pub use output::Output;
