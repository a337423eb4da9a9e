//! VLAN sub-interfaces (IEEE 802.1Q, IEEE 802.1ad): packets of an interface whose tags name a
//! sub-interface are that one's, and leave by it with the same tags.

pub(crate) mod header;
mod input;

pub use input::Input;

use graph::Pkt;
use tables::interface::Tags;
use wire::vlan;

use crate::context::Cx;
use header::encode;

/// Bytes of both Ethernet addresses.
const MACS: usize = vlan::AT;

/// Takes tags out of a frame that has them and is long enough.
#[inline]
fn pop(p: &mut Pkt<'_>, tags: Tags) {
    let len = tags.len();
    let macs = *p.header::<[u8; MACS]>(0);
    *p.header_mut(len as u8) = macs;
    // It has as many bytes, so this fits.
    p.shift(len as i32);
}

/// Puts tags into a frame. False, with the frame as it was, if there is no room in front of it.
pub(crate) fn push(p: &mut Pkt<'_>, tags: Tags) -> bool {
    retag(p, Tags::NONE, tags)
}

/// Puts tags in place of those that a frame begins with, and is long enough for. The outer one keeps
/// the priority of the outer one before. False, with the frame as it was, if there is no room in
/// front of it.
#[inline]
pub(crate) fn retag(p: &mut Pkt<'_>, popped: Tags, pushed: Tags) -> bool {
    let [mut outer, inner] = encode(pushed);
    if !popped.is_empty() {
        outer = outer.with_priority_of(p.header(MACS as u8));
    }
    let macs = *p.header::<[u8; MACS]>(0);
    if !p.shift(popped.len() as i32 - pushed.len() as i32) {
        return false;
    }
    *p.header_mut(0) = macs;
    match pushed.count {
        0 => {}
        1 => *p.header_mut(MACS as u8) = outer,
        _ => *p.header_mut(MACS as u8) = [outer, inner],
    }
    true
}

/// Writes its adjacency's header, with its tags if it has any, in front of a packet that leaves. False
/// if there is no room for it.
#[inline]
pub(crate) fn rewrite(cx: &Cx, p: &mut Pkt<'_>) -> bool {
    let adjacency = cx.adjacencies.load(p.adjacency());
    let header = cx.adjacencies.header(p.adjacency(), &adjacency);
    let len = usize::from(adjacency.header_len()).min(header.len());
    if !p.shift(i32::from(p.l3) - len as i32) {
        return false;
    }
    p.set_l3(len as u8);
    p.set_tx_if(adjacency.tx_if());
    let front = p.bytes_mut().get_mut(..len);
    front.is_some_and(|front| {
        front.copy_from_slice(&header[..len]);
        true
    })
}
