//! A kernel or a router between two raw sockets, and what comes out of it.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use crate::harness::craft::{ICMP, ICMP6, Ip4, Mac, checksum};
use crate::harness::router::{forwards, is_to};
use crate::harness::topology::{
    CONFIGURATION, H0, H1, HOST, HOST6, R0, ROUTER, ROUTER6, ip6, text,
};
use crate::harness::{Hosts, Raw, Router, patience};

/// Ethernet address of the n-th further neighbor.
const fn mac(n: u8) -> Mac {
    [2, 0x70, 0x73, 2, 0, n]
}

/// MTU on the right.
pub const NARROW: u16 = 1400;

/// Further addresses on the left: one of the same network as the first, one of another with a
/// neighbor in it.
const SECONDARY: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 77);
const OTHER: Ipv4Addr = Ipv4Addr::new(198, 18, 10, 1);
const NEAR_OTHER: Ipv4Addr = Ipv4Addr::new(198, 18, 10, 2);
/// All addresses that the device may send from.
pub const OWN: [Ipv4Addr; 4] = [ROUTER[0], ROUTER[1], SECONDARY, OTHER];

/// A further IPv6 address on the left, of another network with a neighbor in it.
const OTHER6: Ipv6Addr = ip6(10, 1);
const NEAR_OTHER6: Ipv6Addr = ip6(10, 2);
/// An IPv6 address of a network that has another one, too.
const SOURCE6: Ipv6Addr = ip6(0, 0x77);
/// All IPv6 addresses that the device may send from, and those that errors come from: the best ones
/// of the interface on the left, and what a route names.
const OWN6: [Ipv6Addr; 4] = [ROUTER6[0], ROUTER6[1], OTHER6, SOURCE6];
pub const SENDS6: [Ipv6Addr; 2] = [OTHER6, SOURCE6];

/// Ethernet address of the second next hop of a route with two, and that route's destinations.
const SECOND: Mac = mac(4);
const SPREAD: [u8; 5] = [0x20, 1, 0xd, 0xb8, 0x50];

/// Where a packet came out, and what it was, without what may differ.
pub type Output = (&'static str, Vec<u8>);
pub type Outputs = BTreeMap<Output, usize>;

/// The kind of a device.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Kernel,
    /// The router on veth, by AF_XDP: the netdev itself is the host's.
    Veth,
    /// The router on ports without a netdev: a tap is the host's.
    Tap,
}

/// A device with a socket on each side.
pub struct Device {
    pub hosts: Hosts,
    pub left: Raw,
    pub right: Raw,
    pub router: Option<Router>,
    markers: u16,
}

impl Device {
    /// A new one with an MTU of `mtu` on the left and [`NARROW`] on the right.
    pub fn new(kind: Kind, mtu: u16) -> Self {
        let (hosts, router) = if kind == Kind::Tap {
            let (hosts, router) = Hosts::on_taps([mtu, NARROW]);
            (hosts, Some(router))
        } else {
            let hosts = Hosts::new(mtu, false);
            let narrow = format!("link set r1 mtu {NARROW}");
            hosts.router.ip(&narrow).unwrap();
            (hosts, None)
        };
        let h1 = HOST[1];
        hosts
            .router
            .ip_batch(&format!(
                "route add blackhole 60.0.0.0/8\nroute add unreachable 61.0.0.0/8\nroute add prohibit 62.0.0.0/8\n\
                 route add 49.0.0.0/8 via {h1} dev r1 mtu 1300\n\
                 route add 50.0.0.1/32 nexthop dev r1 nexthop dev r1 weight 2\n\
                 route add 51.0.0.1/32 mtu 1200 dev r1\n\
                 neigh replace 50.0.0.1 lladdr {m1} dev r1 nud permanent\n\
                 neigh replace 51.0.0.1 lladdr {m2} dev r1 nud permanent\n\
                 address add {SECONDARY}/24 dev r0\naddress add {OTHER}/24 dev r0\n\
                 neigh replace {NEAR_OTHER} lladdr {m3} dev r0 nud permanent\n\
                 route add 17.0.0.0/8 via {NEAR_OTHER} dev r0\nroute add 18.0.0.0/8 via {h0} dev r0 src {SECONDARY}\n",
                m1 = text(mac(1)),
                m2 = text(mac(2)),
                m3 = text(mac(3)),
                h0 = HOST[0]
            ))
            .unwrap();
        hosts.add_ip6();
        let [h0, h1] = HOST6;
        hosts
            .router
            .ip_batch(&format!(
                "route add blackhole 2001:db8:6000::/40\nroute add unreachable 2001:db8:6100::/40\n\
                 route add prohibit 2001:db8:6200::/40\n\
                 route add 2001:db8:4900::/40 via {h1} dev r1 mtu lock 1300\n\
                 neigh replace {h3} lladdr {m4} dev r1 nud permanent\n\
                 route add 2001:db8:5000::/40 nexthop via {h1} dev r1 nexthop via {h3} dev r1 weight 2\n\
                 route add 2001:db8:5100::1/128 mtu lock 1280 dev r1\n\
                 neigh replace 2001:db8:5100::1 lladdr {m5} dev r1 nud permanent\n\
                 address add {SOURCE6}/64 dev r0 nodad\naddress add {OTHER6}/64 dev r0 nodad\n\
                 neigh replace {NEAR_OTHER6} lladdr {m6} dev r0 nud permanent\n\
                 route add 2001:db8:1700::/40 via {NEAR_OTHER6} dev r0 src {OTHER6}\n\
                 route add 2001:db8:1800::/40 via {h0} dev r0 src {SOURCE6}\n\
                 neigh replace {h4} lladdr {m7} dev r1 nud permanent\n\
                 route add 52.0.0.0/8 via inet6 {h4} dev r1\n\
                 route add 53.0.0.0/8 via inet6 fe80::2 dev r1 mtu 1300\n",
                h3 = ip6(1, 3),
                h4 = ip6(1, 4),
                m4 = text(SECOND),
                m5 = text(mac(5)),
                m6 = text(mac(6)),
                m7 = text(mac(7)),
            ))
            .unwrap();
        // Packets with options are the kernel's also where the router forwards.
        hosts.router.set_forwarding(true).unwrap();
        let router = router
            .or_else(|| (kind == Kind::Veth).then(|| Router::start(&hosts.router, CONFIGURATION)));
        let (left, right) = hosts.raw();
        assert!(forwards(&left, &right), "it does not forward");
        Self {
            hosts,
            left,
            right,
            router,
            markers: 0,
        }
    }

