//! The rules that span a configuration, in the order of its sections. They do not stop at the first
//! violation, and none hides another.

mod acls;
mod addresses;
mod bonds;
mod bridges;
mod cross_connects;
mod descriptions;
mod interfaces;
mod names;
mod nat;
mod ports;
mod routes;
mod sub_interfaces;
mod tunnels;
mod unnumbered;

use std::collections::HashMap;

use super::model::Config;
use super::problem::{Findings, place};
use super::view::{AllInterfaces, field, whole};
use super::yaml::{Node, Step};

/// Checks a configuration; `tree` is the file that it is from.
pub(super) fn check(config: &Config, tree: &Node, findings: &mut Findings) {
    let mut checker = Checker {
        config,
        tree,
        view: AllInterfaces::new(config),
        findings,
    };
    bonds::check(&mut checker);
    interfaces::check(&mut checker);
    names::check(&mut checker);
    bridges::check(&mut checker);
    tunnels::check(&mut checker);
    acls::check(&mut checker);
    nat::check(&mut checker);
    addresses::check(&mut checker);
    routes::check(&mut checker);
    ports::check(&mut checker);
    descriptions::check(&mut checker);
}

/// The state that every rule works on.
struct Checker<'c> {
    config: &'c Config,
    tree: &'c Node,
    view: AllInterfaces<'c>,
    findings: &'c mut Findings,
}

/// The way to a value: `to!["interfaces", name, "mtu"]`.
macro_rules! to {
    ($($step:expr),* $(,)?) => { [$($crate::config::yaml::Step::from($step)),*] };
}
use to;

impl Checker<'_> {
    fn error(&mut self, path: &[Step], message: String, help: impl Into<String>) {
        self.findings.error(place(self.tree, path), message, help);
    }

    fn warning(&mut self, path: &[Step], message: String, help: impl Into<String>) {
        self.findings.warning(place(self.tree, path), message, help);
    }

    /// The value of a path as it is written.
    fn node(&self, path: &[Step]) -> Option<&Node> {
        path.iter()
            .try_fold(self.tree, |node, step| node.child(step))
    }
}

/// Counts the occurrences of each value.
fn counts<T: std::hash::Hash + Eq>(values: impl Iterator<Item = T>) -> HashMap<T, usize> {
    let mut counts = HashMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    counts
}
