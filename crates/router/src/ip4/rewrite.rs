//! ip4-rewrite: time to live, size against the link, and the neighbor's Ethernet header (RFC 1812 section 5.3.1).

use graph::{Pkt, Stage, edges};
use tables::adjacency::{Hot, Kind};
use wire::eth;
use wire::ip4::{DONT_FRAGMENT, Header};

use crate::arc::IP4_OUT_ARC;
use crate::context::Cx;
use crate::icmp4::Error;

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
        let h = p.header::<Header>(p.l3);
        let total = h.total_len();
        if h.ttl <= 1 {
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
    p.header_mut::<Header>(l3).decrement_ttl();
    let [a, b, c, d] = adjacency.words;
    let header = p.header_mut::<[u8; eth::LEN]>(l3 - eth::LEN as u8);
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
            if p.header::<Header>(p.l3).fragment() & DONT_FRAGMENT == 0 {
                return Next::Fragment;
            }
            p.set_argument(Error::fragmentation_needed(adjacency.mtu()).number());
            Next::FragmentationNeeded
        }
        Kind::Glean | Kind::Incomplete => Next::Resolve,
        _ => Next::Gone,
    }
}
