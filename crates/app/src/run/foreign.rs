//! What the kernel has for the router's interfaces that the router has not made: it is used, and
//! never removed.

use control::facts::Gateway;
use control::netlink::StaticRoute;

use super::daemon::Daemon;

/// Who makes static routes, by protocol: `ip route` of a person or a script, others of that kind,
/// DHCP. Those of routing protocols may be a million.
const MAKERS: [(u8, &str); 3] = [
    (libc::RTPROT_BOOT, "boot"),
    (libc::RTPROT_STATIC, "static"),
    (16, "dhcp"),
];

/// Addresses and static routes of others on the router's interfaces, each in a few words; empty if
/// there are none, or the kernel does not say.
pub fn items(daemon: &mut Daemon) -> Vec<String> {
    let links = daemon.links();
    let name = |link: u32| {
        let mut links = links.iter();
        links.find(|(_, its)| **its == link).map(|(name, _)| name)
    };
    let mut items = Vec::new();
    for given in daemon.requests.all_addresses().unwrap_or_default() {
        if let (false, Some(name)) = (given.ours, name(given.link)) {
            items.push(format!(
                "address {}/{} of {name}",
                given.address, given.length
            ));
        }
    }
    for (protocol, maker) in MAKERS {
        let routes = daemon.requests.routes_of(protocol).unwrap_or_default();
        for route in routes {
            let hops = route.hops.iter().filter_map(|hop| {
                let via = match hop.gateway {
                    Gateway::Via(address) => format!(" via {address}"),
                    _ => String::new(),
                };
                Some(format!("{via} on {}", name(hop.link)?))
            });
            let hops: Vec<_> = hops.collect();
            if !hops.is_empty() {
                let StaticRoute { prefix, .. } = route;
                items.push(format!("route {prefix}{} ({maker})", hops.join(",")));
            }
        }
    }
    items
}

/// The same as comments of YAML, a line each.
pub fn comments(daemon: &mut Daemon) -> String {
    let comment = |item: String| format!("# foreign: {item}\n");
    items(daemon).into_iter().map(comment).collect()
}
