//! Two hosts and a router.
//!
//! ```text
//! left                         router                          right
//! h0 198.18.0.2/24 ---- r0 198.18.0.1/24   r1 198.18.1.1/24 ---- h1 198.18.1.2/24
//! 16.0.0.0/8 is behind h0                              48.0.0.0/8 is behind h1
//!
//! With IPv6 (`Hosts::add_ip6`):
//! h0 2001:db8:0::2/64 -- r0 2001:db8:0::1/64   r1 2001:db8:1::1/64 -- h1 2001:db8:1::2/64
//! 2001:db8:1600::/40 is behind h0               2001:db8:4800::/40 is behind h1
//! ```

use std::net::{Ipv4Addr, Ipv6Addr};

use sandbox::veth::{self, End};
use testbed::Alone;

use super::craft::Mac;
use super::{Netns, PARSHALL, Raw, Router, alone, command, patience, until};

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

/// The router's own IPv6 addresses, left and right.
pub const ROUTER6: [Ipv6Addr; 2] = [ip6(0, 1), ip6(1, 1)];
/// The hosts' IPv6 addresses, left and right.
pub const HOST6: [Ipv6Addr; 2] = [ip6(0, 2), ip6(1, 2)];

/// A host of a network below 2001:db8::/32.
pub const fn ip6(network: u16, host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, network, 0, 0, 0, 0, host)
}

/// The configuration of the router for these links.
pub const CONFIGURATION: &str = "interfaces:\n  r0: {}\n  r1: {}\n";

/// The three namespaces. They are deleted, with the processes in them, before the lock on the
/// machine is released.
pub struct Hosts {
    pub left: Netns,
    pub router: Netns,
    pub right: Netns,
    /// The lock; none on taps, which know neither XDP programs nor live frames.
    _alone: Option<Alone>,
}

impl Hosts {
    /// Makes them. `speaking`: the hosts have addresses and a default route; else they are mute
    /// ends for raw packets.
    pub fn new(mtu: u16, speaking: bool) -> Self {
        let hosts = Self::unlinked(Some(alone()));
        hosts.link(
            &hosts.left,
            ("h0", H0, HOST[0]),
            ("r0", R0, ROUTER[0]),
            mtu,
            speaking,
        );
        hosts.link_speaking_right(mtu, speaking);
        hosts.add_routes();
        hosts.settle();
        hosts
    }

    /// Makes them with a router that has taps for ports: the hosts' ends are the taps, mute, and
    /// the router's own ones are host interfaces.
    pub fn on_taps(mtus: [u16; 2]) -> (Self, Router) {
        let hosts = Self::unlinked(None);
        let (mut interfaces, mut ports) = (String::new(), String::new());
        for (i, mac) in [R0, R1].into_iter().enumerate() {
            let (mac, mtu) = (text(mac), mtus[i]);
            interfaces += &format!("  r{i}: {{ lcp: r{i}, mac: '{mac}', mtu: {mtu} }}\n");
            ports += &format!("  r{i}: {{ tap: {{ name: h{i} }} }}\n");
        }
        let yaml = format!("interfaces:\n{interfaces}ports:\n{ports}");
        let router = Router::start(&hosts.router, &yaml);
        for (host, name, mac) in [(&hosts.left, "h0", H0), (&hosts.right, "h1", H1)] {
            let appeared = until(patience(), || {
                let to = format!("link set {name} netns {}", host.name());
                hosts.router.ip(&to).is_ok()
            });
            assert!(appeared, "no tap {name}");
            host.ip(&format!("link set {name} address {} up", text(mac)))
                .expect("a tap");
        }
        let ready = until(patience(), || {
            hosts.router.ip("link set r0 up").is_ok() && hosts.router.ip("link set r1 up").is_ok()
        });
        assert!(ready, "no host interfaces");
        // By hand, so that tests can take them away: the router puts its own ones back.
        for (i, own) in ROUTER.into_iter().enumerate() {
            let address = format!("addr add {own}/24 dev r{i}");
            hosts.router.ip(&address).expect("an address");
        }
        hosts.add_routes();
        hosts.settle();
        (hosts, router)
    }

