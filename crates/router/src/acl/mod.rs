//! Access lists: which packets may come in by an interface, and which may leave.
//!
//! An interface has an ordered list of access lists for each direction. They are compiled into one
//! list, whose first rule that matches decides; what none matches is denied. The lists of all
//! interfaces are part of the snapshot, so that a change comes to a worker as a whole. The bits of the
//! features only lead packets here: until there is a list, they pass.

pub(crate) mod key;
mod list;
mod node;
pub mod show;

pub(crate) use list::{Acls, Lists};
pub use node::{Ip4In, Ip4Out, Ip6In, Ip6Out};

use tables::acl;
pub use tables::acl::Rule as Match;

use crate::Prefix;
use crate::arc;
use crate::change::{Feature, InterfaceId};

/// Way of packets at an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// They come in by it.
    Input,
    /// They leave by it.
    Output,
}

impl Direction {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Input, Self::Output];

    /// Its place at an interface, in a list of all interfaces with both directions of each.
    #[inline(always)]
    pub(crate) const fn place(self, interface: InterfaceId) -> usize {
        interface as usize * Self::ALL.len() + self as usize
    }

    /// The features of it, of both families.
    pub(crate) const fn features(self) -> [Feature; 2] {
        match self {
            Self::Input => [arc::ip4_in(0), arc::ip6_in(0)],
            Self::Output => [arc::ip4_out(0), arc::ip6_out(0)],
        }
    }
}

/// A rule of an access list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Whether what it matches may pass.
    pub permit: bool,
    /// What it matches.
    pub packets: Packets,
}

/// Packets of one family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packets {
    /// Of IPv4.
    V4(acl::Rule<u32>),
    /// Of IPv6.
    V6(acl::Rule<u128>),
}

impl Packets {
    /// Source and destination.
    pub fn prefixes(&self) -> (Prefix, Prefix) {
        match self {
            Self::V4(rule) => (rule.source.into(), rule.destination.into()),
            Self::V6(rule) => (rule.source.into(), rule.destination.into()),
        }
    }
}
