//! The laboratory: network namespaces, virtual links, processes, and the head-to-head comparison of
//! routers.
//!
//! Everything made here has its maker's process number in its name, so that the next laboratory can
//! remove what a killed one left ([`cleanup::leftovers`]). Nothing outside the namespaces made here
//! is ever touched. The laboratory runs the binary `parshall`; it links neither the router nor its
//! ports.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

pub mod alone;
mod capture;
pub mod cleanup;
pub mod command;
pub mod compare;
pub mod cpu;
mod error;
mod group;
pub mod invocation;
pub mod machine;
pub mod needs;
pub mod netns;
mod patience;
pub mod probe;
pub mod process;
pub mod programs;
pub mod unprivileged;
pub mod veth;

pub use alone::{Alone, alone};
pub use error::Error;
pub use kernel::process::ends_with_starter;
pub use netns::Netns;
pub use patience::{patience, until};
pub use process::{Process, Spawn};
