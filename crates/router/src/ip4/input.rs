//! ip4-input: the header checks of RFC 1812 section 5.2.2, and addresses that nobody may use (section 5.3.7).

use crate::context::Cx;
use graph::{Pkt, Stage, edges};

edges! {
    /// Ways out of ip4-input.
    pub enum Next {
        /// The header is good.
        Lookup => Node("ip4-lookup"),
        /// Options, multicast or limited broadcast: the host is the slow path.
        Punt => Node("punt"),
        /// The frame holds no whole header.
        Truncated => Drop("ip4 header is cut off"),
        /// The version is not 4.
        BadVersion => Drop("ip4 version is not 4"),
        /// Shorter than 20 bytes.
        BadHeaderLength => Drop("ip4 header length is below 20 bytes"),
        /// Total length below the header's, or beyond the frame's.
        BadLength => Drop("ip4 total length does not fit header and frame"),
        /// The sum is wrong.
        BadChecksum => Drop("ip4 header checksum is wrong"),
        /// Source that no packet on a wire may have.
        MartianSource => Drop("ip4 source is no unicast address"),
        /// Destination that no packet on a wire may have.
        MartianDestination => Drop("ip4 destination is loopback or zero"),
    }
}

/// Shortest Ethernet frame without its checksum: shorter packets are padded to it.
const SHORTEST: usize = 60;

/// The stage.
pub struct Input;

impl Stage<Cx> for Input {
    const NAME: &'static str = "ip4-input";
    type Next = Next;
    const THRU: Next = Next::Lookup;

    #[inline(always)]
    fn packet(&mut self, _cx: &Cx, p: &mut Pkt<'_>) -> Next {
        let h = p.at::<20>(p.l3);
        let room = (p.len()).wrapping_sub(p.l3 as usize);
        if h[0] != 0x45 {
            return unusual(p);
        }
        let total = u16::from_be_bytes([h[2], h[3]]) as usize;
        // A first buffer as long as the header says, and more behind it: odd too.
        if total < 20 || total != room || p.is_chained() {
            return odd_length(p, total);
        }
        if wire::checksum::ip4(h) != 0 {
            return Next::BadChecksum;
        }
        addresses(h)
    }
}

/// Addresses that Linux too calls martians whatever the routes say.
#[inline(always)]
fn addresses(h: &[u8; 20]) -> Next {
    let (source, destination) = (h[12], h[16]);
    // First byte 1 to 223 and not 127, both: nearly all packets.
    let plain = |first: u8| first.wrapping_sub(1) < 223 && first != 127;
    if plain(source) && plain(destination) {
        Next::Lookup
    } else {
        odd_addresses(h)
    }
}

#[cold]
fn odd_addresses(h: &[u8; 20]) -> Next {
    let source = u32::from_be_bytes([h[12], h[13], h[14], h[15]]);
    let destination = u32::from_be_bytes([h[16], h[17], h[18], h[19]]);
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

/// Not version 4 with a 20 byte header.
#[cold]
fn unusual(p: &Pkt<'_>) -> Next {
    let l3 = p.l3 as usize;
    let Some(h) = p.bytes().get(l3..).filter(|h| h.len() >= 20) else {
        return Next::Truncated;
    };
    if h[0] >> 4 != 4 {
        return Next::BadVersion;
    }
    let length = usize::from(h[0] & 15) * 4;
    if length < 20 {
        return Next::BadHeaderLength;
    }
    let total = usize::from(u16::from_be_bytes([h[2], h[3]]));
    if total < length || total > p.total() - l3 || length > h.len() {
        return Next::BadLength;
    }
    if wire::checksum::of(&h[..length]) != 0 {
        return Next::BadChecksum;
    }
    Next::Punt
}

/// The first segment is not as long as the header says: padded, wrong, or going on in further buffers.
#[inline(never)]
fn odd_length(p: &mut Pkt<'_>, total: usize) -> Next {
    let l3 = p.l3 as usize;
    if p.len() < l3 + 20 {
        return Next::Truncated;
    }
    if total < 20 || total > p.total() - l3 {
        return Next::BadLength;
    }
    if wire::checksum::ip4(p.at::<20>(p.l3)) != 0 {
        return Next::BadChecksum;
    }
    // What is behind the packet would go out too, beyond what the next link takes.
    p.truncate((l3 + total).max(SHORTEST));
    addresses(p.at::<20>(p.l3))
}
