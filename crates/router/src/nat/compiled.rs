//! The rules as workers ask them.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use graph::counters::Counter;
use tables::acl::{Acl, IP4, Key, NONE, Rule as Match};
use tables::prefix::Prefix;
use tables::translated::Range;
use wire::ip;
use wire::nat::Place;

use super::{Rules, To};
use crate::change::InterfaceId;
use crate::state::Links;

/// How often each rule has begun a flow: by worker, of destinations, of sources, and of statics.
#[derive(Debug)]
pub(crate) struct Hits(Box<[[Box<[Counter]>; 3]]>);

/// Which rule has decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    Destination(u32),
    Source(u32),
    Static(u32),
}

impl Hits {
    pub(super) fn new(rules: &Rules, workers: usize) -> Self {
        let lens = [
            rules.destination.len(),
            rules.source.len(),
            rules.fixed.len(),
        ];
        let counters = |len| (0..len).map(|_| Counter::default()).collect();
        Hits((0..workers).map(|_| lens.map(counters)).collect())
    }

    fn at(&self, worker: usize, rule: Rule) -> Option<&Counter> {
        let (kind, number) = match rule {
            Rule::Destination(number) => (0, number),
            Rule::Source(number) => (1, number),
            Rule::Static(number) => (2, number),
        };
        self.0.get(worker)?[kind].get(number as usize)
    }

    /// A rule of a worker has begun a flow.
    pub(crate) fn count(&self, worker: usize, rule: Rule) {
        if let Some(counter) = self.at(worker, rule) {
            counter.add(1);
        }
    }

    /// Flows that a rule has begun.
    pub(super) fn of(&self, rule: Rule) -> u64 {
        let counters = (0..self.0.len()).filter_map(|worker| self.at(worker, rule));
        counters.fold(0, |sum, counter| sum.wrapping_add(counter.get()))
    }
}

/// A packet that may be for somebody inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Inbound {
    pub source: Place,
    pub destination: Place,
    pub protocol: u8,
}

impl Inbound {
    fn key(&self) -> Key<IP4> {
        let ports = match self.protocol {
            // Echo requests: what else has a place is TCP and UDP, and SCTP.
            ip::ICMP => Some((8, 0)),
            protocol if ip::has_ports(protocol) => Some((self.source.port, self.destination.port)),
            _ => None,
        };
        Key::ip4(
            self.source.address,
            self.destination.address,
            self.protocol,
            ports,
        )
    }
}

/// What the source of a packet becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outward {
    /// It stays.
    Same,
    /// This address; the port stays.
    Fixed(u32),
    /// One of these addresses, and one of these ports.
    Any {
        addresses: RangeInclusive<u32>,
        ports: RangeInclusive<u16>,
    },
    /// An address of an interface that has none.
    Nothing,
}

/// A rule for sources, as far as the interfaces of now decide about it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Source {
    number: u32,
    to: To,
}

/// The new destination of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    number: u32,
    to: u32,
    /// The first port of the rule, and what that becomes.
    ports: Option<(u16, u16)>,
}

/// Rules of one kind, each with the packets that it matches, and the interface; those whose
/// interface is not there are left out.
type Resolved<T> = Vec<(Option<InterfaceId>, Match<u32>, T)>;

/// What workers know follows from this.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Inputs {
    rules: Rules,
    destinations: Resolved<Target>,
    sources: Resolved<Source>,
    fixed: Vec<Network>,
    /// The address of each interface, by its number, that is to stand for others; 0: none.
    addresses: Vec<u32>,
}

/// Networks that stand for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    outside: u32,
    inside: u32,
    /// Addresses that it has, less one.
    last: u32,
    interface: Option<InterfaceId>,
    number: u32,
}

