//! Interfaces that borrow the addresses of another.

use crate::config::view::{AnyInterface, InterfaceKind};

use super::{Checker, field};

pub(super) fn check(c: &mut Checker<'_>, entry: &AnyInterface<'_>) {
    let (word, name) = (entry.word(), &entry.name);
    let Some(target) = entry.unnumbered else {
        return;
    };
    let path = field(entry, "unnumbered");
    match c.view.get(target).cloned() {
        None => {
            let message = format!("{word} {name} unnumbered target {target} does not exist");
            c.error(
                &path,
                message,
                "name a loopback, interface or sub-interface",
            );
        }
        Some(lender) => {
            let is_loopback = matches!(entry.kind, InterfaceKind::Loopback(_));
            if c.view.is_layer2(&lender.name) && !is_loopback {
                let message =
                    format!("{word} {name} unnumbered target {target} cannot be in L2 mode");
                c.error(&path, message, "name an interface that routes");
            }
            if lender.unnumbered.is_some() {
                let message =
                    format!("{word} {name} unnumbered target {target} cannot also be unnumbered");
                c.error(&path, message, "name the interface that has the addresses");
            }
            if lender.name == *name {
                let message = format!("{word} {name} unnumbered target cannot point to itself");
                c.error(&path, message, "name another interface, such as a loopback");
            }
            if lender.vrf != entry.vrf {
                let message = format!("{word} {name} unnumbered target {target} is in another vrf");
                c.error(&path, message, "name an interface of the same vrf");
            }
        }
    }
    if !entry.addresses.is_empty() {
        let message = format!("{word} {name} cannot also have addresses when it is unnumbered");
        c.error(&field(entry, "addresses"), message, "remove one of the two");
    }
    if c.view.is_layer2(name) {
        let message = format!("{word} {name} is in L2 mode but has unnumbered");
        c.warning(&path, message, "it has no effect: remove it");
    }
}
