//! Static routes and VRFs.

use std::collections::HashSet;

use crate::config::desired::MAIN;
use crate::config::forms::Address;
use crate::config::model::{Config, Hop, Route};
use crate::config::yaml::Step;

use super::{Checker, counts, to};

/// Tables that the kernel has for itself: default, main, local (`linux/rtnetlink.h`).
const RESERVED: std::ops::RangeInclusive<u32> = 253..=255;

pub(super) fn check(c: &mut Checker<'_>) {
    vrfs(c);
    let mut known = HashSet::new();
    for (index, route) in c.config.routes.iter().enumerate() {
        let at = |field: &str| to!["routes", index, field];
        let Some(prefix) = route.prefix else { continue };
        if let Some(vrf) = route
            .vrf
            .as_ref()
            .filter(|vrf| !c.config.vrfs.contains_key(*vrf))
        {
            let message = format!("route {prefix} vrf {vrf} does not exist");
            c.error(&at("vrf"), message, "add it to vrfs, or correct its name");
        }
        if route.vrf.is_some() && route.table.is_some() {
            let message = format!("route {prefix} has both vrf and table");
            c.error(&at("table"), message, "a vrf has a table: remove this");
        }
        if route.blackhole != route.via.is_empty() {
            let message = if route.blackhole {
                format!("route {prefix} cannot have via when it is a blackhole")
            } else {
                format!("route {prefix} has no next hop")
            };
            c.error(
                &to!["routes", index],
                message,
                "give it one of via and `blackhole: true`",
            );
        }
        if !known.insert((table(c.config, route), prefix, route.metric())) {
            let message = format!("route {prefix} is not unique");
            let help = "list all next hops in one route, or give it another table or metric";
            c.error(&at("prefix"), message, help);
        }
        for (place, hop) in route.via.iter().enumerate() {
            let mut path = at("via").to_vec();
            path.push(place.into());
            check_hop(c, &path, route, prefix, hop);
        }
    }
}

fn vrfs(c: &mut Checker<'_>) {
    let tables = counts(c.config.vrfs.values().map(|vrf| vrf.table));
    let entries = c.view.entries.iter();
    let lcps: HashSet<String> = entries
        .filter_map(|entry| entry.lcp.map(str::to_owned))
        .collect();
    for (name, vrf) in &c.config.vrfs {
        let path = to!["vrfs", name, "table"];
        let table = vrf.table;
        if RESERVED.contains(&table) {
            let message = format!("vrf {name} table {table} is reserved");
            c.error(
                &path,
                message,
                "253 to 255 are the kernel's: choose another",
            );
        }
        if table > 0 && tables[&table] > 1 {
            let message = format!("vrf {name} table {table} is not unique");
            c.error(&path, message, "give each its own");
        }
        if lcps.contains(name) {
            let message = format!("vrf {name} has the name of an LCP");
            c.error(
                &to!["vrfs", name],
                message,
                "both are devices of the host: rename one",
            );
        }
    }
}

/// The table of a route.
fn table<'c>(config: &'c Config, route: &'c Route) -> (Option<&'c str>, u32) {
    let of = |vrf: &'c String| config.vrfs.get(vrf).map(|vrf| vrf.table);
    let vrf = route.vrf.as_ref();
    let unknown = vrf.filter(|vrf| !config.vrfs.contains_key(*vrf));
    let table = vrf.and_then(of).or(route.table).unwrap_or(MAIN);
    (unknown.map(String::as_str), table)
}

fn check_hop(c: &mut Checker<'_>, path: &[Step], route: &Route, prefix: Address, hop: &Hop) {
    if hop.address.is_none() && hop.interface.is_none() {
        let message = format!("route {prefix} has a next hop without address and interface");
        c.error(path, message, "give it one, or both");
    }
    if prefix.address.is_ipv6() && hop.address.is_some_and(|address| address.is_ipv4()) {
        let message = format!("route {prefix} cannot have an IPv4 next hop");
        c.error(path, message, "name the neighbor by its IPv6 address");
    }
    match &hop.interface {
        Some(name) => match c
            .view
            .get(name)
            .map(|entry| (entry.vrf, entry.name.clone()))
        {
            None => {
                let message = format!("route {prefix} interface {name} does not exist");
                c.error(path, message, "name one of this file");
            }
            Some((vrf, _)) if route.table.is_none() && vrf != route.vrf.as_deref() => {
                let message = format!("route {prefix} interface {name} is in another vrf");
                c.error(path, message, "give route and interface the same vrf");
            }
            Some((_, name)) if c.view.is_layer2(&name) => {
                let message = format!("route {prefix} interface {name} cannot be in L2 mode");
                c.error(path, message, "name an interface that routes");
            }
            Some(_) => {}
        },
        None => unresolved(c, path, route, prefix, hop),
    }
}

/// A next hop of which only the address is known.
fn unresolved(c: &mut Checker<'_>, path: &[Step], route: &Route, prefix: Address, hop: &Hop) {
    let Some(address) = hop.address else { return };
    if (Address { address, length: 0 }).is_link_local() {
        let message = format!("route {prefix} next hop {address} needs an interface");
        let help =
            format!("every link has such addresses: {{ address: {address}, interface: eth0 }}");
        c.error(path, message, help);
    } else if c.view.link(route.vrf.as_deref(), address).is_none() && route.table.is_none() {
        let message = format!("route {prefix} next hop {address} is on no link of this file");
        let help = "it waits until an address or an on-link route reaches its next hop";
        c.warning(path, message, help);
    }
}
