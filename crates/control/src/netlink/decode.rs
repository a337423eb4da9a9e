//! From rtnetlink messages to facts about the kernel.
//!
//! Layouts and numbers: linux/rtnetlink.h, linux/if_link.h, linux/if_addr.h, linux/neighbour.h,
//! linux/nexthop.h.

use std::net::Ipv4Addr;

use kernel::netlink::{Attributes, Message, be32_at, text, u16_at, u32_at};
use router::change::Address;

use crate::facts::{
    Event, Gateway, Hop, Hops, Link, Neighbor, Nexthop, Place, Route, RouteKind, Table,
};

// What libc lacks of linux/rtnetlink.h.
/// RTM_NEWNEXTHOP.
pub const NEW_NEXTHOP: u16 = 104;
/// RTM_DELNEXTHOP.
pub const DEL_NEXTHOP: u16 = 105;
/// RTM_GETNEXTHOP.
pub const GET_NEXTHOP: u16 = 106;
const RTA_NH_ID: u16 = 30;
/// Within RTA_METRICS.
const RTAX_MTU: u16 = 2;

const ROUTE_HEADER: usize = 12;

/// What a message says, or nothing if it is malformed or of no concern here.
pub fn event(message: &Message<'_>) -> Option<Event> {
    let payload = message.payload;
    match message.kind {
        libc::RTM_NEWLINK => link(payload).map(Event::Link),
        libc::RTM_DELLINK => link(payload).map(|link| Event::LinkGone(link.index)),
        libc::RTM_NEWADDR => address(payload).map(|(link, address)| Event::Address(link, address)),
        libc::RTM_DELADDR => {
            address(payload).map(|(link, address)| Event::AddressGone(link, address))
        }
        libc::RTM_NEWNEIGH => neighbor(payload).map(Event::Neighbor),
        libc::RTM_DELNEIGH => neighbor(payload).map(Event::NeighborGone),
        libc::RTM_NEWROUTE => route(payload).map(|route| Event::Route(route, place(message.flags))),
        libc::RTM_DELROUTE => route(payload).map(Event::RouteGone),
        NEW_NEXTHOP => nexthop(payload).map(|(id, nexthop)| Event::Nexthop(id, nexthop)),
        DEL_NEXTHOP => nexthop(payload).map(|(id, _)| Event::NexthopGone(id)),
        _ => None,
    }
}

fn place(flags: u16) -> Place {
    let has = |flag: i32| i32::from(flags) & flag != 0;
    if has(libc::NLM_F_REPLACE) && !has(libc::NLM_F_CREATE) {
        Place::Replace
    } else if has(libc::NLM_F_CREATE) && !has(libc::NLM_F_APPEND) {
        Place::First
    } else {
        Place::Last
    }
}

fn link(payload: &[u8]) -> Option<Link> {
    let family = *payload.first()?;
    if i32::from(family) != libc::AF_UNSPEC {
        return None; // a bridge's or IPv6's view of the device
    }
    let flags = u32_at(payload, 8)?;
    let mut link = Link {
        index: u32_at(payload, 4).filter(|&index| index != 0)?,
        name: String::new(),
        altnames: Vec::new(),
        mac: None,
        mtu: 0,
        admin_up: flags & libc::IFF_UP as u32 != 0,
        carrier: flags & libc::IFF_LOWER_UP as u32 != 0,
        loopback: flags & libc::IFF_LOOPBACK as u32 != 0,
        kind: None,
        bus: None,
        bus_address: None,
    };
    for (kind, value) in Attributes::behind(payload, 16) {
        match kind {
            libc::IFLA_IFNAME => link.name = text(value),
            libc::IFLA_ADDRESS => link.mac = value.try_into().ok(),
            libc::IFLA_MTU => link.mtu = u32_at(value, 0)?,
            libc::IFLA_LINKINFO => link.kind = Attributes(value).find(1).map(text),
            libc::IFLA_PARENT_DEV_BUS_NAME => link.bus = Some(text(value)),
            libc::IFLA_PARENT_DEV_NAME => link.bus_address = Some(text(value)),
            libc::IFLA_PROP_LIST => {
                let names = Attributes(value).filter(|(kind, _)| *kind == libc::IFLA_ALT_IFNAME);
                link.altnames = names.map(|(_, name)| text(name)).collect();
            }
            _ => {}
        }
    }
    Some(link)
}

