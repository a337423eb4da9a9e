//! punt: what is for the host goes to the interface's twin, as it came.

use crate::context::Cx;
use graph::{Pkt, Stage, edges, flags};

edges! {
    /// Ways out of punt.
    pub enum Next {
        /// To the host.
        Host => Interface,
        /// The kernel takes its packets of this port before we see them; this one it did not.
        NoTwin => Drop("interface has no host twin"),
        /// Made here: its Ethernet header is not one that the host would take.
        Own => Drop("own packet for the host"),
    }
}

/// The stage.
pub struct Punt;

impl Stage<Cx> for Punt {
    const NAME: &'static str = "punt";
    type Next = Next;
    const THRU: Next = Next::Host;

    #[inline]
    fn packet(&mut self, cx: &Cx, p: &mut Pkt<'_>) -> Next {
        let twin = cx.face(p.d.rx_if).twin;
        if p.d.has(flags::OURS) {
            return Next::Own;
        }
        if twin == 0 {
            return Next::NoTwin;
        }
        p.d.adj = u32::from(twin);
        Next::Host
    }
}
