//! The stateful firewall: which packets the router may forward, by policies and the flows that they
//! belong to.
//!
//! An interface has a policy for what comes in by it, and one for what leaves by it. Both are asked
//! where a packet is about to leave, so that they see what is forwarded, and that alone: what the
//! host receives and sends is the kernel's to filter, and what the router itself sends is not asked
//! about. So once any interface has a policy, all interfaces have the stage, the last one before
//! packets leave: [`Ip4`], [`Ip6`].
//!
//! A flow belongs to one worker ([`Tracker`]), whichever its packets come to: [`Handoff`]. A flow's
//! entry remembers which interfaces the policies have let it pass between; a packet of such a flow
//! is not asked about again until the policies change, or the flow is answered. Once they have
//! changed, they are first asked about the packet that opened the flow: where that may no longer
//! pass, the flow is over.

mod compiled;
mod entry;
mod family;
pub mod flows;
mod handoff;
mod node;
mod opening;
mod policies;
mod reset;
pub mod show;
mod tracker;
mod translation;

pub use handoff::Handoff;
pub use node::{Ip4, Ip6};
pub(crate) use policies::{Attached, Policies};
pub use reset::{Ip4Reset, Ip6Reset};
pub use tracker::Tracker;
pub(crate) use tracker::hasher;

use crate::acl::Packets;

/// A policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The first that matches decides.
    pub rules: Vec<Rule>,
    /// What becomes of a packet that no rule matches.
    pub default: Action,
}

/// A rule of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What becomes of what it matches.
    pub action: Action,
    /// The states of the packets that it matches.
    pub states: States,
    /// The packets that it matches: each that is among any of these.
    pub packets: Vec<Packets>,
    /// Of what it matches, as many packets a second have its action; what is more is dropped. From
    /// 1; `None`: all.
    pub limit: Option<u32>,
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// It passes.
    Accept,
    /// It is dropped without a word.
    Drop,
    /// It is dropped, and its source is told: of TCP by a reset (RFC 9293 section 3.5.2), of all
    /// else by ICMP, administratively prohibited (RFC 1812 section 5.2.7.1, RFC 4443 section 3.1).
    Reject,
}

/// State of a packet towards the flows that are known, as in conntrack's `ctstate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum State {
    /// It begins a flow, or belongs to one that was not answered yet.
    New,
    /// It belongs to a flow that has been seen both ways.
    Established,
    /// It is an ICMP error about a packet of a known flow.
    Related,
    /// It cannot belong to any flow: outside TCP's window, an ICMP error about nothing known, cut off.
    Invalid,
}

impl State {
    /// All.
    pub const ALL: [Self; 4] = [Self::New, Self::Established, Self::Related, Self::Invalid];
}

/// A set of [`State`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct States(u8);

impl States {
    /// All of them.
    pub const ALL: Self = States(0b1111);
    /// None of them.
    pub const NONE: Self = States(0);

    /// These, and one more.
    pub const fn with(self, state: State) -> Self {
        States(self.0 | 1 << state as u8)
    }

    /// True if it is one of them.
    pub const fn has(self, state: State) -> bool {
        self.0 & 1 << state as u8 != 0
    }
}
