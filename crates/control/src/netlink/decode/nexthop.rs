//! Next-hop objects.

use kernel::netlink::layout::{
    Member, NHA_BLACKHOLE, NHA_ENCAP_TYPE, NHA_FDB, NHA_GATEWAY, NHA_GROUP, NHA_ID, NHA_OIF,
    NexthopHeader, read,
};
use kernel::netlink::u32_at;

use super::{gateway, ip};
use crate::facts::{Gateway, Hop, Nexthop};

/// Decodes RTM_NEWNEXTHOP and RTM_DELNEXTHOP: an object and its number.
pub fn nexthop(payload: &[u8]) -> Option<(u32, Nexthop)> {
    let (header, attributes): (NexthopHeader, _) = read(payload)?;
    let (mut id, mut group, mut blackhole, mut foreign) = (None, None, false, false);
    let mut hop = Hop::on_link(0);
    for (kind, value) in attributes {
        match kind {
            NHA_ID => id = u32_at(value, 0),
            NHA_GROUP => group = Some(members(value)),
            NHA_BLACKHOLE => blackhole = true,
            NHA_OIF => hop.link = u32_at(value, 0)?,
            NHA_GATEWAY => hop.gateway = gateway(ip(header.family, value)),
            NHA_ENCAP_TYPE | NHA_FDB => foreign = true,
            _ => {}
        }
    }
    let nexthop = match group {
        Some(members) => Nexthop::Group(members),
        None if blackhole => Nexthop::Blackhole,
        None if foreign || hop.gateway == Gateway::Foreign => Nexthop::Foreign,
        None => Nexthop::Hop(hop),
    };
    Some((id?, nexthop))
}

/// The members of a group, each with its weight.
fn members(mut bytes: &[u8]) -> Vec<(u32, u32)> {
    let mut members = Vec::with_capacity(bytes.len() / size_of::<Member>());
    while let Some((member, rest)) = read::<Member>(bytes) {
        let weight = u16::from_le_bytes([member.weight, member.weight_high]);
        members.push((member.id, u32::from(weight) + 1));
        bytes = rest.0;
    }
    members
}
