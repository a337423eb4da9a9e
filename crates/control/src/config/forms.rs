//! Forms of values: Ethernet addresses, addresses, names.

use std::net::IpAddr;
use std::path::PathBuf;

use router::change::Mac;

use super::Address;

/// A namespace is named as under /run/netns, or by its path.
pub(super) fn netns(name: &str) -> PathBuf {
    if name.contains('/') {
        name.into()
    } else {
        PathBuf::from("/run/netns").join(name)
    }
}

/// Six groups of two hex digits or three of four, separated by `:`, `-` or nothing.
pub(super) fn mac(text: &str) -> Option<Mac> {
    let separator = text.chars().find(|c| !c.is_ascii_hexdigit());
    let digits = match separator {
        None => text.to_owned(),
        Some(separator @ (':' | '-')) => {
            let groups: Vec<&str> = text.split(separator).collect();
            let even = |count, digits| {
                groups.len() == count && groups.iter().all(|group| group.len() == digits)
            };
            (even(6, 2) || even(3, 4)).then(|| groups.concat())?
        }
        Some(_) => return None,
    };
    if digits.len() != 12 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let bits = u64::from_str_radix(&digits, 16).ok()?.to_be_bytes();
    Mac::try_from(&bits[2..]).ok()
}

/// The address, and whether its spelling is the canonical one.
pub(super) fn address(text: &str) -> Option<(Address, bool)> {
    let (host, length) = text.split_once('/')?;
    let address: IpAddr = host.parse().ok()?;
    if length.is_empty() || !length.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let length: u8 = length
        .parse()
        .ok()
        .filter(|&length| length <= if address.is_ipv4() { 32 } else { 128 })?;
    let mapped = matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some());
    Some((
        Address { address, length },
        mapped || address.to_string() == host,
    ))
}
