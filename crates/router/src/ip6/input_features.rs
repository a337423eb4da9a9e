//! ip6-input-features: sends packets with a good header through the features of the interface that
//! received them.

use graph::{Pkt, Stage, edges};

use super::input::{self, Input};
use crate::arc::IP6_IN_ARC;
use crate::context::Cx;

edges! {
    /// Ways out of ip6-input-features.
    pub enum Next {
        /// To the interface's features, and ip6-input behind them.
        Features => Arc(IP6_IN_ARC),
        /// ip6-input will drop it, and say why.
        Bad => Node("ip6-input"),
    }
}

/// The stage.
pub struct InputFeatures;

impl Stage<Cx> for InputFeatures {
    const NAME: &'static str = "ip6-input-features";
    type Next = Next;
    const THRU: Next = Next::Features;

    // As ip4-input-features, and for its reasons.
    #[inline(always)]
    fn packet(&mut self, cx: &Cx, p: &mut Pkt<'_>) -> Next {
        match Input.packet(cx, p) {
            input::Next::Lookup | input::Next::Punt => Next::Features,
            _ => Next::Bad,
        }
    }
}
