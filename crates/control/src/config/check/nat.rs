//! Rules of address translation, one by one.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use crate::config::forms;
use crate::config::model::Fields;
use crate::config::model::nat::{self, Destination, Source, Static, To};
use crate::config::rules;
use crate::config::yaml::Step;

use super::acls::{Checking, TCP_AND_UDP};
use super::{Checker, to};

/// Most addresses of a pool, and of what a rule for destinations is about.
const MOST_ADDRESSES: u64 = 65_536;

pub(super) fn check(c: &mut Checker<'_>) {
    let nat = &c.config.nat;
    for (index, rule) in nat.source.iter().enumerate() {
        let at = to!["nat", "source", index].to_vec();
        let says = format!("nat source rule {}", index + 1);
        Rule { c, at, says }.source(rule);
    }
    for (index, rule) in nat.destination.iter().enumerate() {
        let at = to!["nat", "destination", index].to_vec();
        let says = format!("nat destination rule {}", index + 1);
        Rule { c, at, says }.destination(rule);
    }
    for (index, rule) in nat.fixed.iter().enumerate() {
        let at = to!["nat", "static", index].to_vec();
        let says = format!("nat static rule {}", index + 1);
        Rule { c, at, says }.fixed(index, rule);
    }
}

struct Rule<'a, 'c> {
    c: &'a mut Checker<'c>,
    /// The way to it.
    at: Vec<Step>,
    /// The beginning of messages about it.
    says: String,
}

impl Rule<'_, '_> {
    fn error(&mut self, field: &str, what: &str, help: &str) {
        let mut path = self.at.clone();
        path.push(field.into());
        self.c.error(&path, format!("{} {what}", self.says), help);
    }

    fn interface(&mut self, interface: Option<&String>) {
        if let Some(name) = interface.filter(|name| self.c.view.get(name).is_none()) {
            let what = format!("interface {name} does not exist");
            self.error("interface", &what, "correct its name");
        }
    }

    /// Checks what rules with fields have.
    fn check(&mut self, interface: Option<&String>, fields: &Fields) {
        self.interface(interface);
        let checking = Checking {
            c: self.c,
            at: self.at.clone(),
            says: self.says.clone(),
            fields: &nat::of_ip4(fields),
        };
        checking.check();
    }

    /// Checks that addresses can be those of hosts.
    fn hosts(&mut self, field: &str, addresses: &RangeInclusive<Ipv4Addr>) {
        let of_hosts = Ipv4Addr::new(1, 0, 0, 0)..=Ipv4Addr::new(223, 255, 255, 255);
        let loopback = Ipv4Addr::new(127, 0, 0, 0)..=Ipv4Addr::new(127, 255, 255, 255);
        let (first, last) = (addresses.start(), addresses.end());
        let is_loopback = first <= loopback.end() && last >= loopback.start();
        if !of_hosts.contains(first) || !of_hosts.contains(last) || is_loopback {
            let what = format!("{field} has addresses that no host can have");
            self.error(field, &what, "write unicast addresses of your own");
        }
    }

    fn source(&mut self, rule: &Source) {
        self.check(rule.interface.as_ref(), &rule.fields);
        let Some(to) = To::parse(&rule.to) else {
            let help = "write `interface`, `none`, an IPv4 address, a network without host bits, \
                        or two addresses, the lower one first";
            return self.error("to", "could not understand to", help);
        };
        let ports = rule.ports();
        match ports {
            Some((low, high)) if low > high => {
                let what = "ports low value is greater than high value";
                self.error("ports", what, "write the lower one first");
            }
            Some((_, 65536..)) => {
                self.error(
                    "ports",
                    "ports high value is not between [1,65535]",
                    "65535 is the highest",
                );
            }
            _ => {}
        }
        if to == To::Same && rule.ports.is_some() {
            self.error("ports", "has ports, and the source stays", "remove them");
        }
        let To::Addresses(addresses) = to else {
            if rule.ports_per_host.is_some() {
                let help = "write `to` as an address, a network or a range";
                self.error(
                    "ports-per-host",
                    "has ports-per-host without addresses",
                    help,
                );
            }
            return;
        };
        self.hosts("to", &addresses);
        if size(&addresses) > MOST_ADDRESSES {
            let what = format!("to has more than {MOST_ADDRESSES} addresses");
            self.error("to", &what, "take fewer, or several rules");
        }
        let ports = ports.map_or(0, |(low, high)| (high + 1).saturating_sub(low));
        if let Some(each) = rule.ports_per_host {
            self.blocks(rule, u64::from(each), size(&addresses), ports);
        }
    }