/// `struct ifaddrmsg`: family, prefix length, flags, scope, index of the device.
fn address(payload: &[u8]) -> Option<(u32, Address)> {
    let &[family, length, flags, scope] = payload.first_chunk()?;
    if i32::from(family) != libc::AF_INET || length > 32 {
        return None;
    }
    // On a point-to-point link IFA_ADDRESS (1) is the peer and IFA_LOCAL (2) the own address.
    let attributes = Attributes::behind(payload, 8);
    let find = |kind| Some(Ipv4Addr::from(be32_at(attributes.clone().find(kind)?, 0)?));
    let (peer, local) = (find(1), find(2));
    Some((
        u32_at(payload, 4)?,
        Address {
            address: local.or(peer)?,
            peer: peer.or(local)?,
            length,
            scope,
            secondary: u32::from(flags) & libc::IFA_F_SECONDARY != 0,
        },
    ))
}

fn neighbor(payload: &[u8]) -> Option<Neighbor> {
    const USABLE: u16 = libc::NUD_REACHABLE
        | libc::NUD_STALE
        | libc::NUD_DELAY
        | libc::NUD_PROBE
        | libc::NUD_NOARP
        | libc::NUD_PERMANENT;
    if i32::from(*payload.first()?) != libc::AF_INET || payload.get(10)? & libc::NTF_PROXY != 0 {
        return None;
    }
    let state = u16_at(payload, 8)?;
    let attributes = Attributes::behind(payload, 12);
    let address = Ipv4Addr::from(be32_at(attributes.clone().find(1)?, 0)?);
    let mac = attributes
        .find(2)
        .and_then(|mac| mac.try_into().ok())
        .filter(|_| state & USABLE != 0);
    Some(Neighbor {
        link: u32_at(payload, 4)?,
        address,
        mac,
    })
}

fn route(payload: &[u8]) -> Option<Route> {
    let header = payload.get(..ROUTE_HEADER)?;
    let (length, tos, kind) = (header[1], header[3], header[7]);
    let cloned = u32_at(header, 8)? & libc::RTM_F_CLONED != 0;
    if i32::from(header[0]) != libc::AF_INET || length > 32 || cloned || kind == libc::RTN_MULTICAST
    {
        return None;
    }
    let mut table = u32::from(header[4]);
    let (mut destination, mut metric) = (0, 0);
    let (mut object, mut many, mut mtu, mut source) = (None, None, None, None);
    let mut hop = Hop {
        link: 0,
        gateway: Gateway::OnLink,
        weight: 1,
    };
    for (kind, value) in Attributes(&payload[ROUTE_HEADER..]) {
        match kind {
            libc::RTA_DST => destination = be32_at(value, 0)?,
            libc::RTA_PRIORITY => metric = u32_at(value, 0)?,
            libc::RTA_TABLE => table = u32_at(value, 0)?,
            libc::RTA_OIF => hop.link = u32_at(value, 0)?,
            libc::RTA_METRICS => mtu = route_mtu(value),
            libc::RTA_PREFSRC => source = Some(Ipv4Addr::from(be32_at(value, 0)?)),
            libc::RTA_MULTIPATH => many = Some(multipath(value)),
            RTA_NH_ID => object = Some(u32_at(value, 0)?),
            _ => hop_attribute(&mut hop, kind, value),
        }
    }
    let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
    Some(Route {
        destination: destination & mask,
        length,
        table: table_of(table)?,
        tos,
        metric,
        kind: kind_of(kind),
        mtu,
        source,
        hops: match (object, many) {
            (Some(id), _) => Hops::Object(id),
            (None, Some(many)) => Hops::Many(many),
            (None, None) => Hops::One(hop),
        },
    })
}

