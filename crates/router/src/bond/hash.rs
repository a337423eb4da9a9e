//! Hashes of frames, by which they are spread over the members of a bond.

use graph::Pkt;
use wire::vlan::{self, Tag};
use wire::{eth, ip4, ip6};

use crate::Family;

/// The headers that are hashed. What is not IP is hashed by its Ethernet addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Headers {
    /// Ethernet addresses.
    L2,
    /// These and IP addresses.
    L23,
    /// IP addresses, protocol and ports; of fragments and other protocols without ports.
    L34,
}

impl Headers {
    /// As configured.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Headers::L2 => "l2",
            Headers::L23 => "l23",
            Headers::L34 => "l34",
        }
    }
}

/// VLAN tags that are skipped on the way to an IP header.
const TAGS: usize = 2;

/// Where the network header of a frame is, behind its tags and the type that says what it is.
#[inline(always)]
pub(crate) fn network_at(p: &Pkt<'_>) -> u8 {
    let at = |tags: usize| vlan::AT + tags * vlan::LEN;
    let tags = (0..TAGS).take_while(|n| p.header::<Tag>(at(*n) as u8).is_tag());
    (at(tags.count()) + size_of::<u16>()) as u8
}

/// The family of the network header at `at`, behind the type that says what it is; `None`: it is
/// another's, or cut off.
#[inline(always)]
pub(crate) fn family(p: &Pkt<'_>, at: u8) -> Option<Family> {
    let ethertype = u16::from_be_bytes(*p.header(at - size_of::<u16>() as u8));
    let room = p.len().saturating_sub(usize::from(at));
    match ethertype {
        eth::IP4 if room >= ip4::LEN => Some(Family::V4),
        eth::IP6 if room >= ip6::LEN => Some(Family::V6),
        _ => None,
    }
}

/// The hash of a frame. It moves the offset of the network header to where that is.
#[inline(always)]
pub(crate) fn hash(p: &mut Pkt<'_>, headers: Headers) -> u32 {
    if headers == Headers::L2 {
        return addresses(p);
    }
    p.set_l3(network_at(p));
    let flow = match (family(p, p.l3), headers) {
        (Some(Family::V4), Headers::L34) => return crate::ip4::lookup::flow_hash(p),
        (Some(Family::V6), Headers::L34) => return crate::ip6::lookup::flow_hash(p),
        (Some(Family::V4), _) => {
            let header = p.header::<ip4::Header>(p.l3);
            tables::hash::flow5(header.src(), header.dst(), 0, 0, 0)
        }
        (Some(Family::V6), _) => {
            let header = p.header::<ip6::Header>(p.l3);
            tables::hash::flow6(&header.src, &header.dst, 0, 0, 0, 0)
        }
        (None, _) => 0,
    };
    flow ^ addresses(p)
}

/// The hash of a frame's Ethernet addresses.
#[inline(always)]
fn addresses(p: &Pkt<'_>) -> u32 {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *p.header::<[u8; 12]>(0);
    let to = u32::from_be_bytes([c, d, e, f]);
    let from = u32::from_be_bytes([i, j, k, l]);
    let begins = [u16::from_be_bytes([a, b]), u16::from_be_bytes([g, h])];
    tables::hash::flow5(from, to, 0, begins[1], begins[0])
}
