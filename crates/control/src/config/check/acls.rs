//! Access control lists, term by term, and policies, rule by rule.

use crate::config::forms::{self, Address};
use crate::config::model::{Family, Fields, Value};
use crate::config::yaml::Step;

use super::{Checker, to};

/// Protocol numbers of ICMP and ICMPv6.
const ICMP: [u8; 2] = [1, 58];
/// Protocol numbers of TCP and UDP.
pub(super) const TCP_AND_UDP: [u8; 2] = [6, 17];

pub(super) fn check(c: &mut Checker<'_>) {
    for (name, acl) in &c.config.acls {
        for (index, term) in acl.terms.iter().enumerate() {
            let at = to!["acls", name, "terms", index].to_vec();
            let says = format!("acl {name} term {}", index + 1);
            let fields = &term.fields;
            Checking {
                c,
                at,
                says,
                fields,
            }
            .check();
        }
    }
    for (name, policy) in &c.config.policies {
        for (index, rule) in policy.rules.iter().enumerate() {
            let at = to!["policies", name, "rules", index].to_vec();
            let says = format!("policy {name} rule {}", index + 1);
            let fields = &rule.fields;
            Checking {
                c,
                at,
                says,
                fields,
            }
            .check();
        }
    }
}

pub(super) struct Checking<'a, 'c> {
    pub c: &'a mut Checker<'c>,
    /// The way to the term or rule.
    pub at: Vec<Step>,
    /// The beginning of messages about it.
    pub says: String,
    pub fields: &'a Fields,
}

/// The address families in which something has members.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Families {
    v4: bool,
    v6: bool,
}

impl Checking<'_, '_> {
    fn error(&mut self, field: &str, what: &str, help: &str) {
        let mut path = self.at.clone();
        path.push(field.into());
        self.c.error(&path, format!("{} {what}", self.says), help);
    }

    pub(super) fn check(mut self) {
        if !self.check_ends() {
            return;
        }
        let protocol = match self.fields.protocol_number() {
            Ok(protocol) => protocol,
            Err(()) => {
                let help = "write a number from 1 to 255, or a name such as tcp, icmp or ospf";
                self.error("protocol", "could not understand protocol", help);
                return;
            }
        };
        let fields = self.fields;
        let ports = [
            ("source-port", &fields.source_port),
            ("destination-port", &fields.destination_port),
        ];
        for (field, value) in ports {
            let Some(value) = value else { continue };
            if TCP_AND_UDP.contains(&protocol) {
                self.check_port(field, value);
            } else {
                let what = format!("{field} can only be specified for protocol tcp or udp");
                self.error(field, &what, "remove it, or write `protocol: tcp`");
            }
        }
        for (field, value) in [
            ("icmp-code", &fields.icmp_code),
            ("icmp-type", &fields.icmp_type),
        ] {
            let Some(value) = value else { continue };
            if ICMP.contains(&protocol) {
                self.check_icmp(field, value);
            } else {
                let what = format!("{field} can only be specified for protocol icmp or ipv6-icmp");
                self.error(field, &what, "remove it, or write `protocol: icmp`");
            }
        }
    }

    /// Checks that source and destination have members, and of a common family.
    fn check_ends(&mut self) -> bool {
        let family = self.fields.family;
        let ends = [
            ("source", &self.fields.source),
            ("destination", &self.fields.destination),
        ];
        let mut found = [None; 2];
        for ((field, value), families) in ends.into_iter().zip(&mut found) {
            let has = self.families(value.as_deref());
            if has.v4 || has.v6 {
                *families = Some(has);
                continue;
            }
            let what = format!("family {} has no {field}", family.name());
            let help = "name a network, an address, any, or a prefix list with such members";
            self.error(field, &what, help);
        }
        let [Some(source), Some(destination)] = found else {
            return false;
        };
        let apart = source.v4 != destination.v4 && source.v6 != destination.v6;
        if apart {
            let what = "source and destination family do not overlap";
            self.error("destination", what, "write both as IPv4 or both as IPv6");
        }
        !apart
    }

    fn families(&self, value: Option<&str>) -> Families {
        let members: Vec<Address> = match value {
            None | Some("any") => return self.filtered(true, true),
            Some(text) => match forms::network(text) {
                Some(network) => vec![network],
                None => match self.c.config.prefixlists.get(text) {
                    Some(list) => list.members.clone(),
                    None => Vec::new(),
                },
            },
        };
        let v4 = members.iter().any(|member| member.address.is_ipv4());
        let v6 = members.iter().any(|member| member.address.is_ipv6());
        self.filtered(v4, v6)
    }

    fn filtered(&self, v4: bool, v6: bool) -> Families {
        Families {
            v4: v4 && self.fields.family != Family::Ipv6,
            v6: v6 && self.fields.family != Family::Ipv4,
        }
    }

    fn check_port(&mut self, field: &str, value: &Value) {
        let Some((low, high)) = value.ports() else {
            let help = "write a number, a service such as www, or in quotes a range such as \
                        \"80-88\"";
            self.error(field, &format!("could not understand {field}"), help);
            return;
        };
        self.check_range(field, (low, high), 65535);
    }

    fn check_icmp(&mut self, field: &str, value: &Value) {
        if let Some(range) = value.icmp() {
            self.check_range(field, range, 255);
        }
    }

    fn check_range(&mut self, field: &str, (low, high): (u64, u64), most: u64) {
        if low > high {
            let what = format!("{field} low value is greater than high value");
            self.error(field, &what, "write the lower one first");
        }
        for (end, value) in [("low", low), ("high", high)] {
            if value > most {
                let what = format!("{field} {end} value is not between [0,{most}]");
                self.error(field, &what, &format!("{most} is the highest"));
            }
        }
    }
}
