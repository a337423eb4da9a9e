//! ARP in a bridge domain (RFC 826): a request whose answer is known need not go to all.

use graph::Pkt;
use wire::arp::{self, Header};
use wire::eth;

use super::bridges::{Domain, key};
use crate::change::Mac;
use crate::context::Cx;

/// What a frame says, if it is ARP that its sender may have sent.
pub(super) fn said(p: &Pkt<'_>) -> Option<Header> {
    let at = eth::LEN as u8;
    if p.header::<eth::Header>(0).ethertype() != eth::ARP
        || p.len() < eth::LEN + size_of::<Header>()
    {
        return None;
    }
    let header = p.header::<Header>(at);
    // One that speaks for somebody else is not believed, and not answered.
    let own = header.sender_mac == p.header::<eth::Header>(0).src;
    (own && header.is_ip4_over_ethernet()).then_some(*header)
}

/// The owner of the address that a request asks for; `None`: it is to be flooded. An announcement
/// asks for its sender's own. A probe (RFC 5227) has no sender, and is answered like any other.
pub(super) fn owner(cx: &Cx, p: &Pkt<'_>, domain: &Domain, said: &Header) -> Option<Mac> {
    let target = said.target();
    if said.operation() != arp::REQUEST || target == said.sender() {
        return None;
    }
    let at = domain
        .owners
        .binary_search_by_key(&target, |(address, _)| *address);
    let (_, mac) = domain.owners.get(at.ok()?)?;
    // Behind the same interface it hears the request itself.
    let station = cx.stations.find(key(domain.settings.id, *mac))?.station();
    (*mac != said.sender_mac && station.interface != p.rx_if).then_some(*mac)
}

/// Makes a request the answer that its owner would give.
pub(super) fn answer(p: &mut Pkt<'_>, said: &Header, owner: Mac) {
    *p.header_mut::<Header>(eth::LEN as u8) = said.reply(owner);
    let frame = p.header_mut::<eth::Header>(0);
    (frame.dst, frame.src) = (said.sender_mac, owner);
}
