//! The rules that the router makes of the terms of an ACL.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use router::Prefix;
use router::acl::{Match, Packets, Rule};

use super::forms::{self, Address};
use super::model::{Action, Family, Named, PrefixList, Term, Value};

/// Most rules that an ACL may come to.
pub const MOST_RULES: usize = 100_000;

/// The prefix lists that terms may name.
pub type Lists = Named<PrefixList>;

/// Number of rules that terms come to: of each one, as many as its sources and destinations have
/// pairs of one family.
pub fn count(terms: &[Term], lists: &Lists) -> usize {
    let of = |term: &Term| {
        let [source, destination] = ends(term, lists);
        let of = |ends: &[Prefix], v4| {
            ends.iter()
                .filter(|p| matches!(p, Prefix::V4(_)) == v4)
                .count()
        };
        let pairs = |v4| of(&source, v4).saturating_mul(of(&destination, v4));
        pairs(true).saturating_add(pairs(false))
    };
    terms.iter().map(of).fold(0, usize::saturating_add)
}

/// The rules that terms come to, in their order.
///
/// # Errors
/// The first term that lets answers pass, from 1: that takes a memory of flows, which there is not.
pub fn rules(terms: &[Term], lists: &Lists) -> Result<Vec<Rule>, usize> {
    let reflects = |term: &Term| term.action == Action::Reflect;
    match terms.iter().position(reflects) {
        Some(at) => Err(at + 1),
        None => Ok(terms
            .iter()
            .flat_map(|term| rules_of(term, lists))
            .collect()),
    }
}

fn rules_of(term: &Term, lists: &Lists) -> Vec<Rule> {
    let [sources, destinations] = ends(term, lists);
    let protocol = term.protocol_number().ok().filter(|number| *number != 0);
    let [source_ports, destination_ports] = ports(term);
    let permit = term.action == Action::Permit;
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
    packets.map(|packets| Rule { permit, packets }).collect()
}

/// Ports of a term, or its ICMP types and codes.
fn ports(term: &Term) -> [RangeInclusive<u16>; 2] {
    let range = |of: &Option<Value>, read: fn(&Value) -> Option<(u64, u64)>| {
        let (low, high) = read(of.as_ref()?)?;
        let end = |number: u64| u16::try_from(number).unwrap_or(u16::MAX);
        Some(end(low)..=end(high))
    };
    let all = 0..=u16::MAX;
    let kind = range(&term.icmp_type, Value::icmp);
    let code = range(&term.icmp_code, Value::icmp);
    let source = range(&term.source_port, Value::ports);
    let destination = range(&term.destination_port, Value::ports);
    [kind.or(source), code.or(destination)].map(|range| range.unwrap_or_else(|| all.clone()))
}

/// Sources and destinations of a term, those of its family.
fn ends(term: &Term, lists: &Lists) -> [Vec<Prefix>; 2] {
    [&term.source, &term.destination].map(|text| {
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
            Prefix::V4(_) => term.family != Family::Ipv6,
            Prefix::V6(_) => term.family != Family::Ipv4,
        };
        all.into_iter().flatten().filter(is_of_family).collect()
    })
}
