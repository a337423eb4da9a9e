//! Cross connects: every frame that comes in at one interface leaves by another, whatever is in it
//! and wherever it is addressed to.

use graph::Pkt;
use tables::interface::{Hot, L2, Mode, Tags};

use super::{Fate, Stuck, leave};
use crate::context::Cx;
use crate::eth::is_from_group;
use crate::vlan::retag;

/// Sends a frame on from an interface at layer 2. `tags` are those of the interface, which the frame
/// begins with.
#[inline(always)]
pub(crate) fn cross(cx: &Cx, p: &mut Pkt<'_>, from: Hot<'_>, tags: Tags) -> Fate {
    let to = match from.l2() {
        Some(L2::CrossConnect(to)) => to,
        Some(L2::Bridge(_)) => {
            // It has room: it becomes shorter.
            retag(p, tags, Tags::NONE);
            return Fate::Bridges;
        }
        Some(L2::Bond(_)) => return Fate::Bonded,
        None => return Fate::Unconnected,
    };
    if is_from_group(p) {
        return Fate::BadSource;
    }
    let other = cx.interfaces.load(to);
    if other.mode() == Mode::Down {
        return Fate::OtherDown;
    }
    match leave(cx, p, tags, (to, other)) {
        Ok(()) => Fate::Crosses,
        Err(Stuck::TooLong) => Fate::TooLong,
        Err(Stuck::NoRoom) => Fate::NoRoom,
    }
}
