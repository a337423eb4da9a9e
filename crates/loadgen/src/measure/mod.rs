//! Measurements with generators and receivers: a trial, a ramp, a search.

pub mod point;
pub mod ramp;
pub mod search;
#[cfg(test)]
pub(crate) mod simulated;
pub mod threshold;
pub mod trial;
