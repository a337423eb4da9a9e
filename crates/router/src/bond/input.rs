//! bond-input: what comes in at a member of a bond is the bond's.

use graph::{Pkt, Stage, edges};
use tables::interface::L2;
use wire::{eth, lacp};

use super::Spread;
use crate::context::Cx;
use crate::eth::{GROUP, mac};

edges! {
    /// Ways out of bond-input.
    pub enum Next {
        /// As if it had come in at the bond.
        Bond => Node("ethernet-input"),
        /// Broadcast or multicast, which the member that is used has got, too.
        Backup => Drop("broadcast or multicast at a backup member of a bond"),
        /// Of LACP and its kind.
        Lacp => Node("lacp-exchange"),
        /// At a member that LACP does not let take part.
        NotCollecting => Drop("member of the bond is not collecting: LACP has not agreed"),
        /// The bond is gone.
        NoBond => Drop("bond is gone"),
    }
}

/// The stage.
pub struct Input;

impl Stage<Cx> for Input {
    const NAME: &'static str = "bond-input";
    type Next = Next;
    const THRU: Next = Next::Bond;

    #[inline(always)]
    fn packet(&mut self, cx: &Cx, p: &mut Pkt<'_>) -> Next {
        let Some(L2::Bond(bond)) = cx.interfaces.load(p.rx_if).l2() else {
            return Next::NoBond;
        };
        // A bond that is itself a member would come back here for ever.
        let is_member = matches!(cx.interfaces.load(bond).l2(), Some(L2::Bond(_)));
        let Some(group) = cx.snapshot().bond(bond).filter(|_| !is_member) else {
            return Next::NoBond;
        };
        if matches!(group.spread, Spread::Lacp(_)) {
            if is_slow(p) {
                return Next::Lacp;
            }
            if !group.usable.contains(&p.rx_if) {
                return Next::NotCollecting;
            }
        }
        // A switch sends these by each of its links to us.
        if group.spread == Spread::ActiveBackup
            && mac(p, 0) & GROUP != 0
            && group.usable.first() != Some(&p.rx_if)
        {
            return Next::Backup;
        }
        cx.received(bond, p.total());
        p.set_rx_if(bond);
        Next::Bond
    }
}

/// Whether a frame is of a slow protocol, which is between the two ends of a link.
#[inline(always)]
fn is_slow(p: &Pkt<'_>) -> bool {
    let header = p.header::<eth::Header>(0);
    header.dst == lacp::GROUP && header.ethertype() == eth::SLOW
}
