//! Addresses and routes that the kernel has for the router's interfaces and the router has not
//! made: they are used, and never removed.

use std::collections::BTreeSet;

use control::facts::{Gateway, Hop, Table};
use control::mirror::MadeRoute;
use control::netlink::usual_metric;

use super::daemon::Daemon;

/// Routes of one maker by one interface that are listed one by one, in prefixes; of more only the
/// number is said. Those of a routing protocol may be a million.
const LISTED: usize = 20;

/// Makers of routes, by protocol (linux/rtnetlink.h, iproute2's rt_protos, FRR's zebra).
const MAKERS: [(u8, &str); 21] = [
    (libc::RTPROT_BOOT, "boot"), // `ip route` of a person or a script
    (libc::RTPROT_STATIC, "static"),
    (8, "gated"),
    (9, "ra"), // router advertisements
    (10, "mrt"),
    (11, "zebra"),
    (12, "bird"),
    (14, "xorp"),
    (16, "dhcp"),
    (17, "mrouted"),
    (18, "keepalived"),
    (42, "babel"),
    (99, "openr"),
    (186, "bgp"),
    (187, "isis"),
    (188, "ospf"),
    (189, "rip"),
    (192, "eigrp"),
    (196, "static"), // FRR's
    (197, "openfabric"),
    (198, "srte"),
];

/// Addresses and routes of others on the router's interfaces, each in a few words; empty if there
/// are none, or the kernel does not say.
pub fn items(daemon: &mut Daemon) -> Vec<String> {
    let links = daemon.links();
    let name = |link: u32| {
        let mut links = links.iter();
        links.find(|(_, its)| **its == link).map(|(name, _)| name)
    };
    let mut items = Vec::new();
    for given in daemon.kernel.all_addresses().unwrap_or_default() {
        if let (false, Some(name)) = (given.ours, name(given.link)) {
            items.push(format!(
                "address {}/{} of {name}",
                given.address, given.length
            ));
        }
    }
    let (mut routes, mut many) = (BTreeSet::new(), BTreeSet::new());
    for (interface, link) in &links {
        for (protocol, made) in daemon.routing.translator.foreign(*link, LISTED) {
            let maker = maker(protocol);
            if made.prefixes > LISTED {
                let count = made.prefixes;
                many.insert(format!("{count} routes on {interface} ({maker})"));
                continue;
            }
            for route in made.some {
                let hops = route.hops.iter();
                let hops = hops.filter_map(|hop| Some(by(hop, name(hop.link)?)));
                let hops: Vec<String> = hops.collect();
                let (prefix, which) = (route.prefix, which(&route));
                let text = format!("route {prefix}{which}{} ({maker})", hops.join(","));
                // By several interfaces it is still one.
                routes.insert((protocol, prefix, text));
            }
        }
    }
    items.extend(routes.into_iter().map(|(_, _, text)| text));
    items.extend(many);
    items
}

/// Describes the differences of a route from others of its prefix.
fn which(route: &MadeRoute) -> String {
    let mut words = String::new();
    if route.metric != usual_metric(route.prefix.address()) {
        words += &format!(" metric {}", route.metric);
    }
    if route.tos != 0 {
        words += &format!(" tos {:#x}", route.tos);
    }
    words
        + match route.table {
            Table::Main => "",
            Table::Local => " in table local",
            Table::Default => " in table default",
        }
}

/// A next hop in words.
fn by(hop: &Hop, interface: &str) -> String {
    let via = match hop.gateway {
        Gateway::Via(address) => format!(" via {address}"),
        _ => String::new(),
    };
    format!("{via} on {interface}")
}

/// The name of a protocol.
fn maker(protocol: u8) -> String {
    let name = MAKERS.iter().find(|(number, _)| *number == protocol);
    name.map_or_else(
        || format!("protocol {protocol}"),
        |(_, name)| (*name).into(),
    )
}

/// The same as comments of YAML, a line each.
pub fn comments(daemon: &mut Daemon) -> String {
    let comment = |item: String| format!("# foreign: {item}\n");
    items(daemon).into_iter().map(comment).collect()
}
