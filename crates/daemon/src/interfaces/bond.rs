//! Bonds: what has its packets by others, its members.
//!
//! The kernel's device is a tap. Members stay what they are; that they are members is what they do
//! at layer 2.

use super::device::Device;

/// A tap, and ports of others.
pub struct Bond;

impl Device for Bond {
    fn numbers(&self) -> usize {
        2
    }
}
