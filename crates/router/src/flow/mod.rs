//! Flows: the connections that packets belong to, and what their packets may be.
//!
//! [`key`] says which flow a packet is of, and in which direction of it: the table of flows
//! ([`tables::flow`]) is searched by that. [`state`] has the states of a connection, which packet
//! leads from which to which, and how long each lasts. [`tcp`] follows the windows of a TCP
//! connection, so that only what its ends may have sent passes.

pub mod key;
pub mod state;
pub mod tcp;
#[cfg(test)]
mod tests;

pub use key::Packet;
pub use state::{Direction, State, Timeouts};
