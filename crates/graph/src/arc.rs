//! Feature arcs: nodes that are switched on and off for each interface.

use crate::{Desc, To};

/// Most features of an arc: a bit of the mask each.
pub const FEATURES: usize = 32;

/// The features on one stretch of the way, in their order.
///
/// An edge that leads [`To::Arc`](crate::To::Arc) leads to the first feature in the packet's mask;
/// from a feature of the arc, to the first one behind it. Where there is none left, it leads to the
/// arc's end. No packet carries its mask: it is asked for at each step, so that a feature that is
/// switched off gets no more packets.
pub struct FeatureArc {
    /// Name, as in [`To::Arc`](crate::To::Arc).
    pub name: &'static str,
    /// Names of the nodes, at most [`FEATURES`]: the n-th stands for bit n of the mask.
    pub features: Vec<&'static str>,
    /// End of the arc, behind its last feature: a node, the interface that [`Desc::tx_if`] names,
    /// or its port.
    pub end: To,
    /// The interface that a packet's mask depends on.
    pub by: By,
    /// The features that packets of an interface are to pass.
    pub mask: Mask,
}

/// Tells which features packets of an interface are to pass; bits without a feature do not matter.
pub type Mask = Box<dyn Fn(u16) -> u32 + Send>;

/// An interface of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The one that it came in by.
    Rx,
    /// The one that it leaves by.
    Tx,
}

impl By {
    /// That of a packet.
    #[inline(always)]
    pub(crate) const fn of(self, d: &Desc) -> u16 {
        match self {
            By::Rx => d.rx_if,
            By::Tx => d.tx_if(),
        }
    }
}
