//! The node that has the kernel resolve a neighbor, and holds a few of its packets meanwhile: one for
//! the packets of each family.

use std::marker::PhantomData;
use std::net::IpAddr;

use graph::trace::{Names, Record};
use graph::{Desc, Each, Edges, Emit, Pool};
use tables::adjacency::Kind;

use crate::bucket::Allowance;
use crate::change::InterfaceId;
use crate::context::Cx;
use crate::event::{Event, Unresolved};
use crate::icmp::Error;

/// Facts about its packets that the node of a family needs.
pub trait Packets: Send + 'static {
    /// Name of the node.
    const NAME: &'static str;
    /// Its edges.
    type Next: Edges;
    /// Something has changed: try again.
    const LOOKUP: Self::Next;
    /// The neighbor did not answer.
    const UNRESOLVED: Self::Next;
    /// More packets than are held.
    const FULL: Self::Next;
    /// More new neighbors than are asked for.
    const LIMITED: Self::Next;

    /// Destination of an IP packet of the family.
    fn destination(packet: &[u8]) -> Option<IpAddr>;
}

/// Most neighbors that packets are held for, and most packets held for each: 4,096 buffers in all,
/// so that a scan of dead addresses leaves most of the pool to forwarding.
const NEIGHBORS: usize = 256;
const PACKETS: usize = 16;
/// Milliseconds between two requests for a neighbor, and until its packets are given up. (The
/// kernel gives up after 3 s.)
const ASK_AGAIN_MS: u64 = 1000;
const GIVE_UP_MS: u64 = 3500;
/// Most neighbors of connected networks that are asked for, a second and at once: of each
/// interface, and of all. The kernel waits 3 s for each and has room for 1024 neighbors
/// (gc_thresh3), so a scan of one network must leave room for the others. Gateways do not count:
/// routes name them, so they are few.
const ASKS: (u64, u64) = (128, 128);
const ALL_ASKS: (u64, u64) = (300, 300);

/// The allowance of all workers together.
pub(crate) fn allowance(interfaces: usize) -> Allowance {
    Allowance::new(interfaces, ASKS, ALL_ASKS)
}

/// A neighbor to be resolved.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Neighbor {
    interface: InterfaceId,
    address: IpAddr,
}

impl Neighbor {
    /// Asks the control thread for it. False if that is too busy.
    fn ask(self, cx: &Cx) -> bool {
        cx.events.send(Event::Resolve(Unresolved {
            interface: self.interface,
            address: self.address,
        }))
    }
}

struct Waiting {
    who: Neighbor,
    /// True if a route names it.
    gateway: bool,
    /// Time when its first packet came, in milliseconds ([`Emit::tick`]).
    since: u64,
    /// Time when it was last asked for, in milliseconds.
    asked: Option<u64>,
    /// True if a packet has come for it since its packets were last tried again.
    wanted: bool,
    packets: Vec<Desc>,
}

/// The node.
pub struct Resolver<P> {
    of: PhantomData<fn() -> P>,
    waiting: Vec<Waiting>,
    /// Empty lists, so that nothing is allocated while packets flow.
    lists: Vec<Vec<Desc>>,
    seen: u64,
}

impl<P> Default for Resolver<P> {
    fn default() -> Self {
        Resolver {
            of: PhantomData,
            waiting: Vec::with_capacity(NEIGHBORS),
            lists: (0..NEIGHBORS)
                .map(|_| Vec::with_capacity(PACKETS))
                .collect(),
            seen: 0,
        }
    }
}

impl<P: Packets> Resolver<P> {
    fn hold(&mut self, cx: &Cx, out: &mut Emit<'_, P::Next>, d: Desc) {
        let Some((who, gateway)) = next_hop::<P>(cx, out.pool(), &d) else {
            return out.push(P::FULL, d);
        };
        let found = self.waiting.iter().position(|w| w.who == who);
        if found.is_none() && !gateway && !cx.limits.asks.take(who.interface, out.now()) {
            return out.push(P::LIMITED, d);
        }
        let Some(index) = found.or_else(|| self.place(who, gateway, out)) else {
            // Its next packet finds it resolved.
            who.ask(cx);
            return out.push(P::FULL, d);
        };
        let waiting = &mut self.waiting[index];
        waiting.wanted = true;
        let now = out.tick();
        if waiting
            .asked
            .is_none_or(|at| now.saturating_sub(at) > ASK_AGAIN_MS)
            && who.ask(cx)
        {
            waiting.asked = Some(now);
        }
        if waiting.packets.len() < PACKETS {
            waiting.packets.push(d);
        } else {
            out.push(P::FULL, d);
        }
    }

    /// The index of a place for a neighbor's packets. If all are taken, it is the oldest one's, but
    /// a gateway gives way to gateways only.
    fn place(
        &mut self,
        who: Neighbor,
        gateway: bool,
        out: &mut Emit<'_, P::Next>,
    ) -> Option<usize> {
        if self.lists.is_empty() {
            let all = 0..self.waiting.len();
            let oldest = all.min_by_key(|i| (self.waiting[*i].gateway, self.waiting[*i].since))?;
            if self.waiting[oldest].gateway && !gateway {
                return None;
            }
            for d in self.waiting[oldest].packets.drain(..) {
                out.push(P::FULL, d);
            }
            self.forget(oldest);
        }
        let packets = self.lists.pop()?;
        self.waiting.push(Waiting {
            who,
            gateway,
            since: out.tick(),
            asked: None,
            wanted: true,
            packets,
        });
        Some(self.waiting.len() - 1)
    }

    fn forget(&mut self, i: usize) {
        let waiting = self.waiting.swap_remove(i);
        self.lists.push(waiting.packets);
    }
}

/// The neighbor that has to be resolved for this packet, and whether it is a gateway.
fn next_hop<P: Packets>(cx: &Cx, pool: &Pool, d: &Desc) -> Option<(Neighbor, bool)> {
    let adjacency = cx.adjacencies.load(d.adjacency());
    let gateway = adjacency.kind() == Kind::Incomplete;
    let address = if gateway {
        cx.adjacencies.next_hop(d.adjacency())?
    } else {
        P::destination(pool.bytes_of(d).get(d.l3 as usize..)?)?
    };
    let interface = adjacency.tx_if();
    Some((Neighbor { interface, address }, gateway))
}

impl<P: Packets> Each<Cx> for Resolver<P> {
    const NAME: &'static str = P::NAME;
    type Next = P::Next;

    fn packet(&mut self, cx: &Cx, out: &mut Emit<'_, P::Next>, d: Desc) {
        self.hold(cx, out, d);
    }

    fn note(record: &Record, names: &dyn Names) -> Option<String> {
        names.adjacency(record.adjacency())
    }

    fn polls(&self) -> bool {
        true
    }
    fn poll(&mut self, cx: &Cx, out: &mut Emit<'_, P::Next>) {
        let changed = std::mem::replace(&mut self.seen, cx.changes) != cx.changes;
        // From the end: `forget` moves the last one into the gap.
        for i in (0..self.waiting.len()).rev() {
            let waiting = &mut self.waiting[i];
            if out.tick().saturating_sub(waiting.since) > GIVE_UP_MS {
                for mut d in waiting.packets.drain(..) {
                    d.set_argument(Error::Unreachable.number());
                    out.push(P::UNRESOLVED, d);
                }
                self.forget(i);
            } else if !waiting.wanted {
                // None of its packets has come back from the last try.
                self.forget(i);
            } else if changed {
                waiting.wanted = false;
                for d in waiting.packets.drain(..) {
                    out.push(P::LOOKUP, d);
                }
            }
        }
    }
}
