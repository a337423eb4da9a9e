//! Measurements with generators and receivers: a trial, a ramp, a search.

pub mod point;
pub mod ramp;
pub mod repeat;
pub mod search;
#[cfg(test)]
pub(crate) mod simulated;
pub(crate) mod steady;
pub mod threshold;
pub mod trial;
pub mod way;
