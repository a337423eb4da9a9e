//! Source addresses of what the router itself sends.
//!
//! A route may name one (RTA_PREFSRC). Without it the choice is Linux's. For IPv4
//! (`inet_select_addr`) of the egress interface's addresses, secondary ones left out, it is the
//! first on the network of the next hop, or else the first; for IPv6 (`ipv6_dev_get_saddr`, RFC
//! 6724 section 5) the one of them that is most like the destination. Where the interface has none,
//! it is one of the whole host's.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::change::{Address, InterfaceId};

/// RT_SCOPE_UNIVERSE: what a gateway's route demands of its source address.
const UNIVERSE: u8 = 0;
/// RT_SCOPE_LINK: what suffices where the destination is on the link.
const LINK: u8 = 253;

/// The own addresses that there are to choose from.
#[derive(Debug, Default, Clone)]
pub struct Sources {
    /// By interface, in the kernel's order.
    pub(crate) addresses: BTreeMap<InterfaceId, Vec<Address>>,
    /// Address to use where an interface has none.
    pub(crate) ip4: Option<Ipv4Addr>,
    pub(crate) ip6: Option<Ipv6Addr>,
}

impl Sources {
    /// The addresses of an interface that may be chosen.
    fn usable(&self, interface: InterfaceId) -> impl Iterator<Item = &Address> + Clone {
        let all = self.addresses.get(&interface).into_iter().flatten();
        all.filter(|a| !a.secondary && !a.tentative)
    }

    /// All IPv4 addresses, of whatever interface.
    pub(crate) fn every_ip4(&self) -> impl Iterator<Item = Ipv4Addr> + Clone {
        let all = self.addresses.values().flatten();
        let all = all.filter_map(|address| match address.address {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(_) => None,
        });
        all.chain(self.ip4)
    }

    /// All IPv4 addresses of an interface.
    pub(crate) fn all_ip4(&self, interface: InterfaceId) -> impl Iterator<Item = Ipv4Addr> {
        let all = self.addresses.get(&interface).into_iter().flatten();
        all.filter_map(|address| match address.address {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(_) => None,
        })
    }

    /// The source for IPv4 packets by an interface to `gateway`, or to any host on the link.
    pub(crate) fn ip4(&self, interface: InterfaceId, gateway: Option<IpAddr>) -> Option<Ipv4Addr> {
        let widest = gateway.map_or(LINK, |_| UNIVERSE);
        let all = self.usable(interface).filter(|a| a.scope <= widest);
        let mut all = all.filter_map(|a| match (a.address, a.peer) {
            (IpAddr::V4(address), IpAddr::V4(peer)) => Some((address, peer, a.length)),
            _ => None,
        });
        let first = all.clone().next();
        let near = match gateway {
            Some(IpAddr::V4(gateway)) => {
                all.find(|&(_, peer, length)| common(peer, gateway) >= u32::from(length))
            }
            _ => None,
        };
        near.or(first).map(|(address, ..)| address).or(self.ip4)
    }

    /// The source for IPv6 packets by an interface to `destination`.
    pub(crate) fn ip6(&self, interface: InterfaceId, destination: Ipv6Addr) -> Option<Ipv6Addr> {
        let widest = if destination.is_unicast_link_local() {
            LINK
        } else {
            UNIVERSE
        };
        let all = self.usable(interface).filter_map(|a| match a.address {
            IpAddr::V6(address) if a.scope <= widest => Some((a, address)),
            _ => None,
        });
        // The rules of RFC 6724 in their order: scope, deprecated, label, longest match.
        let rank = |&(a, address): &(&Address, Ipv6Addr)| {
            let alike = label(address) == label(destination);
            let common = (address.to_bits() ^ destination.to_bits()).leading_zeros();
            // Beyond the link's prefix, likeness means nothing.
            let common = common.min(a.length.into());
            (a.scope, !a.deprecated, alike, common)
        };
        // Of equal ones the first.
        let best = all.reduce(|best, next| {
            if rank(&next) > rank(&best) {
                next
            } else {
                best
            }
        });
        let fresh = best
            .filter(|(a, _)| !a.deprecated)
            .map(|(_, address)| address);
        fresh.or(self.ip6).or(best.map(|(_, address)| address))
    }
}

/// Number of leading bits that two addresses have in common.
fn common(a: Ipv4Addr, b: Ipv4Addr) -> u32 {
    (a.to_bits() ^ b.to_bits()).leading_zeros()
}

