//! Settings of devices.

use std::io;

use crate::config::Address;
use crate::config::wanted::Interface;
use crate::facts::Link;
use crate::netlink::{Given, Requests};

/// Gives a device what the configuration wants: Ethernet address, MTU, addresses, up or down. What
/// the configuration does not name stays as it is, but addresses that carry our mark: a router that
/// is dead has given them.
///
/// # Errors
/// What the kernel refuses, and why.
pub fn configure(requests: &mut Requests, link: &Link, wanted: &Interface) -> io::Result<()> {
    let refused = |what: String| {
        let name = link.name.clone();
        move |error: io::Error| {
            io::Error::new(error.kind(), format!("{name}: cannot set {what}: {error}"))
        }
    };
    if let Some(mac) = wanted.mac.filter(|mac| link.mac.as_ref() != Some(mac)) {
        requests
            .set_mac(link.index, mac)
            .map_err(refused("the Ethernet address".into()))?;
    }
    if let Some(mtu) = wanted.mtu.map(u32::from).filter(|&mtu| link.mtu != mtu) {
        requests
            .set_mtu(link.index, mtu)
            .map_err(refused(format!("MTU {mtu}")))?;
    }
    take_addresses(requests, link.index, &wanted.addresses)?;
    give_addresses(requests, link.index, wanted)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", link.name)))?;
    requests
        .set_up(link.index, wanted.up)
        .map_err(refused(format!(
            "state {}",
            if wanted.up { "up" } else { "down" }
        )))
}

/// Takes from a device the addresses with our mark, but these.
///
/// # Errors
/// What the kernel reports.
pub fn take_addresses(requests: &mut Requests, link: u32, but: &[Address]) -> io::Result<()> {
    let stays = |given: &Given| {
        let same = |a: &Address| (a.address, a.length) == (given.address, given.length);
        but.iter().any(same)
    };
    for given in requests.all_addresses()? {
        if given.ours && given.link == link && !stays(&given) {
            requests.take_address(link, given.address, given.length)?;
        }
    }
    Ok(())
}

/// Gives a device the addresses that it lacks.
///
/// # Errors
/// What the kernel refuses, and why.
pub fn give_addresses(requests: &mut Requests, link: u32, wanted: &Interface) -> io::Result<()> {
    for address in &wanted.addresses {
        let given = requests.give_address(link, address.address, address.length);
        given.map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("cannot set address {address}: {error}"),
            )
        })?;
    }
    Ok(())
}
