//! The load tester's commands: `parshall loadtest` and `parshall send`.
//!
//! A command line becomes directions ([`traffic`]), directions become open ports ([`ports`]), and
//! crate `loadgen` does the rest: it knows only transmitters and receivers.

mod interface;
mod interrupt;
mod live;
mod loadtest;
mod outcome;
mod ports;
pub mod progress;
mod send;
mod shortfall;
mod spec;
mod text;
mod traffic;

pub use loadtest::Loadtest;
pub use send::Send;
