//! nat-handoff: leads packets to the worker that knows whom they are for.

use graph::{Desc, Each, Emit, edges};

use crate::context::Cx;

edges! {
    /// Ways out of nat-handoff.
    pub enum Next {
        /// At that worker.
        Ip4 => Node("ip4-nat"),
    }
}

/// The node.
pub struct Handoff;

impl Each<Cx> for Handoff {
    const NAME: &'static str = "nat-handoff";
    type Next = Next;

    /// The packet's word has the number of the worker.
    fn packet(&mut self, _: &Cx, out: &mut Emit<'_, Next>, d: Desc) {
        let owner = d.argument() as usize % out.workers();
        out.hand_over(owner, Next::Ip4, d);
    }
}
