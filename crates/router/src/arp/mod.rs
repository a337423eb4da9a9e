//! Neighbors that are not resolved: the kernel is asked to resolve them, their first packets are held meanwhile.

mod hold;
pub use hold::{Hold, Next, Resolve};
