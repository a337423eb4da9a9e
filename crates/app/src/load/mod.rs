//! The load tester's commands: `parshall loadtest` and `parshall send`.
//!
//! The command line gives directions ([`traffic`]), for which ports are opened ([`ports`]). Crate
//! `loadgen` does the rest and knows only transmitters and receivers.

mod dry;
mod interface;
mod interrupt;
mod live;
mod loadtest;
mod outcome;
mod ports;
pub mod progress;
mod send;
mod shortfall;
mod software;
mod spec;
mod streams;
mod text;
mod traffic;

pub use loadtest::Loadtest;
pub use send::Send;
pub use traffic::duration;
