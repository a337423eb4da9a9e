//! The laboratory: network namespaces, virtual links, processes, and the head-to-head comparison of
//! routers.
//!
//! Whatever is made here has the process number of its maker in its name, so that what a killed
//! laboratory leaves can be removed by the next one ([`cleanup::leftovers`]). Nothing outside the
//! namespaces made here is ever touched. The laboratory runs the binary `parshall`; it links
//! neither the router nor its ports.

mod capture;
pub mod cleanup;
pub mod command;
pub mod compare;
pub mod cpu;
mod error;
mod group;
pub mod invocation;
pub mod machine;
pub mod netns;
mod patience;
pub mod probe;
pub mod process;
pub mod programs;
pub mod unprivileged;
pub mod veth;

pub use error::Error;
pub use netns::Netns;
pub use patience::{patience, until};
pub use process::{Process, Spawn};
