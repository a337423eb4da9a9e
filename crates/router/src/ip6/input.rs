//! ip6-input: what every node checks of a header (RFC 8200 section 3), and addresses that no packet
//! may have or that do not leave their link (RFC 4291 section 2).

use std::net::Ipv6Addr;

use graph::{Pkt, Stage, edges};
use wire::ip6::{Header, LEN};
use wire::{eth, ip};

use crate::context::Cx;

edges! {
    /// Ways out of ip6-input.
    pub enum Next {
        /// The header is good.
        Lookup => Node("ip6-lookup"),
        /// Hop-by-hop options, multicast, an address that is good on its link only or none at all:
        /// the host's kernel is the slow path.
        Punt => Node("punt") as Punted,
        /// The header is not all there.
        Truncated => Drop("ip6 header is cut off"),
        /// The version is not 6.
        BadVersion => Drop("ip6 version is not 6"),
        /// Payload length beyond the frame's.
        BadLength => Drop("ip6 payload length does not fit the frame"),
        /// Source that no packet on a wire may have.
        MartianSource => Drop("ip6 source is multicast or loopback"),
        /// Destination that no packet on a wire may have.
        MartianDestination => Drop("ip6 destination is loopback or unspecified"),
    }
}

/// The stage.
pub struct Input;

impl Stage<Cx> for Input {
    const NAME: &'static str = "ip6-input";
    type Next = Next;
    const THRU: Next = Next::Lookup;

    #[inline(always)]
    fn packet(&mut self, _cx: &Cx, p: &mut Pkt<'_>) -> Next {
        let h = p.header::<Header>(p.l3);
        let room = p.len().wrapping_sub(p.l3 as usize);
        // A chained packet is odd even if its first buffer has the length that the header says.
        if h.version() != 6 || h.total_len() != room || p.is_chained() {
            return odd(p);
        }
        header(h)
    }
}

/// Sorts out what is not for the fast path in a header that is all there.
#[inline(always)]
fn header(h: &Header) -> Next {
    // Beside multicast and link-local addresses (ff, fe) and those that stand for something else
    // (00), of which nearly no packet has one.
    let plain = |address: &[u8; 16]| address[0].wrapping_sub(1) < 0xfd;
    if plain(&h.src) && plain(&h.dst) && h.next_header != ip::HOP_BY_HOP {
        Next::Lookup
    } else {
        odd_header(h)
    }
}

#[cold]
fn odd_header(h: &Header) -> Next {
    let (source, destination) = (Ipv6Addr::from(h.src), Ipv6Addr::from(h.dst));
    if source.is_multicast() || source.is_loopback() {
        return Next::MartianSource;
    }
    if destination.is_loopback() || destination.is_unspecified() {
        return Next::MartianDestination;
    }
    let stays = |address: Ipv6Addr| address.is_unicast_link_local();
    let is_slow = destination.is_multicast()
        || stays(destination)
        || stays(source)
        || source.is_unspecified()
        || h.next_header == ip::HOP_BY_HOP;
    if is_slow { Next::Punt } else { Next::Lookup }
}

/// Another version, or a first segment that is not as long as the header says: padded, wrong, or
/// chained.
#[inline(never)]
fn odd(p: &mut Pkt<'_>) -> Next {
    let l3 = p.l3 as usize;
    if p.len() < l3 + LEN {
        return Next::Truncated;
    }
    let h = p.header::<Header>(p.l3);
    if h.version() != 6 {
        return Next::BadVersion;
    }
    // The length of a jumbogram (RFC 2675) is an option: the kernel's.
    if h.payload_len() == 0 && h.next_header == ip::HOP_BY_HOP {
        return odd_header(h);
    }
    let total = h.total_len();
    if total > p.total() - l3 {
        return Next::BadLength;
    }
    // Padding would be sent, too, even beyond the next link's MTU.
    p.truncate((l3 + total).max(eth::MIN_FRAME));
    header(p.header(p.l3))
}
