//! ip4-acl-in, ip4-acl-out, ip6-acl-in, ip6-acl-out: let pass what the access lists of an interface
//! permit.

use std::ops::Range;
use std::sync::Arc;

use graph::{Edges, Packets, Pkt, Stage, edges};
use tables::acl::{Acl, IP4, IP6, Key, NONE};

use super::list::{List, Verdict};
use super::{Direction, key};
use crate::arc::{IP4_IN_ARC, IP4_OUT_ARC, IP6_IN_ARC, IP6_OUT_ARC};
use crate::context::Cx;

/// Packets that are looked up together.
const BATCH: usize = 64;

/// A family and a direction.
pub trait Place<const W: usize>: Edges {
    /// Name of the stage.
    const NAME: &'static str;
    /// The direction.
    const DIRECTION: Direction;
    /// The edge of what may pass.
    const PERMITTED: Self;
    /// The edge of what may not.
    const DENIED: Self;
    /// The edge of what no rule matches.
    const UNMATCHED: Self;

    /// The key of a packet.
    fn key(p: &Pkt<'_>) -> Key<W>;
    /// The rules of the family.
    #[expect(private_interfaces, reason = "the places are those of this file")]
    fn rules(list: &List) -> &Acl<W>;
}

/// The stage.
pub struct Filter<N, const W: usize> {
    keys: [Key<W>; BATCH],
    /// The rule of each packet of the batch.
    found: [u32; BATCH],
    /// The way of each.
    ways: [N; BATCH],
    /// The next packet of it.
    at: usize,
}

impl<N: Place<W>, const W: usize> Default for Filter<N, W> {
    fn default() -> Self {
        Filter {
            keys: [Key::EMPTY; BATCH],
            found: [NONE; BATCH],
            ways: [N::UNMATCHED; BATCH],
            at: 0,
        }
    }
}

/// The list that a packet is to pass.
#[inline(always)]
fn list<'a>(cx: &'a Cx, direction: Direction, p: &Pkt<'_>) -> Option<&'a Arc<List>> {
    let interface = match direction {
        Direction::Input => p.rx_if,
        Direction::Output => p.tx_if(),
    };
    cx.snapshot().acls.of(interface, direction)
}

impl<N: Place<W>, const W: usize> Stage<Cx> for Filter<N, W> {
    const NAME: &'static str = N::NAME;
    type Next = N;
    const THRU: N = N::PERMITTED;
    const BATCH: usize = BATCH;

    /// Finds the way of each packet: of all that pass the same list at once.
    #[inline(always)]
    fn prepare(&mut self, cx: &Cx, packets: &mut Packets<'_>) {
        let (mut begin, mut end) = (0, 0);
        let mut last: Option<&Arc<List>> = None;
        packets.for_each(|p| {
            let next = list(cx, N::DIRECTION, p);
            if last.map(Arc::as_ptr) != next.map(Arc::as_ptr) {
                self.decide(cx.worker, last, begin..end);
                (begin, last) = (end, next);
            }
            self.keys[end] = N::key(p);
            end += 1;
        });
        self.decide(cx.worker, last, begin..end);
        self.at = 0;
    }

    #[inline(always)]
    fn packet(&mut self, _: &Cx, _: &mut Pkt<'_>) -> N {
        let way = self.ways.get(self.at).copied();
        self.at += 1;
        way.unwrap_or(N::UNMATCHED)
    }
}

impl<N: Place<W>, const W: usize> Filter<N, W> {
    /// Finds the way of these packets of the batch, which pass one list; without one all may pass.
    #[inline(always)]
    fn decide(&mut self, worker: usize, list: Option<&Arc<List>>, range: Range<usize>) {
        let ways = &mut self.ways[range.clone()];
        let Some(list) = list else {
            return ways.fill(N::PERMITTED);
        };
        let found = &mut self.found[range.clone()];
        N::rules(list).find(&self.keys[range], found);
        for (way, found) in ways.iter_mut().zip(found) {
            *way = match list.judge(worker, *found) {
                Verdict::Permit => N::PERMITTED,
                Verdict::Deny => N::DENIED,
                Verdict::Unmatched => N::UNMATCHED,
            };
        }
    }
}

/// The stage of a family and direction.
macro_rules! place {
    ($(#[$meta:meta])* $Stage:ident, $module:ident, $name:literal, $direction:ident, $arc:ident,
     $words:ident, $family:ident) => {
        mod $module {
            use super::*;

            edges! {
                /// Ways out of the stage.
                pub enum Next {
                    /// A rule permits it.
                    Permitted => Arc($arc),
                    /// A rule denies it.
                    Denied => Drop("denied by access list"),
                    /// No rule matches it.
                    Unmatched => Drop("no rule of the access lists matches"),
                }
            }

            impl Place<$words> for Next {
                const NAME: &'static str = $name;
                const DIRECTION: Direction = Direction::$direction;
                const PERMITTED: Next = Next::Permitted;
                const DENIED: Next = Next::Denied;
                const UNMATCHED: Next = Next::Unmatched;

                #[inline(always)]
                fn key(p: &Pkt<'_>) -> Key<$words> {
                    key::$family(p)
                }

                #[inline(always)]
                #[expect(private_interfaces, reason = "as of the trait")]
                fn rules(list: &List) -> &Acl<$words> {
                    &list.$family
                }
            }
        }

        $(#[$meta])*
        pub type $Stage = Filter<$module::Next, $words>;
    };
}

place! {
    /// IPv4 packets that come in.
    Ip4In, ip4_in, "ip4-acl-in", Input, IP4_IN_ARC, IP4, ip4
}
place! {
    /// IPv4 packets that leave.
    Ip4Out, ip4_out, "ip4-acl-out", Output, IP4_OUT_ARC, IP4, ip4
}
place! {
    /// IPv6 packets that come in.
    Ip6In, ip6_in, "ip6-acl-in", Input, IP6_IN_ARC, IP6, ip6
}
place! {
    /// IPv6 packets that leave.
    Ip6Out, ip6_out, "ip6-acl-out", Output, IP6_OUT_ARC, IP6, ip6
}
