//! Bonds and their members.

use std::collections::HashMap;

use crate::config::forms;
use crate::config::model::{Bond, BondMode};
use crate::config::view::{AnyInterface, InterfaceKind};
use crate::config::yaml::Step;

use super::{Checker, field, to};

pub(super) fn check(c: &mut Checker<'_>) {
    let config = c.config;
    let mut owners = HashMap::new();
    for (name, bond) in &config.bondethernets {
        let key = to!["bondethernets", name];
        let at = |field: &str| to!["bondethernets", name, field];
        if !config.interfaces.contains_key(name) {
            let message = format!("bondethernet {name} does not exist in interfaces");
            let help = format!("add it: `interfaces: {{ {name}: {{}} }}`");
            c.error(&key, message, help);
        }
        let number = forms::instance(name, "BondEthernet");
        if number.is_none_or(|number| number > 4_294_967_294) {
            let number = name.trim_start_matches("BondEthernet");
            let message = format!("bondethernet {name} has instance {number} which is too large");
            c.error(&key, message, "4294967294 is the last");
        }
        let hashes = matches!(bond.mode, BondMode::Lacp | BondMode::Xor);
        if bond.load_balance.is_some() && !hashes {
            let message =
                format!("bondethernet {name} can only have load-balance if in mode XOR or LACP");
            c.error(
                &at("load-balance"),
                message,
                "remove it, or change the mode",
            );
        }
        if config.ports.contains_key(name) {
            let message = format!("bondethernet {name} cannot have a port");
            let help = "give its members ports";
            c.error(&to!["ports", name], message, help);
        }
        if let Some(mac) = bond.mac.filter(|mac| mac.is_group()) {
            let message = format!("bondethernet {name} MAC address {mac} cannot be multicast");
            c.error(&at("mac"), message, "make its first byte even");
        }
        members(c, name, bond, &mut owners);
    }
}

fn members<'c>(
    c: &mut Checker<'c>,
    name: &'c str,
    bond: &'c Bond,
    owners: &mut HashMap<String, &'c str>,
) {
    let mtu = c.view.get(name).map(|entry| entry.mtu);
    for (index, member) in bond.interfaces.iter().enumerate() {
        let path = to!["bondethernets", name, "interfaces", index];
        let say = |c: &mut Checker<'_>, what: &str, help: &str| {
            c.error(
                &path,
                format!("bondethernet {name} member {member} {what}"),
                help,
            );
        };
        let Some(entry) = c.view.port(member).cloned() else {
            say(
                c,
                "does not exist",
                "add it to interfaces, or correct its name",
            );
            continue;
        };
        match owners.insert(entry.name.clone(), name) {
            Some(owner) if owner == name => say(c, "is listed twice", "list it once"),
            Some(owner) => say(
                c,
                &format!("is also in {owner}"),
                "take it out of one of them",
            ),
            None => {}
        }
        roles(c, &path, name, &entry);
        if let Some(mtu) = mtu.filter(|mtu| *mtu != entry.mtu) {
            let what = format!("MTU {} does not match BondEthernet MTU {mtu}", entry.mtu);
            say(c, &what, "give both the same mtu");
        }
    }
}

/// Reports roles and settings that a member of a bond cannot have.
fn roles(c: &mut Checker<'_>, path: &[Step], name: &str, entry: &AnyInterface<'_>) {
    let config = c.config;
    let member = &entry.name;
    let help = "a member belongs to its bond: give this to the bond, or remove it";
    let has_subs =
        matches!(entry.kind, InterfaceKind::Interface(i) if !i.sub_interfaces.is_empty());
    let is_port = matches!(entry.kind, InterfaceKind::Interface(_))
        && !config.bondethernets.contains_key(member)
        && !config.vxlan_tunnels.contains_key(member)
        && !config.taps.contains_key(member);
    let rules = [
        (has_subs, "has sub-interface(s)"),
        (entry.lcp.is_some(), "has an LCP"),
        (!entry.addresses.is_empty(), "has an address"),
        (c.view.is_bridged(member), "is in a bridgedomain"),
        (entry.l2xc.is_some(), "has l2xc"),
        (entry.unnumbered.is_some(), "has unnumbered"),
        (entry.vrf.is_some(), "has a vrf"),
        (!is_port, "is not a PHY"),
    ];
    for (_, what) in rules.iter().filter(|(breaks, _)| *breaks) {
        let message = format!("bondethernet {name} member {member} {what}");
        c.error(path, message, help);
    }
    if entry.mac.is_some() {
        let message = format!("interface {member} has a mac but is a member of {name}");
        c.warning(
            &field(entry, "mac"),
            message,
            "the bond's is used while it is one",
        );
    }
}
