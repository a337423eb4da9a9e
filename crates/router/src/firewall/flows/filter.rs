//! Which flows are meant.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use tables::flow::Entry;

use crate::change::{InterfaceId, Prefix};
use crate::firewall::entry::{Interfaces, SWAPPED};
use crate::flow::{State, key};

/// Ports from the first to the last, 0 to 65535. ICMP echoes have their identifier as both ports;
/// where there are none, both are 0.
pub type Ports = RangeInclusive<u16>;

/// Flows: those to which all that is said here applies. Source and destination are those of the
/// packet that opened the flow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// IP protocol.
    pub protocol: Option<u8>,
    /// Where the source is.
    pub source: Option<Prefix>,
    /// Where the destination is.
    pub destination: Option<Prefix>,
    /// Where either is.
    pub address: Option<Prefix>,
    /// The source's port.
    pub source_port: Option<Ports>,
    /// The destination's port.
    pub destination_port: Option<Ports>,
    /// The port of either.
    pub port: Option<Ports>,
    /// State of the connection.
    pub state: Option<State>,
    /// An interface that it comes or leaves by, in either direction.
    pub interface: Option<InterfaceId>,
    /// The worker that holds it, from 0.
    pub worker: Option<usize>,
}

impl Filter {
    /// True if a flow is among them, whatever worker holds it.
    pub(super) fn matches(&self, entry: &Entry) -> bool {
        let state = |state: State| State::from_number(entry.state) == state;
        let both = entry.interfaces.map(|of| Interfaces(of).both());
        let interface = |interface| both.as_flattened().contains(&interface);
        self.state.is_none_or(state)
            && self.interface.is_none_or(interface)
            && (self.has_no_ends() || self.matches_ends(entry))
    }

    fn has_no_ends(&self) -> bool {
        let addresses = [&self.source, &self.destination, &self.address];
        let ports = [&self.source_port, &self.destination_port, &self.port];
        self.protocol.is_none()
            && addresses.into_iter().all(Option::is_none)
            && ports.into_iter().all(Option::is_none)
    }

    fn matches_ends(&self, entry: &Entry) -> bool {
        let ([source, destination], protocol) = ends(entry);
        let any = |of: fn(&SocketAddr, &Self) -> bool| of(&source, self) || of(&destination, self);
        self.protocol.is_none_or(|of| of == protocol)
            && in_prefix(self.source, source.ip())
            && in_prefix(self.destination, destination.ip())
            && in_ports(self.source_port.as_ref(), source.port())
            && in_ports(self.destination_port.as_ref(), destination.port())
            && any(|end, filter| in_prefix(filter.address, end.ip()))
            && any(|end, filter| in_ports(filter.port.as_ref(), end.port()))
    }
}

/// Source and destination of the packet that opened a flow, and the protocol.
pub(super) fn ends(entry: &Entry) -> ([SocketAddr; 2], u8) {
    let ([first, second], protocol) = key::ends(entry.key());
    let ends = if entry.flags & SWAPPED != 0 {
        [second, first]
    } else {
        [first, second]
    };
    (ends, protocol)
}

fn in_prefix(prefix: Option<Prefix>, address: IpAddr) -> bool {
    match (prefix, address) {
        (None, _) => true,
        (Some(Prefix::V4(prefix)), IpAddr::V4(address)) => prefix.contains(address.to_bits()),
        (Some(Prefix::V6(prefix)), IpAddr::V6(address)) => prefix.contains(address.to_bits()),
        _ => false,
    }
}

fn in_ports(ports: Option<&Ports>, port: u16) -> bool {
    ports.is_none_or(|ports| ports.contains(&port))
}
