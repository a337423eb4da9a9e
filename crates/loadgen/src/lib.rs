//! The load tester: profiles, streams, pacer, generator, receiver, ramp, search, statistics, report.

#![forbid(unsafe_code)]

pub mod clock;
pub mod device;
pub mod field;
pub mod generate;
pub mod json;
pub mod pacer;
pub mod profile;
pub mod ramp;
pub mod rate;
pub mod receive;
pub mod report;
pub mod search;
#[cfg(test)]
mod simulated;
pub mod stats;
pub mod stream;
pub mod tester;
pub mod trial;
pub mod units;
