//! Configurations over time: what was applied, by whom and when, what waits for confirmation, and
//! what a start brings up.
//!
//! [`Transactions`] changes a router from one configuration to another, and keeps on disk what is in
//! force. Before the first step is taken it is on disk that a change has begun, and after the last
//! one, or when it is confirmed, that it counts. So a router that is ended suddenly starts with the
//! configuration before the change or with the one after it.

mod disk;
mod seed;
mod show;
mod start;
mod store;
#[cfg(test)]
mod tests;
mod transaction;

pub use seed::Seed;
pub use show::{Detail, Listing};
pub use start::{Others, Started, hold, start};
pub use store::{Entry, State, Who};
pub use transaction::{Outcome, Proposal, Transactions};