/// Labels of the default policy table (RFC 6724 section 2.1) that an own address can have.
fn label(address: Ipv6Addr) -> u8 {
    match address.segments() {
        [0x2002, ..] => 2,
        [0x2001, 0, ..] => 5,
        [first, ..] if first & 0xfe00 == 0xfc00 => 13,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8, length: u8) -> Address {
        Address::new([10, 0, 0, last], length)
    }

    fn chosen(addresses: &[Address], gateway: Option<u8>) -> Option<u8> {
        let sources = Sources {
            addresses: [(1, addresses.to_vec())].into(),
            ip4: Some([10, 0, 0, 99].into()),
            ip6: None,
        };
        let gateway = gateway.map(|last| [10, 0, 0, last].into());
        sources.ip4(1, gateway).map(|a| a.octets()[3])
    }

    #[test]
    fn the_first_on_the_network_of_the_next_hop_else_the_first() {
        let both = [address(1, 28), address(17, 28)];
        assert_eq!(chosen(&both, Some(2)), Some(1));
        assert_eq!(chosen(&both, Some(18)), Some(17));
        assert_eq!(chosen(&both, Some(200)), Some(1));
        assert_eq!(chosen(&both, None), Some(1));
        assert_eq!(chosen(&[address(5, 0)], Some(2)), Some(5));
    }

    #[test]
    fn what_a_point_to_point_link_leads_to_is_its_peer() {
        let peer = |own, peer| Address {
            peer: [10, 0, 0, peer].into(),
            ..address(own, 32)
        };
        assert_eq!(chosen(&[peer(1, 2), peer(3, 4)], Some(4)), Some(3));
    }

    #[test]
    fn neither_secondary_nor_too_narrow() {
        let secondary = Address {
            secondary: true,
            ..address(1, 24)
        };
        let narrow = Address {
            scope: LINK,
            ..address(2, 24)
        };
        let host = Address {
            scope: 254,
            ..address(3, 24)
        };
        let all = [secondary, host, narrow, address(4, 24)];
        assert_eq!(chosen(&all, Some(9)), Some(4));
        assert_eq!(chosen(&all, None), Some(2));
        assert_eq!(chosen(&all[..3], Some(9)), Some(99), "the host's");
        assert_eq!(chosen(&[], None), Some(99));
    }

    /// The choice of IPv6 among these, each with whether it is deprecated.
    fn chosen6(addresses: &[(&str, bool)], destination: &str) -> String {
        let address = |&(text, deprecated): &(&str, bool)| {
            let address: Ipv6Addr = text.parse().unwrap();
            let link_local = address.is_unicast_link_local();
            Address {
                scope: if link_local { LINK } else { UNIVERSE },
                deprecated,
                ..Address::new(address, 64)
            }
        };
        let sources = Sources {
            addresses: [(1, addresses.iter().map(address).collect())].into(),
            ip4: None,
            ip6: "2001:db8:ff::1".parse().ok(),
        };
        let chosen = sources.ip6(1, destination.parse().unwrap());
        chosen.unwrap().to_string()
    }

    #[test]
    fn of_ip6_the_scope_then_age_then_label_then_the_longest_match() {
        let (local, ula) = (("fe80::1", false), ("fd00::1", false));
        let (near, far) = (("2001:db8:1::1", false), ("2001:db8:8000::1", false));
        let old = |(text, _)| (text, true);
        let to = "2001:db8:1::99";
        assert_eq!(chosen6(&[local, far, near], to), near.0);
        assert_eq!(chosen6(&[local, near, far], "2001:db8:8000:5::1"), far.0);
        assert_eq!(chosen6(&[near, local], "fe80::99"), local.0);
        assert_eq!(chosen6(&[ula, old(near), far], to), far.0);
        assert_eq!(chosen6(&[ula, near], "fd99::1"), ula.0);
        assert_eq!(chosen6(&[near, ula], "fd99::1"), ula.0);
        assert_eq!(
            chosen6(&[far, near], "3fff::1"),
            far.0,
            "the first of equal ones"
        );
        assert_eq!(
            chosen6(&[local, old(near)], to),
            "2001:db8:ff::1",
            "the host's"
        );
        assert_eq!(chosen6(&[local], to), "2001:db8:ff::1");
    }

    #[test]
    fn an_address_that_may_not_be_the_only_one_is_no_source() {
        let own: Ipv6Addr = "2001:db8::1".parse().unwrap();
        let mut sources = Sources::default();
        let tentative = Address {
            tentative: true,
            ..Address::new(own, 64)
        };
        sources.addresses.insert(1, vec![tentative]);
        assert_eq!(sources.ip6(1, own), None);
        sources.addresses.insert(1, vec![Address::new(own, 64)]);
        assert_eq!(sources.ip6(1, own), Some(own));
    }
}
