//! Addresses of interfaces: no network may overlap that of another interface in the same VRF;
//! within one interface, several hosts of the same network are fine.

use std::collections::HashMap;
use std::net::IpAddr;

use crate::config::desired::IP6_MTU;
use crate::config::forms::Address;
use crate::config::view::{AnyInterface, InterfaceKind};
use crate::config::yaml::{Step, Value};

use super::{Checker, field};

/// An address of an interface.
#[derive(Clone, Copy)]
struct Claim<'e, 'c> {
    entry: &'e AnyInterface<'c>,
    index: usize,
    address: Address,
}

pub(super) fn check(c: &mut Checker<'_>) {
    let entries = c.view.entries.clone();
    let mut groups: HashMap<_, Vec<Claim<'_, '_>>> = HashMap::new();
    for entry in &entries {
        carried(c, entry);
        for (index, address) in entry.addresses.iter().enumerate() {
            spelled(c, entry, index, address);
            of_a_device(c, entry, index, address);
            // Each link has the link-local network for itself.
            let alone = address.is_link_local().then_some(&entry.name);
            let group = groups
                .entry((entry.vrf, address.address.is_ipv4(), alone))
                .or_default();
            group.push(Claim {
                entry,
                index,
                address: *address,
            });
        }
    }
    let mut clashes: Vec<_> = groups
        .into_values()
        .flat_map(|mut group| clashes(&mut group))
        .collect();
    clashes.sort_by(|(a, _), (b, _)| (&a.entry.name, a.index).cmp(&(&b.entry.name, b.index)));
    for (claim, other) in clashes {
        let (word, name, address) = (claim.entry.word(), &claim.entry.name, claim.address);
        let message = format!("{word} {name} IP address {address} conflicts with another");
        let (other, at) = (other.address, &other.entry.name);
        let help = format!("its network overlaps that of {other} on {at}");
        c.error(&place(claim.entry, claim.index), message, help);
    }
}

fn place(entry: &AnyInterface<'_>, index: usize) -> Vec<Step> {
    let mut path = field(entry, "addresses");
    path.push(index.into());
    path
}

/// The kernel takes IPv6 off a device whose MTU is too small for it.
fn carried(c: &mut Checker<'_>, entry: &AnyInterface<'_>) {
    let is_ip6 = |own: &Address| own.address.is_ipv6();
    let Some(index) = entry.addresses.iter().position(is_ip6) else {
        return;
    };
    if entry.mtu >= IP6_MTU {
        return;
    }
    let (word, name, mtu) = (entry.word(), &entry.name, entry.mtu);
    let address = entry.addresses[index];
    let message = format!("{word} {name} has MTU {mtu}, too small for IPv6 address {address}");
    let help = format!(
        "IPv6 needs at least {IP6_MTU} (RFC 8200 section 5): raise the mtu, or remove the address"
    );
    c.error(&place(entry, index), message, help);
}

/// Warns of another spelling than the one that everything else shows.
fn spelled(c: &mut Checker<'_>, entry: &AnyInterface<'_>, index: usize, address: &Address) {
    let path = place(entry, index);
    let Some(Value::Text(text)) = c.node(&path).map(|node| &node.value) else {
        return;
    };
    let mapped = matches!(address.address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some());
    if mapped || text.split('/').next() == Some(&address.address.to_string()) {
        return;
    }
    let (word, name) = (entry.word(), &entry.name);
    let message = format!("{word} {name} IP address {text} is not canonical, use {address}");
    c.warning(&path, message, "it is read as this address");
}

/// Reports addresses that Linux accepts on no device, and those that no other host can reach there.
fn of_a_device(c: &mut Checker<'_>, entry: &AnyInterface<'_>, index: usize, address: &Address) {
    let (word, name, host) = (entry.word(), &entry.name, address.address);
    let what = match host {
        host if host.is_unspecified() => "the unspecified address",
        host if host.is_multicast() => "a multicast address",
        host if host.is_loopback() => "a loopback address",
        IpAddr::V4(v4) if v4.is_broadcast() => "the broadcast address",
        _ => return named_twice(c, entry, index, address),
    };
    let message = format!("{word} {name} IP address {address} is {what}");
    let path = place(entry, index);
    if host.is_ipv6() || host.is_unspecified() {
        c.error(
            &path,
            message,
            "Linux refuses it for every device: write another",
        )
    } else {
        c.warning(&path, message, "no other host can reach it")
    }
}

fn named_twice(c: &mut Checker<'_>, entry: &AnyInterface<'_>, index: usize, address: &Address) {
    if entry.addresses[..index].contains(address) {
        let (word, name) = (entry.word(), &entry.name);
        let message = format!("{word} {name} IP address {address} is named twice");
        c.warning(
            &place(entry, index),
            message,
            "the interface has it only once",
        );
    }
}

/// Each address that cannot be beside another, with one that it cannot be beside.
fn clashes<'e, 'c>(group: &mut [Claim<'e, 'c>]) -> Vec<(Claim<'e, 'c>, Claim<'e, 'c>)> {
    // Networks overlap only if one contains the other. In this order those that contain a network
    // come before it, and are on the stack when its turn comes.
    group.sort_by_key(|claim| (claim.address.network().address, claim.address.length));
    let mut stack: Vec<usize> = Vec::new();
    let mut found: HashMap<usize, usize> = HashMap::new();
    for at in 0..group.len() {
        let claim = group[at];
        while stack
            .last()
            .is_some_and(|top| !group[*top].address.contains(claim.address.address))
        {
            stack.pop();
        }
        for &below in &stack {
            if blames(&claim, &group[below]) {
                found.entry(at).or_insert(below);
            }
            if blames(&group[below], &claim) {
                found.entry(below).or_insert(at);
            }
        }
        stack.push(at);
    }
    found
        .into_iter()
        .map(|(at, other)| (group[at], group[other]))
        .collect()
}

/// Returns true if `one` is to blame for an overlap: both are if they are on different interfaces,
/// except that a sub-interface is to blame and not its parent; on the same interface it is the
/// later one.
fn blames(one: &Claim<'_, '_>, other: &Claim<'_, '_>) -> bool {
    if one.entry.name == other.entry.name {
        return one.index > other.index && one.address.network() != other.address.network();
    }
    match other.entry.kind {
        InterfaceKind::Sub(parent, ..) => parent != one.entry.name,
        _ => true,
    }
}
