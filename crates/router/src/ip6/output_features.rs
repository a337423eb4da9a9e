//! ip6-output-features: rewrites packets as ip6-rewrite does, and sends them through the features
//! of the interface that they leave by.

use graph::{Pkt, Stage, edges};

use super::rewrite::rewrite;
use crate::arc::IP6_OUT_ARC;
use crate::context::Cx;

edges! {
    /// Ways out of ip6-output-features.
    pub enum Next {
        /// To the interface's features, and out behind them.
        Features => Arc(IP6_OUT_ARC),
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
        rewrite(p, &cx.adjacencies.load(p.adjacency()));
        Next::Features
    }
}
