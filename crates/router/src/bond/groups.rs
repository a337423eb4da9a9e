//! The bonds, as workers see them.

use std::collections::BTreeMap;
use std::sync::Arc;

use wire::lacp::Header;

use super::Spread;
use super::lacp::{Aggregator, Millis, Outbox, Outgoing};
use crate::by_number::{ByNumber, put};
use crate::change::{Interface, InterfaceId, Kind, L2};
use crate::event::Lacpdu;
use crate::state::Links;

/// A bond as workers see it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// How what leaves is spread.
    pub(super) spread: Spread,
    /// Its members that are up, and that LACP lets carry where it decides, by name.
    pub(super) usable: Box<[InterfaceId]>,
}

/// The bonds that workers see, by the number of the interface.
pub(crate) type Groups = ByNumber<Group>;

/// The bonds.
#[derive(Default)]
pub(crate) struct Bonds {
    groups: Groups,
    /// Of bonds with LACP.
    aggregators: BTreeMap<InterfaceId, Aggregator>,
    /// LACPDUs that came since the last step, in order.
    heard: Vec<(InterfaceId, Lacpdu)>,
    /// By member, what it was last to send.
    outgoing: BTreeMap<InterfaceId, Arc<Outgoing>>,
}

impl Bonds {
    /// The bonds, for workers.
    pub(crate) fn groups(&self) -> Groups {
        self.groups.clone()
    }

    /// The LACPDUs that workers are to send, unless they have.
    pub(crate) fn lacpdus(&self) -> Outbox {
        self.outgoing.values().cloned().collect()
    }

    /// The ports of a bond with LACP.
    pub(crate) fn aggregator(&self, bond: InterfaceId) -> Option<&Aggregator> {
        self.aggregators.get(&bond)
    }

    /// A member has got an LACPDU.
    pub(crate) fn hear(&mut self, member: InterfaceId, lacpdu: Lacpdu) {
        self.heard.push((member, lacpdu));
    }

    /// It is this time: LACP takes a step. True if workers are to know of it.
    pub(crate) fn step(&mut self, links: &Links, now: Millis) -> bool {
        for (member, Lacpdu { actor, partner }) in std::mem::take(&mut self.heard) {
            let its = links.interfaces.get(&member).and_then(|i| i.l2);
            if let Some(L2::Bond(bond)) = its
                && let Some(aggregator) = self.aggregators.get_mut(&bond)
            {
                aggregator.hear(member, &Header::new(actor, partner), now);
            }
        }
        let mut changed = false;
        let bonds: Vec<_> = self.aggregators.keys().copied().collect();
        for bond in bonds {
            let aggregator = self.aggregators.get_mut(&bond);
            for (member, pdu) in aggregator.map_or_else(Vec::new, |a| a.step(now)) {
                let from = links.interfaces.get(&member).map(|i| i.mac);
                let outgoing = Outgoing::new(member, from.unwrap_or_default(), &pdu);
                self.outgoing.insert(member, Arc::new(outgoing));
                changed = true;
            }
            changed |= self.show(bond, self.group(links, bond));
        }
        changed
    }

    /// Takes in what has become of an interface, and the bonds that it was or is a member of. True
    /// if a bond is another one now.
    pub(crate) fn follow(&mut self, links: &Links, id: InterfaceId, of: [Option<L2>; 2]) -> bool {
        let bond = |l2| match l2 {
            Some(L2::Bond(bond)) => Some(bond),
            _ => None,
        };
        let [old, new] = of.map(bond);
        let all = [Some(id), old, new.filter(|_| new != old)];
        let mut changed = false;
        for bond in all.into_iter().flatten() {
            self.aggregate(links, bond);
            changed |= self.show(bond, self.group(links, bond));
        }
        changed
    }

    /// Makes workers see a bond as it is now, or none. True if it is another one.
    fn show(&mut self, bond: InterfaceId, now: Option<Group>) -> bool {
        let before = self
            .groups
            .get(usize::from(bond))
            .and_then(Option::as_deref);
        if before == now.as_ref() {
            return false;
        }
        put(&mut self.groups, bond, now);
        true
    }

    /// LACP takes in what a bond is like now.
    fn aggregate(&mut self, links: &Links, bond: InterfaceId) {
        match links.interfaces.get(&bond) {
            Some(&Interface {
                kind:
                    Kind::Bond {
                        spread: Spread::Lacp(_),
                        enabled,
                        ..
                    },
                mac,
                ..
            }) => {
                let is_up = |id| {
                    let member = &links.interfaces[&id];
                    (id, enabled && member.up && member.serving)
                };
                let all: Vec<_> = members(links, bond).map(is_up).collect();
                let aggregator = self.aggregators.entry(bond).or_default();
                aggregator.has(bond, mac, &all);
            }
            _ => drop(self.aggregators.remove(&bond)),
        }
        let aggregators = &self.aggregators;
        self.outgoing
            .retain(|id, _| aggregators.values().any(|a| a.has_port(*id)));
    }

    /// A bond as it is now; `None`: it is none.
    fn group(&self, links: &Links, bond: InterfaceId) -> Option<Group> {
        let Kind::Bond { spread, .. } = links.interfaces.get(&bond)?.kind else {
            return None;
        };
        let usable = members(links, bond).filter(|id| {
            let agreed = || self.aggregator(bond).is_some_and(|a| a.carries(*id));
            links.interfaces[id].up && (!matches!(spread, Spread::Lacp(_)) || agreed())
        });
        Some(Group {
            spread,
            usable: usable.collect(),
        })
    }
}

/// The members of a bond, by name. A bond is none of another one.
pub(super) fn members(links: &Links, bond: InterfaceId) -> impl Iterator<Item = InterfaceId> {
    let all = links.interfaces.values();
    let its = all.filter(|i| i.l2 == Some(L2::Bond(bond)) && !matches!(i.kind, Kind::Bond { .. }));
    let mut its: Vec<_> = its.collect();
    its.sort_by(|a, b| a.name.cmp(&b.name));
    its.into_iter().map(|i| i.id)
}
