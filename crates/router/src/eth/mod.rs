//! Ethernet (IEEE 802.3).

mod input;
mod output;

pub use input::{Input, Next};
pub use output::Output;
