//! Wrappers over any port.

mod fault;
mod rate;
mod sample;

pub use fault::{Fault, Odds};
pub use rate::Rate;
pub use sample::Sample;
