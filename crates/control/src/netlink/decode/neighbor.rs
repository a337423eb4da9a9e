//! Neighbors.

use kernel::netlink::layout::{NeighborHeader, read};

use super::ip;
use crate::facts::Neighbor;

/// The states in which the kernel sends to a neighbor.
const USABLE: u16 = libc::NUD_REACHABLE
    | libc::NUD_STALE
    | libc::NUD_DELAY
    | libc::NUD_PROBE
    | libc::NUD_NOARP
    | libc::NUD_PERMANENT;

/// Decodes RTM_NEWNEIGH and RTM_DELNEIGH.
pub fn neighbor(payload: &[u8]) -> Option<Neighbor> {
    let (header, attributes): (NeighborHeader, _) = read(payload)?;
    if header.flags & libc::NTF_PROXY != 0 {
        return None;
    }
    let mac = attributes.clone().find(libc::NDA_LLADDR);
    let usable = header.state & USABLE != 0;
    Some(Neighbor {
        link: header.link,
        address: ip(header.family, attributes.find(libc::NDA_DST)?)?,
        mac: mac.and_then(|mac| mac.try_into().ok()).filter(|_| usable),
    })
}
