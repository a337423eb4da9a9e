//! Links.

use kernel::netlink::layout::{LinkHeader, UNSPEC, read};
use kernel::netlink::{Attributes, text, u32_at};

use crate::facts::Link;

/// Decodes RTM_NEWLINK and RTM_DELLINK.
pub fn link(payload: &[u8]) -> Option<Link> {
    let (header, attributes): (LinkHeader, _) = read(payload)?;
    if header.family != UNSPEC || header.index == 0 {
        return None; // a bridge's or IPv6's view of the device
    }
    let has = |flag: i32| header.flags & flag as u32 != 0;
    let mut link = Link {
        index: header.index,
        admin_up: has(libc::IFF_UP),
        carrier: has(libc::IFF_LOWER_UP),
        loopback: has(libc::IFF_LOOPBACK),
        ..Link::default()
    };
    for (kind, value) in attributes {
        match kind {
            libc::IFLA_IFNAME => link.name = text(value),
            libc::IFLA_ADDRESS => link.mac = value.try_into().ok(),
            libc::IFLA_MTU => link.mtu = u32_at(value, 0)?,
            libc::IFLA_MAX_MTU => link.max_mtu = u32_at(value, 0).filter(|most| *most > 0),
            libc::IFLA_LINKINFO => {
                link.kind = Attributes(value).find(libc::IFLA_INFO_KIND).map(text);
            }
            libc::IFLA_MASTER => link.master = u32_at(value, 0).filter(|master| *master > 0),
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