impl Inputs {
    /// Finds the interfaces of the rules, and their addresses.
    pub(super) fn new(rules: &Rules, links: &Links) -> Self {
        let id = |name: &String| {
            let mut all = links.interfaces.values();
            all.find(|interface| interface.name == *name)
                .map(|interface| interface.id)
        };
        // The outer `None`: there is no such interface.
        let find = |name: &Option<String>| match name {
            None => Some(None),
            Some(name) => id(name).map(Some),
        };
        let mut inputs = Inputs {
            rules: rules.clone(),
            ..Inputs::default()
        };
        for (rule, number) in rules.destination.iter().zip(0..) {
            let Some(interface) = find(&rule.interface) else {
                continue;
            };
            for packets in &rule.packets {
                let first = *packets.destination_ports.start();
                let target = Target {
                    number,
                    to: rule.to.to_bits(),
                    ports: rule.port.map(|port| (first, port)),
                };
                let own = interface.filter(|_| rule.own);
                let Some(own) = own else {
                    inputs
                        .destinations
                        .push((interface, packets.clone(), target));
                    continue;
                };
                for address in links.sources.all_ip4(own) {
                    let packets = Match {
                        destination: Prefix::host(address.to_bits()),
                        ..packets.clone()
                    };
                    inputs
                        .destinations
                        .push((interface, packets, target.clone()));
                }
            }
        }
        for (rule, number) in rules.source.iter().zip(0..) {
            let Some(interface) = find(&rule.interface) else {
                continue;
            };
            if matches!(rule.to, To::Interface { .. }) {
                let one = interface.into_iter();
                let all = links.interfaces.keys().filter(|_| interface.is_none());
                for id in one.chain(all.copied()) {
                    let address = links.sources.ip4(id, None).map_or(0, Ipv4Addr::to_bits);
                    let at = usize::from(id);
                    let len = inputs.addresses.len().max(at + 1);
                    inputs.addresses.resize(len, 0);
                    inputs.addresses[at] = address;
                }
            }
            for packets in &rule.packets {
                let to = rule.to.clone();
                inputs
                    .sources
                    .push((interface, packets.clone(), Source { number, to }));
            }
        }
        for (rule, number) in rules.fixed.iter().zip(0..) {
            if let Some(interface) = find(&rule.interface) {
                inputs.fixed.push(Network {
                    outside: rule.outside.to_bits(),
                    inside: rule.inside.to_bits(),
                    last: u32::MAX.checked_shr(rule.length.into()).unwrap_or(0),
                    interface,
                    number,
                });
            }
        }
        inputs
    }

    /// Packets to own addresses that may be translated.
    pub(super) fn to_own_addresses(&self, links: &Links) -> Vec<Range> {
        const ALL: RangeInclusive<u16> = 0..=u16::MAX;
        let own = links.sources.every_ip4().map(Ipv4Addr::to_bits);
        let is_own = |range: RangeInclusive<u32>| own.clone().any(|own| range.contains(&own));
        let destinations = self.destinations.iter().filter_map(|(_, packets, _)| {
            let to = &packets.destination;
            let protocol = packets.protocol;
            // What has an identifier is led on whichever that is.
            let ports = match protocol {
                Some(ip::ICMP) => ALL,
                _ => packets.destination_ports.clone(),
            };
            is_own(to.addr()..=to.last()).then_some(Range { protocol, ports })
        });
        let sources = self.sources.iter().filter_map(|(_, packets, source)| {
            let ports = match &source.to {
                To::Same => return None,
                To::Interface { ports } => ports,
                To::Pool {
                    addresses, ports, ..
                } => {
                    let all = addresses.start().to_bits()..=addresses.end().to_bits();
                    is_own(all).then_some(ports)?
                }
            };
            Some(Range {
                protocol: packets.protocol,
                ports: ports.clone(),
            })
        });
        let fixed = self.fixed.iter().filter_map(|of| {
            let range = Range {
                protocol: None,
                ports: ALL,
            };
            is_own(of.outside..=of.outside + of.last).then_some(range)
        });
        destinations.chain(sources).chain(fixed).collect()
    }
}