/// The MTU among a route's metrics; the kernel reads 0 as none.
fn route_mtu(metrics: &[u8]) -> Option<u16> {
    let mtu = u32_at(Attributes(metrics).find(RTAX_MTU)?, 0)?;
    (mtu > 0).then(|| mtu.try_into().unwrap_or(u16::MAX))
}

fn table_of(number: u32) -> Option<Table> {
    match number {
        255 => Some(Table::Local),
        254 => Some(Table::Main),
        253 => Some(Table::Default),
        _ => None,
    }
}

fn kind_of(number: u8) -> RouteKind {
    match number {
        libc::RTN_UNICAST => RouteKind::Unicast,
        libc::RTN_LOCAL => RouteKind::Local,
        libc::RTN_BROADCAST | libc::RTN_ANYCAST => RouteKind::Broadcast,
        libc::RTN_BLACKHOLE => RouteKind::Blackhole,
        libc::RTN_UNREACHABLE => RouteKind::Unreachable,
        libc::RTN_PROHIBIT => RouteKind::Prohibit,
        _ => RouteKind::Other,
    }
}

fn hop_attribute(hop: &mut Hop, kind: u16, value: &[u8]) {
    match kind {
        libc::RTA_GATEWAY if hop.gateway != Gateway::Foreign => {
            hop.gateway = be32_at(value, 0).map_or(Gateway::Foreign, |ip| Gateway::Via(ip.into()));
        }
        libc::RTA_VIA => hop.gateway = Gateway::Foreign,
        libc::RTA_ENCAP_TYPE if u16_at(value, 0) != Some(0) => hop.gateway = Gateway::Foreign,
        _ => {}
    }
}

/// The hops of RTA_MULTIPATH: `struct rtnexthop` (length, flags, share - 1, interface index),
/// attributes, and so on.
fn multipath(mut bytes: &[u8]) -> Box<[Hop]> {
    let mut hops = Vec::with_capacity(4);
    while let (Some(length), Some(&share), Some(link)) =
        (u16_at(bytes, 0), bytes.get(3), u32_at(bytes, 4))
    {
        let length = usize::from(length);
        if length < 8 || length > bytes.len() {
            break;
        }
        let mut hop = Hop {
            link,
            gateway: Gateway::OnLink,
            weight: u32::from(share) + 1,
        };
        for (kind, value) in Attributes(&bytes[8..length]) {
            hop_attribute(&mut hop, kind, value);
        }
        hops.push(hop);
        bytes = &bytes[((length + 3) & !3).min(bytes.len())..];
    }
    hops.into()
}

/// `struct nhmsg` and its attributes.
fn nexthop(payload: &[u8]) -> Option<(u32, Nexthop)> {
    let family = *payload.first()?;
    let (mut id, mut group, mut blackhole, mut foreign) = (None, None, false, false);
    let mut hop = Hop {
        link: 0,
        gateway: Gateway::OnLink,
        weight: 1,
    };
    for (kind, value) in Attributes::behind(payload, 8) {
        match kind {
            1 => id = u32_at(value, 0),
            2 => group = Some(value.chunks_exact(8).filter_map(member).collect()),
            4 => blackhole = true,
            5 => hop.link = u32_at(value, 0)?,
            6 if i32::from(family) == libc::AF_INET => {
                hop.gateway = Gateway::Via(be32_at(value, 0)?.into())
            }
            6 | 7 | 11 => foreign = true, // an IPv6 gateway, an encapsulation, for a bridge's FDB
            _ => {}
        }
    }
    let nexthop = match group {
        Some(members) => Nexthop::Group(members),
        None if blackhole => Nexthop::Blackhole,
        None if foreign => Nexthop::Foreign,
        None => Nexthop::Hop(hop),
    };
    Some((id?, nexthop))
}

