//! Bridge domains, their BVIs and members.

use std::collections::HashMap;

use crate::config::forms;
use crate::config::model::Bridge;
use crate::config::view::MTU;

use super::{Checker, counts, to};

pub(super) fn check(c: &mut Checker<'_>) {
    let bridges = &c.config.bridgedomains;
    let bvis = counts(bridges.values().filter_map(|bridge| bridge.bvi.as_deref()));
    let members = bridges.values().flat_map(|bridge| &bridge.interfaces);
    let members: Vec<String> = members.map(|name| c.view.canonical(name)).collect();
    let members = counts(members.into_iter());
    for (name, bridge) in bridges {
        let key = to!["bridgedomains", name];
        match forms::instance(name, "bd") {
            Some(0) => {
                let message = "bridgedomain bd0 is reserved".to_owned();
                c.error(&key, message, "begin with bd1");
            }
            Some(number) if number <= 16_777_215 => {}
            _ => {
                let number = name.trim_start_matches("bd");
                let message =
                    format!("bridgedomain {name} has instance {number} which is too large");
                c.error(&key, message, "bd16777215 is the last");
            }
        }
        check_bvi(c, name, bridge, &bvis);
        check_members(c, name, bridge, &members);
    }
}

fn check_bvi(c: &mut Checker<'_>, name: &str, bridge: &Bridge, bvis: &HashMap<&str, usize>) {
    let Some(bvi) = bridge.bvi.as_deref() else {
        return;
    };
    let path = to!["bridgedomains", name, "bvi"];
    if bvis[bvi] > 1 {
        let message = format!("bridgedomain {name} BVI {bvi} is not unique");
        c.error(&path, message, "give each bridge its own loopback");
    }
    let Some(loopback) = c.config.loopbacks.get(bvi) else {
        let message = format!("bridgedomain {name} BVI {bvi} does not exist");
        c.error(&path, message, "add it to loopbacks");
        return;
    };
    let (mtu, has) = (bridge.mtu.unwrap_or(MTU), loopback.mtu.unwrap_or(MTU));
    if mtu != has {
        let message =
            format!("bridgedomain {name} BVI {bvi} has MTU {has}, while bridge has {mtu}");
        c.error(&path, message, "give both the same mtu");
    }
}

fn check_members(
    c: &mut Checker<'_>,
    name: &str,
    bridge: &Bridge,
    members: &HashMap<String, usize>,
) {
    let mtu = bridge.mtu.unwrap_or(MTU);
    for (index, member) in bridge.interfaces.iter().enumerate() {
        let path = to!["bridgedomains", name, "interfaces", index];
        let say = |c: &mut Checker<'_>, what: &str, help: &str| {
            c.error(
                &path,
                format!("bridgedomain {name} member {member} {what}"),
                help,
            );
        };
        let Some(entry) = c.view.port(member).cloned() else {
            say(
                c,
                "does not exist",
                "name an interface or sub-interface; a loopback can be its bvi",
            );
            continue;
        };
        if members[&entry.name] > 1 {
            say(c, "is not unique", "an interface is in one bridge, once");
        }
        let help = "give it to the bridge's BVI, or remove it";
        if entry.lcp.is_some() {
            say(c, "has an LCP", help);
        }
        if !entry.addresses.is_empty() {
            say(c, "has an address", help);
        }
        if entry.mtu != mtu {
            let what = format!("has MTU {}, while bridge has {mtu}", entry.mtu);
            say(c, &what, "give both the same mtu");
        }
    }
}
