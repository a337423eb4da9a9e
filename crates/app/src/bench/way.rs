//! What becomes of a scenario's packets: its interfaces, and the stations of its bridge.

use std::net::Ipv4Addr;

use router::acl::{Direction, Packets, Rule};
use router::bond::{Headers, Spread};
use router::vxlan::Tunnel;
use router::{
    ArpRequests, BridgeDomain, Change, Interface, Kind, L2, Mac, Prefix as Network, Route, Tags,
};
use tables::acl;
use tables::prefix::Prefix;
use tables::random::Random;
use wire::craft::Packet;
use wire::eth::{self, Header};
use wire::{ip, ip4, port, udp, vxlan};

use super::talk::Talk;

/// The only interface with a port: packets come and go by it.
pub const INTERFACE: u16 = 1;
/// Interfaces whose packets leave by the port, too, where a scenario has any: sub-interfaces with
/// these tags, another port, a bridge domain's own interface.
pub const OTHERS: [(u16, Tags); 2] = [(2, Tags::one(100)), (3, Tags::one(200))];
const OTHER: u16 = OTHERS[0].0;
const BVI: u16 = OTHERS[1].0;
const DOMAIN: u16 = 1;
const TUNNEL: u16 = OTHERS[1].0;
/// The ends of the tunnel: the own address, and a neighbor's.
const LOCAL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const REMOTE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const VNI: u32 = 7;
/// Bytes around a frame in the tunnel.
const AROUND: i32 = (eth::LEN + ip4::LEN + udp::LEN + vxlan::LEN) as i32;
/// Where a packet of the tunnel has its source port, which a hash gives.
const SOURCE_PORT: std::ops::Range<usize> = 34..36;
/// The address that routed packets come to.
pub const OWN: Mac = Mac([0x02, 0x50, 0x53, 0, 0, 1]);
/// That of the other port. Packets that come in again come from it, which the own interface of a
/// bridge domain must not.
const OTHER_OWN: Mac = Mac([0x02, 0x50, 0x53, 0, 0, 2]);

/// A bond without a host interface.
const BOND: Kind = Kind::Bond {
    spread: Spread::Xor(Headers::L34),
    enabled: true,
    host: None,
};

/// What becomes of a scenario's packets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Routed.
    Routed,
    /// Routed past an access list of so many random rules.
    Filtered(u32),
    /// Routed past the firewall.
    Firewalled(Talk),
    /// Routed from and to a sub-interface.
    RoutedTagged,
    /// Routed from a bridge domain to another port.
    RoutedByBvi,
    /// Routed by a bond of one member, the port, which hashes addresses and ports.
    RoutedByBond,
    /// Cross-connected as they are.
    Crossed,
    /// Cross-connected between two sub-interfaces with other tags.
    Retagged,
    /// Bridged between so many stations on each of two sides.
    Bridged(u32),
    /// Cross-connected into a VXLAN tunnel over IPv4.
    IntoTunnel,
    /// Cross-connected out of it.
    OutOfTunnel,
}

impl Way {
    /// The interface that routed packets leave by.
    pub const fn routed(self) -> u16 {
        match self {
            Way::RoutedTagged | Way::RoutedByBvi | Way::RoutedByBond | Way::IntoTunnel => OTHER,
            _ => INTERFACE,
        }
    }

    /// The tag that packets come with.
    pub const fn tags(self) -> Tags {
        match self {
            Way::RoutedTagged | Way::Retagged => OTHERS[0].1,
            _ => Tags::NONE,
        }
    }

    /// True if routers on the way change the packets.
    pub const fn is_routed(self) -> bool {
        matches!(
            self,
            Way::Routed
                | Way::Filtered(_)
                | Way::Firewalled(_)
                | Way::RoutedTagged
                | Way::RoutedByBvi
                | Way::RoutedByBond
        )
    }

    /// The interface whose packets pass features before they leave.
    pub const fn featured(self) -> Option<u16> {
        match self {
            Way::RoutedByBond => Some(OTHER),
            Way::IntoTunnel => Some(TUNNEL),
            _ => None,
        }
    }