    /// Sends a batch from the left and returns what comes out.
    pub fn run(&mut self, frames: &[Vec<u8>]) -> Outputs {
        for frame in frames {
            self.left.send(frame);
        }
        let mut outputs = Outputs::new();
        self.mark(&mut outputs);
        outputs
    }

    /// Collects what comes out until all of it has come. Behind the batch go a packet to the right,
    /// then one that brings an ICMP error back, each until it is seen.
    fn mark(&mut self, outputs: &mut Outputs) {
        self.markers += 1;
        let src = Ipv4Addr::from(0x10ff_0000 | u32::from(self.markers));
        let through = Ip4::udp(src, [48, 255, 255, 255].into(), 0, 8);
        let back = Ip4 {
            ttl: 1,
            ..through.clone()
        };
        let seen = |frame: &[u8]| is_to(frame, through.dst) && frame[26..30] == src.octets();
        let answered = |frame: &[u8]| is_to(frame, src) && frame[23] == ICMP;
        collect(&self.left, "right", &self.right, &through, seen, outputs);
        collect(&self.left, "left", &self.left, &back, answered, outputs);
        for (side, socket) in [("left", &self.left), ("right", &self.right)] {
            for frame in socket.drain(Duration::from_millis(1)) {
                if !seen(&frame) && !answered(&frame) {
                    count(side, frame, outputs);
                }
            }
        }
    }

    /// The router's count of errors whose reason contains `reason`.
    pub fn errors(&self, reason: &str) -> u64 {
        let Some(router) = &self.router else { return 0 };
        let shown = router.show(&["errors"]);
        let rows = shown["errors"].as_array().expect("a list");
        rows.iter()
            .filter(|row| row["reason"].as_str().is_some_and(|r| r.contains(reason)))
            .filter_map(|row| row["count"].as_u64())
            .sum()
    }

    /// Packets that the router itself has sent by an interface.
    pub fn sent_by(&self, interface: &str) -> u64 {
        let Some(router) = &self.router else { return 0 };
        let shown = router.show(&["interface", interface]);
        shown["interfaces"][0]["tx_packets"]
            .as_u64()
            .expect("a number")
    }
}

/// Sends `packet` from `left` until `wanted` comes out at `at`; what comes out before is counted.
fn collect(
    left: &Raw,
    side: &'static str,
    at: &Raw,
    packet: &Ip4,
    wanted: impl Fn(&[u8]) -> bool,
    outputs: &mut Outputs,
) {
    let end = Instant::now() + patience();
    while Instant::now() < end {
        left.send(&packet.frame(H0, R0));
        while let Some(frame) = at.receive(Duration::from_millis(500)) {
            if wanted(&frame) {
                return;
            }
            count(side, frame, outputs);
            assert!(
                Instant::now() < end,
                "what comes out on the {side} has no end"
            );
        }
    }
    panic!("nothing comes out on the {side} any more");
}

/// Counts an IP packet, without what may differ.
pub fn count(side: &'static str, frame: Vec<u8>, outputs: &mut Outputs) {
    match frame[12..14] {
        [8, 0] if frame.len() >= 34 => count4(side, frame, outputs),
        [0x86, 0xdd] if frame.len() >= 54 => count6(side, frame, outputs),
        _ => {}
    }
}

fn count6(side: &'static str, mut frame: Vec<u8>, outputs: &mut Outputs) {
    // Groups and neighbors: each device asks when it likes.
    let of_groups = frame[20] == 0 && frame[38] == 0xff;
    let discovers = frame.get(54).is_some_and(|kind| (133..=137).contains(kind));
    if of_groups || frame[20] == ICMP6 && discovers {
        return;
    }
    let length = usize::from(u16::from_be_bytes([frame[18], frame[19]]));
    frame.truncate(54 + length);
    if frame[38..].starts_with(&SPREAD) && frame.starts_with(&SECOND) {
        // Each device spreads flows as it likes.
        frame[..6].copy_from_slice(&H1);
    }
    if OWN6.iter().any(|own| own.octets() == frame[22..38]) {
        // The flow label: Linux chooses one at random.
        frame[15] &= 0xf0;
        frame[16..18].fill(0);
    }
    *outputs.entry((side, frame)).or_default() += 1;
}

fn count4(side: &'static str, mut frame: Vec<u8>, outputs: &mut Outputs) {
    let total = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
    frame.truncate(14 + total);
    let src: [u8; 4] = frame[26..30].try_into().unwrap();
    if OWN.iter().any(|own| own.octets() == src) {
        let header = usize::from(frame[14] & 15) * 4;
        assert_eq!(
            checksum(&frame[14..14 + header]),
            0,
            "header checksum of {frame:02x?}"
        );
        frame[18..20].fill(0);
        frame[24..26].fill(0);
    }
    *outputs.entry((side, frame)).or_default() += 1;
}
