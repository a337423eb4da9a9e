//! The router's daemon.
//!
//! One thread, the control thread, owns the router, its interfaces and its routes; everything
//! reaches it by one [`Inbox`]: what the kernel says, what operators ask, signals. What it asks of
//! its machine goes through a [`Host`].

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used))]

mod answer;
mod daemon;
mod displaced;
mod facts;
mod faults;
mod filters;
mod flows;
mod foreign;
mod handle;
mod host;
mod inbox;
mod interfaces;
mod memory;
mod neighbors;
mod reply;
mod request;
mod routing;
mod serve;
mod sflow;
mod shortage;
mod static_routes;
mod target;
#[cfg(test)]
mod tests;
mod transaction;
mod warnings;
mod workers;

pub use daemon::Daemon;
pub use faults::Faults;
pub use handle::ControlHandle;
pub use host::{DeviceQueues, Host, Linux};
pub use inbox::{Inbox, Message};
pub use serve::serve;
