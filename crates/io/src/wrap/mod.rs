//! Wrappers over any port.

mod fault;
mod rate;

pub use fault::{Fault, Odds};
pub use rate::Rate;
