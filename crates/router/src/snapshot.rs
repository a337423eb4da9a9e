//! The state that workers read beside the tables: immutable, published as a whole.

use std::net::Ipv6Addr;
use std::sync::Arc;

use crate::acl::Lists;
use crate::bond::lacp::{Outbox, Outgoing};
use crate::bond::{Group, Groups};
use crate::change::{DomainId, InterfaceId};
use crate::firewall::Attached;
use crate::l2::{Domain, Domains};
use crate::nat::Published;
use crate::source::Sources;
use crate::vxlan::Tunnels;

/// The published state.
#[derive(Debug, Default)]
pub struct Snapshot {
    sources: Sources,
    domains: Domains,
    bonds: Groups,
    lacpdus: Outbox,
    /// VXLAN tunnels.
    pub(crate) tunnels: Tunnels,
    /// Access lists of interfaces.
    pub(crate) acls: Lists,
    /// The firewall's policies of interfaces.
    pub(crate) policies: Attached,
    /// Translation of addresses.
    pub(crate) nat: Published,
}

impl Snapshot {
    pub(crate) fn new(
        sources: Sources,
        domains: Domains,
        (bonds, lacpdus): (Groups, Outbox),
        tunnels: Tunnels,
        (acls, policies, nat): (Lists, Attached, Published),
    ) -> Self {
        Snapshot {
            sources,
            domains,
            bonds,
            lacpdus,
            tunnels,
            acls,
            policies,
            nat,
        }
    }

    /// The bridge domain of this number.
    #[inline(always)]
    pub(crate) fn domain(&self, number: DomainId) -> Option<&Domain> {
        self.domains.get(usize::from(number))?.as_deref()
    }

    /// The bond of this number.
    #[inline(always)]
    pub(crate) fn bond(&self, number: InterfaceId) -> Option<&Group> {
        self.bonds.get(usize::from(number))?.as_deref()
    }

    /// The LACPDUs that are to be sent.
    pub(crate) fn lacpdus(&self) -> &[Arc<Outgoing>] {
        &self.lacpdus
    }

    /// An own IPv4 address, in host byte order, to send from where the adjacency names none.
    pub fn ip4_source(&self) -> Option<u32> {
        self.sources.ip4.map(u32::from)
    }

    /// The own IPv6 address to send from to `destination` by an interface, where the adjacency
    /// names none.
    pub fn ip6_source(&self, interface: InterfaceId, destination: Ipv6Addr) -> Option<Ipv6Addr> {
        self.sources.ip6(interface, destination)
    }
}