    /// Makes them on network cards that the machine has at these four addresses; the hosts speak.
    /// Where the cards are set up otherwise (offloads, queues), they stay so.
    pub fn on_cards(mtu: u16) -> Self {
        let hosts = Self::unlinked(Some(alone()));
        for (netns, name, mac, own) in [
            (&hosts.left, "h0", H0, HOST[0]),
            (&hosts.router, "r0", R0, ROUTER[0]),
            (&hosts.router, "r1", R1, ROUTER[1]),
            (&hosts.right, "h1", H1, HOST[1]),
        ] {
            take_card(netns, name, mac);
            let lines = format!(
                "link set {name} mtu {mtu}\naddr add {own}/24 dev {name}\nlink set {name} up\n"
            );
            netns.ip_batch(&lines).expect("a card takes these settings");
        }
        // Real cards take a second or two until their link is up.
        let ends = [
            (&hosts.left, "h0"),
            (&hosts.router, "r0"),
            (&hosts.router, "r1"),
            (&hosts.right, "h1"),
        ];
        let up = ends.map(|(netns, name)| until(patience(), || carries(netns, name)));
        assert_eq!(up, [true; 4], "carrier of h0, r0, r1, h1");
        for (host, via) in [(&hosts.left, ROUTER[0]), (&hosts.right, ROUTER[1])] {
            host.ip(&format!("route add default via {via}"))
                .expect("a default route");
        }
        hosts.add_routes();
        hosts.settle();
        hosts
    }

    fn unlinked(alone: Option<Alone>) -> Self {
        let create = |label| Netns::create(label).expect("root may make namespaces");
        Self {
            left: create("left"),
            router: create("router"),
            right: create("right"),
            _alone: alone,
        }
    }

