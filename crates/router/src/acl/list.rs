//! The access lists that there are, and what they make of interfaces.

use std::collections::BTreeMap;
use std::sync::Arc;

use graph::counters::Counter;
use tables::acl::{IP4, IP6, Key, NONE};

use super::{Direction, Packets, Rule};
use crate::by_number::ByNumber;
use crate::change::InterfaceId;

/// An access list, as it was given.
#[derive(Debug)]
pub(crate) struct Acl {
    pub name: String,
    pub rules: Vec<Rule>,
    /// How often each rule has matched, by worker.
    hits: Box<[Box<[Counter]>]>,
}

impl Acl {
    /// How often a rule has matched.
    pub fn hits(&self, rule: usize) -> u64 {
        let workers = self.hits.iter().filter_map(|hits| hits.get(rule));
        workers.fold(0, |sum, hits| sum.wrapping_add(hits.get()))
    }
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may pass.
    Permit,
    /// A rule says that it may not.
    Deny,
    /// No rule says anything of it.
    Unmatched,
}

/// A rule's place in an access list.
#[derive(Debug, Clone, Copy)]
struct Place {
    acl: u16,
    permit: bool,
    rule: u32,
}

/// The access lists of an interface and direction, compiled.
#[derive(Debug)]
pub(crate) struct List {
    acls: Box<[Arc<Acl>]>,
    /// Of all of them, in order.
    rules: Box<[Place]>,
    pub(super) ip4: tables::acl::Acl<IP4>,
    pub(super) ip6: tables::acl::Acl<IP6>,
}

impl List {
    fn new(acls: Vec<Arc<Acl>>) -> Self {
        let all = || acls.iter().flat_map(|acl| &acl.rules);
        let places = acls.iter().enumerate().flat_map(|(acl, of)| {
            of.rules.iter().enumerate().map(move |(rule, of)| Place {
                acl: acl as u16,
                permit: of.permit,
                rule: rule as u32,
            })
        });
        let rules = places.collect();
        let ip4 = all()
            .zip(0..)
            .filter_map(|(rule, number)| match &rule.packets {
                Packets::V4(packets) => Some((number, packets)),
                Packets::V6(_) => None,
            });
        let ip6 = all()
            .zip(0..)
            .filter_map(|(rule, number)| match &rule.packets {
                Packets::V4(_) => None,
                Packets::V6(packets) => Some((number, packets)),
            });
        let (ip4, ip6) = (ip4.collect(), ip6.collect());
        List {
            acls: acls.into(),
            rules,
            ip4,
            ip6,
        }
    }

    /// What becomes of a packet that this rule was found for; a worker counts it.
    #[inline(always)]
    pub(super) fn judge(&self, worker: usize, found: u32) -> Verdict {
        let Some(place) = self.rules.get(found as usize) else {
            return Verdict::Unmatched;
        };
        let acl = self.acls.get(usize::from(place.acl));
        let hits = acl.and_then(|acl| acl.hits.get(worker)?.get(place.rule as usize));
        if let Some(hits) = hits {
            hits.add(1);
        }
        match place.permit {
            true => Verdict::Permit,
            false => Verdict::Deny,
        }
    }
}

/// The rule that decides about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decided<'a> {
    /// Its access list.
    pub acl: &'a str,
    /// Its number there, from 0.
    pub rule: u32,
    pub permit: bool,
}

impl List {
    /// The rule that decides about an IPv4 packet, if one does; nothing counts it.
    pub(crate) fn decide4(&self, key: Key<IP4>) -> Option<Decided<'_>> {
        self.decided(&self.ip4, key)
    }

    /// The same of an IPv6 packet.
    pub(crate) fn decide6(&self, key: Key<IP6>) -> Option<Decided<'_>> {
        self.decided(&self.ip6, key)
    }

    fn decided<const W: usize>(
        &self,
        rules: &tables::acl::Acl<W>,
        key: Key<W>,
    ) -> Option<Decided<'_>> {
        let mut found = [NONE];
        rules.find(&[key], &mut found);
        let place = self.rules.get(found[0] as usize)?;
        let acl = self.acls.get(usize::from(place.acl))?;
        Some(Decided {
            acl: &acl.name,
            rule: place.rule,
            permit: place.permit,
        })
    }
}

