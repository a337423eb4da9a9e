//! Layer 2: cross connects and bridge domains (IEEE 802.1Q). The tags of sub-interfaces are taken out
//! of what comes in, and put into what leaves.

mod arp;
mod bridges;
mod bvi;
mod counts;
mod cross_connect;
mod flood;
mod forward;
mod owners;
pub mod show;

pub(crate) use bridges::{Bridges, Domain, Domains};
pub use bvi::Output as BviOutput;
pub use counts::Loop;
pub(crate) use cross_connect::cross;
pub use flood::Flood;
pub use forward::Forward;

use graph::Pkt;
use tables::interface::{Hot, Tags};
use wire::eth;
use wire::vlan::{self, Tag};

use crate::context::Cx;
use crate::vlan::retag;

/// What becomes of a frame at an interface at layer 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It leaves by the other end.
    Crosses,
    /// Its bridge domain says where it goes.
    Bridges,
    /// It is a frame of the bond that the interface is a member of.
    Bonded,
    /// The interface has no cross connect: it is but the other end of one.
    Unconnected,
    /// The other end is down or gone.
    OtherDown,
    /// The other end's link takes no packets of this size.
    TooLong,
    /// There is no room in front of it for the other end's tags.
    NoRoom,
    /// It claims to come from many.
    BadSource,
}

/// Reason why a frame cannot leave by an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stuck {
    /// Its link takes no packets of this size.
    TooLong,
    /// There is no room in front of it for its tags.
    NoRoom,
}

/// Sends a frame that begins with these tags, which are taken out, by an interface that is up.
#[inline(always)]
pub(crate) fn leave(
    cx: &Cx,
    p: &mut Pkt<'_>,
    tags: Tags,
    (to, other): (u16, Hot<'_>),
) -> Result<(), Stuck> {
    let (total, most) = (p.total(), usize::from(other.mtu()) + eth::LEN);
    if total > most && total - further_tags(p, tags.len()) > most {
        return Err(Stuck::TooLong);
    }
    let pushed = other.tags();
    let same = tags.is_empty() && pushed.is_empty();
    if same || retag(p, tags, pushed) {
        p.set_tx_if(to);
        if !pushed.is_empty() {
            cx.sent(to, p.total());
        }
        return Ok(());
    }
    Err(Stuck::NoRoom)
}

/// Bytes of a frame that are no part of the packet that counts against an MTU: its first `popped`
/// bytes of tags, and of up to two further tags.
#[cold]
fn further_tags(p: &Pkt<'_>, popped: usize) -> usize {
    let at = |n: usize| (vlan::AT + popped + n * vlan::LEN) as u8;
    let further = (0..2).take_while(|n| p.header::<Tag>(at(*n)).is_tag());
    popped + further.count() * vlan::LEN
}
