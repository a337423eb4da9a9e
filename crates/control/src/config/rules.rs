//! The rules that the router makes of the terms of an ACL, and its policies.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use router::acl::{Match, Packets, Rule};
use router::nat::{Blocks, DestinationRule, SourceRule, Static, To};
use router::{Prefix, firewall};

use super::forms::{self, Address};
use super::model::{
    Action, Family, Fields, Named, Nat, Policy, PrefixList, Term, Value, nat, policy,
};

/// Most rules that an ACL may come to, and most matches of the rules of a policy.
pub const MOST_RULES: usize = 100_000;

/// The prefix lists that terms and rules may name.
pub type Lists = Named<PrefixList>;

/// Number of matches that terms or rules come to: of each one, as many as its sources and
/// destinations have pairs of one family.
pub fn count<'f>(all: impl Iterator<Item = &'f Fields>, lists: &Lists) -> usize {
    let of = |fields: &Fields| {
        let [source, destination] = ends(fields, lists);
        let of = |ends: &[Prefix], v4| {
            ends.iter()
                .filter(|p| matches!(p, Prefix::V4(_)) == v4)
                .count()
        };
        let pairs = |v4| of(&source, v4).saturating_mul(of(&destination, v4));
        pairs(true).saturating_add(pairs(false))
    };
    all.map(of).fold(0, usize::saturating_add)
}

/// The rules that terms come to, in their order.
///
/// # Errors
/// The first term that lets answers pass, from 1: that takes a memory of flows, which there is not.
pub fn rules(terms: &[Term], lists: &Lists) -> Result<Vec<Rule>, usize> {
    let reflects = |term: &Term| term.action == Action::Reflect;
    if let Some(at) = terms.iter().position(reflects) {
        return Err(at + 1);
    }
    let of = |term: &Term| {
        let permit = term.action == Action::Permit;
        let packets = packets(&term.fields, lists).into_iter();
        packets.map(move |packets| Rule { permit, packets })
    };
    Ok(terms.iter().flat_map(of).collect())
}

/// The policy as the router has it: a rule for each, also for one that matches nothing.
pub fn policy(policy: &Policy, lists: &Lists) -> firewall::Policy {
    let rules = policy.rules.iter().map(|rule| firewall::Rule {
        action: action(rule.action),
        states: states(&rule.state),
        packets: packets(&rule.fields, lists),
        limit: rule.limit,
    });
    firewall::Policy {
        rules: rules.collect(),
        default: action(policy.default),
    }
}

/// The rules of translation as the router has them.
pub fn nat(nat: &Nat, lists: &Lists) -> router::nat::Rules {
    router::nat::Rules {
        source: nat.source.iter().filter_map(|r| source(r, lists)).collect(),
        destination: nat
            .destination
            .iter()
            .filter_map(|rule| destination(rule, lists))
            .collect(),
        fixed: nat.fixed.iter().filter_map(fixed).collect(),
    }
}

fn source(rule: &nat::Source, lists: &Lists) -> Option<SourceRule> {
    let end = |number: u64| u16::try_from(number).unwrap_or(u16::MAX);
    let ports = || rule.ports().map(|(low, high)| end(low)..=end(high));
    let to = match nat::To::parse(&rule.to)? {
        nat::To::Same => To::Same,
        nat::To::Interface => To::Interface { ports: ports()? },
        nat::To::Addresses(addresses) => To::Pool {
            addresses,
            ports: ports()?,
            blocks: rule.ports_per_host.and_then(|ports| {
                let source = rule.fields.source.as_deref().and_then(forms::network)?;
                let IpAddr::V4(first) = source.address else {
                    return None;
                };
                Some(Blocks { first, ports })
            }),
        },
    };
    Some(SourceRule {
        interface: rule.interface.clone(),
        packets: ip4(&rule.fields, lists),
        to,
    })
}

fn destination(rule: &nat::Destination, lists: &Lists) -> Option<DestinationRule> {
    let Some(IpAddr::V4(to)) = rule.to else {
        return None;
    };
    Some(DestinationRule {
        interface: rule.interface.clone(),
        packets: ip4(&rule.fields, lists),
        own: rule.fields.destination.is_none(),
        to,
        port: rule.to_port,
    })
}

