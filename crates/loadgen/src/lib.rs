//! The load tester: profiles, streams, pacer, generator, receiver, ramp, search, statistics, report.

#![forbid(unsafe_code)]

pub mod report;
