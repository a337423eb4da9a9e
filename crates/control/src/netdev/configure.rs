//! Settings of devices.

use std::io;
use std::net::IpAddr;

use crate::config::Address;
use crate::config::desired::{IP6_MTU, Interface};
use crate::facts::Link;
use crate::netlink::{self, Kernel, KernelAddress};

/// Gives a device what the configuration wants: Ethernet address, MTU, addresses, up or down. What
/// the configuration does not name stays as it is, but addresses that carry our mark: a router that
/// is dead has given them.
///
/// # Errors
/// The setting that the kernel refuses, and why.
pub fn configure(requests: &mut dyn Kernel, link: &Link, wanted: &Interface) -> io::Result<()> {
    // Without the device's name: if it is put back, it has another, and a tap is gone.
    let refused = |what: String| {
        move |error: io::Error| io::Error::new(error.kind(), format!("cannot set {what}: {error}"))
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
    let taken = take_addresses(requests, link.index, &wanted.addresses)?;
    give(requests, link.index, wanted, &taken)?;
    requests
        .set_up(link.index, wanted.up)
        .map_err(refused(format!(
            "state {}",
            if wanted.up { "up" } else { "down" }
        )))
}

/// Checks that a device takes the IPv6 addresses that are wanted of it, where `name` is its name in
/// the namespace that it is to live in, the `kernel`'s, and `mtu` the bytes that it will have.
///
/// # Errors
/// It takes none, and why.
pub fn takes_ip6(
    kernel: &mut dyn Kernel,
    name: &str,
    mtu: u32,
    wanted: &Interface,
) -> io::Result<()> {
    let Some(address) = wanted.ip6() else {
        return Ok(());
    };
    let refused = |why: String| {
        let what = format!("{name} cannot have IPv6 address {address}: {why}");
        Err(io::Error::other(what))
    };
    if mtu < u32::from(IP6_MTU) {
        return refused(format!(
            "its MTU is {mtu}, and IPv6 needs at least {IP6_MTU} (RFC 8200 section 5): write \
             `mtu: {IP6_MTU}` or more, or remove the address"
        ));
    }
    match kernel.is_ip6_off(name) {
        Ok(true) => refused(format!(
            "IPv6 is disabled on it: enable it with `sysctl -w \
             net/ipv6/conf/{name}/disable_ipv6=0` (`default` in place of {name} if the device \
             does not exist yet), or remove the address"
        )),
        _ => Ok(()),
    }
}

/// Takes from a device the addresses with our mark, but these. Returns what it has taken.
///
/// # Errors
/// The kernel's error.
pub fn take_addresses(
    requests: &mut dyn Kernel,
    link: u32,
    but: &[Address],
) -> io::Result<Vec<KernelAddress>> {
    let stays = |given: &KernelAddress| {
        let same = |a: &Address| (a.address, a.length) == (given.address, given.length);
        but.iter().any(same)
    };
    let mut taken = Vec::new();
    for given in requests.addresses_of(link)? {
        if given.ours && !stays(&given) {
            taken.extend(requests.take_address(link, given.address, given.length)?);
        }
    }
    Ok(taken)
}

/// Gives a device the addresses that it lacks. One that cannot be given keeps none of the others
/// from it.
///
/// # Errors
/// The first that the kernel refuses, and why.
pub fn give_addresses(requests: &mut dyn Kernel, link: u32, wanted: &Interface) -> io::Result<()> {
    give(requests, link, wanted, &[])
}

/// The same, where these have just been taken from the device.
fn give(
    requests: &mut dyn Kernel,
    link: u32,
    wanted: &Interface,
    taken: &[KernelAddress],
) -> io::Result<()> {
    let mut refused = Ok(());
    for address in &wanted.addresses {
        let (host, length) = (address.address, address.length);
        let given = if taken.iter().any(|taken| is_known(taken, host)) {
            requests.give_again(link, host, length)
        } else {
            requests.give_address(link, host, length)
        };
        let said = given.map_err(|error| {
            let what = format!("cannot set address {address}: {error}");
            io::Error::new(error.kind(), what)
        });
        refused = refused.and(said.map(drop));
    }
    refused
}

/// Returns true if what was taken from a device is this IPv6 address, and no other host had it.
pub fn is_known(taken: &KernelAddress, address: IpAddr) -> bool {
    taken.address == address && address.is_ipv6() && taken.verified
}

/// The wanted IPv6 addresses that a device cannot have, since it has them from somebody else with
/// another prefix length: each, and why. `there`: the IPv6 addresses of all devices.
pub fn displaced<'w>(
    there: &[KernelAddress],
    link: u32,
    wanted: &'w Interface,
) -> impl Iterator<Item = (&'w Address, String)> {
    wanted.addresses.iter().filter_map(move |address| {
        let in_its_place = |given: &&KernelAddress| {
            (given.link, given.address) == (link, address.address)
                && given.length != address.length
                && !given.ours
        };
        let its = there.iter().find(in_its_place)?.length;
        Some((address, netlink::has_other_length(address.address, its)))
    })
}
