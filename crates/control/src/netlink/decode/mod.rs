//! From route messages to facts about the kernel, a file for each kind of message.

mod address;
mod link;
mod neighbor;
mod nexthop;
mod route;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use kernel::netlink::Message;
use kernel::netlink::layout::{INET, INET6, RTM_DELNEXTHOP, RTM_NEWNEXTHOP};

use crate::facts::{Event, Gateway};

pub(super) use address::{Held, address as device_address, held_address};
pub(super) use link::link;
pub(super) use neighbor::neighbor;
pub(super) use route::own_route;

/// Decodes a message; `None` if it is malformed or of no concern here.
pub fn event(message: &Message<'_>) -> Option<Event> {
    let payload = message.payload;
    match message.kind {
        libc::RTM_NEWLINK => link(payload).map(Event::Link),
        libc::RTM_DELLINK => link(payload).map(|link| Event::LinkGone(link.index)),
        libc::RTM_NEWADDR => address::address(payload).map(|(link, a)| Event::Address(link, a)),
        libc::RTM_DELADDR => address::address(payload).map(|(link, a)| Event::AddressGone(link, a)),
        libc::RTM_NEWNEIGH => neighbor(payload).map(Event::Neighbor),
        libc::RTM_DELNEIGH => neighbor(payload).map(Event::NeighborGone),
        libc::RTM_NEWROUTE => {
            let route = route::route(payload)?;
            let place = route::place(&route, message.flags);
            Some(Event::Route(route, place))
        }
        libc::RTM_DELROUTE => route::route(payload).map(Event::RouteGone),
        RTM_NEWNEXTHOP => nexthop::nexthop(payload).map(|(id, hop)| Event::Nexthop(id, hop)),
        RTM_DELNEXTHOP => nexthop::nexthop(payload).map(|(id, _)| Event::NexthopGone(id)),
        _ => None,
    }
}

/// An address of a family (`AF_*`).
fn ip(family: u8, bytes: &[u8]) -> Option<IpAddr> {
    match family {
        INET => Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into()),
        INET6 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into()),
        _ => None,
    }
}

/// The bits of a family's addresses; `None` if it is neither IPv4 nor IPv6.
fn bits(family: u8) -> Option<u8> {
    match family {
        INET => Some(32),
        INET6 => Some(128),
        _ => None,
    }
}

/// The gateway of an address. IPv4 that is mapped into IPv6 is for tunnels of the kernel.
fn gateway(address: Option<IpAddr>) -> Gateway {
    match address {
        Some(IpAddr::V6(ip6)) if ip6.to_ipv4_mapped().is_some() => Gateway::Foreign,
        Some(address) => Gateway::Via(address),
        None => Gateway::Foreign,
    }
}

#[cfg(test)]
mod dumps;
#[cfg(test)]
mod tests;
