//! firewall-handoff: leads packets to the worker that owns their flow, and looks after the flows of
//! this one.

use graph::{Desc, Each, Emit, edges};

use crate::context::Cx;

edges! {
    /// Ways out of firewall-handoff.
    pub enum Next {
        /// IPv4, at the owner.
        Ip4 => Node("ip4-firewall"),
        /// IPv6, at the owner.
        Ip6 => Node("ip6-firewall"),
    }
}

/// The node.
pub struct Handoff;

impl Each<Cx> for Handoff {
    const NAME: &'static str = "firewall-handoff";
    type Next = Next;

    /// Above the interface that the packet leaves by, its word has the number of the owner.
    fn packet(&mut self, _: &Cx, out: &mut Emit<'_, Next>, d: Desc) {
        let first = out.pool().bytes_of(&d).get(usize::from(d.l3));
        let next = match first.map(|byte| byte >> 4) {
            Some(6) => Next::Ip6,
            _ => Next::Ip4,
        };
        let owner = (d.argument() >> 16) as usize % out.workers();
        out.hand_over(owner, next, d);
    }

    fn polls(&self) -> bool {
        true
    }

    fn poll(&mut self, cx: &Cx, out: &mut Emit<'_, Next>) {
        cx.tracker.borrow_mut().poll(out.now(), out.tick());
    }
}
