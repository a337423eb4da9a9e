//! `show policy`.

use std::fmt;

use serde::Serialize;

use super::compiled::Compiled;
use super::{Action, Rule, State};
use crate::Router;
use crate::acl::show::{Bound, Matched};

/// `show policy`.
#[derive(Debug, Clone, Serialize)]
pub struct Shown {
    /// By name.
    pub policies: Vec<Policy>,
}

/// A policy.
#[derive(Debug, Clone, Serialize)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// In their order.
    pub rules: Vec<Row>,
    /// What becomes of a packet that no rule matches: `accept`, `drop`, `reject`.
    pub default: &'static str,
    /// Packets that this has happened to. Packets of a flow that policies have let pass are not
    /// asked about again: nothing counts them, here and in the rules.
    pub hits: u64,
    /// The interfaces that have it.
    #[serde(flatten)]
    pub bound: Bound,
}

/// A rule.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// `accept`, `drop`, `reject`.
    pub action: &'static str,
    /// States of the packets that it matches: `new`, `established`, `related`, `invalid`.
    pub states: Vec<&'static str>,
    /// The packets that it matches: each that is among any of these.
    pub packets: Vec<Matched>,
    /// Most packets a second that its action is for; null: all.
    pub limit: Option<u32>,
    /// Packets that it has decided about.
    pub hits: u64,
}

/// No policy has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no policy {0}; `show policy` lists those that there are")]
pub struct NoPolicy(pub String);

/// One policy, or all.
///
/// # Errors
/// [`NoPolicy`].
pub fn policies(router: &Router, which: Option<&str>) -> Result<Shown, NoPolicy> {
    let all = router.state.policies.iter();
    let asked = all.filter(|policy| which.is_none_or(|which| which == policy.name));
    let policies: Vec<Policy> = asked.map(|of| policy(router, of)).collect();
    match which {
        Some(which) if policies.is_empty() => Err(NoPolicy(which.to_owned())),
        _ => Ok(Shown { policies }),
    }
}

fn policy(router: &Router, of: &Compiled) -> Policy {
    let rules = of.policy.rules.iter().enumerate();
    let all = &router.state.policies;
    Policy {
        name: of.name.clone(),
        rules: rules.map(|(at, rule)| row(rule, of.hits(at))).collect(),
        default: of.policy.default.name(),
        hits: of.hits(of.policy.rules.len()),
        bound: Bound::new(router, |direction| all.interfaces(&of.name, direction)),
    }
}

fn row(rule: &Rule, hits: u64) -> Row {
    let states = State::ALL.into_iter().filter(|of| rule.states.has(*of));
    Row {
        action: rule.action.name(),
        states: states.map(State::name).collect(),
        packets: rule.packets.iter().map(Matched::from).collect(),
        limit: rule.limit,
        hits,
    }
}

impl Action {
    /// As shown and configured.
    pub const fn name(self) -> &'static str {
        match self {
            Action::Accept => "accept",
            Action::Drop => "drop",
            Action::Reject => "reject",
        }
    }
}

impl State {
    /// As shown and configured.
    pub const fn name(self) -> &'static str {
        match self {
            State::New => "new",
            State::Established => "established",
            State::Related => "related",
            State::Invalid => "invalid",
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.policies.is_empty() {
            return writeln!(f, "no policies");
        }
        self.policies.iter().try_for_each(|policy| policy.fmt(f))
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "policy {} count {}", self.name, self.rules.len())?;
        for (at, rule) in self.rules.iter().enumerate() {
            writeln!(f, "{at:>11}: {rule}")?;
            for packets in &rule.packets {
                writeln!(f, "{:13}{} {packets}", "", packets.family)?;
            }
        }
        writeln!(f, "    default: {} hits {}", self.default, self.hits)?;
        self.bound.fmt(f)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} state {}", self.action, self.states.join(","))?;
        if let Some(limit) = self.limit {
            write!(f, " limit {limit}")?;
        }
        write!(f, " hits {}", self.hits)
    }
}
