//! The laboratory: the head-to-head comparison of routers on this machine.
//!
//! It runs the binary `parshall` in namespaces of its own ([`sandbox`]); it links neither the router
//! nor its ports.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

pub mod compare;
pub mod conditions;
pub mod cpu;
pub mod invocation;
pub mod machine;
pub mod matrix;
pub mod needs;
pub mod power;
pub mod probe;
mod random;
mod script;
pub mod unprivileged;

pub use sandbox::Error;