    /// Settings with which the kernel answers alike on every machine.
    fn settle(&self) {
        self.router
            .sh("cd /proc/sys/net/ipv4; echo 0 > icmp_ratelimit; echo 0 > icmp_ratemask
                 echo 0 > icmp_echo_ignore_broadcasts
                 for f in conf/*/rp_filter conf/*/accept_source_route conf/*/send_redirects; do echo 0 > $f; done")
            .expect("settings of the namespace");
    }

    /// Sends for two seconds, from the left to the right, far more than anything can forward;
    /// returns what the load tester prints.
    pub fn overload(&self) -> String {
        assert!(self._alone.is_some(), "live frames are sent");
        // Both ends in one namespace: the load tester sends by one and counts at the other.
        let to = format!("link set h1 netns {}", self.left.name());
        self.right.ip(&to).expect("a link");
        self.left.ip("link set h1 up").expect("a link");
        self.add_routes();
        let ports = [PARSHALL, "loadtest", "--tx", "live:h0", "--rx", "sink:h1"];
        let (mac, rate) = (text(R0), ["--rate", "100mpps", "--duration", "2s"]);
        let argv = [&ports[..], &["--dst-mac", &mac], &rate].concat();
        self.left.exec(&argv).expect("the load test ends well")
    }

    /// Makes the link between router and right host again, mute.
    pub fn link_right(&self, mtu: u16) {
        self.link_speaking_right(mtu, false);
    }

    fn link_speaking_right(&self, mtu: u16, speaking: bool) {
        let (host, router) = (("h1", H1, HOST[1]), ("r1", R1, ROUTER[1]));
        self.link(&self.right, host, router, mtu, speaking);
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
        self.add_routes_in(&self.router, ["r0", "r1"]);
    }

    /// The same where its devices are somewhere else and have other names.
    pub fn add_routes_in(&self, netns: &Netns, [left, right]: [&str; 2]) {
        let [h0, h1] = HOST;
        let (m0, m1) = (text(H0), text(H1));
        let lines = format!(
            "neigh replace {h0} lladdr {m0} dev {left} nud permanent\n\
             neigh replace {h1} lladdr {m1} dev {right} nud permanent\n\
             route replace 16.0.0.0/8 via {h0} dev {left}\nroute replace 48.0.0.0/8 via {h1} dev {right}\n"
        );
        netns.ip_batch(&lines).expect("routes");
    }

    /// The same with IPv6, which a namespace does not have by itself; nothing is sent on its own
    /// account.
    pub fn add_ip6(&self) {
        self.router
            .sh("cd /proc/sys/net/ipv6
                 for f in conf/*; do
                     for key in accept_ra accept_dad dad_transmits router_solicitations accept_redirects; do
                         echo 0 > $f/$key
                     done
                     echo 0 > $f/disable_ipv6
                 done
                 echo 1 > conf/all/forwarding
                 echo 0 > icmp/ratelimit; echo > icmp/ratemask")
            .expect("settings of the namespace");
        let mut lines = String::new();
        for (i, (mac, behind)) in [(H0, "1600"), (H1, "4800")].into_iter().enumerate() {
            let (own, host, mac) = (ROUTER6[i], HOST6[i], text(mac));
            lines += &format!(
                "address replace {own}/64 dev r{i} nodad\n\
                 neigh replace {host} lladdr {mac} dev r{i} nud permanent\n\
                 neigh replace fe80::2 lladdr {mac} dev r{i} nud permanent\n\
                 route replace 2001:db8:{behind}::/40 via {host} dev r{i}\n"
            );
        }
        self.router.ip_batch(&lines).expect("IPv6 routes");
    }

    /// Gives hosts that speak IPv6 addresses and default routes, too, and the router what
    /// [`add_ip6`](Self::add_ip6) does.
    pub fn speak_ip6(&self) {
        self.add_ip6();
        for (i, host) in [&self.left, &self.right].into_iter().enumerate() {
            let (own, gateway) = (HOST6[i], ROUTER6[i]);
            host.sh(&format!(
                "echo 0 > /proc/sys/net/ipv6/conf/h{i}/disable_ipv6
                 ip addr add {own}/64 dev h{i} nodad
                 ip route add default via {gateway}"
            ))
            .expect("an IPv6 address and route");
        }
    }

    /// Raw sockets of the left and the right host.
    pub fn raw(&self) -> (Raw, Raw) {
        (
            Raw::open(&self.left, "h0", H0),
            Raw::open(&self.right, "h1", H1),
        )
    }
}

/// Whether an interface is up and has carrier.
pub fn carries(netns: &Netns, name: &str) -> bool {
    let link = netns.ip(&format!("link show dev {name}"));
    link.is_ok_and(|link| link.contains("LOWER_UP"))
}

/// Brings the machine's network card with this address into a namespace, down and by this name. A
/// card that was in a namespace comes back a moment after that is gone.
pub fn take_card(netns: &Netns, name: &str, mac: Mac) {
    let mut found = None;
    let there = until(patience(), || {
        found = std::fs::read_dir("/sys/class/net")
            .expect("sysfs is mounted")
            .flatten()
            .find(|link| {
                let address = std::fs::read_to_string(link.path().join("address"));
                address.is_ok_and(|address| address.trim() == text(mac))
            });
        found.is_some()
    });
    assert!(
        there,
        "no network card {}: PARSHALL_GUEST_CARDS of scripts/guest.sh gives one",
        text(mac)
    );
    let device = found.map_or(String::new(), |link| link.file_name().display().to_string());
    let lines = format!(
        "link set {device} down\nlink set {device} netns {}\n",
        netns.name()
    );
    command::run_with(&["ip", "-batch", "-"], &lines).expect("a card can be moved");
    if device != name {
        netns
            .ip_batch(&format!("link set {device} name {name}\n"))
            .expect("a free name");
    }
}

/// As `ip` writes it.
pub fn text(mac: Mac) -> String {
    mac.map(|octet| format!("{octet:02x}")).join(":")
}
