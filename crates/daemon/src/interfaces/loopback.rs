//! Loopbacks: devices of the kernel that are there for their addresses.
//!
//! Packets for such an address reach the host as those for any other. The devices are taps
//! that nobody reads from: unlike dummies they need no module of the kernel, and they go with the
//! process, whatever becomes of it.

use super::device::Device;

/// A tap alone.
pub struct Loopback;

impl Device for Loopback {
    fn numbers(&self) -> usize {
        0
    }
}
