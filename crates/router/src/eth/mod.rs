//! Ethernet (IEEE 802.3).

mod input;
pub use input::{Input, Next};
