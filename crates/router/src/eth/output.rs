//! interface-output: what leaves by an interface with features on its frames passes them before its
//! port. Others never come here.

use graph::{Pkt, Stage, edges};

use crate::arc::INTERFACE_OUT_ARC;
use crate::context::Cx;

edges! {
    /// Ways out of interface-output.
    pub enum Next {
        /// To the interface's features, and out by its port behind them.
        Features => Arc(INTERFACE_OUT_ARC),
    }
}

/// The stage.
pub struct Output;

impl Stage<Cx> for Output {
    const NAME: &'static str = "interface-output";
    type Next = Next;
    const THRU: Next = Next::Features;

    #[inline(always)]
    fn packet(&mut self, _: &Cx, _: &mut Pkt<'_>) -> Next {
        Next::Features
    }
}
