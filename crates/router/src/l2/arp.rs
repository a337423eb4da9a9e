//! ARP in a bridge domain (RFC 826): who has which IPv4 address, learned from what its stations say,
//! so that a request need not go to all.

use std::collections::BTreeMap;
use std::sync::Arc;

use graph::Pkt;
use tables::mac::Key;
use wire::arp::{self, Header};
use wire::eth;

use super::bridges::Domain;
use crate::change::Mac;
use crate::context::Cx;

/// Most addresses of a domain: each change is copied for the workers.
const MOST: usize = 4096;

/// Seconds after which an address is forgotten that is not heard of: as long as many hosts keep
/// what they know by ARP themselves. A station that is forgotten is not answered for before, either.
const AGE: u32 = 20 * 60;

/// The owners of addresses, in the order of these.
pub(crate) type Owners = Box<[(u32, Mac)]>;

/// Who has which address in a domain, and the second when it was last heard.
#[derive(Debug, Default)]
pub(super) struct Table {
    all: BTreeMap<u32, (Mac, u32)>,
    changed: bool,
    owners: Arc<Owners>,
}

impl Table {
    /// A station has said that it has an address. True if that is news. Where there is no room it
    /// stays unknown, and requests for it are flooded.
    pub fn learn(&mut self, address: u32, mac: Mac, now: u32) -> bool {
        if self.all.len() >= MOST && !self.all.contains_key(&address) {
            return false;
        }
        let known = self.all.insert(address, (mac, now));
        let news = known.is_none_or(|(known, _)| known != mac);
        self.changed |= news;
        news
    }

    /// Forgets what was not heard of for long. True if there was any.
    pub fn age(&mut self, now: u32) -> bool {
        let before = self.all.len();
        self.all
            .retain(|_, (_, heard)| now.wrapping_sub(*heard) < AGE);
        let any = self.all.len() < before;
        self.changed |= any;
        any
    }

    /// True if there was news since the last call, which [`owners`](Self::owners) has then.
    pub fn take_changed(&mut self) -> bool {
        let changed = std::mem::take(&mut self.changed);
        if changed {
            let all = self.all.iter();
            self.owners = Arc::new(all.map(|(address, (mac, _))| (*address, *mac)).collect());
        }
        changed
    }

    /// For the workers.
    pub fn owners(&self) -> Arc<Owners> {
        self.owners.clone()
    }

    /// All, by address.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Mac, u32)> {
        self.all
            .iter()
            .map(|(address, (mac, heard))| (*address, *mac, *heard))
    }
}

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
    let [a, b, c, d, e, f] = mac.0;
    let key = Key::new(
        domain.settings.id,
        u64::from_le_bytes([a, b, c, d, e, f, 0, 0]),
    );
    // Behind the same interface it hears the request itself.
    let station = cx.stations.find(key)?.station();
    (*mac != said.sender_mac && station.interface != p.rx_if).then_some(*mac)
}

/// Makes a request the answer that its owner would give.
pub(super) fn answer(p: &mut Pkt<'_>, said: &Header, owner: Mac) {
    *p.header_mut::<Header>(eth::LEN as u8) = said.reply(owner);
    let frame = p.header_mut::<eth::Header>(0);
    (frame.dst, frame.src) = (said.sender_mac, owner);
}
