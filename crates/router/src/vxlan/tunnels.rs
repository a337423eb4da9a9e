//! The tunnels, as workers see them.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use tables::mem::Cells;
use tables::tunnels;
use wire::vxlan::MAX_VNI;

use crate::change::{InterfaceId, Kind};
use crate::state::Links;

/// A tunnel: what its packets have around their frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tunnel {
    pub(super) local: IpAddr,
    pub(super) remote: IpAddr,
    pub(super) vni: u32,
}

impl Tunnel {
    /// A tunnel between two addresses of one family, with a network identifier (VNI) of 24 bits.
    /// `None`: they are none.
    pub fn new(local: IpAddr, remote: IpAddr, vni: u32) -> Option<Self> {
        let fits = local.is_ipv4() == remote.is_ipv4() && vni <= MAX_VNI;
        fits.then_some(Tunnel { local, remote, vni })
    }

    /// The own end.
    pub const fn local(&self) -> IpAddr {
        self.local
    }

    /// The other end.
    pub const fn remote(&self) -> IpAddr {
        self.remote
    }

    /// The network identifier.
    pub const fn vni(&self) -> u32 {
        self.vni
    }

    /// Where a table looks for it first: a hash.
    fn hash(&self) -> u32 {
        match (self.remote, self.local) {
            (IpAddr::V4(remote), IpAddr::V4(local)) => {
                let [high, low] = [(self.vni >> 16) as u16, self.vni as u16];
                tables::hash::flow5(remote.to_bits(), local.to_bits(), 4, high, low)
            }
            (remote, local) => {
                let [remote, local] = [remote, local].map(|end| mapped(end).octets());
                let [high, low] = [(self.vni >> 16) as u16, self.vni as u16];
                tables::hash::flow6(&remote, &local, 0, 6, high, low)
            }
        }
    }
}

/// The address in IPv6.
fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// A tunnel, and its interface.
type Entry = (Tunnel, InterfaceId);

/// The tunnels that workers see.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tunnels {
    /// By the number of the interface, as far as there are any.
    by_number: Arc<[Option<Tunnel>]>,
    /// By what packets have around their frames: each where its hash says, or at the next free
    /// place, of at least twice as many as there are tunnels; a power of two.
    by_packet: Arc<[Option<Entry>]>,
}

impl Tunnels {
    fn new(all: &[Entry]) -> Self {
        let last = all.iter().map(|(_, id)| usize::from(*id)).max();
        let mut by_number = vec![None; last.map_or(0, |last| last + 1)];
        let places = match all.len() {
            0 => 0,
            count => (2 * count).next_power_of_two(),
        };
        let mut by_packet = vec![None; places];
        for entry @ (tunnel, id) in all {
            by_number[usize::from(*id)] = Some(*tunnel);
            let mut at = tunnel.hash() as usize % places;
            while by_packet[at].is_some() {
                at = (at + 1) % places;
            }
            by_packet[at] = Some(*entry);
        }
        Tunnels {
            by_number: by_number.into(),
            by_packet: by_packet.into(),
        }
    }

    /// True if there are none.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_packet.is_empty()
    }

    /// The tunnel that an interface is.
    #[inline(always)]
    pub(super) fn of(&self, interface: InterfaceId) -> Option<&Tunnel> {
        self.by_number.get(usize::from(interface))?.as_ref()
    }

    /// The interface of a tunnel.
    #[inline(always)]
    pub(super) fn interface(&self, tunnel: &Tunnel) -> Option<InterfaceId> {
        let mask = self.by_packet.len().checked_sub(1)?;
        let mut at = tunnel.hash() as usize & mask;
        // There are free places.
        while let Some((known, interface)) = &self.by_packet[at] {
            if known == tunnel {
                return Some(*interface);
            }
            at = (at + 1) & mask;
        }
        None
    }
}

/// The tunnels.
pub(crate) struct Vxlans {
    /// As workers see them.
    tunnels: Tunnels,
    /// As XDP programs do.
    table: tunnels::Tunnels,
}

impl Vxlans {
    /// None, in the zeroed memory of their table.
    pub(crate) fn new(memory: Cells) -> Self {
        Vxlans {
            tunnels: Tunnels::default(),
            table: tunnels::Tunnels::new(memory),
        }
    }

    /// The tunnels, for workers.
    pub(crate) fn tunnels(&self) -> Tunnels {
        self.tunnels.clone()
    }

    /// Takes in what has become of an interface. True if there are other tunnels now.
    pub(crate) fn follow(&mut self, links: &Links, id: InterfaceId) -> bool {
        let now = links.interfaces.get(&id).and_then(|i| tunnel(i.kind));
        if self.tunnels.of(id) == now.as_ref() {
            return false;
        }
        let all = links.interfaces.values();
        let all: Vec<_> = all.filter_map(|i| Some((tunnel(i.kind)?, i.id))).collect();
        self.tunnels = Tunnels::new(&all);
        let now = now.map(|tunnel| tunnels::Tunnel {
            local: mapped(tunnel.local),
            remote: mapped(tunnel.remote),
            vni: tunnel.vni,
        });
        self.table.set(id, now.as_ref());
        true
    }
}

/// The tunnel that an interface of this kind is.
pub(super) const fn tunnel(kind: Kind) -> Option<Tunnel> {
    match kind {
        Kind::Vxlan { tunnel, .. } => Some(tunnel),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tunnel(number: u32) -> Tunnel {
        let [local, remote]: [IpAddr; 2] = match number % 2 {
            0 => [[10, 0, 0, 1].into(), [10, 1, 0, (number % 7) as u8].into()],
            _ => ["2001:db8::1", "2001:db8::2"].map(|text| text.parse().unwrap()),
        };
        Tunnel::new(local, remote, number).unwrap()
    }

    #[test]
    fn each_is_found_and_no_other() {
        for count in [0, 1, 2, 3, 64, 1000] {
            let all: Vec<_> = (0..count).map(|n| (tunnel(n), n as u16 + 1)).collect();
            let tunnels = Tunnels::new(&all);
            assert_eq!(tunnels.is_empty(), count == 0);
            for (tunnel, id) in &all {
                assert_eq!(tunnels.interface(tunnel), Some(*id));
                assert_eq!(tunnels.of(*id), Some(tunnel));
            }
            for other in count..count + 100 {
                assert_eq!(tunnels.interface(&tunnel(other)), None);
                assert_eq!(tunnels.of(other as u16 + 1), None);
            }
            assert_eq!(tunnels.of(0), None);
        }
    }

    #[test]
    fn ends_are_of_one_family_and_networks_have_24_bits() {
        let [four, six]: [IpAddr; 2] = ["10.0.0.1", "::1"].map(|text| text.parse().unwrap());
        assert_eq!(Tunnel::new(four, six, 1), None);
        assert_eq!(Tunnel::new(six, four, 1), None);
        assert_eq!(Tunnel::new(four, four, MAX_VNI + 1), None);
        assert!(Tunnel::new(six, six, MAX_VNI).is_some());
    }
}
