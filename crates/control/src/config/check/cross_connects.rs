//! Cross-connects: `l2xc` of interfaces and sub-interfaces.

use crate::config::view::{AnyInterface, InterfaceKind};

use super::{Checker, counts, field};

pub(super) fn check(c: &mut Checker<'_>, entry: &AnyInterface<'_>) {
    let (word, name) = (entry.word(), &entry.name);
    let Some(target) = entry.l2xc else { return };
    let nothing = "a cross-connect hands on all packets: remove this, or l2xc";
    if matches!(entry.kind, InterfaceKind::Interface(i) if !i.sub_interfaces.is_empty()) {
        let message = format!("{word} {name} has l2xc so it cannot have sub-interfaces");
        c.error(&field(entry, "sub-interfaces"), message, nothing);
    }
    if entry.lcp.is_some() {
        let message = format!("{word} {name} has l2xc so it cannot have an LCP");
        c.error(&field(entry, "lcp"), message, nothing);
    }
    if !entry.addresses.is_empty() {
        let message = format!("{word} {name} has l2xc so it cannot have an address");
        c.error(&field(entry, "addresses"), message, nothing);
    }
    let path = field(entry, "l2xc");
    let Some(other) = c.view.port(target).cloned() else {
        let message = format!("{word} {name} l2xc target {target} does not exist");
        c.error(&path, message, "name an interface or sub-interface");
        return;
    };
    if other.name == *name {
        let message = format!("{word} {name} l2xc target cannot be itself");
        c.error(&path, message, "name another interface");
    }
    if other.mtu != entry.mtu {
        let (theirs, ours) = (other.mtu, entry.mtu);
        let message =
            format!("{word} {name} l2xc target MTU {theirs} does not match source MTU {ours}");
        c.error(&path, message, "give both the same mtu");
    }
    if c.view.is_bridged(&other.name) {
        let message = format!("{word} {name} l2xc target {target} is in a bridgedomain");
        c.error(
            &path,
            message,
            "take it out of the bridge, or put both into one",
        );
    }
    if other.lcp.is_some() {
        let message = format!("{word} {name} l2xc target {target} cannot have an LCP");
        c.error(&path, message, format!("remove the lcp of {target}"));
    }
    if !other.addresses.is_empty() {
        let message = format!("{word} {name} l2xc target {target} cannot have an address");
        c.error(&path, message, format!("remove the addresses of {target}"));
    }
}

/// No two have the same target.
pub(super) fn check_unique(c: &mut Checker<'_>, entries: &[AnyInterface<'_>]) {
    let connects = entries
        .iter()
        .filter_map(|entry| Some((entry, entry.l2xc?)));
    let connects: Vec<_> = connects
        .map(|(entry, to)| (entry, to, c.view.canonical(to)))
        .collect();
    let targets = counts(connects.iter().map(|(_, _, canonical)| canonical.as_str()));
    for (entry, target, canonical) in &connects {
        if targets[canonical.as_str()] > 1 {
            let (word, name) = (entry.word(), &entry.name);
            let message = format!("{word} {name} l2xc target {target} is not unique");
            let help = "a bridge connects more than two interfaces";
            c.error(&field(entry, "l2xc"), message, help);
        }
    }
}
