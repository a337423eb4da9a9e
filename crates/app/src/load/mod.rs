//! The load tester's commands: `parshall loadtest`, `parshall search`, `parshall send` and `parshall rss`.
//!
//! The command line gives directions ([`traffic`]), for which crate `session` opens ports. Crate
//! `loadgen` does the rest and knows only transmitters and receivers.

mod dry;
mod energy;
mod interface;
mod interrupt;
mod loadtest;
mod measured;
mod outcome;
mod pairs;
pub mod progress;
mod rss;
mod search;
mod send;
mod shortfall;
mod steady;
mod streams;
mod text;
mod traffic;

pub use interrupt::Interrupt;
pub use loadtest::Loadtest;
pub use rss::Rss;
pub use search::Search;
pub use send::Send;
pub use traffic::{duration, line_rate};
