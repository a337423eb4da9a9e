//! Routes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use kernel::netlink::layout::{HopHeader, INET, INET6, RTA_NH_ID, RTAX_MTU, RouteHeader, read};
use kernel::netlink::{Attributes, u16_at, u32_at};
use router::change::Prefix;

use super::{bits, gateway, ip};
use crate::facts::{Gateway, Hop, Hops, Place, Preference, Route, RouteKind, Table};
use crate::netlink::{PROTOCOL, StaticRoute};

/// The route comes from a router advertisement (linux/rtnetlink.h).
const RTPROT_RA: u8 = 9;

/// The position of a new route, by the flags of its message (`NLM_F_*`).
pub fn place(route: &Route, flags: u16) -> Place {
    let has = |flag: i32| i32::from(flags) & flag != 0;
    if has(libc::NLM_F_REPLACE) && !has(libc::NLM_F_CREATE) {
        Place::Replace
    } else if matches!(route.prefix, Prefix::V6(_)) {
        Place::Last // whatever the flags (`fib6_add_rt2node`)
    } else if has(libc::NLM_F_CREATE) && !has(libc::NLM_F_APPEND) {
        Place::First
    } else {
        Place::Last
    }
}

/// Decodes RTM_NEWROUTE and RTM_DELROUTE.
pub fn route(payload: &[u8]) -> Option<Route> {
    let (header, attributes): (RouteHeader, _) = read(payload)?;
    let cloned = header.flags & libc::RTM_F_CLONED != 0;
    let multicast = header.kind == libc::RTN_MULTICAST;
    // One that counts for some senders only is not for us.
    let of_source = header.source_length > 0;
    let (family, length) = (header.family, header.length);
    if length > bits(family)? || cloned || multicast || of_source {
        return None;
    }
    let mut table = u32::from(header.table);
    let mut destination = match family {
        INET => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        _ => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let (mut metric, mut preference) = (0, Preference::Medium);
    let (mut object, mut many, mut mtu, mut source) = (None, None, None, None);
    let mut hop = Hop::on_link(0);
    for (kind, value) in attributes {
        match kind {
            libc::RTA_DST => destination = ip(family, value)?,
            libc::RTA_PRIORITY => metric = u32_at(value, 0)?,
            libc::RTA_TABLE => table = u32_at(value, 0)?,
            libc::RTA_OIF => hop.link = u32_at(value, 0)?,
            libc::RTA_METRICS => mtu = route_mtu(value),
            libc::RTA_PREFSRC => source = Some(ip(family, value)?),
            libc::RTA_PREF => preference = preference_of(value),
            libc::RTA_MULTIPATH => many = Some(multipath(family, value)),
            RTA_NH_ID => object = Some(u32_at(value, 0)?),
            _ => hop_attribute(&mut hop, family, kind, value),
        }
    }
    let prefix = Prefix::new(destination, length).filter(|prefix| !is_reserved(*prefix))?;
    Some(Route {
        prefix,
        table: table_of(family, table)?,
        tos: header.tos,
        metric,
        protocol: header.protocol,
        advertised: (header.protocol == RTPROT_RA).then_some(preference),
        kind: kind_of(family, header.kind),
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
pub fn route_mtu(metrics: &[u8]) -> Option<u16> {
    let mtu = u32_at(Attributes(metrics).find(RTAX_MTU)?, 0)?;
    (mtu > 0).then(|| mtu.try_into().unwrap_or(u16::MAX))
}

/// The router's own answer stands for what is good on one link only, and for groups of IPv6.
fn is_reserved(prefix: Prefix) -> bool {
    match prefix {
        Prefix::V4(_) => false,
        Prefix::V6(prefix) => {
            let first = Ipv6Addr::from(prefix.addr());
            let link_local = first.is_unicast_link_local() && prefix.len() >= 10;
            link_local || first.is_multicast() && prefix.len() >= 8
        }
    }
}

/// RTA_PREF: the two bits of RFC 4191 section 2.1.
fn preference_of(value: &[u8]) -> Preference {
    match value {
        [1] => Preference::High,
        [3] => Preference::Low,
        _ => Preference::Medium,
    }
}

/// The routing table of a number; the kernel asks IPv6's table default only by a rule.
fn table_of(family: u8, number: u32) -> Option<Table> {
    match u8::try_from(number).ok()? {
        libc::RT_TABLE_LOCAL => Some(Table::Local),
        libc::RT_TABLE_MAIN => Some(Table::Main),
        libc::RT_TABLE_DEFAULT if family == INET => Some(Table::Default),
        _ => None,
    }
}

fn kind_of(family: u8, number: u8) -> RouteKind {
    match number {
        libc::RTN_UNICAST => RouteKind::Unicast,
        libc::RTN_LOCAL => RouteKind::Local,
        libc::RTN_ANYCAST if family == INET6 => RouteKind::Local,
        libc::RTN_BROADCAST | libc::RTN_ANYCAST => RouteKind::Broadcast,
        libc::RTN_BLACKHOLE => RouteKind::Blackhole,
        libc::RTN_UNREACHABLE => RouteKind::Unreachable,
        libc::RTN_PROHIBIT => RouteKind::Prohibit,
        _ => RouteKind::Other,
    }
}

fn hop_attribute(hop: &mut Hop, family: u8, kind: u16, value: &[u8]) {
    match kind {
        libc::RTA_GATEWAY if hop.gateway != Gateway::Foreign => {
            hop.gateway = gateway(ip(family, value));
        }
        libc::RTA_VIA if hop.gateway != Gateway::Foreign => hop.gateway = gateway(via(value)),
        libc::RTA_ENCAP_TYPE if u16_at(value, 0) != Some(0) => hop.gateway = Gateway::Foreign,
        _ => {}
    }
}

/// The address of RTA_VIA (`struct rtvia`): its family in 16 bits, and its bytes.
fn via(value: &[u8]) -> Option<IpAddr> {
    let family = u16_at(value, 0)?.try_into().ok()?;
    ip(family, value.get(2..)?)
}

/// The hops of RTA_MULTIPATH: of each a header, its attributes, and padding to 4 bytes.
fn multipath(family: u8, mut bytes: &[u8]) -> Box<[Hop]> {
    // Few routes have more.
    let mut hops = Vec::with_capacity(4);
    while let Some((header, _)) = read::<HopHeader>(bytes) {
        let length = usize::from(header.length);
        let Some((_, attributes)) = bytes.get(..length).and_then(read::<HopHeader>) else {
            break;
        };
        let mut hop = Hop::on_link(header.link);
        hop.weight += u32::from(header.share);
        for (kind, value) in attributes {
            hop_attribute(&mut hop, family, kind, value);
        }
        hops.push(hop);
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    hops.into()
}

/// A route of ours, in whatever table; `None` if it is another's.
pub fn own_route(payload: &[u8]) -> Option<StaticRoute> {
    let (header, attributes): (RouteHeader, _) = read(payload)?;
    let cloned = header.flags & libc::RTM_F_CLONED != 0;
    if header.protocol != PROTOCOL || cloned {
        return None;
    }
    let family = header.family;
    let mut destination = match family {
        INET => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        _ => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let (mut table, mut metric, mut many) = (u32::from(header.table), None, None);
    let mut hop = Hop::on_link(0);
    for (kind, value) in attributes {
        match kind {
            libc::RTA_DST => destination = ip(family, value)?,
            libc::RTA_PRIORITY => metric = u32_at(value, 0),
            libc::RTA_TABLE => table = u32_at(value, 0)?,
            libc::RTA_OIF => hop.link = u32_at(value, 0)?,
            libc::RTA_MULTIPATH => many = Some(multipath(family, value).into_vec()),
            _ => hop_attribute(&mut hop, family, kind, value),
        }
    }
    Some(StaticRoute {
        prefix: Prefix::new(destination, header.length)?,
        table,
        metric,
        hops: match (header.kind, many) {
            (libc::RTN_UNICAST, Some(many)) => many,
            (libc::RTN_UNICAST, None) => vec![hop],
            _ => Vec::new(),
        },
    })
}
