//! What the router cannot do, of what a configuration may say.

use super::forms;
use super::model::{Attached, Config, Firewall, PortKind, Tap, nat};
use super::problem::{Findings, place};
use super::rules::{self, Lists, MOST_RULES};
use super::view::{AllInterfaces, AnyInterface, field};
use super::yaml::{Node, Step};

/// What cannot be done, as it is found.
pub(super) struct Refusing<'t> {
    pub tree: &'t Node,
    pub findings: Findings,
}

impl Refusing<'_> {
    pub(super) fn refuse(&mut self, path: &[Step], message: String, help: impl Into<String>) {
        self.findings.error(place(self.tree, path), message, help);
    }

    pub(super) fn unsupported(&mut self, path: &[Step], what: &str) {
        let message = format!("{what}: not supported yet");
        self.refuse(
            path,
            message,
            "remove it, or wait for a version that supports it",
        );
    }

    pub(super) fn sections(&mut self, config: &Config) {
        if !config.vrfs.is_empty() {
            // The section itself, not what is in it.
            self.unsupported(&["vrfs".into()], "vrfs");
        }
        self.sflow(config);
        self.taps(config);
        self.acls(config);
        self.policies(config);
        self.nat(config);
        for (name, loopback) in &config.loopbacks {
            if loopback.vrf.is_some() {
                let path = ["loopbacks".into(), name.into(), "vrf".into()];
                self.unsupported(&path, &format!("vrf of loopback {name}"));
            }
        }
    }

    /// Samples that have nowhere to go.
    fn sflow(&mut self, config: &Config) {
        let help = "add `sflow: { collector: 192.0.2.1 }`, with the address of your collector";
        if config.sflow.is_some_and(|sflow| sflow.collector.is_none()) {
            let message = "sflow has no collector that samples are sent to".to_owned();
            self.refuse(&["sflow".into()], message, help);
        }
        let interfaces = config.interfaces.iter();
        let sampled = interfaces.filter(|(_, interface)| interface.sflow == Some(true));
        for (name, _) in sampled {
            let path = ["interfaces", name, "sflow"].map(Step::from);
            if config.sflow.is_none() {
                let message = format!("sflow of interface {name} without a section sflow");
                self.refuse(&path, message, help);
            }
            let (kind, instead) = if config.bondethernets.contains_key(name) {
                ("a bond", "sample its members")
            } else if config.vxlan_tunnels.contains_key(name) {
                (
                    "a tunnel",
                    "sample the interfaces that its packets come in by",
                )
            } else {
                continue;
            };
            let message = format!("sflow of interface {name}, which is {kind} and has no port");
            self.refuse(&path, message, instead);
        }
    }

    /// Bridges of TAPs that have the name of a TAP's host end beside them.
    fn taps(&mut self, config: &Config) {
        for (name, tap) in &config.taps {
            let Some(bridge) = &tap.host.bridge else {
                continue;
            };
            let is_it = |(_, other): &(&String, &Tap)| {
                other.host.name == *bridge && other.host.namespace == tap.host.namespace
            };
            if let Some((other, _)) = config.taps.iter().find(is_it) {
                let message = format!(
                    "tap {name} has bridge {bridge}, which is the host name of tap {other}"
                );
                let path = ["taps", name, "host", "bridge"].map(Step::from);
                self.refuse(&path, message, "give the bridge another name");
            }
        }
    }

    /// ACLs that the router cannot have.
    fn acls(&mut self, config: &Config) {
        for (name, acl) in &config.acls {
            if let Err(term) = rules::rules(&acl.terms, &Lists::default()) {
                let path = [
                    "acls".into(),
                    name.into(),
                    "terms".into(),
                    (term - 1).into(),
                ];
                let field = "action".into();
                let path = [&path[..], &[field]].concat();
                let what = format!("permit+reflect of acl {name} term {term}");
                self.unsupported(&path, &what);
            }
            let count = rules::count(
                acl.terms.iter().map(|term| &term.fields),
                &config.prefixlists,
            );
            if count > MOST_RULES {
                let message = format!(
                    "acl {name} comes to {count} rules, one for each source and destination; there \
                     can be {MOST_RULES}"
                );
                let help = "shorten its prefix lists";
                self.refuse(&["acls".into(), name.into()], message, help);
            }
        }
    }

    /// Policies that are too large.
    fn policies(&mut self, config: &Config) {
        for (name, policy) in &config.policies {
            let rules = policy.rules.iter();
            let count = rules::count(rules.map(|rule| &rule.fields), &config.prefixlists);
            if count > MOST_RULES {
                let message = format!(
                    "policy {name} comes to {count} matches, one for each source and destination of \
                     a rule; there can be {MOST_RULES}"
                );
                let help = "shorten its prefix lists";
                self.refuse(&["policies".into(), name.into()], message, help);
            }
        }
    }

    /// Rules of translation that are too many.
    fn nat(&mut self, config: &Config) {
        let fields: Vec<_> = config.nat.fields().map(nat::of_ip4).collect();
        let count = rules::count(fields.iter(), &config.prefixlists);
        if count > MOST_RULES {
            let message = format!(
                "nat comes to {count} matches, one for each source and destination of a rule; \
                 there can be {MOST_RULES}"
            );
            self.refuse(&["nat".into()], message, "shorten its prefix lists");
        }
    }

    /// What an interface or sub-interface is to have and cannot.
    pub(super) fn fields(&mut self, view: &AllInterfaces<'_>, entry: &AnyInterface<'_>) {
        let any = |acls: &Attached| !acls.input.is_empty() || !acls.output.is_empty();
        if entry.vrf.is_some() {
            let what = format!("vrf of {} {}", entry.word(), entry.name);
            self.unsupported(&field(entry, "vrf"), &what);
        }
        let is_member = view
            .bridge(&entry.name)
            .or(view.bond(&entry.name))
            .is_some();
        let is_l2 = entry.l2xc.is_some() || is_member;
        if is_l2 && entry.acls.is_some_and(any) {
            let what = format!("acls of {} {} at layer 2", entry.word(), entry.name);
            self.unsupported(&field(entry, "acls"), &what);
        }
        if is_l2 && *entry.firewall != Firewall::default() {
            let message = format!(
                "{} {} has a firewall and is at layer 2, where nothing is routed",
                entry.word(),
                entry.name
            );
            let help = "give the policies to the interface that routes: the bridge's BVI, the bond";
            self.refuse(&field(entry, "firewall"), message, help);
        }
    }

    /// What the port of an interface cannot be or do.
    pub(super) fn port(&mut self, entry: &AnyInterface<'_>, kind: &PortKind) {
        let name = &entry.name;
        if let PortKind::Netdev(device) = kind
            && !forms::is_device_name(device)
        {
            let message = format!("interface {name} cannot be the name of a network device");
            let help = format!("name its port: `ports: {{ {name}: {{ netdev: eth0 }} }}`");
            self.refuse(&["interfaces".into(), name.into()], message, help);
        }
    }
}
