//! What is done with generators and receivers, and what comes of it: one trial, a ramp, a search.

pub mod point;
pub mod ramp;
pub mod search;
#[cfg(test)]
pub(crate) mod simulated;
pub mod threshold;
pub mod trial;
