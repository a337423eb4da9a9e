//! Unresolved neighbors: the kernel is asked to resolve them, and their first packets are held
//! meanwhile.

mod resolver;
pub mod show;

pub(crate) use resolver::allowance;
pub use resolver::{Next, Resolver};
