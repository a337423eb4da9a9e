//! Two hosts and a router.
//!
//! ```text
//! left                         router                          right
//! h0 198.18.0.2/24 ---- r0 198.18.0.1/24   r1 198.18.1.1/24 ---- h1 198.18.1.2/24
//! 16.0.0.0/8 is behind h0                              48.0.0.0/8 is behind h1
//! ```

use std::net::Ipv4Addr;

use lab::veth::{self, End};

use super::{Netns, Raw, craft::Mac};

/// Ethernet address of the left host.
pub const H0: Mac = [2, 0x70, 0x73, 1, 0, 2];
/// Ethernet address of the router on the left.
pub const R0: Mac = [2, 0x70, 0x73, 1, 0, 1];
/// Ethernet address of the right host.
pub const H1: Mac = [2, 0x70, 0x73, 1, 1, 2];
/// Ethernet address of the router on the right.
pub const R1: Mac = [2, 0x70, 0x73, 1, 1, 1];

/// The router's own addresses, left and right.
pub const ROUTER: [Ipv4Addr; 2] = [Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 18, 1, 1)];
/// The hosts' addresses, left and right.
pub const HOST: [Ipv4Addr; 2] = [Ipv4Addr::new(198, 18, 0, 2), Ipv4Addr::new(198, 18, 1, 2)];

/// The configuration of the router for these links.
pub const CONFIGURATION: &str = "interfaces:\n  r0: {}\n  r1: {}\n";

/// The three namespaces.
pub struct Hosts {
    pub left: Netns,
    pub router: Netns,
    pub right: Netns,
}

impl Hosts {
    /// Makes them. `speaking`: the hosts have addresses and a default route; else they are mute ends for raw packets.
    pub fn new(mtu: u16, speaking: bool) -> Self {
        let create = |label| Netns::create(label).expect("root may make namespaces");
        let hosts = Self {
            left: create("left"),
            router: create("router"),
            right: create("right"),
        };
        hosts.link(
            &hosts.left,
            ("h0", H0, HOST[0]),
            ("r0", R0, ROUTER[0]),
            mtu,
            speaking,
        );
        hosts.link(
            &hosts.right,
            ("h1", H1, HOST[1]),
            ("r1", R1, ROUTER[1]),
            mtu,
            speaking,
        );
        hosts.add_routes();
        // The same answers to the same packets whatever the machine's settings are.
        hosts
            .router
            .sh("cd /proc/sys/net/ipv4; echo 0 > icmp_ratelimit; echo 0 > icmp_ratemask
                 for f in conf/*/rp_filter conf/*/accept_source_route conf/*/send_redirects; do echo 0 > $f; done")
            .expect("settings of the namespace");
        hosts
    }

    fn link(
        &self,
        host: &Netns,
        h: (&str, Mac, Ipv4Addr),
        r: (&str, Mac, Ipv4Addr),
        mtu: u16,
        speaking: bool,
    ) {
        let (host_mac, router_mac) = (text(h.1), text(r.1));
        let (host_ip, router_ip) = (format!("{}/24", h.2), format!("{}/24", r.2));
        let far = End {
            netns: host,
            name: h.0,
            mac: &host_mac,
            address: speaking.then_some(host_ip.as_str()),
        };
        let near = End {
            netns: &self.router,
            name: r.0,
            mac: &router_mac,
            address: Some(&router_ip),
        };
        veth::pair(far, near, mtu).expect("root may make links");
        veth::host_end(host, h.0).expect("ethtool");
        veth::device_end(&self.router, r.0).expect("ethtool");
        // A frame that AF_XDP or a redirect sends to this end is refused unless it polls.
        veth::device_end(host, h.0).expect("ethtool");
        if speaking {
            host.ip(&format!("route add default via {}", r.2))
                .expect("a default route");
        }
    }

    /// Neighbors and routes of the router.
    pub fn add_routes(&self) {
        let lines = format!(
            "neigh replace {} lladdr {} dev r0 nud permanent\nneigh replace {} lladdr {} dev r1 nud permanent\n\
             route replace 16.0.0.0/8 via {} dev r0\nroute replace 48.0.0.0/8 via {} dev r1\n",
            HOST[0],
            text(H0),
            HOST[1],
            text(H1),
            HOST[0],
            HOST[1]
        );
        self.router.ip_batch(&lines).expect("routes");
    }

    /// Raw sockets of the left and the right host.
    pub fn raw(&self) -> (Raw, Raw) {
        (
            Raw::open(&self.left, "h0", H0),
            Raw::open(&self.right, "h1", H1),
        )
    }
}

/// As `ip` writes it.
pub fn text(mac: Mac) -> String {
    mac.map(|octet| format!("{octet:02x}")).join(":")
}