fn fixed(rule: &nat::Static) -> Option<Static> {
    let (outside, inside, length) = rule.networks()?;
    Some(Static {
        interface: rule.interface.clone(),
        outside,
        inside,
        length,
    })
}

/// Of the packets with these fields, those of IPv4.
pub(super) fn ip4(fields: &Fields, lists: &Lists) -> Vec<Match<u32>> {
    let of_ip4 = |packets| match packets {
        Packets::V4(packets) => Some(packets),
        Packets::V6(_) => None,
    };
    let all = packets(&nat::of_ip4(fields), lists).into_iter();
    all.filter_map(of_ip4).collect()
}

fn action(action: policy::Action) -> firewall::Action {
    match action {
        policy::Action::Accept => firewall::Action::Accept,
        policy::Action::Drop => firewall::Action::Drop,
        policy::Action::Reject => firewall::Action::Reject,
    }
}

fn states(states: &[policy::State]) -> firewall::States {
    if states.is_empty() {
        return firewall::States::ALL;
    }
    let states = states.iter().map(|state| match state {
        policy::State::New => firewall::State::New,
        policy::State::Established => firewall::State::Established,
        policy::State::Related => firewall::State::Related,
        policy::State::Invalid => firewall::State::Invalid,
    });
    states.fold(firewall::States::NONE, firewall::States::with)
}

/// The packets that have these fields: one match for each pair of a source and a destination of
/// one family.
fn packets(fields: &Fields, lists: &Lists) -> Vec<Packets> {
    let [sources, destinations] = ends(fields, lists);
    let protocol = fields.protocol_number().ok().filter(|number| *number != 0);
    let [source_ports, destination_ports] = ports(fields);
    let pairs = sources
        .iter()
        .flat_map(|source| destinations.iter().map(move |to| (source, to)));
    let packets = pairs.filter_map(|pair| match pair {
        (Prefix::V4(source), Prefix::V4(destination)) => Some(Packets::V4(Match {
            source: *source,
            destination: *destination,
            protocol,
            source_ports: source_ports.clone(),
            destination_ports: destination_ports.clone(),
        })),
        (Prefix::V6(source), Prefix::V6(destination)) => Some(Packets::V6(Match {
            source: *source,
            destination: *destination,
            protocol,
            source_ports: source_ports.clone(),
            destination_ports: destination_ports.clone(),
        })),
        _ => None,
    });
    packets.collect()
}

/// Ports that are asked for, or ICMP types and codes.
fn ports(fields: &Fields) -> [RangeInclusive<u16>; 2] {
    let range = |of: &Option<Value>, read: fn(&Value) -> Option<(u64, u64)>| {
        let (low, high) = read(of.as_ref()?)?;
        let end = |number: u64| u16::try_from(number).unwrap_or(u16::MAX);
        Some(end(low)..=end(high))
    };
    let all = 0..=u16::MAX;
    let kind = range(&fields.icmp_type, Value::icmp);
    let code = range(&fields.icmp_code, Value::icmp);
    let source = range(&fields.source_port, Value::ports);
    let destination = range(&fields.destination_port, Value::ports);
    [kind.or(source), code.or(destination)].map(|range| range.unwrap_or_else(|| all.clone()))
}

/// Sources and destinations, those of the family.
fn ends(fields: &Fields, lists: &Lists) -> [Vec<Prefix>; 2] {
    [&fields.source, &fields.destination].map(|text| {
        let all = match text.as_deref() {
            None | Some("any") => vec![
                Prefix::new(Ipv4Addr::UNSPECIFIED, 0),
                Prefix::new(Ipv6Addr::UNSPECIFIED, 0),
            ],
            Some(text) => {
                let prefix = |of: &Address| Prefix::new(of.address, of.length);
                match (forms::network(text), lists.get(text)) {
                    (Some(network), _) => vec![prefix(&network)],
                    (None, Some(list)) => list.members.iter().map(prefix).collect(),
                    (None, None) => Vec::new(),
                }
            }
        };
        let is_of_family = |prefix: &Prefix| match prefix {
            Prefix::V4(_) => fields.family != Family::Ipv6,
            Prefix::V6(_) => fields.family != Family::Ipv4,
        };
        all.into_iter().flatten().filter(is_of_family).collect()
    })
}
