//! Interfaces of every kind: names, MACs, LCPs, layer 2, states.

use router::acl::Direction;

use crate::config::forms;
use crate::config::model::Firewall;
use crate::config::view::{AnyInterface, InterfaceKind};
use crate::config::yaml::Step;

use super::{Checker, counts, cross_connects, field, sub_interfaces, to, unnumbered, whole};

pub(super) fn check(c: &mut Checker<'_>) {
    let entries = c.view.entries.clone();
    let names = counts(entries.iter().map(|entry| entry.name.as_str()));
    for entry in &entries {
        match entry.kind {
            InterfaceKind::Interface(_) => interface(c, entry),
            InterfaceKind::Sub(..) if sub_interfaces::is_empty(c, entry) => continue,
            InterfaceKind::Sub(..) => sub_interfaces::check(c, entry),
            InterfaceKind::Loopback(_) => loopback(c, entry),
        }
        let (word, name) = (entry.word(), &entry.name);
        // A sub-interface's is its parent's.
        let is_own = entry.parent().is_none() && !c.config.bondethernets.contains_key(name);
        let own = entry.mac.filter(|_| is_own);
        if let Some(mac) = own.filter(|mac| mac.is_group()) {
            let message = format!("{word} {name} MAC address {mac} cannot be multicast");
            c.error(&field(entry, "mac"), message, "make its first byte even");
        }
        if names[name.as_str()] > 1 {
            let message = format!("{word} {name} has the name of another interface");
            let help = "a loopback is in loopbacks alone, and PARENT.NUMBER is a sub-interface";
            c.error(&whole(entry), message, help);
        }
        layer2(c, entry);
        unnumbered::check(c, entry);
        cross_connects::check(c, entry);
        belongs(c, entry);
        mpls(c, entry);
    }
    cross_connects::check_unique(c, &entries);
}

fn interface(c: &mut Checker<'_>, entry: &AnyInterface<'_>) {
    let (config, name) = (c.config, &entry.name);
    let InterfaceKind::Interface(interface) = entry.kind else {
        return;
    };
    let is_bond = config.bondethernets.contains_key(name);
    let is_tap = config.taps.contains_key(name);
    let key = to!["interfaces", name];
    let has_port = config.ports.contains_key(name);
    if name.starts_with("BondEthernet") && !is_bond && !has_port {
        let message = format!("interface {name} does not exist in bondethernets");
        c.error(&key, message, "add it there, with its members");
    }
    if name.starts_with("BondEthernet") && interface.mac.is_some() {
        let message = format!("interface {name} is a member of bondethernet, cannot set MAC");
        let help = format!("move mac to bondethernets.{name}");
        c.error(&field(entry, "mac"), message, help);
    }
    let is_tunnel = config.vxlan_tunnels.contains_key(name);
    let is_phy = !(is_bond || is_tap || is_tunnel || config.loopbacks.contains_key(name));
    if interface.device_type.is_some() && !is_phy {
        let message = format!("interface {name} is not a PHY, cannot set device-type");
        c.error(&field(entry, "device-type"), message, "remove it");
    }
    if name.starts_with("tap") && !is_tap && !has_port {
        let message = format!("interface {name} is a TAP but does not exist in taps");
        c.error(&key, message, "add it there, or name its port in ports");
    }
    if is_tap {
        tap(c, entry);
    }
}

