//! A load session: the load tester's ports, opened for whoever measures by them.
//!
//! [`Spec`] names a port. A [`Session`] keeps ports open while their owners, streams and rates
//! change. [`open()`] is for one test with streams that stay the same: it opens what sends and what receives: in software, served by
//! threads, or in the kernel, by live frames and an XDP program that counts. The [`Caller`] says
//! when to give up, and is told what others stand in for.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used))]

mod caller;
mod error;
pub mod interface;
mod links;
mod live;
mod ports;
mod session;
mod software;
mod spec;
mod statistics;

pub use caller::{Caller, Fallback, Notice};
pub use error::Error;
pub use links::{Link, LinkState, Links};
pub use ports::{Sending, TestPorts, Way, open, open_sender};
pub use session::{Member, Session};
pub use software::Threads;
pub use spec::{FORMS, Spec};
pub use statistics::{PortStatistics, State, Statistics, StreamStatistics};
