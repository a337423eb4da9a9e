//! Policies of the firewall.

use serde::{Deserialize, Serialize};

use super::acl::Fields;

/// A policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Words for people.
    pub description: Option<String>,
    /// What becomes of a packet that no rule matches.
    #[serde(skip_serializing_if = "super::is_usual")]
    pub default: Action,
    /// The first that matches decides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
}

/// A rule of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rule {
    /// Words for people.
    pub description: Option<String>,
    /// What becomes of a packet that matches.
    pub action: Action,
    /// The states of packets that match; empty: all.
    #[serde(
        deserialize_with = "super::one_or_several",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub state: Vec<State>,
    /// The packets that match.
    #[serde(flatten)]
    pub fields: Fields,
    /// Packets a second of those that match, from 1; more are dropped. `None`: all.
    pub limit: Option<u32>,
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It passes.
    Accept,
    /// It is dropped.
    #[default]
    Drop,
    /// It is dropped, and its source is told.
    Reject,
}

/// State of a packet towards the flows that are known, as in conntrack's `ctstate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It begins a flow, or belongs to one that was not answered yet.
    New,
    /// It belongs to a flow that has been seen both ways.
    Established,
    /// It is an ICMP error about a packet of a known flow.
    Related,
    /// It cannot belong to any flow.
    Invalid,
}
