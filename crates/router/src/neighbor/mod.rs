//! Unresolved neighbors: the kernel is asked to resolve them, and their first packets are held
//! meanwhile.

mod ip4;
mod ip6;
mod resolver;
pub mod show;

pub use ip4::Ip4;
pub use ip6::Ip6;
pub(crate) use resolver::allowance;
pub use resolver::{Packets, Resolver};
