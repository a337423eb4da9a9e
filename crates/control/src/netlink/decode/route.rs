//! Routes.

use kernel::netlink::layout::{HopHeader, INET, RTA_NH_ID, RTAX_MTU, RouteHeader, read};
use kernel::netlink::{Attributes, u16_at, u32_at};

use super::ip4;
use crate::facts::{Gateway, Hop, Hops, Place, Route, RouteKind, Table};

/// Where a new route stands, by the flags of its message (`NLM_F_*`).
pub fn place(flags: u16) -> Place {
    let has = |flag: i32| i32::from(flags) & flag != 0;
    if has(libc::NLM_F_REPLACE) && !has(libc::NLM_F_CREATE) {
        Place::Replace
    } else if has(libc::NLM_F_CREATE) && !has(libc::NLM_F_APPEND) {
        Place::First
    } else {
        Place::Last
    }
}

/// What RTM_NEWROUTE and RTM_DELROUTE say.
pub fn route(payload: &[u8]) -> Option<Route> {
    let (header, attributes): (RouteHeader, _) = read(payload)?;
    let cloned = header.flags & libc::RTM_F_CLONED != 0;
    let multicast = header.kind == libc::RTN_MULTICAST;
    if header.family != INET || header.length > 32 || cloned || multicast {
        return None;
    }
    let mut table = u32::from(header.table);
    let (mut destination, mut metric) = (0, 0);
    let (mut object, mut many, mut mtu, mut source) = (None, None, None, None);
    let mut hop = Hop::on_link(0);
    for (kind, value) in attributes {
        match kind {
            libc::RTA_DST => destination = ip4(value)?.to_bits(),
            libc::RTA_PRIORITY => metric = u32_at(value, 0)?,
            libc::RTA_TABLE => table = u32_at(value, 0)?,
            libc::RTA_OIF => hop.link = u32_at(value, 0)?,
            libc::RTA_METRICS => mtu = route_mtu(value),
            libc::RTA_PREFSRC => source = Some(ip4(value)?),
            libc::RTA_MULTIPATH => many = Some(multipath(value)),
            RTA_NH_ID => object = Some(u32_at(value, 0)?),
            _ => hop_attribute(&mut hop, kind, value),
        }
    }
    let mask = u32::MAX
        .checked_shl(32 - u32::from(header.length))
        .unwrap_or(0);
    Some(Route {
        destination: destination & mask,
        length: header.length,
        table: table_of(table)?,
        tos: header.tos,
        metric,
        kind: kind_of(header.kind),
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

fn table_of(number: u32) -> Option<Table> {
    match u8::try_from(number).ok()? {
        libc::RT_TABLE_LOCAL => Some(Table::Local),
        libc::RT_TABLE_MAIN => Some(Table::Main),
        libc::RT_TABLE_DEFAULT => Some(Table::Default),
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
            hop.gateway = ip4(value).map_or(Gateway::Foreign, Gateway::Via);
        }
        libc::RTA_VIA => hop.gateway = Gateway::Foreign,
        libc::RTA_ENCAP_TYPE if u16_at(value, 0) != Some(0) => hop.gateway = Gateway::Foreign,
        _ => {}
    }
}

/// The hops of RTA_MULTIPATH: of each a header, its attributes, and padding to 4 bytes.
fn multipath(mut bytes: &[u8]) -> Box<[Hop]> {
    let mut hops = Vec::with_capacity(4);
    while let Some((header, _)) = read::<HopHeader>(bytes) {
        let length = usize::from(header.length);
        let Some((_, attributes)) = bytes.get(..length).and_then(read::<HopHeader>) else {
            break;
        };
        let mut hop = Hop::on_link(header.link);
        hop.weight += u32::from(header.share);
        for (kind, value) in attributes {
            hop_attribute(&mut hop, kind, value);
        }
        hops.push(hop);
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    hops.into()
}
