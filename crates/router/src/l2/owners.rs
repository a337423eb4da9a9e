//! The owners of IPv4 addresses in a bridge domain, learned from what stations say by ARP (RFC 826).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::change::Mac;

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