/// `struct nexthop_grp`: identifier, weight - 1 in a low and a high byte.
fn member(bytes: &[u8]) -> Option<(u32, u32)> {
    let weight = u32::from(*bytes.get(4)?) | u32::from(*bytes.get(5)?) << 8;
    Some((u32_at(bytes, 0)?, weight + 1))
}

#[cfg(test)]
mod tests {
    use kernel::netlink::{Builder, Messages};
    use proptest::prelude::*;

    use super::*;

    fn decoded(bytes: &[u8]) -> Option<Event> {
        event(&Messages(bytes).next()?)
    }

    fn route_header(length: u8) -> [u8; 12] {
        [2, length, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0]
    }

    #[test]
    fn a_route_with_a_gateway() {
        let bytes = Builder::new(libc::RTM_NEWROUTE, &route_header(24))
            .flags(0x600)
            .attribute(libc::RTA_DST, &[10, 1, 2, 77])
            .number(libc::RTA_OIF, 7)
            .attribute(libc::RTA_GATEWAY, &[192, 0, 2, 1])
            .number(libc::RTA_PRIORITY, 20)
            .attribute(libc::RTA_METRICS, &metrics(&[(RTAX_MTU, 1400), (4, 77)]))
            .attribute(libc::RTA_PREFSRC, &[10, 9, 9, 9])
            .finish(0);
        let Some(Event::Route(route, place)) = decoded(&bytes) else {
            panic!("not a route")
        };
        assert_eq!(route.source, Some([10, 9, 9, 9].into()));
        assert_eq!(
            (route.destination, route.length, route.metric, route.mtu),
            (0x0a01_0200, 24, 20, Some(1400))
        );
        assert_eq!(place, Place::First);
        let gateway = Gateway::Via(Ipv4Addr::new(192, 0, 2, 1));
        assert_eq!(
            route.hops,
            Hops::One(Hop {
                link: 7,
                gateway,
                weight: 1
            })
        );
    }

