//! A router in memory, which refuses what no router could do.

use super::super::rules::rule;
use super::super::*;
use crate::config::State;

/// A router in memory.
pub(crate) struct Machine(pub Items);

impl Machine {
    fn create(&mut self, item: &Item) {
        let key = item.key();
        assert!(!self.0.contains_key(&key), "{key:?} is there already");
        self.put(item);
    }

    fn put(&mut self, item: &Item) {
        let (key, rule) = (item.key(), rule(item));
        for need in rule.needs {
            assert!(self.0.contains_key(&need), "{key:?} needs {need:?}");
        }
        for claim in rule.claims {
            for other in claimants(&self.0, &claim) {
                assert!(*other == key, "{key:?} takes {claim} from {other:?}");
            }
        }
        self.0.insert(key, item.clone());
    }

    fn remove(&mut self, item: &Item, attributes: &[Item]) {
        for item in [item].into_iter().chain(attributes) {
            let found = self.0.remove(&item.key());
            assert_eq!(found.as_ref(), Some(item));
        }
        let key = item.key();
        for (other, item) in &self.0 {
            assert!(!rule(item).needs.contains(&key), "{other:?} needs {key:?}");
        }
    }

    /// Does what a step does.
    ///
    /// # Panics
    /// No router could.
    pub fn take(&mut self, action: &Action) {
        match action {
            Action::Remove { item, attributes } => self.remove(item, attributes),
            Action::Create { item, attributes } => {
                self.create(item);
                for attribute in attributes {
                    self.create(attribute);
                }
            }
            Action::Change { from, to } => {
                assert_eq!(self.0.get(&from.key()), Some(from));
                assert_eq!(from.key(), to.key());
                self.put(to);
            }
        }
        self.is_possible();
    }

    /// Checks what must hold at any time.
    fn is_possible(&self) {
        for (key, item) in &self.0 {
            if let Key::Address(name, _) = key {
                let connected = self.0.contains_key(&Key::CrossConnect(name.clone()));
                let member = self.0.get(&Key::BridgeMember(name.clone()));
                let bridged = matches!(member, Some(Item::BridgeMember { bvi: false, .. }));
                assert!(!connected && !bridged, "{name} has an address in layer 2");
            }
            self.has_one_length(key);
            if let Item::Interface {
                name,
                kind: Kind::Sub { parent, .. },
            } = item
            {
                self.fits_into(name, parent);
            }
        }
    }

    /// Checks that the values of a sub-interface are within those of its parent.
    fn fits_into(&self, name: &str, parent: &str) {
        let mtu = |of: &str| match self.0.get(&Key::Mtu(Object::interface(of))) {
            Some(Item::Mtu { mtu, .. }) => Some(*mtu),
            _ => None,
        };
        if let (Some(mtu), Some(most)) = (mtu(name), mtu(parent)) {
            assert!(mtu <= most, "{name} has a larger MTU than {parent}");
        }
        let state = |of: &str| match self.0.get(&Key::State(of.to_owned())) {
            Some(Item::State { state, .. }) => Some(*state),
            _ => None,
        };
        let is_above = state(name) == Some(State::Up) && state(parent) == Some(State::Down);
        assert!(!is_above, "{name} is up, {parent} not");
    }

    /// A device has an IPv6 address once, whatever its prefix length.
    fn has_one_length(&self, key: &Key) {
        let Key::Address(name, address) = key else {
            return;
        };
        let is_it = |other: &&Key| match other {
            Key::Address(of, other) => of == name && other.address == address.address,
            _ => false,
        };
        let lengths = self.0.keys().filter(is_it).count();
        assert!(
            lengths == 1 || address.address.is_ipv4(),
            "{name} has {address} with {lengths} lengths"
        );
    }
}

/// The items that claim something.
pub(super) fn claimants<'i>(items: &'i Items, claim: &'i String) -> impl Iterator<Item = &'i Key> {
    let claiming = items
        .iter()
        .filter(|(_, item)| rule(item).claims.contains(claim));
    claiming.map(|(key, _)| key)
}
