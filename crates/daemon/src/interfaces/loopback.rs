//! Loopbacks: devices of the kernel that are there for their addresses.
//!
//! Packets for such an address reach the host as those for any other. The devices are taps
//! that nobody reads from: unlike dummies they need no module of the kernel, and they go with the
//! process, whatever becomes of it.

use std::sync::Arc;

use control::config::desired::Interface;
use graph::Pool;
use ports::OpenError;
use router::InterfaceId;

use super::device::Device;
use super::open::OpenInterface;
use super::opener::Opener;

/// A tap alone.
pub struct Loopback;

impl Device for Loopback {
    fn numbers(&self) -> usize {
        0
    }

    fn open(
        &self,
        opener: &mut Opener,
        config: &Interface,
        _: InterfaceId,
        _: &Arc<Pool>,
    ) -> Result<OpenInterface, OpenError> {
        OpenInterface::tap(opener, config)
    }
}
