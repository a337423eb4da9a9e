//! Cross connects: every frame that comes in at one interface leaves by another, whatever is in it
//! and wherever it is addressed to. The tags of sub-interfaces are taken out and put in on the way.

use graph::Pkt;
use tables::interface::{Hot, L2, Mode, Tags};
use wire::eth;
use wire::vlan::{self, Tag};

use crate::context::Cx;
use crate::vlan::retag;

/// What becomes of a frame at an interface at layer 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It leaves by the other end.
    Crosses,
    /// The interface has no cross connect: it is but the other end of one.
    Unconnected,
    /// The other end is down or gone.
    OtherDown,
    /// The other end's link takes no packets of this size.
    TooLong,
    /// There is no room in front of it for the other end's tags.
    NoRoom,
}

/// Sends a frame on from an interface at layer 2. `tags` are those of the interface, which the frame
/// begins with.
#[inline(always)]
pub(crate) fn cross(cx: &Cx, p: &mut Pkt<'_>, from: Hot<'_>, tags: Tags) -> Fate {
    let Some(L2::CrossConnect(to)) = from.l2() else {
        return Fate::Unconnected;
    };
    let other = cx.interfaces.load(to);
    if other.mode() == Mode::Down {
        return Fate::OtherDown;
    }
    let (total, most) = (p.total(), usize::from(other.mtu()) + eth::LEN);
    if total > most && total - further_tags(p, tags.len()) > most {
        return Fate::TooLong;
    }
    let pushed = other.tags();
    let same = tags.is_empty() && pushed.is_empty();
    if same || retag(p, tags, pushed) {
        p.set_tx_if(to);
        return Fate::Crosses;
    }
    Fate::NoRoom
}

/// Bytes of a frame that are no part of the packet that counts against an MTU: its first `popped`
/// bytes of tags, and of up to two further tags.
#[cold]
fn further_tags(p: &Pkt<'_>, popped: usize) -> usize {
    let at = |n: usize| (vlan::AT + popped + n * vlan::LEN) as u8;
    let further = (0..2).take_while(|n| p.header::<Tag>(at(*n)).is_tag());
    popped + further.count() * vlan::LEN
}
