//! Source addresses of what the router itself sends.
//!
//! A route may name one (RTA_PREFSRC). Without it the choice is Linux's (`inet_select_addr`): of
//! the egress interface's addresses, secondary ones left out, the first on the network of the next
//! hop, or else the first; of the whole host's if the interface has none.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use crate::change::{Address, InterfaceId};

/// RT_SCOPE_UNIVERSE: what a gateway's route demands of its source address.
const UNIVERSE: u8 = 0;
/// RT_SCOPE_LINK: what suffices where the destination is on the link.
const LINK: u8 = 253;

/// The own addresses that there are to choose from.
#[derive(Debug, Default)]
pub struct Sources {
    /// By interface, in the kernel's order.
    pub(crate) addresses: BTreeMap<InterfaceId, Vec<Address>>,
    /// Where an interface has none.
    pub(crate) fallback: Option<Ipv4Addr>,
}

impl Sources {
    /// The source for packets by an interface to `gateway`, or to any host on the link.
    pub(crate) fn select(&self, interface: InterfaceId, gateway: Option<u32>) -> Option<Ipv4Addr> {
        let widest = gateway.map_or(LINK, |_| UNIVERSE);
        let mut all = self
            .addresses
            .get(&interface)
            .into_iter()
            .flatten()
            .filter(|a| !a.secondary && a.scope <= widest);
        let first = all.clone().next();
        let near = gateway.and_then(|gateway| all.find(|a| on_network(a, gateway)));
        near.or(first).map(|a| a.address).or(self.fallback)
    }
}

fn on_network(a: &Address, host: u32) -> bool {
    let mask = u32::MAX.checked_shl(32 - u32::from(a.length)).unwrap_or(0);
    (u32::from(a.peer) ^ host) & mask == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8, length: u8) -> Address {
        Address::new([10, 0, 0, last].into(), length)
    }

    fn chosen(addresses: &[Address], gateway: Option<u8>) -> Option<u8> {
        let sources = Sources {
            addresses: [(1, addresses.to_vec())].into(),
            fallback: Some([10, 0, 0, 99].into()),
        };
        let gateway = gateway.map(|last| u32::from_be_bytes([10, 0, 0, last]));
        sources.select(1, gateway).map(|a| a.octets()[3])
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
}
