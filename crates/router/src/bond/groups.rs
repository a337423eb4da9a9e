//! The bonds, as workers see them.

use super::Spread;
use crate::by_number::{ByNumber, put};
use crate::change::{InterfaceId, Kind, L2};
use crate::state::Links;

/// A bond as workers see it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// How what leaves is spread.
    pub(super) spread: Spread,
    /// Its members that are up, by name.
    pub(super) usable: Box<[InterfaceId]>,
}

/// The bonds that workers see, by the number of the interface.
pub(crate) type Groups = ByNumber<Group>;

/// The bonds.
#[derive(Default)]
pub(crate) struct Bonds(Groups);

impl Bonds {
    /// The bonds, for workers.
    pub(crate) fn groups(&self) -> Groups {
        self.0.clone()
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
            changed |= self.show(bond, group(links, bond));
        }
        changed
    }

    /// Makes workers see a bond as it is now, or none. True if it is another one.
    fn show(&mut self, bond: InterfaceId, now: Option<Group>) -> bool {
        let before = self.0.get(usize::from(bond)).and_then(Option::as_deref);
        if before == now.as_ref() {
            return false;
        }
        put(&mut self.0, bond, now);
        true
    }
}

/// A bond as it is now; `None`: it is none.
fn group(links: &Links, bond: InterfaceId) -> Option<Group> {
    let Kind::Bond { spread, .. } = links.interfaces.get(&bond)?.kind else {
        return None;
    };
    let usable = members(links, bond).filter(|id| links.interfaces[id].up);
    Some(Group {
        spread,
        usable: usable.collect(),
    })
}

/// The members of a bond, by name. A bond is none of another one.
pub(super) fn members(links: &Links, bond: InterfaceId) -> impl Iterator<Item = InterfaceId> {
    let all = links.interfaces.values();
    let its = all.filter(|i| i.l2 == Some(L2::Bond(bond)) && !matches!(i.kind, Kind::Bond { .. }));
    let mut its: Vec<_> = its.collect();
    its.sort_by(|a, b| a.name.cmp(&b.name));
    its.into_iter().map(|i| i.id)
}
