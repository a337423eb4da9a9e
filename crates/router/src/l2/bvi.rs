//! bvi-output: what leaves by the own interface of a bridge domain (its bridged virtual interface)
//! comes in at the domain.

use graph::{Pkt, Stage, edges};

use crate::arc::INTERFACE_OUT_ARC;
use crate::context::Cx;

edges! {
    /// Ways out of bvi-output.
    pub enum Next {
        /// To the domain.
        Forward => Node("l2-forward"),
        /// The interface is the domain's no longer.
        On => Arc(INTERFACE_OUT_ARC),
    }
}

/// The stage.
pub struct Output;

impl Stage<Cx> for Output {
    const NAME: &'static str = "bvi-output";
    type Next = Next;
    const THRU: Next = Next::Forward;

    #[inline(always)]
    fn packet(&mut self, cx: &Cx, p: &mut Pkt<'_>) -> Next {
        let bvi = p.tx_if();
        if cx.interfaces.load(bvi).l2().is_none() {
            return Next::On;
        }
        cx.sent(bvi, p.total());
        p.set_rx_if(bvi);
        Next::Forward
    }
}
