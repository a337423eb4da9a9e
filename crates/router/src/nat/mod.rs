//! Translation of IPv4 addresses and ports (NAT44: RFC 3022, RFC 4787, RFC 5382, RFC 5508).
//!
//! Rules say for the packet that opens a flow what its ends become; all further packets of the flow
//! follow that, in both directions. Interfaces are named, so that rules outlast them.

pub(crate) mod compiled;
mod handoff;
mod node;
pub(crate) mod place;
pub mod show;
mod state;

pub use handoff::Handoff;
pub use node::Ip4;
pub(crate) use state::{Nat, Published};

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use tables::acl::Rule as Match;

/// The rules of translation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// What sources become as packets leave: the first that matches decides; where none does, they
    /// stay.
    pub source: Vec<SourceRule>,
    /// What destinations become as packets come in: the first that matches decides.
    pub destination: Vec<DestinationRule>,
    /// Addresses that stand for others, both ways. They go before all other rules.
    pub fixed: Vec<Static>,
}

impl Rules {
    /// True if nothing is translated.
    pub fn is_empty(&self) -> bool {
        self.source.is_empty() && self.destination.is_empty() && self.fixed.is_empty()
    }
}

/// A rule for sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceRule {
    /// The interface that packets leave by; `None`: any.
    pub interface: Option<String>,
    /// The packets that it matches, with their destination translated already: each that is among
    /// any of these.
    pub packets: Vec<Match<u32>>,
    /// What their source becomes.
    pub to: To,
}

/// What a source becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum To {
    /// It stays as it is.
    Same,
    /// The address of the interface that the packet leaves by, and one of these ports (masquerading).
    Interface {
        /// Ports, or identifiers of echoes, from 1.
        ports: RangeInclusive<u16>,
    },
    /// One of these addresses, and one of these ports.
    Pool {
        /// Addresses, at most 65,536.
        addresses: RangeInclusive<Ipv4Addr>,
        /// Ports, or identifiers of echoes, from 1.
        ports: RangeInclusive<u16>,
        /// Each source has so many ports of one address for itself, by its place in a network
        /// (RFC 7422). `None`: ports are given as they are asked for.
        blocks: Option<Blocks>,
    },
}

/// Ports that belong to a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    /// The first address that has some.
    pub first: Ipv4Addr,
    /// Ports of each, from 1.
    pub ports: u16,
}

/// A rule for destinations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DestinationRule {
    /// The interface that packets come in by; `None`: any.
    pub interface: Option<String>,
    /// The packets that it matches: each that is among any of these.
    pub packets: Vec<Match<u32>>,
    /// Of these, only such that go to an address of the interface.
    pub own: bool,
    /// What their destination becomes.
    pub to: Ipv4Addr,
    /// What their port becomes: the first port of the rule becomes this one, those that follow what
    /// follows it. `None`: it stays.
    pub port: Option<u16>,
}

/// A network whose addresses stand for those of another one, each for that at the same place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Static {
    /// The interface that packets leave by whose source becomes the outer address; `None`: any.
    pub interface: Option<String>,
    /// First address, as it is seen outside.
    pub outside: Ipv4Addr,
    /// First address that it stands for.
    pub inside: Ipv4Addr,
    /// Length of both networks' prefixes, 16 to 32.
    pub length: u8,
}
