//! ip4-input: the header checks of RFC 1812 section 5.2.2, and addresses that no packet may have
//! (section 5.3.7).

use graph::{Pkt, Stage, edges};
use wire::ip4::{Header, LEN};
use wire::{checksum, eth};

use crate::context::Cx;

edges! {
    /// Ways out of ip4-input.
    pub enum Next {
        /// The header is good.
        Lookup => Node("ip4-lookup"),
        /// Options, multicast or limited broadcast: the host's kernel is the slow path.
        Punt => Node("punt") as Punted,
        /// The header is not all there.
        Truncated => Drop("ip4 header is cut off"),
        /// The version is not 4.
        BadVersion => Drop("ip4 version is not 4"),
        /// Shorter than 20 bytes.
        BadHeaderLength => Drop("ip4 header length is below 20 bytes"),
        /// Total length below the header's, or beyond the frame's.
        BadLength => Drop("ip4 total length does not fit header and frame"),
        /// The checksum is wrong.
        BadChecksum => Drop("ip4 header checksum is wrong"),
        /// Source that no packet on a wire may have.
        MartianSource => Drop("ip4 source is no unicast address"),
        /// Destination that no packet on a wire may have.
        MartianDestination => Drop("ip4 destination is loopback or zero"),
    }
}

/// The stage.
pub struct Input;

impl Stage<Cx> for Input {
    const NAME: &'static str = "ip4-input";
    type Next = Next;
    const THRU: Next = Next::Lookup;

    #[inline(always)]
    fn packet(&mut self, _cx: &Cx, p: &mut Pkt<'_>) -> Next {
        let h = p.header::<Header>(p.l3);
        let room = (p.len()).wrapping_sub(p.l3 as usize);
        if !h.is_plain() {
            return unusual(p);
        }
        let total = usize::from(h.total_len());
        // A chained packet is odd even if its first buffer has the length that the header says.
        if total < LEN || total != room || p.is_chained() {
            return odd_length(p, total);
        }
        if !h.checksum_ok() {
            return Next::BadChecksum;
        }
        addresses(h)
    }
}

/// Sorts out the addresses that Linux calls martians, whatever the routes say.
#[inline(always)]
fn addresses(h: &Header) -> Next {
    // In nearly all packets, both begin with 1 to 223 and not with 127.
    let plain = |address: u32| {
        let first = (address >> 24) as u8;
        first.wrapping_sub(1) < 223 && first != 127
    };
    if plain(h.src()) && plain(h.dst()) {
        Next::Lookup
    } else {
        odd_addresses(h)
    }
}

#[cold]
fn odd_addresses(h: &Header) -> Next {
    let (source, destination) = (h.src(), h.dst());
    if source == 0 || source == u32::MAX || source >> 24 == 127 || source >> 28 == 0xe {
        return if source == 0 && destination == u32::MAX {
            Next::Punt
        } else {
            Next::MartianSource
        };
    }
    match destination {
        0 => Next::MartianDestination,
        d if d >> 24 == 127 => Next::MartianDestination,
        d if d >> 28 == 0xe || d == u32::MAX => Next::Punt,
        _ => Next::Lookup,
    }
}

/// A first byte that does not say version 4 and a header of 20 bytes.
#[cold]
fn unusual(p: &Pkt<'_>) -> Next {
    let l3 = p.l3 as usize;
    let packet = p.bytes().get(l3..).unwrap_or_default();
    let Some((h, _)) = Header::parse(packet) else {
        return Next::Truncated;
    };
    if h.version() != 4 {
        return Next::BadVersion;
    }
    let length = h.header_len();
    if length < LEN {
        return Next::BadHeaderLength;
    }
    let total = usize::from(h.total_len());
    if total < length || total > p.total() - l3 || length > packet.len() {
        return Next::BadLength;
    }
    if checksum::of(&packet[..length]) != 0 {
        return Next::BadChecksum;
    }
    Next::Punt
}

/// A first segment that is not as long as the header says: padded, wrong, or chained.
#[inline(never)]
fn odd_length(p: &mut Pkt<'_>, total: usize) -> Next {
    let l3 = p.l3 as usize;
    if p.len() < l3 + LEN {
        return Next::Truncated;
    }
    if total < LEN || total > p.total() - l3 {
        return Next::BadLength;
    }
    if !p.header::<Header>(p.l3).checksum_ok() {
        return Next::BadChecksum;
    }
    // Padding would be sent, too, even beyond the next link's MTU.
    p.truncate((l3 + total).max(eth::MIN_FRAME));
    addresses(p.header(p.l3))
}
