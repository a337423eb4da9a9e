//! The only way in: what the control plane says to the router, whatever its source (configuration,
//! kernel, command line).
//!
//! A [`Change`] is a delta. [`crate::Router::apply`] validates a batch, changes the state, builds a
//! snapshot and publishes it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use tables::interface::{Feature, L2, Tags};
pub use wire::eth::Mac;

pub use crate::acl::{Direction, Rule};
pub use crate::bond::Spread;
pub use crate::firewall::Policy;
use crate::nat;
pub use crate::vxlan::Tunnel;

pub use crate::family::Prefix;

/// Index of an interface of the router (not the kernel's ifindex). 0 is never an interface.
pub type InterfaceId = u16;

/// Number of a bridge domain in the router, which is not the one that it is configured with.
pub type DomainId = u16;

/// MTUs that an interface can have, in bytes of IP packet: the smallest of IPv4 (RFC 791 section
/// 3.2) to jumbo frames.
pub const MTUS: std::ops::RangeInclusive<u16> = 68..=9216;

/// Kind of an interface, as the packet path sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A routed interface whose packets enter `ethernet-input`.
    Routed {
        /// Its host interface: the tap that stands for it in the kernel. `None` where the kernel's
        /// netdev is the port itself and the host takes its packets before us.
        host: Option<InterfaceId>,
    },
    /// A bond: a routed interface whose packets come and go by its members, which are the
    /// interfaces that [say so](Interface::l2).
    Bond {
        /// How what leaves is spread over the members.
        spread: Spread,
        /// Administratively up: LACP speaks only then.
        enabled: bool,
        /// Its host interface.
        host: Option<InterfaceId>,
    },
    /// A VXLAN tunnel: a routed interface whose packets come and go in UDP. It has no port.
    Vxlan {
        /// What its packets have around their frames.
        tunnel: Tunnel,
        /// Its host interface.
        host: Option<InterfaceId>,
    },
    /// A routed sub-interface: what has its tags on `parent`. It leaves by the parent's port.
    Sub {
        /// The interface that it is on top of, itself no sub-interface.
        parent: InterfaceId,
        /// Its tags, one or two. Where further ones may follow, it routes nothing: it is down
        /// unless it is at layer 2.
        tags: Tags,
        /// Its host interface, which has its packets without tags. `None`: the host has the same
        /// tags on the parent's host interface, or on the parent's netdev.
        host: Option<InterfaceId>,
    },
    /// A host interface, the kernel's end of another one: what the host sends by it leaves by `of`,
    /// with its tags, and is untouched otherwise.
    Host {
        /// The interface that it stands for.
        of: InterfaceId,
    },
}

impl Kind {
    /// The tags of its packets.
    pub(crate) const fn tags(self) -> Tags {
        match self {
            Kind::Sub { tags, .. } => tags,
            Kind::Routed { .. } | Kind::Bond { .. } | Kind::Vxlan { .. } | Kind::Host { .. } => {
                Tags::NONE
            }
        }
    }

    /// The interface that it is on top of; 0 for none.
    pub(crate) const fn parent(self) -> InterfaceId {
        match self {
            Kind::Sub { parent, .. } => parent,
            Kind::Routed { .. } | Kind::Bond { .. } | Kind::Vxlan { .. } | Kind::Host { .. } => 0,
        }
    }

    /// Name of the host interface of an interface of this name.
    pub fn host_name(of: &str) -> String {
        format!("{of}-host")
    }
}

/// The attributes of an interface that the packet path needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Our index.
    pub id: InterfaceId,
    /// Name as configured; a host interface's is [`Kind::host_name`].
    pub name: String,
    /// Kind of the interface.
    pub kind: Kind,
    /// Ethernet address.
    pub mac: Mac,
    /// Largest IP packet in bytes, one of [`MTUS`].
    pub mtu: u16,
    /// Administratively up and with carrier.
    pub up: bool,
    /// What it does at layer 2 instead of routing; a host interface has nothing of the kind.
    ///
    /// The other end of a cross connect is at layer 2, too, whether or not it has one back: it then
    /// drops what comes in. [`Change::InterfaceDelete`] of the other end does not undo this, so that
    /// a device may be plugged in again: whoever gives its number to another interface sets this
    /// first.
    pub l2: Option<L2>,
    /// True if it takes packets in: until then they are the kernel's, or wait in its port. It sends
    /// in any case.
    pub serving: bool,
}

