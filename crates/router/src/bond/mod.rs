//! Bonds: interfaces whose packets come and go by several others, their members.
//!
//! What comes in at a member is the bond's. What leaves by the bond leaves by a member that is up.

mod broadcast;
mod groups;
mod hash;
mod input;
pub mod lacp;
mod output;
pub mod show;

pub use broadcast::Broadcast;
pub(crate) use groups::{Bonds, Group, Groups};
pub use hash::Headers;
pub(crate) use hash::{family, hash, network_at};
pub use input::Input;
pub use output::Output;
pub(crate) use output::of;

/// How a bond spreads what leaves over its members that are up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// One after the other.
    RoundRobin,
    /// All by the first, by name.
    ActiveBackup,
    /// A copy by each.
    Broadcast,
    /// By a hash of these headers: packets of a flow by one.
    Xor(Headers),
    /// As this, over the members whose other end has [agreed](lacp).
    Lacp(Headers),
}
