//! bond-output: what leaves by a bond, or with tags on it, leaves by one of its members.

use graph::{Pkt, Stage, edges};
use tables::hash::share;

use super::Spread;
use super::hash::hash;
use crate::arc::INTERFACE_OUT_ARC;
use crate::change::InterfaceId;
use crate::context::Cx;

edges! {
    /// Ways out of bond-output.
    pub enum Next {
        /// By a member.
        Member => Interface,
        /// By each member.
        All => Node("bond-broadcast"),
        /// None is up.
        NoMember => Drop("no member of the bond is up"),
        /// The interface is a bond no longer.
        On => Arc(INTERFACE_OUT_ARC),
    }
}

/// Counts that bonds share whose numbers differ by a multiple of this.
const TURNS: usize = 64;

/// The stage.
pub struct Output {
    /// By bond, how many frames it has spread round robin.
    turns: [u32; TURNS],
}

impl Default for Output {
    fn default() -> Self {
        Output { turns: [0; TURNS] }
    }
}

impl Stage<Cx> for Output {
    const NAME: &'static str = "bond-output";
    type Next = Next;
    const THRU: Next = Next::Member;

    #[inline(always)]
    fn packet(&mut self, cx: &Cx, p: &mut Pkt<'_>) -> Next {
        let bond = of(cx, p.tx_if());
        let Some(group) = cx.snapshot().bond(bond) else {
            return Next::On;
        };
        let usable = &group.usable[..];
        let at = match group.spread {
            Spread::Broadcast if usable.len() > 1 => {
                cx.sent(bond, p.total());
                return Next::All;
            }
            Spread::ActiveBackup | Spread::Broadcast => 0,
            Spread::RoundRobin => self.turn(bond, usable.len()),
            Spread::Xor(headers) | Spread::Lacp(headers) => share(hash(p, headers), usable.len()),
        };
        let Some(&member) = usable.get(at) else {
            return Next::NoMember;
        };
        cx.sent(bond, p.total());
        p.set_tx_if(member);
        Next::Member
    }
}

impl Output {
    /// Whose turn it is among so many.
    #[inline(always)]
    fn turn(&mut self, bond: InterfaceId, of: usize) -> usize {
        let turn = &mut self.turns[usize::from(bond) % TURNS];
        *turn = turn.wrapping_add(1);
        *turn as usize % of.max(1)
    }
}

/// The bond that an interface is, or has tags on.
#[inline(always)]
pub(crate) fn of(cx: &Cx, interface: InterfaceId) -> InterfaceId {
    match cx.interfaces.load(interface).parent() {
        0 => interface,
        parent => parent,
    }
}
