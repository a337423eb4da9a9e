//! The load tester.
//!
//! A profile gives streams: packet templates, what varies in them, and how often they are sent
//! ([`model`]). A [`source`] makes their packets. A [`tester`] thread sends them on [`schedule`]
//! over any port ([`send`]) or into a file ([`dry`]) and counts what comes back ([`receive`]). Other generators and
//! receivers stand behind the same two traits ([`device`]): the kernel's generator sends what a
//! [`live_plan`] says. [`measure`] drives them: one trial, a ramp, whose result file is [`json`],
//! or a search for the highest rate. [`search`] has the published methods. [`queues`] predicts how a card spreads the packets of a profile.
//!
//! Two rules hold everywhere: "sent" is what the port took, and what was not sent is never called
//! lost.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used))]

pub mod clock;
pub mod device;
pub mod dry;
pub mod histogram;
pub mod json;
pub mod live_plan;
pub mod measure;
pub mod model;
pub mod queues;
pub mod receive;
pub mod schedule;
pub mod search;
pub mod send;
pub mod source;
pub mod tester;