/// The lists of interfaces, as workers see them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lists(ByNumber<List>);

impl Lists {
    /// The list of an interface, if it has one.
    #[inline(always)]
    pub(crate) fn of(&self, interface: InterfaceId, direction: Direction) -> Option<&Arc<List>> {
        self.0.get(direction.place(interface))?.as_ref()
    }
}

/// The access lists, and the interfaces that have them.
pub(crate) struct Acls {
    workers: usize,
    all: BTreeMap<String, Arc<Acl>>,
    attached: BTreeMap<(InterfaceId, Direction), Vec<String>>,
    lists: Lists,
}

impl Acls {
    /// None, for so many workers.
    pub(crate) fn new(workers: usize) -> Self {
        Acls {
            workers,
            all: BTreeMap::new(),
            attached: BTreeMap::new(),
            lists: Lists::default(),
        }
    }

    /// The lists, for workers.
    pub(crate) fn lists(&self) -> Lists {
        self.lists.clone()
    }

    /// The access lists, by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Acl> {
        self.all.values().map(|acl| &**acl)
    }

    /// The interfaces that have an access list in a direction.
    pub(super) fn interfaces(
        &self,
        acl: &str,
        direction: Direction,
    ) -> impl Iterator<Item = InterfaceId> {
        let of = self.attached.iter().filter(move |((_, of), names)| {
            *of == direction && names.iter().any(|name| name == acl)
        });
        of.map(|((interface, _), _)| *interface)
    }

    /// Makes an access list, or replaces its rules, which then count from 0. The same rules stay as
    /// they are.
    pub(crate) fn set(&mut self, name: &str, rules: &[Rule]) {
        if self.all.get(name).is_some_and(|old| old.rules == rules) {
            return;
        }
        let counters = || rules.iter().map(|_| Counter::default()).collect();
        let acl = Acl {
            name: name.to_owned(),
            rules: rules.to_vec(),
            hits: (0..self.workers).map(|_| counters()).collect(),
        };
        self.all.insert(name.to_owned(), Arc::new(acl));
        self.compile_with(name);
    }

    /// Removes an access list. Where it is attached, none of its rules matches any more.
    pub(crate) fn delete(&mut self, name: &str) {
        if self.all.remove(name).is_some() {
            self.compile_with(name);
        }
    }

    /// Gives an interface these access lists in a direction, in this order.
    pub(crate) fn attach(
        &mut self,
        interface: InterfaceId,
        direction: Direction,
        names: &[String],
    ) {
        let at = (interface, direction);
        let old = self.attached.get(&at).map_or(&[][..], |names| names);
        if old == names {
            return;
        }
        match names {
            [] => self.attached.remove(&at),
            _ => self.attached.insert(at, names.to_vec()),
        };
        let mut all = self.lists.0.to_vec();
        self.compile(&mut all, at);
        self.lists.0 = all.into();
    }

    /// Compiles the lists that an access list is in.
    fn compile_with(&mut self, name: &str) {
        let with = self.attached.iter();
        let with = with.filter(|(_, names)| names.iter().any(|of| of == name));
        let with: Vec<_> = with.map(|(at, _)| *at).collect();
        let mut all = self.lists.0.to_vec();
        for (interface, direction) in &with {
            all[direction.place(*interface)] = None;
        }
        with.into_iter().for_each(|at| self.compile(&mut all, at));
        self.lists.0 = all.into();
    }

    /// Puts the list of an interface among `all`: one that another interface has already, if that
    /// is the same.
    fn compile(&self, all: &mut Vec<Option<Arc<List>>>, at: (InterfaceId, Direction)) {
        let index = at.1.place(at.0);
        all.resize(all.len().max(index + 1), None);
        let list = self.attached.get(&at).map(|names| {
            let acls = names.iter().filter_map(|name| self.all.get(name).cloned());
            let acls: Vec<_> = acls.collect();
            let is_same = |list: &&Arc<List>| {
                let of = list.acls.iter().zip(&acls);
                list.acls.len() == acls.len() && of.into_iter().all(|(a, b)| Arc::ptr_eq(a, b))
            };
            let same = all.iter().flatten().find(is_same).cloned();
            same.unwrap_or_else(|| Arc::new(List::new(acls)))
        });
        all[index] = list;
    }
}