/// One next hop of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    /// The interface that the packet leaves by.
    pub interface: InterfaceId,
    /// The router to hand it to, of either family (RFC 8950); `None`: the destination itself is on
    /// the link.
    pub gateway: Option<IpAddr>,
    /// Share of the flows, from 1: to 256 in a route (`rtnh_hops` + 1), to 65,535 in a next-hop
    /// object (`struct nexthop_grp`).
    pub weight: u16,
    /// Largest IP packet in bytes that the route allows (RTAX_MTU); fewer than
    /// [`Family::least_mtu`](crate::Family::least_mtu) count as that, and the interface's own limit
    /// holds beside it. `None`: only that.
    pub mtu: Option<u16>,
    /// Source address of the router's own packets along this path (RTA_PREFSRC); `None`: see
    /// [`Change::AddressesSet`].
    pub source: Option<IpAddr>,
}

/// An own address on an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address {
    /// The address.
    pub address: IpAddr,
    /// The other end of a point-to-point link; elsewhere the address itself.
    pub peer: IpAddr,
    /// Prefix length of the link, 0 to 32 or 128.
    pub length: u8,
    /// Scope in which the address is good; the lower, the wider (`RT_SCOPE_*`: 0 anywhere, 253 on
    /// its link, 254 in the host).
    pub scope: u8,
    /// Another IPv4 address of the same network came first (IFA_F_SECONDARY): never chosen as a
    /// source.
    pub secondary: bool,
    /// An IPv6 address that is not known to be the only one of its kind on the link
    /// (IFA_F_TENTATIVE, IFA_F_DADFAILED): never chosen as a source.
    pub tentative: bool,
    /// An IPv6 address to be chosen only if there is no other (IFA_F_DEPRECATED).
    pub deprecated: bool,
}

