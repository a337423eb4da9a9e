//! ip6-rewrite: hop limit, size against the link, and the neighbor's Ethernet header (RFC 8200
//! sections 3 and 5).

use graph::trace::{Names, Record};
use graph::{Pkt, Stage, edges};
use tables::adjacency::{Hot, Kind};
use wire::eth;
use wire::ip6::{Header, MIN_MTU};

use crate::context::Cx;
use crate::icmp::{Error, tell};
use crate::vlan;

edges! {
    /// Ways out of ip6-rewrite.
    pub enum Next {
        /// Out.
        Output => Interface,
        /// Out by an interface with features.
        Features => Node("ip6-output-features"),
        /// There is no room in front of the packet for the tags of the interface.
        NoRoom => Drop("no room for VLAN tags"),
        /// The neighbor is unresolved.
        Resolve => Node("ip6-discover-neighbor"),
        /// Larger than the link's MTU: send an ICMPv6 error.
        TooBig => Node("icmp6-error") as Answered,
        /// Its hop limit has run out: send an ICMPv6 error.
        HopLimitExpired => Node("icmp6-error") as Answered,
        /// The interface is down or gone.
        Gone => Drop("ip6 next hop's interface is down"),
    }
}

/// The stage.
pub struct Rewrite;

impl Stage<Cx> for Rewrite {
    const NAME: &'static str = "ip6-rewrite";
    type Next = Next;
    const THRU: Next = Next::Output;

    #[inline(always)]
    fn packet(&mut self, cx: &Cx, p: &mut Pkt<'_>) -> Next {
        let adjacency = cx.adjacencies.load(p.adjacency());
        let h = p.header::<Header>(p.l3);
        let total = h.total_len();
        if h.hop_limit <= 1 {
            return tell(p, Error::Expired, Next::HopLimitExpired);
        }
        if total > usize::from(adjacency.fast_mtu()) {
            return slow(cx, p, total);
        }
        rewrite(p, &adjacency);
        Next::Output
    }

    fn note(record: &Record, names: &dyn Names) -> Option<String> {
        names.adjacency(record.adjacency())
    }
}

/// Decrements the hop limit and writes the next hop's Ethernet header, which has no tags.
#[inline(always)]
fn rewrite(p: &mut Pkt<'_>, adjacency: &Hot) {
    let l3 = p.l3;
    decrement(p);
    adjacency.write(p.header_mut(l3 - eth::LEN as u8));
    p.set_tx_if(adjacency.tx_if());
}

#[inline(always)]
fn decrement(p: &mut Pkt<'_>) {
    let l3 = p.l3;
    let h = p.header_mut::<Header>(l3);
    h.hop_limit = h.hop_limit.wrapping_sub(1);
}

/// The same with any header. False if there is no room for its tags.
#[inline]
pub(super) fn rewrite_any(cx: &Cx, p: &mut Pkt<'_>, adjacency: &Hot) -> bool {
    decrement(p);
    vlan::rewrite(cx, p, adjacency)
}

// Loads the adjacency once more: given, it would lie in memory for every packet.
#[inline(never)]
fn slow(cx: &Cx, p: &mut Pkt<'_>, total: usize) -> Next {
    let adjacency = cx.adjacencies.load(p.adjacency());
    // Every link carries packets of this size: a route with less does not change that.
    let mtu = adjacency.mtu().max(MIN_MTU);
    match adjacency.kind() {
        Kind::Rewrite | Kind::Glean | Kind::Incomplete if total > usize::from(mtu) => {
            tell(p, Error::TooBig(mtu), Next::TooBig)
        }
        // Such adjacencies have no fast MTU, or not enough of it.
        Kind::Rewrite => {
            let features = cx.interfaces.load(adjacency.tx_if()).features();
            match features.output {
                0 if rewrite_any(cx, p, &adjacency) => Next::Output,
                0 => Next::NoRoom,
                _ => Next::Features,
            }
        }
        Kind::Glean | Kind::Incomplete => Next::Resolve,
        _ => Next::Gone,
    }
}
