//! Addresses.

use std::net::IpAddr;

use kernel::netlink::layout::{AddressHeader, IFA_PROTO, read};
use kernel::netlink::u32_at;
use router::change::Address;

use super::{bits, ip};
use crate::netlink::PROTOCOL;

/// Decodes RTM_NEWADDR and RTM_DELADDR: an address and the index of its device.
pub fn address(payload: &[u8]) -> Option<(u32, Address)> {
    let (header, attributes): (AddressHeader, _) = read(payload)?;
    if header.length > bits(header.family)? {
        return None;
    }
    // On a point-to-point link IFA_ADDRESS is the peer and IFA_LOCAL the own address.
    let find = |kind| ip(header.family, attributes.clone().find(kind)?);
    let (peer, local) = (find(libc::IFA_ADDRESS), find(libc::IFA_LOCAL));
    // The header has room for the first eight flags only.
    let flags = attributes
        .clone()
        .find(libc::IFA_FLAGS)
        .and_then(|value| u32_at(value, 0))
        .unwrap_or(header.flags.into());
    let has = |flag: u32| flags & flag != 0;
    let is_ip4 = local.or(peer)?.is_ipv4();
    let address = Address {
        address: local.or(peer)?,
        peer: peer.or(local)?,
        length: header.length,
        scope: header.scope,
        // Of IPv6 the same flag means a temporary address (RFC 8981).
        secondary: is_ip4 && has(libc::IFA_F_SECONDARY),
        tentative: has(libc::IFA_F_TENTATIVE) && !has(libc::IFA_F_OPTIMISTIC),
        deprecated: has(libc::IFA_F_DEPRECATED),
    };
    Some((header.link, address))
}

/// An address of a device, and what the kernel says of it.
pub struct Held {
    /// The kernel's index of the device.
    pub link: u32,
    /// The address.
    pub address: IpAddr,
    /// Length of its prefix.
    pub length: u8,
    /// The program that has given it (IFA_PROTO); 0 if that is not said.
    pub protocol: u8,
    /// The kernel has made it by itself: it is link-local or autoconfigured.
    pub by_kernel: bool,
    /// No other host has answered to it, and the kernel has asked.
    pub verified: bool,
}

/// An address of either family that a device has.
pub fn held_address(payload: &[u8]) -> Option<Held> {
    let (header, attributes): (AddressHeader, _) = read(payload)?;
    let local = attributes.clone().find(libc::IFA_LOCAL);
    let address = ip(
        header.family,
        local.or_else(|| attributes.clone().find(libc::IFA_ADDRESS))?,
    )?;
    let protocol = attributes
        .find(IFA_PROTO)
        .and_then(|value| value.first().copied())
        .unwrap_or(0);
    let has = |flags| u32::from(header.flags) & flags != 0;
    // Where a link-local one carries no mark of ours, nobody knows whether the kernel has made it.
    let given = header.scope != libc::RT_SCOPE_LINK || protocol == PROTOCOL;
    let given = address.is_ipv4() || has(libc::IFA_F_PERMANENT) && given;
    Some(Held {
        link: header.link,
        address,
        length: header.length,
        protocol,
        by_kernel: !given,
        verified: !has(libc::IFA_F_TENTATIVE | libc::IFA_F_DADFAILED),
    })
}
