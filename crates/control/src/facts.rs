//! Facts that the kernel tells of links, addresses, neighbors and routes, in terms of its own
//! interface indexes.
//!
//! These are facts, not decisions: which of several routes to a prefix counts, and what it means to
//! the router, is worked out by [`crate::mirror::Translator`].

use std::net::IpAddr;
use std::slice;

use router::change::{Address, Mac, Prefix};

/// Kind of a bridge ([`Link::kind`]).
pub const BRIDGE: &str = "bridge";

/// A network device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Link {
    /// The kernel's interface index.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Further names (`ip link property`).
    pub altnames: Vec<String>,
    /// Ethernet address; `None` if the device has none.
    pub mac: Option<Mac>,
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// The largest MTU that its driver allows at the moment; `None`: the kernel names none.
    pub max_mtu: Option<u32>,
    /// Administratively up (IFF_UP).
    pub admin_up: bool,
    /// The link has carrier (IFF_LOWER_UP).
    pub carrier: bool,
    /// The loopback device.
    pub loopback: bool,
    /// Kind of a virtual device: `veth`, `tun`, `bridge` ... (IFLA_INFO_KIND).
    pub kind: Option<String>,
    /// Index of the bridge, bond or VRF that it is a port of (IFLA_MASTER); `None`: of none.
    pub master: Option<u32>,
    /// Bus of the hardware behind it: `pci`, `virtio` ... (IFLA_PARENT_DEV_BUS_NAME).
    pub bus: Option<String>,
    /// Address of the device on its bus, as in `0000:03:00.0` (IFLA_PARENT_DEV_NAME).
    pub bus_address: Option<String>,
}

impl Link {
    /// The link of this name among several; if there is none, the one of this alternative name.
    pub fn named<'a>(
        links: impl Iterator<Item = &'a Link> + Clone,
        name: &str,
    ) -> Option<&'a Link> {
        let has_altname = |link: &&Link| link.altnames.iter().any(|other| other == name);
        let by_altname = || links.clone().find(has_altname);
        links
            .clone()
            .find(|link| link.name == name)
            .or_else(by_altname)
    }
}

/// An entry of the neighbor table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbor {
    /// Interface index of the device that it is on.
    pub link: u32,
    /// Its address.
    pub address: IpAddr,
    /// Its Ethernet address while the kernel would use it to send; `None`: unresolved.
    pub mac: Option<Mac>,
}

/// The routing tables that count without further policy rules, in the order in which the kernel
/// asks them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// Own and broadcast addresses (255).
    Local,
    /// The main table, to which programs write unless told otherwise (254).
    Main,
    /// The last resort (253).
    Default,
}

/// The type of a route (rtm_type).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RouteKind {
    /// Forward it.
    Unicast,
    /// The host's own.
    Local,
    /// Delivered to the host as broadcast.
    Broadcast,
    /// Drop silently.
    Blackhole,
    /// Drop, ICMP host unreachable.
    Unreachable,
    /// Drop, ICMP administratively prohibited.
    Prohibit,
    /// A type that only the kernel can handle (throw, nat ...).
    Other,
}

/// The gateway of a next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Gateway {
    /// The destination is on the link.
    OnLink,
    /// By this router, of either family (RFC 8950).
    Via(IpAddr),
    /// By something that only the kernel can do: an encapsulation.
    Foreign,
}

/// One next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hop {
    /// Interface index of the device it leaves by; 0: none given.
    pub link: u32,
    /// The router that it is handed to.
    pub gateway: Gateway,
    /// Share of the flows, 1 to 65536.
    pub weight: u32,
}

impl Hop {
    /// Straight to the destination on a link.
    pub const fn on_link(link: u32) -> Self {
        Hop {
            link,
            gateway: Gateway::OnLink,
            weight: 1,
        }
    }
}

/// The next hops of a route.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Hops {
    /// One. Also of routes that need none (blackhole): its link is then 0.
    One(Hop),
    /// Several.
    Many(Box<[Hop]>),
    /// A next-hop object, by its identifier.
    Object(u32),
}

