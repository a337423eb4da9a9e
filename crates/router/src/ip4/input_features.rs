//! ip4-input-features: sends packets with a good header through the features of the interface that
//! received them.

use graph::{Pkt, Stage, edges};

use super::input::{self, Input};
use crate::arc::IP4_IN_ARC;
use crate::context::Cx;

edges! {
    /// Ways out of ip4-input-features.
    pub enum Next {
        /// To the interface's features, and ip4-input behind them.
        Features => Arc(IP4_IN_ARC),
        /// ip4-input will drop it, and say why.
        Bad => Node("ip4-input"),
    }
}

/// The stage.
pub struct InputFeatures;

impl Stage<Cx> for InputFeatures {
    const NAME: &'static str = "ip4-input-features";
    type Next = Next;
    const THRU: Next = Next::Features;

    // ip4-input checks the header once more behind the features. That costs less than going on in
    // nodes that are not fused, and leaves ip4-input to decide what goes to the host.
    #[inline(always)]
    fn packet(&mut self, cx: &Cx, p: &mut Pkt<'_>) -> Next {
        match Input.packet(cx, p) {
            input::Next::Lookup | input::Next::Punt => Next::Features,
            _ => Next::Bad,
        }
    }
}