impl Address {
    /// A first address that is good anywhere, on a link with others.
    pub fn new(address: impl Into<IpAddr>, length: u8) -> Self {
        let address = address.into();
        Address {
            address,
            peer: address,
            length,
            scope: 0,
            secondary: false,
            tentative: false,
            deprecated: false,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// Treatment of packets for a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Route {
    /// Forward along one path, or spread flows over several.
    Forward(Vec<Path>),
    /// An own address, a broadcast address: the host takes it.
    Local,
    /// Directed broadcast of a connected network (RFC 2644): delivered to the host, never
    /// forwarded.
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

/// What becomes of an ARP request for an address whose owner is known, and behind another interface
/// than who asks. All others are flooded as any broadcast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ArpRequests {
    /// It goes to all.
    #[default]
    Flood,
    /// It is answered in the owner's place (ARP termination).
    Answer,
    /// It goes to the owner alone.
    Forward,
}

/// A bridge domain. Its members are the interfaces that say so ([`Interface::l2`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BridgeDomain {
    /// Our number.
    pub id: DomainId,
    /// Name as configured.
    pub name: String,
    /// Addresses are learned from what comes in.
    pub learn: bool,
    /// Broadcast and multicast go to all members.
    pub flood: bool,
    /// What is addressed to nobody known goes to all members; otherwise it is dropped.
    pub unknown_flood: bool,
    /// What is addressed to somebody known is forwarded.
    pub forward: bool,
    /// Its own interface (the bridged virtual interface), by which the router is a station of the
    /// domain. It is routed, has no port, and is no member.
    pub bvi: Option<InterfaceId>,
    /// Minutes after which a station is forgotten that is not seen again; `None`: never.
    pub age_minutes: Option<u8>,
    /// Most stations that are learned; `None`: as many as there is room for.
    pub limit: Option<u32>,
    /// What becomes of an ARP request for an address whose owner is known.
    pub arp: ArpRequests,
}

/// One change of the router's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Create an interface or replace its attributes.
    InterfaceSet(Interface),
    /// Remove an interface, its addresses, neighbors and the adjacencies on it.
    InterfaceDelete(InterfaceId),
    /// The own addresses of an interface, of both families, in place of those it had.
    ///
    /// The router's own packets, on a path without a source of its own, come from one of them, as
    /// Linux chooses. IPv4: the first on the next hop's network, or else the first. IPv6: the one
    /// nearest to the destination ([`Snapshot::ip6_source`](crate::Snapshot::ip6_source)).
    AddressesSet {
        /// Interface they are configured on.
        interface: InterfaceId,
        /// The addresses, in the order in which they are to be chosen from.
        addresses: Vec<Address>,
    },
    /// A feature that an interface's packets pass from now on, or no longer.
    ///
    /// They are what is wanted, not what the kernel has: they outlast [`Change::InterfaceDelete`],
    /// so that a device that is plugged in again does not forward without them. Whoever gives the
    /// number to another interface deletes them first.
    FeatureSet {
        /// The interface.
        interface: InterfaceId,
        /// The feature, such as [`ip4_in`](crate::arc::ip4_in)`(0)`.
        feature: Feature,
        /// Argument that says what it is to do there, such as the number of an access list, in
        /// words of the feature's own; `None`: packets pass it no longer.
        argument: Option<u32>,
    },
    /// Make an access list, or replace its rules. Where they differ, they count from 0.
    AclSet {
        /// Name as configured.
        name: String,
        /// Its rules: the first that matches decides.
        rules: Vec<Rule>,
    },
    /// Remove an access list. Interfaces that have it still have one without rules instead.
    AclDelete(String),
    /// The access lists that an interface's packets pass in a direction. The first rule of them that
    /// matches decides; what none matches is dropped. As [`Change::FeatureSet`] they outlast the
    /// interface.
    AclsAttach {
        /// The interface.
        interface: InterfaceId,
        /// The direction.
        direction: Direction,
        /// Their names, in order; none: everything passes. One that is not there has no rules.
        acls: Vec<String>,
    },
    /// Make a policy of the firewall, or replace it. Where its rules differ, they count from 0, and
    /// flows that it had accepted are asked about again.
    PolicySet {
        /// Name as configured.
        name: String,
        /// The policy.
        policy: Policy,
    },
    /// Remove a policy. Interfaces that have it still drop everything instead.
    PolicyDelete(String),
    /// The policy that packets pass which the router forwards from an interface
    /// ([`Direction::Input`]) or to it ([`Direction::Output`]). As [`Change::FeatureSet`] it outlasts
    /// the interface.
    PolicyAttach {
        /// The interface.
        interface: InterfaceId,
        /// The direction.
        direction: Direction,
        /// Its name; `None`: everything passes. One that is not there drops everything.
        policy: Option<String>,
    },
    /// Translate addresses by these rules from now on. Flows that they would not have translated so
    /// are over with their next packet.
    NatSet(nat::Rules),
    /// An interface's packets pass no feature any more, access lists and policies among them.
    FeaturesDelete(InterfaceId),
    /// Make a bridge domain or replace its attributes.
    BridgeSet(BridgeDomain),
    /// Remove a bridge domain. What comes in at its members is dropped from then on.
    BridgeDelete(DomainId),
    /// Source address of the router's own packets that leave by an interface without a suitable
    /// address.
    SourceSet {
        /// Of IPv4 packets.
        ip4: Option<Ipv4Addr>,
        /// Of IPv6 packets.
        ip6: Option<Ipv6Addr>,
    },
    /// A neighbor is resolved to an Ethernet address.
    NeighborSet {
        /// Interface it is on.
        interface: InterfaceId,
        /// Its IP address.
        address: IpAddr,
        /// Its Ethernet address.
        mac: Mac,
    },
    /// The neighbor is unresolved again.
    NeighborDelete {
        /// Interface it was on.
        interface: InterfaceId,
        /// Its IP address.
        address: IpAddr,
    },
    /// The route of a prefix, new or replaced in one step.
    RouteSet {
        /// Destination.
        prefix: Prefix,
        /// Route to set.
        route: Route,
    },
    /// No route for this prefix any more; a shorter one takes over.
    RouteDelete {
        /// Destination.
        prefix: Prefix,
    },
}
