//! VLAN sub-interfaces (IEEE 802.1Q, IEEE 802.1ad): packets of an interface whose tags name a
//! sub-interface are that one's, and leave by it with the same tags.

pub(crate) mod header;
mod input;

pub use input::Input;

use graph::Pkt;
use tables::adjacency::Hot;
use tables::interface::Tags;
use wire::eth;
use wire::vlan::{self, Tag};

use crate::context::Cx;
use header::encode;

/// Bytes of both Ethernet addresses.
const MACS: usize = vlan::AT;
/// Where the tags of a frame are.
const OUTER: u8 = vlan::AT as u8;
const INNER: u8 = OUTER + vlan::LEN as u8;
/// Bytes of a header without tags, and with one.
const UNTAGGED: usize = eth::LEN;
const ONE_TAG: usize = UNTAGGED + vlan::LEN;

/// Takes tags out of a frame that has them and is long enough.
#[inline]
fn pop(p: &mut Pkt<'_>, tags: Tags) {
    let len = tags.len();
    let macs = *p.header::<[u8; MACS]>(0);
    *p.header_mut(len as u8) = macs;
    // It has as many bytes, so this fits.
    p.shift(len as i32);
}

/// Puts tags into a frame, if there are any. False, with the frame as it was, if there is no room in
/// front of it.
pub(crate) fn push(p: &mut Pkt<'_>, tags: Tags) -> bool {
    retag(p, Tags::NONE, tags)
}

/// Puts tags in place of those that a frame begins with, and is long enough for. The outer one keeps
/// the priority of the outer one before. False, with the frame as it was, if there is no room in
/// front of it.
#[inline(always)]
pub(crate) fn retag(p: &mut Pkt<'_>, popped: Tags, pushed: Tags) -> bool {
    let old = *p.header::<Tag>(OUTER);
    if popped.count != pushed.count && !make_room(p, popped, pushed) {
        return false;
    }
    if pushed.is_empty() {
        return true;
    }
    let [outer, inner] = encode(pushed);
    *p.header_mut(OUTER) = match popped.is_empty() {
        true => outer,
        false => outer.with_priority_of(&old),
    };
    if pushed.count > 1 {
        *p.header_mut(INNER) = inner;
    }
    true
}

/// Moves a frame's addresses to where they are with other tags. False if there is no room for them.
#[inline(never)]
fn make_room(p: &mut Pkt<'_>, popped: Tags, pushed: Tags) -> bool {
    let macs = *p.header::<[u8; MACS]>(0);
    let fits = p.shift(popped.len() as i32 - pushed.len() as i32);
    if fits {
        *p.header_mut(0) = macs;
    }
    fits
}

/// Writes its adjacency's header, with its tags if it has any, in front of a packet that leaves. False
/// if there is no room for it.
#[inline(always)]
pub(crate) fn rewrite(cx: &Cx, p: &mut Pkt<'_>, adjacency: &Hot) -> bool {
    let [outer, inner] = cx.adjacencies.header_end(p.adjacency());
    let len = usize::from(adjacency.header_len());
    if !p.shift(i32::from(p.l3) - len as i32) {
        return false;
    }
    p.set_l3(len as u8);
    p.set_tx_if(adjacency.tx_if());
    adjacency.write(p.header_mut(0));
    if len > UNTAGGED {
        *p.header_mut(UNTAGGED as u8) = outer;
        cx.sent(adjacency.tx_if(), p.total());
    }
    if len > ONE_TAG {
        *p.header_mut(ONE_TAG as u8) = inner;
    }
    true
}
