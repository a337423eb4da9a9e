//! The host's own addresses by device, in the kernel's order, which decides which one the host
//! sends from.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use router::change::Address;

/// Addresses of all devices.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    by_link: BTreeMap<u32, Vec<Marked>>,
    generation: u32,
    dumping: bool,
}

#[derive(Debug)]
struct Marked {
    address: Address,
    generation: u32,
}

impl Addresses {
    /// Those of a device.
    pub fn of(&self, link: u32) -> Vec<Address> {
        let list = self.by_link.get(&link).into_iter().flatten();
        list.map(|known| known.address).collect()
    }

    /// The source addresses for devices that have no suitable one of their own: the first of the
    /// first device, `lo` before all others.
    pub fn sources(&self) -> (Option<Ipv4Addr>, Option<Ipv6Addr>) {
        let all = self.by_link.values().flatten().map(|known| known.address);
        let fit = |a: &Address| !a.secondary && !a.tentative && !a.deprecated && a.scope == 0;
        let mut all = all.filter(fit).map(|a| a.address);
        let ip4 = all.clone().find_map(|address| match address {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(_) => None,
        });
        let ip6 = all.find_map(|address| match address {
            IpAddr::V4(_) => None,
            IpAddr::V6(address) => Some(address),
        });
        (ip4, ip6)
    }

    /// Inserts an address, in place of what was known of it. News goes where the kernel puts a new
    /// address among those of its family (`__inet_insert_ifa`, `ipv6_link_dev_addr`); a dump shows
    /// the order as it is.
    pub fn insert(&mut self, link: u32, address: Address) {
        let generation = self.generation;
        let list = self.by_link.entry(link).or_default();
        let known = list.iter().position(|known| same(&known.address, &address));
        if let Some(at) = known {
            if !self.dumping && list[at].address == address {
                return;
            }
            list.remove(at);
        }
        let kin = |known: &Marked| known.address.address.is_ipv4() == address.address.is_ipv4();
        let unseen = |known: &Marked| kin(known) && known.generation != generation;
        let narrow = |known: &Marked| kin(known) && known.address.scope >= address.scope;
        let before_it = |known: &Marked| narrow(known) && !known.address.secondary;
        let at = match address.address {
            _ if self.dumping => list.iter().position(unseen).unwrap_or(list.len()),
            IpAddr::V6(_) => list.iter().position(narrow).unwrap_or(list.len()),
            IpAddr::V4(_) if address.secondary => list.len(),
            IpAddr::V4(_) => list.iter().rposition(before_it).map_or(0, |at| at + 1),
        };
        list.insert(
            at,
            Marked {
                address,
                generation,
            },
        );
    }

    /// Removes an address.
    pub fn remove(&mut self, link: u32, address: &Address) {
        self.retain(link, |known| !same(&known.address, address));
    }

    /// Removes all addresses of a device.
    pub fn remove_link(&mut self, link: u32) {
        self.by_link.remove(&link);
    }

    /// A dump begins: what is inserted from now on is marked as seen.
    pub fn begin(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.dumping = true;
    }

    /// The dump has ended.
    pub fn end(&mut self) {
        self.dumping = false;
    }

    /// The devices with addresses that the dump has not shown.
    pub fn unseen(&self) -> Vec<u32> {
        let unseen = |list: &Vec<Marked>| list.iter().any(|k| k.generation != self.generation);
        let links = self.by_link.iter().filter(|(_, list)| unseen(list));
        links.map(|(link, _)| *link).collect()
    }

    /// Removes the addresses of a device that the dump has not shown.
    pub fn sweep(&mut self, link: u32) {
        let generation = self.generation;
        self.retain(link, |known| known.generation == generation);
    }

    fn retain(&mut self, link: u32, keep: impl FnMut(&Marked) -> bool) {
        if let Some(list) = self.by_link.get_mut(&link) {
            list.retain(keep);
            if list.is_empty() {
                self.by_link.remove(&link);
            }
        }
    }
}

/// Returns true if the kernel takes the two for the same address.
fn same(a: &Address, b: &Address) -> bool {
    let rest = (a.peer, a.length) == (b.peer, b.length);
    a.address == b.address && (rest || a.address.is_ipv6())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> Address {
        Address::new([10, 0, 0, last], 24)
    }

    fn lasts(addresses: &Addresses) -> Vec<u8> {
        let all = addresses.of(1).into_iter();
        all.map(|a| match a.address {
            IpAddr::V4(address) => address.octets()[3],
            IpAddr::V6(address) => address.octets()[15],
        })
        .collect()
    }

    #[test]
    fn order_is_the_kernels() {
        let mut all = Addresses::default();
        let secondary = Address {
            secondary: true,
            ..address(2)
        };
        let narrow = Address {
            scope: 253,
            ..address(3)
        };
        for new in [address(1), secondary, narrow, address(4), address(1)] {
            all.insert(1, new);
        }
        assert_eq!(lasts(&all), [3, 1, 4, 2]);
        all.remove(1, &address(1));
        all.insert(1, address(2)); // the kernel has promoted it
        assert_eq!(lasts(&all), [3, 4, 2]);
        assert_eq!(all.sources().0, Some([10, 0, 0, 4].into()));
    }

    #[test]
    fn a_dump_says_what_the_order_is() {
        let mut all = Addresses::default();
        for last in [1, 2, 3] {
            all.insert(1, address(last));
        }
        all.begin();
        for last in [2, 4, 1] {
            all.insert(1, address(last));
        }
        assert_eq!(lasts(&all), [2, 4, 1, 3]);
        all.end();
        assert_eq!(all.unseen(), [1]);
        all.sweep(1);
        assert_eq!(lasts(&all), [2, 4, 1]);
        all.insert(0, address(9));
        assert_eq!(all.sources().0, Some([10, 0, 0, 9].into()));
    }
}
