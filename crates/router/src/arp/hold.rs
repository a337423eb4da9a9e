//! ip4-arp: asks the kernel for a neighbor and holds a few packets until it is there.

use crate::change::InterfaceId;
use crate::context::Cx;
use crate::icmp4::Error;
use crate::ip4::at;
use graph::ring::Producer;
use graph::stage::Part;
use graph::{Desc, Edges, Frame, Node, Out, edges};
use std::net::Ipv4Addr;
use tables::adjacency::Kind;

edges! {
    /// Ways out of ip4-arp.
    pub enum Next {
        /// Tried again, now that something has changed.
        Lookup => Node("ip4-lookup"),
        /// The neighbor did not answer: the sender is told.
        Unresolved => Node("icmp4-error"),
        /// More packets than are held for one neighbor.
        Full => Drop("more packets than are held for an unresolved neighbor"),
    }
}

/// A neighbor that a worker needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolve {
    /// Interface that it is on.
    pub interface: InterfaceId,
    /// Its address.
    pub address: Ipv4Addr,
}

/// Neighbors waited for, and packets held for each.
const NEIGHBORS: usize = 256;
const PACKETS: usize = 16;
/// Milliseconds between two requests for a neighbor, and how long packets wait (the kernel gives up after three seconds).
const ASK_AGAIN_MS: u64 = 1000;
const GIVE_UP_MS: u64 = 3500;

struct Waiting {
    who: Resolve,
    since: u64,
    asked: u64,
    /// Whether a packet came for it since its packets were last tried again.
    wanted: bool,
    packets: Vec<Desc>,
}

/// The node.
pub struct Hold {
    waiting: Vec<Waiting>,
    /// Emptied lists, so that none is allocated while packets flow.
    lists: Vec<Vec<Desc>>,
    requests: Producer<Resolve>,
    seen: u64,
    millisecond: u64,
}

impl Hold {
    /// A node that puts what it needs into `requests`.
    pub fn new(requests: Producer<Resolve>) -> Self {
        Hold {
            waiting: Vec::with_capacity(NEIGHBORS),
            lists: (0..NEIGHBORS)
                .map(|_| Vec::with_capacity(PACKETS))
                .collect(),
            requests,
            seen: 0,
            millisecond: (graph::cycles::per_second() / 1000.0) as u64,
        }
    }

    fn hold(&mut self, cx: &Cx, out: &mut Out, d: Desc) {
        let Some(who) = next_hop(cx, out, &d) else {
            return out.push(Next::Full, d);
        };
        let now = out.now;
        let index = self.waiting.iter().position(|w| w.who == who).or_else(|| {
            let packets = self.lists.pop()?;
            self.waiting.push(Waiting {
                who,
                since: now,
                asked: 0,
                wanted: true,
                packets,
            });
            Some(self.waiting.len() - 1)
        });
        let Some(waiting) = index.map(|i| &mut self.waiting[i]) else {
            return out.push(Next::Full, d);
        };
        waiting.wanted = true;
        if now.wrapping_sub(waiting.asked) > ASK_AGAIN_MS * self.millisecond
            && self.requests.push(who).is_ok()
        {
            waiting.asked = now;
        }
        if waiting.packets.len() < PACKETS {
            waiting.packets.push(d);
        } else {
            out.push(Next::Full, d);
        }
    }

    fn forget(&mut self, i: usize) {
        let waiting = self.waiting.swap_remove(i);
        self.lists.push(waiting.packets);
    }
}

/// Who has to be resolved for this packet.
fn next_hop(cx: &Cx, out: &Out, d: &Desc) -> Option<Resolve> {
    let adjacency = cx.adjacencies.load(d.adj);
    let address = match adjacency.kind() {
        Kind::Incomplete => cx.adjacencies.next_hop(d.adj),
        _ => {
            let at = d.l3 as usize + at::DESTINATION as usize;
            u32::from_be_bytes(
                out.bufs
                    .pool()
                    .bytes_of(d)
                    .get(at..at + 4)?
                    .try_into()
                    .ok()?,
            )
        }
    };
    Some(Resolve {
        interface: adjacency.tx_if(),
        address: address.into(),
    })
}

impl Node<Cx> for Hold {
    fn name(&self) -> &'static str {
        "ip4-arp"
    }
    fn parts(&self) -> Vec<Part> {
        vec![Part {
            name: "ip4-arp",
            edges: Next::table(),
            thru: 0,
        }]
    }
    fn frame(&mut self, cx: &Cx, out: &mut Out, frame: &mut Frame) {
        // From the front: the order of held packets stays.
        for i in 0..frame.len() {
            if let Some(d) = frame.take(i) {
                self.hold(cx, out, d);
            }
        }
        frame.clear();
    }
    fn polls(&self) -> bool {
        true
    }
    fn poll(&mut self, cx: &Cx, out: &mut Out) {
        let changed = std::mem::replace(&mut self.seen, cx.changes) != cx.changes;
        for i in (0..self.waiting.len()).rev() {
            let waiting = &mut self.waiting[i];
            if out.now.wrapping_sub(waiting.since) > GIVE_UP_MS * self.millisecond {
                for mut d in waiting.packets.drain(..) {
                    d.adj = Error::HOST_UNREACHABLE.number();
                    out.push(Next::Unresolved, d);
                }
                self.forget(i);
            } else if changed && !waiting.wanted && waiting.packets.is_empty() {
                self.forget(i);
            } else if changed {
                waiting.wanted = false;
                for d in waiting.packets.drain(..) {
                    out.push(Next::Lookup, d);
                }
            }
        }
    }
}
