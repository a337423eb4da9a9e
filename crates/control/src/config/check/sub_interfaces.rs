//! Sub-interfaces: tags, and what they need of the interface below.

use crate::config::model::State;
use crate::config::view::{AnyInterface, InterfaceKind};
use crate::config::yaml::Value;

use super::{Checker, field, whole};

/// Reports a sub-interface without any field, which is then its only error. Returns true if it is
/// one.
pub(super) fn is_empty(c: &mut Checker<'_>, entry: &AnyInterface<'_>) -> bool {
    let path = whole(entry);
    let empty = c
        .node(&path)
        .is_some_and(|node| node.value == Value::Map(Vec::new()));
    if !empty {
        return false;
    }
    let InterfaceKind::Sub(parent, id, _) = entry.kind else {
        return false;
    };
    // It may have said something that was wrong.
    let wrong = format!("interfaces.{parent}.sub-interfaces.{id}");
    if !c
        .findings
        .0
        .iter()
        .any(|problem| problem.message.starts_with(&wrong))
    {
        let message = format!("sub-interface {} has no config", entry.name);
        let help = "give it a field: `state: up` if it needs no other";
        c.error(&path, message, help);
    }
    true
}

pub(super) fn check(c: &mut Checker<'_>, entry: &AnyInterface<'_>) {
    let Some(parent) = entry
        .parent()
        .and_then(|parent| c.view.get(parent))
        .cloned()
    else {
        return;
    };
    let (name, above) = (&entry.name, &parent.name);
    if entry.state == State::Up && parent.state == State::Down {
        let message = format!("sub-interface {name} cannot be up if parent {above} is down");
        c.error(
            &field(entry, "state"),
            message,
            "write `state: down` here, too",
        );
    }
    let middle = c.view.middle(entry).cloned();
    for below in [Some(&parent), middle.as_ref()].into_iter().flatten() {
        if entry.mtu > below.mtu {
            let (mtu, below, most) = (entry.mtu, &below.name, below.mtu);
            let message =
                format!("sub-interface {name} has MTU {mtu} higher than parent {below} MTU {most}");
            c.error(
                &field(entry, "mtu"),
                message,
                format!("set it to {most} at most"),
            );
        }
    }
    let valid = encapsulation(c, entry);
    let exact = valid && entry.encapsulation().is_some_and(|tags| tags.exact_match);
    if let Some(lcp) = entry.lcp {
        let has = format!("has LCP name {lcp}");
        let parents = (&parent, middle.as_ref(), entry.tags() == 2 && valid);
        check_lcp(c, entry, &has, parents);
        if !exact {
            let message =
                format!("sub-interface {name} {has} but its encapsulation is not exact-match");
            c.error(&field(entry, "lcp"), message, "write `exact-match: true`");
        }
    }
    if !entry.addresses.is_empty() && !exact {
        let message =
            format!("sub-interface {name} has an address but its encapsulation is not exact-match");
        c.error(
            &field(entry, "addresses"),
            message,
            "write `exact-match: true`",
        );
    }
}

/// The host's device of an interface needs those of all below.
fn check_lcp(
    c: &mut Checker<'_>,
    entry: &AnyInterface<'_>,
    has: &str,
    (parent, middle, double): (&AnyInterface<'_>, Option<&AnyInterface<'_>>, bool),
) {
    let name = &entry.name;
    let mut lacks = |below: &AnyInterface<'_>, what: &str| {
        let below = &below.name;
        let message = format!("sub-interface {name} {what}{has} but {below} does not have an LCP");
        c.error(
            &field(entry, "lcp"),
            message,
            format!("give {below} an lcp"),
        );
    };
    if parent.lcp.is_none() {
        lacks(parent, "");
    }
    match middle {
        Some(middle) if middle.lcp.is_none() => lacks(middle, "is QinX and "),
        None if double => {
            let message = format!("sub-interface {name} is QinX and {has} which requires a parent");
            let help = "add a sub-interface that has only the outer tag, with an lcp";
            c.error(&field(entry, "lcp"), message, help);
        }
        _ => {}
    }
}

/// Checks that its tags are valid, and differ from those of its siblings.
fn encapsulation(c: &mut Checker<'_>, entry: &AnyInterface<'_>) -> bool {
    let path = field(entry, "encapsulation");
    let name = &entry.name;
    if let Some(why) = invalid(c, entry) {
        let message = format!("sub-interface {name} has invalid encapsulation");
        c.error(&path, message, why);
        return false;
    }
    if c.view.alike(entry) > 1 {
        let message = format!("sub-interface {name} does not have unique encapsulation");
        c.error(&path, message, "give each sub-interface its own tags");
    }
    true
}

fn invalid(c: &Checker<'_>, entry: &AnyInterface<'_>) -> Option<&'static str> {
    let tags = entry.encapsulation()?;
    if tags.dot1q > 0 && tags.dot1ad > 0 {
        return Some("give one of dot1q and dot1ad");
    }
    if tags.inner_dot1q > 0 && tags.dot1q == 0 && tags.dot1ad == 0 {
        return Some("inner-dot1q needs an outer tag: dot1q or dot1ad");
    }
    if tags.dot1q > 4095 {
        return Some("a VLAN is 1 to 4095: give it an encapsulation of its own");
    }
    let mut exact = field(entry, "encapsulation");
    exact.push("exact-match".into());
    let said = c.node(&exact).is_some();
    (entry.lcp.is_some() && said && !tags.exact_match)
        .then_some("what has an lcp must be `exact-match: true`")
}
