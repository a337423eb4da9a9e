//! VXLAN tunnels: interfaces whose frames come and go in UDP, between two routers (RFC 7348).
//!
//! What leaves by a tunnel is routed as a packet from its local to its remote address. What comes in
//! with these addresses and its network identifier is the tunnel's.

mod ecn;
mod encap;
mod input;
pub mod show;
mod tunnels;

pub use encap::Encap;
pub use input::Input;
pub(crate) use input::is_datagram;
pub use tunnels::Tunnel;
pub(crate) use tunnels::{Tunnels, Vxlans};

use graph::Pkt;
use wire::checksum::Sum;

/// A sum with the bytes of a packet from `from` up to `to`, which lie in any of its segments.
fn sum_of(p: &Pkt<'_>, from: usize, to: usize, mut sum: Sum) -> Sum {
    let mut at = 0;
    p.segments(|segment| {
        let [first, end] = [from, to].map(|edge| edge.saturating_sub(at).min(segment.len()));
        let offset = (at + first).saturating_sub(from);
        sum = sum.with_at(offset, &segment[first..end]);
        at += segment.len();
    });
    sum
}