/// Rules of one kind as they are looked up: by interface, those of it and those of any, in order.
#[derive(Debug)]
struct List<T> {
    rules: Box<[T]>,
    /// Of interfaces that no rule names.
    any: Acl<IP4>,
    /// Of the others, by number.
    of: Box<[Option<Acl<IP4>>]>,
}

impl<T: Clone> List<T> {
    fn new(rules: &Resolved<T>) -> Self {
        let acl = |of: Option<InterfaceId>| {
            let rules = rules.iter().zip(0u32..);
            let rules = rules.filter(|((rule, ..), _)| rule.is_none() || *rule == of);
            let rules = rules.map(|((_, packets, _), number)| (number, packets));
            rules.collect::<Acl<IP4>>()
        };
        let mut of: Vec<Option<Acl<IP4>>> = Vec::new();
        for (interface, ..) in rules {
            let Some(id) = *interface else { continue };
            let at = usize::from(id);
            if of.len() <= at {
                of.resize_with(at + 1, || None);
            }
            if of[at].is_none() {
                of[at] = Some(acl(Some(id)));
            }
        }
        List {
            rules: rules.iter().map(|(.., rule)| rule.clone()).collect(),
            any: acl(None),
            of: of.into(),
        }
    }

    /// The first rule that matches a packet which uses an interface.
    fn find(&self, interface: InterfaceId, key: &Key<IP4>) -> Option<&T> {
        let of = self.of.get(usize::from(interface)).and_then(Option::as_ref);
        let mut found = [NONE];
        of.unwrap_or(&self.any)
            .find(std::slice::from_ref(key), &mut found);
        self.rules.get(found[0] as usize)
    }
}

/// The addresses whose packets may be for somebody inside: a bit for each value of a hash.
#[derive(Debug)]
struct External {
    bits: Box<[u64]>,
    shift: u32,
}

impl External {
    fn new(ranges: &[RangeInclusive<u32>]) -> Self {
        let count: u64 = ranges
            .iter()
            .map(|range| u64::from(range.end() - range.start()) + 1)
            .sum();
        let bits = (16 * count).clamp(1 << 10, 1 << 24).next_power_of_two();
        let mut external = External {
            bits: vec![0; (bits / 64) as usize].into(),
            shift: 32 - bits.ilog2(),
        };
        for address in ranges.iter().cloned().flatten() {
            let at = external.at(address);
            external.bits[at / 64] |= 1 << (at % 64);
        }
        external
    }

    #[inline(always)]
    fn at(&self, address: u32) -> usize {
        (address.wrapping_mul(0x9e37_79b1) >> self.shift) as usize
    }

    #[inline(always)]
    fn has(&self, address: u32) -> bool {
        let at = self.at(address);
        let word = self.bits.get(at / 64);
        word.is_some_and(|word| word >> (at % 64) & 1 != 0)
    }
}

/// The rules.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) hits: Arc<Hits>,
    inputs: Inputs,
    external: External,
    destinations: List<Target>,
    sources: List<Source>,
    /// In order of their outer addresses.
    outsides: Box<[Network]>,
    /// In order of their inner ones.
    insides: Box<[Network]>,
}

impl Compiled {
    pub(super) fn new(inputs: Inputs, hits: Arc<Hits>) -> Self {
        let mut outsides = inputs.fixed.clone();
        let mut insides = outsides.clone();
        outsides.sort_by_key(|network| network.outside);
        insides.sort_by_key(|network| network.inside);
        let mut external = Vec::new();
        let addresses = inputs.addresses.iter().filter(|address| **address != 0);
        external.extend(addresses.map(|address| *address..=*address));
        external.extend(outsides.iter().map(|of| of.outside..=of.outside + of.last));
        external.extend(inputs.sources.iter().filter_map(|(.., source)| {
            let To::Pool { addresses, .. } = &source.to else {
                return None;
            };
            Some(addresses.start().to_bits()..=addresses.end().to_bits())
        }));
        external.extend(
            inputs
                .destinations
                .iter()
                .map(|(_, packets, _)| packets.destination.addr()..=packets.destination.last()),
        );
        Compiled {
            hits,
            external: External::new(&external),
            destinations: List::new(&inputs.destinations),
            sources: List::new(&inputs.sources),
            outsides: outsides.into(),
            insides: insides.into(),
            inputs,
        }
    }

