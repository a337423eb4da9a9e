//! icmp4-error: makes the packet into an error about itself and sends it back.

use super::Error;
use crate::bucket::TokenBucket;
use crate::context::Cx;
use crate::ip4::{OFFSET, at};
use graph::{Desc, Each, Emit, Flag, Pkt, Pool, edges};

edges! {
    /// Ways out of icmp4-error.
    pub enum Next {
        /// The error, to its receiver.
        Lookup => Node("ip4-lookup"),
        /// RFC 1812 4.3.2.7: about an ICMP error, a later fragment, a broadcast, or a packet without one sender.
        NotAllowed => Drop("no icmp error is sent about such a packet"),
        /// RFC 1812 4.3.2.8.
        RateLimited => Drop("icmp error rate limit"),
        /// No interface has an address to send from.
        NoSource => Drop("no own address to send an icmp error from"),
    }
}

/// Errors a second, and how many at once, as Linux's `icmp_msgs_per_sec` and `icmp_msgs_burst`.
const RATE: u64 = 1000;
const BURST: u64 = 50;
/// Longest error, its IP header included (RFC 1812 section 4.3.2.3).
const LONGEST: usize = 576;
/// Leaves with 64: ip4-rewrite takes one, as of all packets.
const TTL: u8 = 65;
/// New headers: IP and ICMP.
const HEADERS: usize = 28;

/// What the workers together may send.
pub(crate) fn allowance() -> TokenBucket {
    TokenBucket::new(RATE, BURST)
}

/// The node.
pub struct Errors {
    /// Identification of the next packet.
    id: u16,
}

impl Default for Errors {
    fn default() -> Self {
        Errors { id: 1 }
    }
}

impl Each<Cx> for Errors {
    const NAME: &'static str = "icmp4-error";
    type Next = Next;

    fn packet(&mut self, cx: &Cx, out: &mut Emit<'_, Next>, mut d: Desc) {
        let next = self.answer(cx, out, &mut d);
        out.push(next, d);
    }
}

impl Errors {
    fn answer(&mut self, cx: &Cx, out: &mut Emit<'_, Next>, d: &mut Desc) -> Next {
        if d.has(Flag::OURS) || !allowed(out.pool().bytes_of(d), d.l3 as usize) {
            return Next::NotAllowed;
        }
        let Some(source) = source(cx, out.pool(), d) else {
            return Next::NoSource;
        };
        if !cx.limits.icmp4.take(out.now()) {
            return Next::RateLimited;
        }
        out.bufs().cut_chain(d);
        let error = Error(d.argument());
        self.id = self.id.wrapping_add(1);
        let id = self.id;
        let mut p = Pkt::new(out.pool(), d);
        trim(&mut p);
        if !p.shift(-(HEADERS as i32)) {
            return Next::NotAllowed;
        }
        write(&mut p, error, source, id);
        d.mark(Flag::OURS);
        d.set_argument(0);
        Next::Lookup
    }
}

/// Whether an error may be sent about the packet at all.
fn allowed(bytes: &[u8], l3: usize) -> bool {
    let Some(h) = bytes.get(l3..).filter(|h| h.len() >= 20) else {
        return false;
    };
    let group = bytes[0] & 1 != 0;
    let later = u16::from_be_bytes([h[6], h[7]]) & OFFSET != 0;
    // Behind the packet there may be padding, which is no ICMP type.
    let total = usize::from(u16::from_be_bytes([h[2], h[3]]));
    let kind = h.get(20).filter(|_| total > 20);
    // ICMP queries may be answered, errors and what we do not know may not (RFC 1122 section 3.2.2). Linux takes
    // router discovery (9, 10) for errors, too.
    let icmp = h[9] == 1 && !matches!(kind, Some(0 | 8 | 13..=18));
    let address = |at: u8| {
        let at = at as usize;
        u32::from_be_bytes([h[at], h[at + 1], h[at + 2], h[at + 3]])
    };
    !group && !later && !icmp && is_host(address(at::SOURCE)) && is_host(address(at::DESTINATION))
}

/// Whether an address may be a single host's: no multicast, limited broadcast, loopback, nor none at all.
fn is_host(address: u32) -> bool {
    address != 0 && address != u32::MAX && address >> 28 != 0xe && address >> 24 != 127
}

/// The address that the route to the sender names or its interface has (RFC 1812 section 4.3.2.4), else another own one.
fn source(cx: &Cx, pool: &Pool, d: &Desc) -> Option<u32> {
    let bytes = pool.bytes_of(d);
    let at = d.l3 as usize + at::SOURCE as usize;
    let sender = u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?);
    let adjacency = cx.groups.bucket(cx.fib.lookup(sender).group(), 0);
    let of_path = cx.adjacencies.source(adjacency);
    let all = [of_path, cx.snapshot().source];
    all.into_iter().find(|source| *source != 0)
}

/// Cuts Ethernet padding off, and what does not fit into the error.
fn trim(p: &mut Pkt<'_>) {
    let l3 = p.l3 as usize;
    let total = usize::from(u16::from_be_bytes(*p.at::<2>(p.l3 + at::TOTAL_LENGTH)));
    p.truncate(l3 + total.min(LONGEST - HEADERS));
}

/// Writes the headers in front of the packet, which now has room for them.
fn write(p: &mut Pkt<'_>, error: Error, source: u32, id: u16) {
    let l3 = p.l3 as usize;
    let bytes = p.bytes_mut();
    let (tos, total) = (bytes[l3 + HEADERS + 1], (bytes.len() - l3) as u16);
    let mut sender = [0; 4];
    sender.copy_from_slice(&bytes[l3 + HEADERS + 12..][..4]);
    let h = &mut bytes[l3..];
    h[20..28].copy_from_slice(&error.header());
    let sum = wire::checksum::of(&h[20..]);
    h[22..24].copy_from_slice(&sum.to_be_bytes());
    // Precedence "internetwork control" (RFC 1812 section 4.3.2.5), type of service as it came.
    h[0..2].copy_from_slice(&[0x45, tos & 0x1e | 0xc0]);
    h[2..4].copy_from_slice(&total.to_be_bytes());
    h[4..6].copy_from_slice(&id.to_be_bytes());
    h[6..12].copy_from_slice(&[0, 0, TTL, 1, 0, 0]);
    h[12..16].copy_from_slice(&source.to_be_bytes());
    h[16..20].copy_from_slice(&sender);
    let sum = wire::checksum::of(&h[..20]);
    h[10..12].copy_from_slice(&sum.to_be_bytes());
}