    /// What stands in RTA_METRICS.
    fn metrics(values: &[(u16, u32)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (kind, value) in values {
            bytes.extend_from_slice(&8u16.to_ne_bytes());
            bytes.extend_from_slice(&kind.to_ne_bytes());
            bytes.extend_from_slice(&value.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn route_mtus() {
        assert_eq!(route_mtu(&metrics(&[(1, 9), (RTAX_MTU, 1280)])), Some(1280));
        assert_eq!(route_mtu(&metrics(&[(RTAX_MTU, 0)])), None);
        assert_eq!(route_mtu(&metrics(&[(RTAX_MTU, 70_000)])), Some(u16::MAX));
        assert_eq!(route_mtu(&metrics(&[(4, 1280)])), None);
        assert_eq!(route_mtu(&[8, 0, 2, 0, 1]), None);
    }

    #[test]
    fn a_multipath_route() {
        let mut paths = Vec::new();
        for (link, share) in [(3u32, 0u8), (4, 9)] {
            paths.extend_from_slice(&16u16.to_ne_bytes());
            paths.extend_from_slice(&[0, share]);
            paths.extend_from_slice(&link.to_ne_bytes());
            paths.extend_from_slice(&8u16.to_ne_bytes());
            paths.extend_from_slice(&libc::RTA_GATEWAY.to_ne_bytes());
            paths.extend_from_slice(&[10, 0, 0, link as u8]);
        }
        let bytes = Builder::new(libc::RTM_NEWROUTE, &route_header(0))
            .attribute(libc::RTA_MULTIPATH, &paths)
            .finish(0);
        let Some(Event::Route(
            Route {
                hops: Hops::Many(hops),
                ..
            },
            _,
        )) = decoded(&bytes)
        else {
            panic!()
        };
        assert_eq!(
            hops.iter()
                .map(|hop| (hop.link, hop.weight))
                .collect::<Vec<_>>(),
            [(3, 1), (4, 10)]
        );
        assert_eq!(hops[1].gateway, Gateway::Via(Ipv4Addr::new(10, 0, 0, 4)));
    }

    #[test]
    fn an_address_with_its_peer_scope_and_rank() {
        let header = [2, 32, libc::IFA_F_SECONDARY as u8, 253, 7, 0, 0, 0];
        let message = |attributes: &[(u16, [u8; 4])]| {
            let message = Builder::new(libc::RTM_NEWADDR, &header);
            let add = |m: Builder, (kind, value): &(u16, [u8; 4])| m.attribute(*kind, value);
            decoded(&attributes.iter().fold(message, add).finish(0))
        };
        let (own, peer) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let address = Address {
            scope: 253,
            secondary: true,
            ..Address::new(own.into(), 32)
        };
        let far = Address {
            peer: peer.into(),
            ..address
        };
        assert_eq!(
            message(&[(1, peer), (2, own)]),
            Some(Event::Address(7, far))
        );
        assert_eq!(message(&[(1, own)]), Some(Event::Address(7, address)));
        assert_eq!(message(&[(2, own)]), Some(Event::Address(7, address)));
        assert_eq!(message(&[]), None);
    }

    #[test]
    fn routes_of_other_tables_families_and_the_cache_are_passed_over() {
        for (at, value) in [
            (0, 10u8),
            (1, 33),
            (4, 100),
            (7, libc::RTN_MULTICAST),
            (9, 2),
        ] {
            let mut header = route_header(8);
            header[at] = value;
            assert_eq!(
                decoded(&Builder::new(libc::RTM_NEWROUTE, &header).finish(0)),
                None,
                "{at}"
            );
        }
    }

    #[test]
    fn a_neighbor_being_resolved_has_no_address() {
        for (state, usable) in [
            (libc::NUD_REACHABLE, true),
            (libc::NUD_FAILED, false),
            (libc::NUD_INCOMPLETE, false),
        ] {
            let mut header = [2, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0];
            header[8..10].copy_from_slice(&state.to_ne_bytes());
            let bytes = Builder::new(libc::RTM_NEWNEIGH, &header)
                .attribute(1, &[10, 0, 0, 1])
                .attribute(2, &[2, 0, 0, 0, 0, 1])
                .finish(0);
            let Some(Event::Neighbor(neighbor)) = decoded(&bytes) else {
                panic!()
            };
            assert_eq!(neighbor.mac.is_some(), usable);
        }
    }

    /// Whether what a message is taken for, if for anything, is something that can be.
    fn is_possible(kind: u16, payload: &[u8]) -> bool {
        let message = Message {
            kind,
            flags: 0,
            sequence: 0,
            payload,
        };
        match event(&message) {
            Some(Event::Route(r, _) | Event::RouteGone(r)) => {
                let host = u32::MAX.checked_shr(r.length.into()).unwrap_or(0);
                r.length <= 32 && r.destination & host == 0
            }
            Some(Event::Address(_, a) | Event::AddressGone(_, a)) => a.length <= 32,
            _ => true,
        }
    }

    proptest! {
        #[test]
        fn any_payload_is_decoded_or_refused(kind in 16u16..110, payload in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(is_possible(kind, &payload));
        }

        #[test]
        fn damaged_routes_are_decoded_or_refused(at in 0usize..60, value: u8, cut in 0usize..60) {
            let mut bytes = Builder::new(libc::RTM_NEWROUTE, &route_header(24))
                .attribute(libc::RTA_DST, &[10, 1, 2, 0])
                .attribute(libc::RTA_MULTIPATH, &[16, 0, 0, 0, 3, 0, 0, 0, 8, 0, 5, 0, 10, 0, 0, 1])
                .finish(0);
            let at = 16 + at % (bytes.len() - 16);
            bytes[at] = value;
            let end = bytes.len() - cut.min(bytes.len() - 16);
            prop_assert!(is_possible(libc::RTM_NEWROUTE, &bytes[16..end]));
        }
    }
}