    /// Checks that each host has its ports.
    fn blocks(&mut self, rule: &Source, each: u64, addresses: u64, ports: u64) {
        let source = rule.fields.source.as_deref().and_then(forms::network);
        let Some(source) = source.filter(|source| source.address.is_ipv4()) else {
            let what = "has ports-per-host, and its source is not one network";
            return self.error("source", what, "write the network of the hosts");
        };
        let hosts = 1 << (32 - source.length.min(32));
        let room = addresses.saturating_mul(ports / each);
        if room < hosts {
            let what = format!(
                "has room for {room} hosts with {each} ports each, and its source has {hosts}"
            );
            self.error("ports-per-host", &what, "give fewer, or more addresses");
        }
    }

    fn destination(&mut self, rule: &Destination) {
        self.check(rule.interface.as_ref(), &rule.fields);
        match rule.fields.destination.as_deref() {
            None if rule.interface.is_none() => {
                let help = "name the destination, or an interface whose addresses are meant";
                self.error("destination", "has neither destination nor interface", help);
            }
            Some("any") => {
                let help = "name the addresses that are translated, or leave it out for those of \
                            the interface";
                self.error("destination", "has any destination", help);
            }
            _ => {}
        }
        let packets = rules::ip4(&rule.fields, &self.c.config.prefixlists);
        let all = packets.iter().map(|packets| packets.destination);
        let count: u64 = all.map(|to| 1 << (32 - to.len().min(32))).sum();
        if rule.fields.destination.is_some() && count > MOST_ADDRESSES {
            let what = format!("has more than {MOST_ADDRESSES} destinations");
            self.error("destination", &what, "name fewer");
        }
        match rule.to {
            Some(IpAddr::V4(to)) => self.hosts("to", &(to..=to)),
            _ => self.error("to", "to is no IPv4 address", "write the address of a host"),
        }
        let Some(first) = rule.to_port else { return };
        let protocol = rule.fields.protocol_number().unwrap_or(0);
        let ports = rule.fields.destination_port.as_ref();
        let Some((low, high)) = ports.and_then(|ports| ports.ports()) else {
            let help = "add `protocol` and `destination-port`, or remove it";
            return self.error("to-port", "has to-port without destination-port", help);
        };
        if TCP_AND_UDP.contains(&protocol) && u64::from(first) + high.saturating_sub(low) > 65535 {
            let what = "has more ports from to-port on than there are";
            self.error("to-port", what, "65535 is the highest");
        }
    }

    fn fixed(&mut self, index: usize, rule: &Static) {
        self.interface(rule.interface.as_ref());
        let Some((outside, inside, length)) = rule.networks() else {
            let help = "write two IPv4 addresses, or two networks of the same length";
            return self.error("outside", "outside and inside are not alike", help);
        };
        if length < 16 {
            let help = "write several rules";
            return self.error("outside", "has more than 65536 addresses", help);
        }
        let outer = nat::range(outside, length);
        self.hosts("outside", &outer);
        self.hosts("inside", &nat::range(inside, length));
        let all = &self.c.config.nat;
        let before = all.fixed[..index].iter().zip(1..);
        for (other, number) in before {
            for (field, of, to) in [
                ("outside", &rule.outside, &other.outside),
                ("inside", &rule.inside, &other.inside),
            ] {
                if let (Some(of), Some(to)) = (forms::network(of), forms::network(to))
                    && of.overlaps(&to)
                {
                    let what = format!("{field} overlaps with that of nat static rule {number}");
                    self.error(field, &what, "an address stands for one other");
                }
            }
        }
        for (source, number) in all.source.iter().zip(1..) {
            if let Some(To::Addresses(pool)) = To::parse(&source.to)
                && pool.start() <= outer.end()
                && pool.end() >= outer.start()
            {
                let what = format!("outside overlaps with to of nat source rule {number}");
                self.error("outside", &what, "take its addresses out of that rule");
            }
        }
    }
}

fn size(addresses: &RangeInclusive<Ipv4Addr>) -> u64 {
    u64::from(addresses.end().to_bits()) + 1 - u64::from(addresses.start().to_bits())
}
