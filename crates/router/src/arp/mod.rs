//! Neighbors that are not resolved: the kernel is asked to resolve them, their first packets are held meanwhile.

mod hold;
pub(crate) use hold::allowance;
pub use hold::{Hold, Next, Resolve};
