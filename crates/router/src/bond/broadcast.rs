//! bond-broadcast: a copy of what leaves by a bond by each of its members.

use graph::{Desc, Each, Emit, edges};

use super::output::of;
use crate::context::Cx;

edges! {
    /// Ways out of bond-broadcast.
    pub enum Next {
        /// By a member.
        Member => Interface,
        /// None is up.
        NoMember => Drop("no member of the bond is up"),
        /// There is no buffer for a copy.
        NoBuffer => Drop("no buffer for a copy for a member of the bond"),
    }
}

/// The node.
pub struct Broadcast;

impl Each<Cx> for Broadcast {
    const NAME: &'static str = "bond-broadcast";
    type Next = Next;

    fn packet(&mut self, cx: &Cx, out: &mut Emit<'_, Next>, mut d: Desc) {
        let group = cx.snapshot().bond(of(cx, d.tx_if()));
        let usable = group.map_or(&[][..], |group| &group.usable);
        let Some((&last, others)) = usable.split_last() else {
            return out.push(Next::NoMember, d);
        };
        for &member in others {
            match out.bufs().copy(&d) {
                None => out.count(Next::NoBuffer),
                Some(mut copy) => {
                    copy.set_tx_if(member);
                    out.push(Next::Member, copy);
                }
            }
        }
        // The last one gets the frame itself.
        d.set_tx_if(last);
        out.push(Next::Member, d);
    }
}