impl Hops {
    /// Its hops, unless an object has them.
    pub fn list(&self) -> Option<&[Hop]> {
        match self {
            Hops::One(hop) => Some(slice::from_ref(hop)),
            Hops::Many(hops) => Some(hops),
            Hops::Object(_) => None,
        }
    }
}

/// A route of one of the three [`Table`]s; of IPv6, tables local and main.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Route {
    /// Destination.
    pub prefix: Prefix,
    /// The table that it is in.
    pub table: Table,
    /// Type of service; only 0 takes part in forwarding here.
    pub tos: u8,
    /// Metric (RTA_PRIORITY): the lowest wins.
    pub metric: u32,
    /// The maker of the route (`RTPROT_*`).
    pub protocol: u8,
    /// The preference of an IPv6 route that comes from router advertisements.
    pub advertised: Option<Preference>,
    /// Its effect on packets.
    pub kind: RouteKind,
    /// Largest IP packet in bytes (RTAX_MTU); `None`: that of the link.
    pub mtu: Option<u16>,
    /// Source address of the host's own packets (RTA_PREFSRC); `None`: any address of the device.
    pub source: Option<IpAddr>,
    /// Its next hops.
    pub hops: Hops,
}

impl Route {
    /// Returns true if its destinations are neighbors on a link: only by such a route the kernel finds the
    /// next hop of another.
    pub fn is_on_link(&self) -> bool {
        let on_link = |hop: &Hop| hop.link != 0 && hop.gateway == Gateway::OnLink;
        let hops = self.hops.list().unwrap_or_default();
        hops.iter().any(on_link)
    }
}

/// Preference of a route from router advertisements (RFC 4191): of several with the same metric, the
/// first in this order is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Preference {
    /// Before others.
    High,
    /// As any other.
    Medium,
    /// After others.
    Low,
}

/// The position of a new route among those of the same prefix, table, type of service and metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In place of the first.
    Replace,
    /// Before them.
    First,
    /// After them.
    Last,
}

/// A next-hop object (`ip nexthop`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Nexthop {
    /// A single hop.
    Hop(Hop),
    /// Drops.
    Blackhole,
    /// Other objects, each with its weight (1 to 65536).
    Group(Vec<(u32, u32)>),
    /// Of a kind that only the kernel can use.
    Foreign,
}

/// The tables that are dumped one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Section {
    /// Network devices.
    Links,
    /// Addresses.
    Addresses,
    /// Next-hop objects.
    Nexthops,
    /// Neighbors.
    Neighbors,
    /// Routes.
    Routes,
}

impl Section {
    /// All of them, what is referred to before what refers to it.
    pub const ALL: [Section; 5] = [
        Section::Links,
        Section::Addresses,
        Section::Nexthops,
        Section::Neighbors,
        Section::Routes,
    ];
}

/// One fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A device is there or has changed.
    Link(Link),
    /// A device is gone, by its index.
    LinkGone(u32),
    /// An own address is there or has changed, on the device of this index.
    Address(u32, Address),
    /// An own address is gone.
    AddressGone(u32, Address),
    /// A neighbor is there or has changed.
    Neighbor(Neighbor),
    /// A neighbor is gone.
    NeighborGone(Neighbor),
    /// A next-hop object is there or has changed.
    Nexthop(u32, Nexthop),
    /// A next-hop object is gone, and with it the routes that use it.
    NexthopGone(u32),
    /// A route is there.
    Route(Route, Place),
    /// A route is gone.
    RouteGone(Route),
    /// All of a section follows.
    DumpBegin(Section),
    /// That was all of the section: what was not among it is gone, if `complete`.
    DumpEnd {
        /// The section that ends.
        section: Section,
        /// False if the table changed during the dump so that entries may be missing.
        complete: bool,
    },
    /// All that was so when this was asked for has been said, except what a lost message said: that
    /// follows in a dump.
    CaughtUp(u64),
}

/// Facts in the order in which they became true.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The facts, a few thousand at most.
    pub events: Vec<Event>,
    /// They are part of a dump, not news.
    pub resync: bool,
}