fn tap(c: &mut Checker<'_>, entry: &AnyInterface<'_>) {
    let name = &entry.name;
    let host = c.config.taps[name].host.mtu;
    if let Some(host) = host.filter(|host| *host != entry.mtu) {
        let mtu = entry.mtu;
        let message =
            format!("interface {name} is a TAP so its MTU {mtu} must match host MTU {host}");
        c.error(&field(entry, "mtu"), message, "give both the same mtu");
    }
    let help = "the host's end of a TAP is in taps; put it into a bridge whose BVI has this";
    if !entry.addresses.is_empty() {
        let message = format!("interface {name} is a TAP so it cannot have an address");
        c.error(&field(entry, "addresses"), message, help);
    }
    if entry.lcp.is_some() {
        let message = format!("interface {name} is a TAP so it cannot have an LCP");
        c.error(&field(entry, "lcp"), message, help);
    }
    if matches!(entry.kind, InterfaceKind::Interface(i) if !i.sub_interfaces.is_empty()) {
        let message = format!("interface {name} is a TAP so it cannot have sub-interfaces");
        c.error(&field(entry, "sub-interfaces"), message, "remove them");
    }
}

fn loopback(c: &mut Checker<'_>, entry: &AnyInterface<'_>) {
    let name = &entry.name;
    let number = forms::instance(name, "loop");
    if number.is_none_or(|number| number > 4095) {
        let number = name.trim_start_matches("loop");
        let message = format!("loopback {name} has instance {number} which is too large");
        c.error(&to!["loopbacks", name], message, "loop4095 is the last");
    }
}

/// An interface that bridges or cross-connects has neither addresses nor a device of the host.
fn layer2(c: &mut Checker<'_>, entry: &AnyInterface<'_>) {
    let (word, name) = (entry.word(), &entry.name);
    if !c.view.is_layer2(name) {
        return;
    }
    if let Some(lcp) = entry.lcp {
        let message = format!("{word} {name} is in L2 mode but has LCP name {lcp}");
        let help = "give it to the bridge's BVI, or remove it";
        c.error(&field(entry, "lcp"), message, help);
    }
    if !entry.addresses.is_empty() {
        let message = format!("{word} {name} is in L2 mode but has an address");
        let help = "give it to the bridge's BVI, or remove it";
        c.error(&field(entry, "addresses"), message, help);
    }
    if entry.l2xc.is_some() && c.view.is_bridged(name) {
        let message = format!("{word} {name} has l2xc and is in a bridgedomain");
        let help = "only the cross-connect takes effect: remove one of the two";
        c.warning(&field(entry, "l2xc"), message, help);
    }
}

/// VRF, policies and ACLs that it names.
fn belongs(c: &mut Checker<'_>, entry: &AnyInterface<'_>) {
    let (word, name) = (entry.word(), &entry.name);
    if let Some(vrf) = entry.vrf.filter(|vrf| !c.config.vrfs.contains_key(*vrf)) {
        let message = format!("{word} {name} vrf {vrf} does not exist");
        let help = format!("add it: `vrfs: {{ {vrf}: {{ table: 100 }} }}`");
        c.error(&field(entry, "vrf"), message, help);
    }
    for direction in Direction::ALL {
        let policy = entry.firewall.policy(direction);
        let unknown = policy.filter(|policy| !c.config.policies.contains_key(*policy));
        if let Some(policy) = unknown {
            let direction = Firewall::word(direction);
            let message = format!("{word} {name} {direction} policy {policy} does not exist");
            let mut path = field(entry, "firewall");
            path.push(Step::from(direction));
            c.error(&path, message, "add it to policies, or correct its name");
        }
    }
    let Some(acls) = entry.acls else { return };
    for (direction, names) in [("input", &acls.input), ("output", &acls.output)] {
        for acl in names.iter().filter(|acl| !c.config.acls.contains_key(*acl)) {
            let message = format!("{word} {name} {direction} acl {acl} does not exist");
            let mut path = field(entry, "acls");
            path.push(Step::from(direction));
            c.error(&path, message, "add it to acls, or correct its name");
        }
    }
}

fn mpls(c: &mut Checker<'_>, entry: &AnyInterface<'_>) {
    let (word, name) = (entry.word(), &entry.name);
    if entry.mpls {
        let message = format!("{word} {name} has mpls, which does nothing yet");
        c.warning(
            &field(entry, "mpls"),
            message,
            "MPLS packets are left to the kernel",
        );
    }
}
