//! The load tester: profiles, streams, pacer, generator, receiver, ramp, search, statistics, report.

#![forbid(unsafe_code)]

pub mod field;
pub mod profile;
pub mod rate;
pub mod report;
pub mod stream;
pub mod units;