    /// True if these would make no other.
    pub(super) fn is_of(&self, inputs: &Inputs) -> bool {
        self.inputs == *inputs
    }

    /// False if a packet to this address is for nobody inside.
    #[inline(always)]
    pub(crate) fn is_external(&self, address: u32) -> bool {
        self.external.has(address)
    }

    /// Whom rules say that a packet is for which comes in by an interface.
    pub(crate) fn inward(&self, interface: InterfaceId, of: &Inbound) -> Option<(Rule, Place)> {
        let Place { address, port } = of.destination;
        let after = self.outsides.partition_point(|of| of.outside <= address);
        let fixed = after.checked_sub(1).and_then(|at| self.outsides.get(at));
        if let Some(fixed) = fixed.filter(|fixed| address - fixed.outside <= fixed.last) {
            let address = fixed.inside + (address - fixed.outside);
            return Some((Rule::Static(fixed.number), Place { address, port }));
        }
        let target = self.destinations.find(interface, &of.key())?;
        let port = match target.ports {
            Some((first, to)) => port.wrapping_sub(first).wrapping_add(to),
            None => port,
        };
        let address = target.to;
        Some((Rule::Destination(target.number), Place { address, port }))
    }

    /// What the source becomes of a packet with this key that leaves by an interface, and by which
    /// rule.
    pub(crate) fn outward(
        &self,
        interface: InterfaceId,
        source: u32,
        key: &Key<IP4>,
    ) -> (Option<Rule>, Outward) {
        let after = self.insides.partition_point(|of| of.inside <= source);
        let fixed = after.checked_sub(1).and_then(|at| self.insides.get(at));
        let is_here = |of: &&Network| {
            source - of.inside <= of.last && of.interface.is_none_or(|id| id == interface)
        };
        if let Some(fixed) = fixed.filter(is_here) {
            let address = fixed.outside + (source - fixed.inside);
            return (Some(Rule::Static(fixed.number)), Outward::Fixed(address));
        }
        let Some(rule) = self.sources.find(interface, key) else {
            return (None, Outward::Same);
        };
        let outward = match &rule.to {
            To::Same => Outward::Same,
            To::Interface { ports } => {
                let address = self.inputs.addresses.get(usize::from(interface));
                match address.filter(|address| **address != 0) {
                    Some(address) => Outward::Any {
                        addresses: *address..=*address,
                        ports: ports.clone(),
                    },
                    None => Outward::Nothing,
                }
            }
            To::Pool {
                addresses,
                ports,
                blocks,
            } => {
                let addresses = addresses.start().to_bits()..=addresses.end().to_bits();
                let any = Outward::Any {
                    addresses: addresses.clone(),
                    ports: ports.clone(),
                };
                blocks.map_or(any, |blocks| {
                    let at = source.wrapping_sub(blocks.first.to_bits());
                    block(at, &addresses, ports, blocks.ports)
                })
            }
        };
        (Some(Rule::Source(rule.number)), outward)
    }
}

/// The ports that belong to the source at a place of its network, of so many each.
fn block(
    at: u32,
    addresses: &RangeInclusive<u32>,
    ports: &RangeInclusive<u16>,
    each: u16,
) -> Outward {
    let all = u32::from(*ports.end()) + 1 - u32::from(*ports.start());
    let each = u32::from(each.max(1));
    let hosts = (all / each).max(1);
    let address = addresses.start().checked_add(at / hosts);
    match address.filter(|address| addresses.contains(address)) {
        Some(address) => {
            let first = u32::from(*ports.start()) + at % hosts * each;
            Outward::Any {
                addresses: address..=address,
                ports: first as u16..=(first + each - 1).min((*ports.end()).into()) as u16,
            }
        }
        None => Outward::Nothing,
    }
}