    /// The bytes that packets have lost when they come back, or gained if that is negative: those
    /// that a tunnel puts around frames. What is measured is one direction alone.
    pub const fn lost(self) -> i32 {
        match self {
            Way::IntoTunnel => AROUND,
            Way::OutOfTunnel => -AROUND,
            _ => 0,
        }
    }

    /// The frame as it comes in.
    pub fn entering(self, frame: Vec<u8>) -> Vec<u8> {
        match self {
            Way::OutOfTunnel => tunneled(&frame, REMOTE, LOCAL),
            _ => frame,
        }
    }

    /// The frame that came in as it leaves; and what has left, without what is nobody's choice.
    pub fn leaving(self, frame: Vec<u8>, found: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let mut found = found.to_vec();
        match self {
            Way::IntoTunnel => {
                let wanted = tunneled(&frame, LOCAL, REMOTE);
                if let (Some(port), Some(wanted)) =
                    (found.get_mut(SOURCE_PORT), wanted.get(SOURCE_PORT))
                {
                    port.copy_from_slice(wanted);
                }
                (wanted, found)
            }
            _ => (frame, found),
        }
    }

    /// Its flows past the firewall.
    pub const fn talk(self) -> Option<Talk> {
        match self {
            Way::Firewalled(talk) => Some(talk),
            _ => None,
        }
    }

    /// The rules of its access list: prefixes of 17 lengths each, and ports or not. The last one takes
    /// all packets.
    pub fn rules(self) -> Vec<acl::Rule<u32>> {
        let Way::Filtered(count) = self else {
            return Vec::new();
        };
        let mut random = Random::new(count.into());
        let mut prefix = |net: u32, number: u32| match number + 1 == count {
            true => Prefix::cut(net << 24, 8),
            false => {
                let within = random.word() >> 8;
                Prefix::cut(net << 24 | within, 16 + random.below(17) as u8)
            }
        };
        let all = 0..=u16::MAX;
        let rule = |number: u32| acl::Rule {
            source: prefix(16, number),
            destination: prefix(48, number),
            protocol: [None, Some(ip::UDP)][number as usize % 2],
            source_ports: [all.clone(), 1024..=u16::MAX][number as usize / 2 % 2].clone(),
            destination_ports: [all.clone(), 12..=12, 0..=1023][number as usize % 3].clone(),
        };
        (0..count).map(rule).collect()
    }

    /// Makes these rules the access list of what comes in; or gives that a policy.
    pub fn filters(self, rules: &[acl::Rule<u32>]) -> Vec<Change> {
        if let Some(talk) = self.talk() {
            return talk.policy(INTERFACE);
        }
        if rules.is_empty() {
            return Vec::new();
        }
        let rules = rules.iter().map(|packets| Rule {
            permit: true,
            packets: Packets::V4(packets.clone()),
        });
        let (name, rules) = ("acl".to_owned(), rules.collect());
        vec![
            Change::AclSet { name, rules },
            Change::AclsAttach {
                interface: INTERFACE,
                direction: Direction::Input,
                acls: vec!["acl".to_owned()],
            },
        ]
    }

    /// Source and destination of packet `i`, and of it when it has been routed.
    pub fn macs(self, i: usize) -> (Mac, Mac) {
        match self {
            Way::Bridged(stations) => {
                let mut random = Random::new(i as u64);
                let [from, to] = [INTERFACE, OTHER].map(|side| (side, random.below(stations)));
                (station(from), station(to))
            }
            Way::RoutedByBvi => (OTHER_OWN, OWN),
            _ => (OWN, OWN),
        }
    }

    /// Frames by which a bridge learns its stations, each with the interface it comes in at. Those
    /// are not known then that they are for, so they go no further.
    pub fn lessons(self) -> Vec<(u16, Vec<u8>)> {
        let stations = match self {
            Way::Bridged(count) => {
                let all = (0..count).flat_map(|n| [(INTERFACE, n), (OTHER, n)]);
                all.map(|(side, n)| (side, station((side, n)))).collect()
            }
            Way::RoutedByBvi => vec![(INTERFACE, OTHER_OWN)],
            _ => Vec::new(),
        };
        let lesson = |mac| {
            let header = Header::new(station((0, 0)), mac, eth::ARP);
            [&header.bytes()[..], &[0; 46]].concat()
        };
        let lessons = stations.into_iter().map(|(at, mac)| (at, lesson(mac)));
        lessons.collect()
    }

