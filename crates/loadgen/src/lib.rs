//! The load tester.
//!
//! A [`profile`] gives [`stream`]s: packet templates and what varies in them, which [`field`] executes. A [`tester`] thread
//! sends them by a [`pacer`] over any port ([`generate`]) and counts what comes back ([`receive`]); other generators and
//! sinks stand behind the same two traits ([`device`]); what the kernel's generator sends is a [`live_plan`]. The controller offers a [`rate`] to them: one [`trial`], a
//! [`ramp`] written to a result file ([`json`]), or a [`search`] for the highest rate, which the verdicts of trials tell as
//! a [`threshold`].
//!
//! Two rules hold everywhere: sent is what the port took, and what was not sent is never called lost.

#![forbid(unsafe_code)]

pub mod clock;
pub mod device;
pub mod field;
pub mod generate;
pub mod json;
pub mod live_plan;
pub mod pacer;
pub mod point;
pub mod profile;
pub mod ramp;
pub mod rate;
pub mod receive;
pub mod search;
#[cfg(test)]
mod simulated;
pub mod stream;
pub mod tester;
pub mod threshold;
pub mod trial;
pub mod units;
