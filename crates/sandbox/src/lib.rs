//! A place of one's own on this machine: network namespaces, virtual links, and processes that end
//! with whoever started them.
//!
//! Everything made here has its maker's process number in its name, so that the next maker can
//! remove what a killed one left ([`cleanup::leftovers`]). Nothing outside the namespaces made here
//! is ever touched.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

pub mod alone;
mod capture;
pub mod cleanup;
pub mod command;
mod error;
mod group;
pub mod netns;
mod patience;
pub mod process;
pub mod programs;
pub mod veth;

pub use alone::{Alone, alone};
pub use error::Error;
pub use kernel::process::ends_with_starter;
pub use netns::Netns;
pub use patience::{patience, until};
pub use process::{Process, Spawn};
