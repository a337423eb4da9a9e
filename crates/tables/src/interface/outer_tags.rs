//! The outer VLAN identifiers that the sub-interfaces of each interface have: a bit each.
//!
//! XDP programs give frames that begin with one of them to the workers, whatever else the frame is,
//! and leave other tagged frames to the kernel, which may have sub-interfaces of its own.

use std::sync::atomic::Ordering::{Relaxed, Release};

use crate::mem::{Cells, LINE};

/// Lines of one interface: 4,096 bits.
pub(crate) const LINES: usize = 4096 / (32 * LINE);

/// The bits of all interfaces.
#[derive(Debug)]
pub(super) struct OuterTags(pub(super) Cells);

impl OuterTags {
    /// Sets whether an interface has a sub-interface with this outer VLAN identifier.
    pub(super) fn set(&mut self, parent: u16, vlan: u16, has: bool) {
        let at = usize::from(parent) * LINES * LINE + usize::from(vlan) / 32;
        let (word, bit) = (self.0.at(at), 1 << (vlan % 32));
        // There is one writer.
        let old = word.load(Relaxed);
        word.store(if has { old | bit } else { old & !bit }, Release);
    }
}
