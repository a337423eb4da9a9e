//! The router: features, one folder each, on the packet engine.
//!
//! [`Router`] owns the [`state::State`] and is driven by one thread. Every change comes in as a
//! [`Change`]; workers read tables and the [`Snapshot`] and are never stopped. [`nodes`] is the
//! node table.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

pub mod acl;
pub mod arc;
pub mod bond;
mod bucket;
mod by_number;
pub mod change;
mod context;
mod counts;
mod deferred;
mod detour;
pub mod eth;
mod event;
pub mod explain;
mod family;
pub mod firewall;
pub mod flow;
mod grace;
pub mod icmp;
pub mod icmp4;
pub mod icmp6;
pub mod ip;
pub mod ip4;
pub mod ip6;
pub mod l2;
mod limits;
pub mod nat;
pub mod neighbor;
pub mod nodes;
pub mod punt;
mod router;
pub mod sflow;
pub mod show;
mod snapshot;
mod source;
pub mod state;
pub mod vlan;
pub mod vxlan;

pub use change::{
    Address, ArpRequests, BridgeDomain, Change, DomainId, Feature, Interface, InterfaceId, Kind,
    L2, Mac, Path, Prefix, Route, Tags,
};
pub use context::Cx;
pub use event::{Event, Events, Unresolved};
pub use family::{Family, Ip};
pub use grace::Grace;
pub use limits::Limits;
pub use router::{Idle, Router, Setup, WORKERS, worker_name};
pub use snapshot::Snapshot;
