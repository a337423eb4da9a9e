//! ip4-rewrite: time to live, size against the link, and the neighbor's Ethernet header (RFC 1812
//! section 5.3.1).

use graph::trace::{Names, Record};
use graph::{Pkt, Stage, edges};
use tables::adjacency::{Hot, Kind};
use wire::eth;
use wire::ip4::{DONT_FRAGMENT, Header};

use crate::context::Cx;
use crate::icmp::{Error, tell};
use crate::vlan;

edges! {
    /// Ways out of ip4-rewrite.
    pub enum Next {
        /// Out.
        Output => Interface,
        /// Out by an interface with features.
        Features => Node("ip4-output-features"),
        /// There is no room in front of the packet for the tags of the interface.
        NoRoom => Drop("no room for VLAN tags"),
        /// The neighbor is unresolved.
        Resolve => Node("ip4-arp"),
        /// Larger than the link's MTU, and may be cut.
        Fragment => Node("ip4-fragment"),
        /// Larger than the link's MTU, and may not be cut: send an ICMP error.
        FragmentationNeeded => Node("icmp4-error") as Answered,
        /// Its time to live has run out: send an ICMP error.
        TtlExpired => Node("icmp4-error") as Answered,
        /// The interface is down or gone.
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
            return tell(p, Error::Expired, Next::TtlExpired);
        }
        if total > adjacency.fast_mtu() {
            return slow(cx, p, total);
        }
        rewrite(p, &adjacency);
        Next::Output
    }

    fn note(record: &Record, names: &dyn Names) -> Option<String> {
        names.adjacency(record.adjacency())
    }
}

/// Decrements the time to live and writes the next hop's Ethernet header, which has no tags.
#[inline(always)]
fn rewrite(p: &mut Pkt<'_>, adjacency: &Hot) {
    let l3 = p.l3;
    p.header_mut::<Header>(l3).decrement_ttl();
    adjacency.write(p.header_mut(l3 - eth::LEN as u8));
    p.set_tx_if(adjacency.tx_if());
}

/// The same with any header. False if there is no room for its tags.
#[inline]
pub(super) fn rewrite_any(cx: &Cx, p: &mut Pkt<'_>, adjacency: &Hot) -> bool {
    let l3 = p.l3;
    p.header_mut::<Header>(l3).decrement_ttl();
    vlan::rewrite(cx, p, adjacency)
}

// Loads the adjacency once more: given, it would lie in memory for every packet.
#[inline(never)]
fn slow(cx: &Cx, p: &mut Pkt<'_>, total: u16) -> Next {
    let adjacency = cx.adjacencies.load(p.adjacency());
    match adjacency.kind() {
        // Such adjacencies have no fast MTU.
        Kind::Rewrite if total <= adjacency.mtu() => {
            let features = cx.interfaces.load(adjacency.tx_if()).features();
            match features.output {
                0 if rewrite_any(cx, p, &adjacency) => Next::Output,
                0 => Next::NoRoom,
                _ => Next::Features,
            }
        }
        Kind::Rewrite | Kind::Glean | Kind::Incomplete if total > adjacency.mtu() => {
            if p.header::<Header>(p.l3).fragment() & DONT_FRAGMENT == 0 {
                return Next::Fragment;
            }
            tell(p, Error::TooBig(adjacency.mtu()), Next::FragmentationNeeded)
        }
        Kind::Glean | Kind::Incomplete => Next::Resolve,
        _ => Next::Gone,
    }
}
