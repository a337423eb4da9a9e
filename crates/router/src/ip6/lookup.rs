//! ip6-lookup: finds the longest prefix that matches, its next-hop group, and the adjacency for the
//! flow.

use graph::{Packets, Pkt, Stage, edges};
use tables::entry::Entry;
use tables::ip6::{self, Cursor, Destination};
use tables::special::{FIRST_FREE, Special};
use wire::ip;
use wire::ip6::{Header, LEN, at};

use crate::context::Cx;
use crate::icmp::{Error, tell};
use crate::vxlan;

edges! {
    /// Ways out of ip6-lookup.
    pub enum Next {
        /// To a neighbor, resolved or not.
        Rewrite => Node("ip6-rewrite"),
        /// An own address, or a route that the kernel is to follow.
        Punt => Node("punt") as Punted,
        /// VXLAN to an own address, where there are tunnels.
        Vxlan => Node("vxlan-input"),
        /// No route: send an ICMPv6 error.
        NoRoute => Node("icmp6-error") as Answered,
        /// A route of type unreachable: send an ICMPv6 error.
        Unreachable => Node("icmp6-error") as Answered,
        /// A route of type prohibit: send an ICMPv6 error.
        Prohibited => Node("icmp6-error") as Answered,
        /// A route of type blackhole.
        Blackhole => Drop("ip6 route is a blackhole"),
    }
}

/// The stage.
pub struct Lookup;

/// Where a packet goes: read out of its header, which is in the cache.
struct To<'a>(&'a Pkt<'a>);

impl Destination for To<'_> {
    #[inline(always)]
    fn bits(&self, byte: usize) -> u32 {
        let offset = self.0.l3 + (at::DST + (byte & 15)) as u8;
        u32::from_be_bytes(*self.0.header(offset))
    }
}

impl Stage<Cx> for Lookup {
    const NAME: &'static str = "ip6-lookup";
    type Next = Next;
    const THRU: Next = Next::Rewrite;
    // One by one a look-up takes 35 ns, 32 at once with their loads prefetched 22 ns each
    // (docs/adr/0010).
    const BATCH: usize = 32;

    /// Leaves each packet's entry in its word.
    #[inline(always)]
    fn prepare(&mut self, cx: &Cx, packets: &mut Packets<'_>) {
        look_up(&cx.ip6, packets);
    }

    /// The packet's word is the entry that [`prepare`](Self::prepare) has found.
    #[inline(always)]
    fn packet(&mut self, cx: &Cx, p: &mut Pkt<'_>) -> Next {
        let entry = Entry::from_bits(p.argument());
        let hash = if entry.is_multi() { flow_hash(p) } else { 0 };
        let adjacency = cx.groups.bucket(entry.group(), hash);
        p.set_adjacency(adjacency);
        if adjacency < FIRST_FREE {
            special(cx, p, entry)
        } else {
            Next::Rewrite
        }
    }
}

/// Looks the packets up, all a load further at a time. How far each has come is in its word.
// By itself: in the node's loop there are not enough registers for both.
#[inline(never)]
fn look_up(table: &ip6::Reader, packets: &mut Packets<'_>) {
    let mut more = false;
    packets.for_each(|p| {
        let to = To(p);
        let at = table.begin(&to);
        table.prefetch(at, &to);
        more |= at.entry().is_none();
        p.set_argument(at.word());
    });
    while more {
        more = false;
        packets.for_each(|p| {
            let at = Cursor::from_word(p.argument());
            if at.entry().is_none() {
                let to = To(p);
                let at = table.step(at, &to);
                table.prefetch(at, &to);
                more |= at.entry().is_none();
                p.set_argument(at.word());
            }
        });
    }
}

/// The hash of the packet's flow: addresses, flow label, next header and ports. Packets whose first
/// header behind the fixed one has no ports, fragments among them, are hashed without.
#[inline(never)]
pub fn flow_hash(p: &Pkt<'_>) -> u32 {
    let h = p.header::<Header>(p.l3);
    let ports = if ip::has_ports(h.next_header) {
        u32::from_be_bytes(*p.header(p.l3 + LEN as u8))
    } else {
        0
    };
    tables::hash::flow6(
        &h.src,
        &h.dst,
        h.flow_label(),
        h.next_header,
        (ports >> 16) as u16,
        ports as u16,
    )
}

#[cold]
fn special(cx: &Cx, p: &mut Pkt<'_>, entry: Entry) -> Next {
    match entry.decision(p.adjacency()) {
        Special::Local if vxlan::is_datagram(cx, p) => Next::Vxlan,
        Special::Local | Special::Broadcast | Special::Punt => Next::Punt,
        Special::Blackhole => Next::Blackhole,
        // As Linux: the address itself is unreachable only where a neighbor does not answer.
        Special::Unreachable => tell(p, Error::NoRoute, Next::Unreachable),
        Special::Prohibit => tell(p, Error::Prohibited, Next::Prohibited),
        Special::NoRoute => tell(p, Error::NoRoute, Next::NoRoute),
    }
}
