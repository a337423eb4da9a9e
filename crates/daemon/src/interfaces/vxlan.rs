//! VXLAN tunnels: what has its packets in UDP, by the ports that the way to the other end leads to.
//!
//! The kernel's device is a tap.

use super::device::Device;

/// A tap, and ports of others.
pub struct Vxlan;

impl Device for Vxlan {
    fn numbers(&self) -> usize {
        2
    }
}
