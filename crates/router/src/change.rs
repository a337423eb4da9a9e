//! The only way in: what the control plane says to the router, whatever its source (configuration, kernel, command line).
//!
//! A [`Change`] is a delta. [`crate::Router::apply`] validates a batch, changes the state, builds a snapshot and publishes it.

use std::net::Ipv4Addr;

pub use tables::ip4::Prefix;

/// Index of an interface of the router (not the kernel's ifindex). 0 is never an interface.
pub type InterfaceId = u16;

/// MTUs that an interface can have, in bytes of IP packet: the smallest of IPv4 (RFC 791 section 3.2) to jumbo frames.
pub const MTUS: std::ops::RangeInclusive<u16> = 68..=9216;

/// A 48-bit Ethernet address.
pub type Mac = [u8; 6];

/// What an interface is to the packet path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A routed interface whose packets enter `ethernet-input`. `twin` is the interface (a tap) by which the host is
    /// reached; `None` where the kernel's netdev is the port itself and the host takes its packets before us.
    Routed {
        /// The tap that stands for this interface in the kernel.
        twin: Option<InterfaceId>,
    },
    /// The kernel's end of another interface: what the host sends by it leaves by `of` untouched.
    Twin {
        /// The interface whose twin this is.
        of: InterfaceId,
    },
}

impl Kind {
    /// Name of the twin of an interface of this name.
    pub fn twin_name(of: &str) -> String {
        format!("{of}-host")
    }
}

/// The attributes of an interface that the packet path needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Our index.
    pub id: InterfaceId,
    /// Name as configured; a twin's is [`Kind::twin_name`].
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Ethernet address.
    pub mac: Mac,
    /// Largest IP packet in bytes, one of [`MTUS`].
    pub mtu: u16,
    /// Administratively up and with carrier.
    pub up: bool,
}

/// One next hop of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    /// The interface that the packet leaves by.
    pub interface: InterfaceId,
    /// The router to hand it to; `None`: the destination itself is on the link.
    pub gateway: Option<Ipv4Addr>,
    /// Share of the flows, from 1: to 256 in a route (`rtnh_hops` + 1), to 65,535 in a next-hop object (`struct nexthop_grp`).
    pub weight: u16,
    /// Largest IP packet in bytes that the route allows (RTAX_MTU); fewer than 68 count as 68, and the interface's own limit holds beside
    /// it. `None`: only that.
    pub mtu: Option<u16>,
}

/// What to do with packets of a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Route {
    /// Forward along one path, or spread flows over several.
    Forward(Vec<Path>),
    /// An own address, a broadcast address: the host takes it.
    Local,
    /// Directed broadcast of a connected network (RFC 2644): delivered to the host, never forwarded.
    Broadcast,
    /// The kernel forwards it: its route leaves by an interface that is not ours.
    Punt,
    /// Dropped without a word.
    Blackhole,
    /// Dropped, ICMP host unreachable.
    Unreachable,
    /// Dropped, ICMP administratively prohibited.
    Prohibit,
}

/// One change of the router's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Create an interface or replace its attributes.
    InterfaceSet(Interface),
    /// Remove an interface, its addresses, neighbors and the adjacencies on it.
    InterfaceDelete(InterfaceId),
    /// An own address (host part kept) with the prefix length of its link.
    AddressAdd {
        /// Interface it is configured on.
        interface: InterfaceId,
        /// The address.
        address: Ipv4Addr,
        /// Prefix length, 0 to 32.
        length: u8,
    },
    /// The address is gone.
    AddressDelete {
        /// Interface it was configured on.
        interface: InterfaceId,
        /// The address.
        address: Ipv4Addr,
        /// Prefix length, 0 to 32.
        length: u8,
    },
    /// A neighbor is resolved to an Ethernet address.
    NeighborSet {
        /// Interface it is on.
        interface: InterfaceId,
        /// Its IPv4 address.
        address: Ipv4Addr,
        /// Its Ethernet address.
        mac: Mac,
    },
    /// The neighbor is unresolved again.
    NeighborDelete {
        /// Interface it was on.
        interface: InterfaceId,
        /// Its IPv4 address.
        address: Ipv4Addr,
    },
    /// The route of a prefix, new or replaced in one step.
    RouteSet {
        /// Destination.
        prefix: Prefix,
        /// What to do.
        route: Route,
    },
    /// No route for this prefix any more; a shorter one takes over.
    RouteDelete {
        /// Destination.
        prefix: Prefix,
    },
}
