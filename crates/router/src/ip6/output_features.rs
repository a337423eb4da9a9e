//! ip6-output-features: rewrites packets as ip6-rewrite does, and sends them through the features
//! of the interface that they leave by.

use graph::{Pkt, Stage, edges};

use super::rewrite::rewrite_any;
use crate::arc::IP6_OUT_ARC;
use crate::context::Cx;

edges! {
    /// Ways out of ip6-output-features.
    pub enum Next {
        /// To the interface's features, and out behind them.
        Features => Arc(IP6_OUT_ARC),
        /// There is no room in front of the packet for the tags of the interface.
        NoRoom => Drop("no room for VLAN tags"),
    }
}

/// The stage.
pub struct OutputFeatures;

impl Stage<Cx> for OutputFeatures {
    const NAME: &'static str = "ip6-output-features";
    type Next = Next;
    const THRU: Next = Next::Features;

    #[inline(always)]
    fn packet(&mut self, cx: &Cx, p: &mut Pkt<'_>) -> Next {
        let adjacency = cx.adjacencies.load(p.adjacency());
        match rewrite_any(cx, p, &adjacency) {
            true => Next::Features,
            false => Next::NoRoom,
        }
    }
}
