//! The flows that workers hold: what is asked about them.
//!
//! A flow is its worker's alone. So whoever asks sends each worker a walk by a ring, with room for
//! all that it may bring back. The worker goes on with it each time that its nodes are polled, a
//! bounded step further, and sends it back by another ring when it has seen all entries. A flow that
//! begins or ends meanwhile may have been seen or not.

mod ask;
mod asker;
mod counters;
mod filter;
pub mod show;
mod walk;

pub(crate) use asker::Asker;
pub use asker::{Answer, NotAsked};
pub(crate) use counters::Counters;
pub use filter::{Filter, Ports};
pub use walk::{By, MOST, Question, What};
pub(crate) use walk::{Walker, walks};