    /// The interfaces. One with a single port is cross-connected to itself; packets go round an even
    /// number of times, and so have the tags in the end that they had.
    pub fn interfaces(self) -> Vec<Change> {
        let port = Kind::Routed { host: None };
        let set = |id, mac, kind, l2| {
            Change::InterfaceSet(Interface {
                id,
                name: format!("null{id}"),
                kind,
                mac,
                mtu: 1500,
                up: true,
                l2,
                serving: true,
            })
        };
        let bare = |id, l2| set(id, OWN, port, l2);
        let sub = |(id, tags), l2| {
            let parent = INTERFACE;
            let host = None;
            set(id, OWN, Kind::Sub { parent, tags, host }, l2)
        };
        let bridged = Some(L2::Bridge(DOMAIN));
        let crossed = |to| Some(L2::CrossConnect(to));
        match self {
            Way::Routed | Way::Filtered(_) | Way::Firewalled(_) => vec![bare(INTERFACE, None)],
            Way::RoutedTagged => vec![bare(INTERFACE, None), sub(OTHERS[0], None)],
            Way::RoutedByBvi => vec![
                domain(Some(BVI)),
                bare(INTERFACE, bridged),
                set(OTHER, OTHER_OWN, port, None),
                bare(BVI, None),
            ],
            Way::RoutedByBond => vec![
                bare(INTERFACE, Some(L2::Bond(OTHER))),
                set(OTHER, OWN, BOND, None),
            ],
            Way::Crossed => vec![bare(INTERFACE, crossed(INTERFACE))],
            Way::Retagged => vec![
                bare(INTERFACE, None),
                sub(OTHERS[0], crossed(BVI)),
                sub(OTHERS[1], crossed(OTHER)),
            ],
            Way::Bridged(_) => vec![domain(None), bare(INTERFACE, bridged), bare(OTHER, bridged)],
            Way::IntoTunnel => vec![
                bare(INTERFACE, crossed(TUNNEL)),
                set(TUNNEL, OWN, tunnel(), crossed(INTERFACE)),
                bare(OTHER, None),
            ],
            Way::OutOfTunnel => vec![
                bare(INTERFACE, None),
                set(TUNNEL, OWN, tunnel(), crossed(OTHER)),
                bare(OTHER, crossed(TUNNEL)),
                Change::RouteSet {
                    prefix: Network::host(LOCAL),
                    route: Route::Local,
                },
            ],
        }
    }
}

/// The tunnel, without a host interface.
fn tunnel() -> Kind {
    Kind::Vxlan {
        tunnel: Tunnel::new(LOCAL.into(), REMOTE.into(), VNI).expect("of one family"),
        host: None,
    }
}

/// A frame in the tunnel, between these ends.
fn tunneled(frame: &[u8], from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
    let header = vxlan::Header::new(VNI);
    let packet = Packet::udp((from.into(), 50000), (to.into(), port::VXLAN));
    let packet = packet.fragment(ip4::DONT_FRAGMENT).without_udp_checksum();
    let packet = packet.macs(OWN, OWN);
    packet.payload(&[header.bytes(), frame].concat()).frame()
}

/// The bridge domain. It floods nothing, so that a packet whose destination it does not know is
/// missed.
fn domain(bvi: Option<u16>) -> Change {
    Change::BridgeSet(BridgeDomain {
        id: DOMAIN,
        name: "bd1".into(),
        learn: true,
        flood: false,
        unknown_flood: false,
        forward: true,
        bvi,
        age_minutes: None,
        limit: None,
        arp: ArpRequests::Flood,
    })
}

/// The address of a station behind an interface.
fn station((side, number): (u16, u32)) -> Mac {
    let [a, b, c, d] = number.to_be_bytes();
    Mac([0x02, side as u8, a, b, c, d])
}
