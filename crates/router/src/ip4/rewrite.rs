//! ip4-rewrite: time to live, size against the link, and the neighbor's Ethernet header (RFC 1812 section 5.3.1).

use super::{DF, at};
use crate::arc::IP4_OUT_ARC;
use crate::context::Cx;
use crate::icmp4::Error;
use graph::{Pkt, Stage, edges};
use tables::adjacency::{Hot, Kind};

edges! {
    /// Ways out of ip4-rewrite.
    pub enum Next {
        /// Out.
        Output => Interface,
        /// Out, by an interface with features.
        Features => Arc(IP4_OUT_ARC),
        /// The neighbor is not resolved.
        Resolve => Node("ip4-arp"),
        /// Larger than the link takes, and may be cut.
        Fragment => Node("ip4-fragment"),
        /// Larger than the link takes, and may not be cut: the sender is told.
        FragmentationNeeded => Node("icmp4-error"),
        /// Its time is over: the sender is told.
        TtlExpired => Node("icmp4-error"),
        /// The link is gone.
        Gone => Drop("ip4 next hop's interface is down"),
    }
}

/// The stage.
pub struct Rewrite;

impl Stage<Cx> for Rewrite {
    const NAME: &'static str = "ip4-rewrite";
    type Next = Next;
    const THRU: Next = Next::Output;

    #[inline(always)]
    fn packet(&mut self, cx: &Cx, p: &mut Pkt<'_>) -> Next {
        let adjacency = cx.adjacencies.load(p.adjacency());
        let h = p.at::<12>(p.l3);
        let (ttl, total) = (h[at::TTL as usize], u16::from_be_bytes([h[2], h[3]]));
        if ttl <= 1 {
            p.set_argument(Error::TTL_EXPIRED.number());
            return Next::TtlExpired;
        }
        if total > adjacency.fast_mtu() {
            return slow(cx, p, total);
        }
        rewrite(p, &adjacency);
        Next::Output
    }
}

/// Makes it the next hop's packet.
#[inline(always)]
fn rewrite(p: &mut Pkt<'_>, adjacency: &Hot) {
    let l3 = p.l3;
    let h = p.at_mut::<12>(l3);
    let sum = u16::from_be_bytes([h[10], h[11]]);
    h[at::TTL as usize] -= 1;
    h[10..12].copy_from_slice(&wire::checksum::decrement_ttl(sum).to_be_bytes());
    let [a, b, c, d] = adjacency.words;
    let header = p.at_mut::<14>(l3 - 14);
    header[0..4].copy_from_slice(&a.to_ne_bytes());
    header[4..8].copy_from_slice(&b.to_ne_bytes());
    header[8..12].copy_from_slice(&c.to_ne_bytes());
    header[12..14].copy_from_slice(&d.to_ne_bytes()[..2]);
    p.set_tx_if(adjacency.tx_if());
}

// It loads the adjacency again: lent to it, every packet's would have to be in memory.
#[cold]
fn slow(cx: &Cx, p: &mut Pkt<'_>, total: u16) -> Next {
    let adjacency = cx.adjacencies.load(p.adjacency());
    match adjacency.kind() {
        // There is no fast MTU.
        Kind::Rewrite if total <= adjacency.mtu() => {
            rewrite(p, &adjacency);
            Next::Features
        }
        Kind::Rewrite | Kind::Glean | Kind::Incomplete if total > adjacency.mtu() => {
            let fragment = u16::from_be_bytes(*p.at::<2>(p.l3 + at::FRAGMENT));
            if fragment & DF == 0 {
                return Next::Fragment;
            }
            p.set_argument(Error::fragmentation_needed(adjacency.mtu()).number());
            Next::FragmentationNeeded
        }
        Kind::Glean | Kind::Incomplete => Next::Resolve,
        _ => Next::Gone,
    }
}
