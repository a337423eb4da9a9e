//! VXLAN tunnels, TAPs, and the names of prefix lists.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use crate::config::forms;
use crate::config::model::Tap;
use crate::config::view::AnyInterface;

use super::{Checker, counts, to};

pub(super) fn check(c: &mut Checker<'_>) {
    vxlans(c);
    let taps = c.config.taps.values();
    let hosts = counts(taps.map(|tap| tap.host.name.as_str()));
    for (name, tap) in &c.config.taps {
        check_tap(c, name, tap, &hosts);
    }
    if c.config.prefixlists.contains_key("any") {
        let message = "prefixlist any is a reserved name".to_owned();
        c.error(&to!["prefixlists", "any"], message, "give it another");
    }
}

fn vxlans(c: &mut Checker<'_>) {
    let tunnels = &c.config.vxlan_tunnels;
    let vnis = counts(tunnels.values().map(|tunnel| tunnel.vni));
    for (name, tunnel) in tunnels {
        let number = forms::instance(name, "vxlan_tunnel");
        if number.is_none_or(|number| number > 2_147_483_647) {
            let number = name.trim_start_matches("vxlan_tunnel");
            let message = format!("vxlan_tunnel {name} has instance {number} which is too large");
            c.error(
                &to!["vxlan_tunnels", name],
                message,
                "2147483647 is the last",
            );
        }
        if c.config.ports.contains_key(name) {
            let message = format!("vxlan_tunnel {name} cannot have a port");
            let help = "remove it: the route to remote says where packets leave";
            c.error(&to!["ports", name], message, help);
        }
        let vni = tunnel.vni;
        if vni > 0 && vnis[&vni] > 1 {
            let message = format!("vxlan_tunnel {name} VNI {vni} is not unique");
            c.error(
                &to!["vxlan_tunnels", name, "vni"],
                message,
                "give each its own",
            );
        }
        let ends = tunnel.local.zip(tunnel.remote);
        if ends.is_some_and(|(local, remote)| local.is_ipv4() != remote.is_ipv4()) {
            let message =
                format!("vxlan_tunnel {name} local and remote are not the same address family");
            let help = "give both an IPv4 address or both an IPv6 address";
            c.error(&to!["vxlan_tunnels", name, "remote"], message, help);
        }
        if let Some(ends) = ends {
            check_ends(c, name, ends);
        }
    }
}

/// Ends between which no packet can go: vppcfg takes them all, so these are warnings.
fn check_ends(c: &mut Checker<'_>, name: &str, (local, remote): (IpAddr, IpAddr)) {
    let at = |field: &str| to!["vxlan_tunnels", name, field];
    let both = [("local", local), ("remote", remote)];
    let nobody = both.into_iter().find(|(_, end)| !is_of_a_host(*end));
    if let Some((field, end)) = nobody {
        let message = format!("vxlan_tunnel {name} {field} {end} is the address of no host");
        let help = "no packet can go through the tunnel: it goes from one host to one other";
        c.warning(&at(field), message, help);
        return;
    }
    if local == remote {
        let message = format!("vxlan_tunnel {name} local and remote are the same address");
        let help = "no packet can go through the tunnel: remote is the address of the other end";
        c.warning(&at("remote"), message, help);
        return;
    }
    if let Some(tunnel) = behind_tunnel(c, remote) {
        let message = format!("vxlan_tunnel {name} remote {remote} is in a network of {tunnel}");
        let help = "no tunnel goes through itself or another: its packets are dropped, unless a \
                    longer prefix leads elsewhere";
        c.warning(&at("remote"), message, help);
    }
    let has_local = |entry: &AnyInterface<'_>| entry.addresses.iter().any(|a| a.address == local);
    if !c.view.entries.iter().any(has_local) {
        let message = format!("vxlan_tunnel {name} local {local} is on no interface of this file");
        let help = "it carries packets while the host has that address elsewhere";
        c.warning(&at("local"), message, help);
    }
}

/// Returns true if a packet can have the address of a single host.
fn is_of_a_host(address: IpAddr) -> bool {
    let broadcast = address == Ipv4Addr::BROADCAST;
    !(address.is_multicast() || address.is_unspecified() || address.is_loopback() || broadcast)
}

/// The interface that has an address in one of its networks and whose packets go into a tunnel: a
/// tunnel, a sub-interface of one, or the BVI of a bridge that has one of these.
fn behind_tunnel(c: &Checker<'_>, address: IpAddr) -> Option<String> {
    let is_tunnels = |entry: &&AnyInterface<'_>| {
        let device = entry.parent().unwrap_or(&entry.name);
        c.config.vxlan_tunnels.contains_key(device)
    };
    let own = c.view.entries.iter().filter(is_tunnels);
    let bvi = |entry: &AnyInterface<'_>| {
        let bridge = c.view.bridge(&entry.name)?;
        c.view.get(c.config.bridgedomains[bridge].bvi.as_ref()?)
    };
    let mut all = own.flat_map(|entry| [Some(entry), bvi(entry)]).flatten();
    let has = |entry: &&AnyInterface<'_>| entry.addresses.iter().any(|own| own.contains(address));
    all.find(has).map(|entry| entry.name.clone())
}

fn check_tap(c: &mut Checker<'_>, name: &str, tap: &Tap, hosts: &HashMap<&str, usize>) {
    let number = forms::instance(name, "tap");
    if number.is_none_or(|number| number > 1024) {
        let number = name.trim_start_matches("tap");
        let message = format!("tap {name} has instance {number} which is too large");
        c.error(&to!["taps", name], message, "tap1024 is the last");
    }
    let host = &tap.host;
    let at = |field: &str| to!["taps", name, "host", field];
    if !host.name.is_empty() && hosts[host.name.as_str()] > 1 {
        let message = format!("tap {name} does not have a unique host name {}", host.name);
        c.error(&at("name"), message, "give each its own");
    }
    for (field, size) in [
        ("rx-ring-size", tap.rx_ring_size),
        ("tx-ring-size", tap.tx_ring_size),
    ] {
        if !size.is_power_of_two() {
            let message = format!("tap {name} {field} must be a power of two");
            c.error(
                &to!["taps", name, field],
                message,
                "such as 256, 512 or 1024",
            );
        }
    }
    if host.namespace_create && host.namespace.is_none() {
        let message = format!("tap {name} namespace-create can only be set if namespace is set");
        c.error(
            &at("namespace-create"),
            message,
            "name the namespace, or remove it",
        );
    }
    if host.bridge_create && host.bridge.is_none() {
        let message = format!("tap {name} bridge-create can only be set if bridge is set");
        c.error(
            &at("bridge-create"),
            message,
            "name the bridge, or remove it",
        );
    }
    if let Some(mac) = host.mac.filter(|mac| mac.is_group()) {
        let message = format!("tap {name} host MAC address {mac} cannot be multicast");
        c.error(&at("mac"), message, "make its first byte even");
    }
}
