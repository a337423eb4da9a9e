//! The order of things.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::config::{Address, State};

use super::item::{Field, Item, Items, Key, Table, Value, claims, needs};

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// When.
    pub phase: Phase,
    /// What.
    pub action: Action,
    /// The interface whose packets are interrupted by it, even those that both configurations
    /// carry.
    pub interrupts: Option<String>,
}

/// When a step is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// What must go goes.
    Prune,
    /// What is new comes.
    Create,
    /// What stays becomes what it should be.
    Sync,
}

impl Phase {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Prune => "prune",
            Phase::Create => "create",
            Phase::Sync => "sync",
        }
    }
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// It is no more.
    Remove(Item),
    /// It is there from now on.
    Create(Item),
    /// It becomes another, in place.
    Change {
        /// Which.
        key: Key,
        /// What it was.
        from: Value,
        /// What it becomes.
        to: Value,
    },
}

impl Action {
    /// What takes it back.
    #[must_use]
    pub fn reverse(self) -> Action {
        match self {
            Action::Remove(item) => Action::Create(item),
            Action::Create(item) => Action::Remove(item),
            Action::Change { key, from, to } => Action::Change {
                key,
                from: to,
                to: from,
            },
        }
    }

    /// What it acts on.
    pub fn key(&self) -> &Key {
        match self {
            Action::Remove(item) | Action::Create(item) => &item.key,
            Action::Change { key, .. } => key,
        }
    }
}

/// The steps from one set of items to another.
pub(super) fn steps(from: &Items, to: &Items) -> Vec<Step> {
    let gone = gone(from, to);
    let mut steps = Vec::new();
    for (key, value) in from {
        // An attribute goes with what it is of.
        let goes_along = |of: &Key| !to.contains_key(of) || gone.contains(of);
        if matches!(key, Key::Of(of, _) if goes_along(of)) {
            continue;
        }
        let item = || Item {
            key: key.clone(),
            value: value.clone(),
            attributes: attributes(from, key),
        };
        match to.get(key) {
            _ if gone.contains(key) => {
                steps.push((Phase::Prune, Action::Remove(item())));
            }
            None => steps.push((Phase::Sync, Action::Remove(item()))),
            Some(new) if new != value => {
                let action = Action::Change {
                    key: key.clone(),
                    from: value.clone(),
                    to: new.clone(),
                };
                steps.push((Phase::Sync, action));
            }
            Some(_) => {}
        }
    }
    for (key, value) in to {
        let again = match key {
            Key::Of(of, _) => gone.contains(of.as_ref()),
            key => gone.contains(key),
        };
        if again || !from.contains_key(key) {
            let phase = if is_object(key) {
                Phase::Create
            } else {
                Phase::Sync
            };
            let item = Item {
                key: key.clone(),
                value: value.clone(),
                attributes: Vec::new(),
            };
            steps.push((phase, Action::Create(item)));
        }
    }
    let order = |(phase, action): &(Phase, Action)| (*phase, order(*phase, action, from, to));
    steps.sort_by_cached_key(order);
    let step = |(phase, action)| Step {
        phase,
        interrupts: interrupts(&action, from, to, &gone),
        action,
    };
    steps.into_iter().map(step).collect()
}

/// The attributes of an item.
fn attributes(items: &Items, key: &Key) -> Vec<(Field, Value)> {
    let found = Field::ALL.into_iter().filter_map(|field| {
        let value = items.get(&key.clone().of(field))?;
        Some((field, value.clone()))
    });
    found.collect()
}

/// What is removed before anything else happens, even if it comes back afterwards. Attributes, which
/// go with what they are of, are left out.
fn gone(from: &Items, to: &Items) -> BTreeSet<Key> {
    let mut wanted: BTreeMap<String, &Key> = BTreeMap::new();
    for (key, value) in to {
        if !matches!(key, Key::Of(..)) {
            wanted.extend(claims(key, value).into_iter().map(|claim| (claim, key)));
        }
    }
    // What an item needs comes before it in this order.
    let objects = from.iter().filter(|(key, _)| !matches!(key, Key::Of(..)));
    let mut ordered: Vec<(&Key, &Value)> = objects.collect();
    ordered.sort_by_key(|(key, value)| rank(key, value));
    let mut gone = BTreeSet::new();
    for (key, value) in ordered {
        let leaves = match to.get(key) {
            None => !is_late(key, to),
            Some(new) => new != value && !in_place(value, new),
        };
        let claimed = || {
            let mut claims = claims(key, value).into_iter();
            claims.any(|claim| wanted.get(&claim).is_some_and(|by| *by != key))
        };
        if leaves || claimed() || needs(key, value).iter().any(|need| gone.contains(need)) {
            gone.insert(key.clone());
        }
    }
    gone
}

/// Whether what is not wanted is removed only once nothing uses it any more.
fn is_late(key: &Key, to: &Items) -> bool {
    match key {
        // An interface that changes its ACLs is never without.
        Key::Acl(_) | Key::PrefixList(_) => true,
        Key::Sflow | Key::Workers | Key::Tables | Key::Netns | Key::Control => true,
        key => other_length(key, to).is_some(),
    }
}

/// The same address of the same interface with another prefix length.
///
/// To the kernel an IPv4 address with another length is another address, and the new one comes
/// before the old one goes. Of an IPv6 address a device has one length at a time: the old one has
/// to go first, and the new one comes at once.
fn other_length<'i>(key: &Key, items: &'i Items) -> Option<&'i Key> {
    let Key::Address(name, address) = key else {
        return None;
    };
    let host = |length| {
        let address = Address { length, ..*address };
        Key::Address(name.clone(), address)
    };
    let lengths = items.range(host(0)..=host(u8::MAX));
    let mut others = lengths.map(|(other, _)| other);
    others.find(|other| *other != key)
}

/// What comes at once in place of a removed item, which cannot be there beside it.
fn successor<'i>(key: &Key, to: &'i Items) -> Option<&'i Key> {
    let Key::Address(_, address) = key else {
        return None;
    };
    let other = other_length(key, to);
    other.filter(|_| address.address.is_ipv6())
}

/// Whether one value can become the other without being removed.
fn in_place(from: &Value, to: &Value) -> bool {
    let same_kind = std::mem::discriminant(from) == std::mem::discriminant(to);
    match (from, to) {
        // Another device; another parent; addresses that the kernel drops on the way.
        (Value::Port { .. }, _) | (Value::Address { .. }, _) => false,
        (Value::Sub { parent, .. }, Value::Sub { parent: other, .. }) => parent == other,
        _ => same_kind,
    }
}

/// Whether it is made in the phase of that name; everything else is a setting of such an object.
fn is_object(key: &Key) -> bool {
    matches!(
        key,
        Key::Vrf(_)
            | Key::Interface(_)
            | Key::Bridge(_)
            | Key::Lcp(_)
            | Key::PrefixList(_)
            | Key::Acl(_)
    )
}

/// The order of creation. What an item needs is of a lower rank.
fn rank(key: &Key, value: &Value) -> u8 {
    match (key, value) {
        (Key::Vrf(_), _) => 0,
        (Key::Interface(_), Value::Loopback {}) => 1,
        (Key::Interface(_), Value::Bond { .. }) => 2,
        (Key::Interface(_), Value::Vxlan { .. }) => 3,
        (Key::Interface(_), Value::Tap { .. }) => 4,
        (Key::Interface(_), value) => 5 + value.tags(),
        (Key::Bridge(_), _) => 8,
        // The host takes the source of its packets from a loopback, which must be there first.
        (Key::Lcp(_), _) => 9,
        (Key::PrefixList(_), _) => 13,
        (Key::Acl(_), _) => 14,
        (Key::VrfMember(_), _) => 15,
        (Key::Of(_, Field::Mac), _) => 16,
        (Key::BondMember(_), _) => 17,
        (Key::BridgeMember(_), _) => 18,
        (Key::CrossConnect(_), _) => 19,
        (Key::Of(_, Field::Mtu), _) => 20,
        (Key::Address(..), _) => 21,
        (Key::Unnumbered(_), _) => 22,
        (Key::Of(_, Field::Mpls), _) => 23,
        (Key::Sflow, _) => 24,
        (Key::Of(_, Field::Sflow), _) => 25,
        (Key::Input(_) | Key::Output(_), _) => 26,
        (Key::Of(_, Field::State), _) => 27,
        (Key::Route(..), _) => 28,
        (Key::Of(_, Field::Description), _) => 29,
        (Key::Workers | Key::Tables | Key::Netns | Key::Control, _) => 30,
    }
}

/// Where a step stands within its phase. The last part has what makes room come before what takes
/// it.
type Order = (u8, u8, i16, Key, bool);

fn order(phase: Phase, action: &Action, from: &Items, to: &Items) -> Order {
    let key = action.key().clone();
    let interface = key.interface().map(|name| Key::Interface(name.to_owned()));
    // A loopback lies outside of everything.
    let depth = |items: &Items| match interface.as_ref().and_then(|of| items.get(of)) {
        Some(Value::Loopback {}) => -1,
        Some(value) => i16::from(value.tags()),
        None => 0,
    };
    match (phase, action) {
        (Phase::Prune, Action::Remove(item)) => {
            let inner = -depth(from);
            (u8::MAX - rank(&key, &item.value), 0, inner, key, false)
        }
        (Phase::Sync, Action::Remove(item)) if let Some(successor) = successor(&key, to) => (
            rank(&key, &item.value),
            1,
            depth(to),
            successor.clone(),
            false,
        ),
        // It may grow or shrink by that, so it makes no rule for others from then on.
        (Phase::Sync, Action::Remove(item)) if matches!(key, Key::Of(_, Field::Mtu)) => {
            (rank(&key, &item.value), 0, -depth(to), key, false)
        }
        // What is removed late goes when everything else is done, users first.
        (Phase::Sync, Action::Remove(item)) => {
            let rank = rank(&key, &item.value);
            (100, u8::MAX - rank, 0, key, false)
        }
        (_, Action::Create(item)) => {
            let outer = depth(to);
            let grows = u8::from(!is_down(&item.value));
            let outer = if grows == 0 { -outer } else { outer };
            (rank(&key, &item.value), grows, outer, key, true)
        }
        (
            _,
            Action::Change {
                from: old, to: new, ..
            },
        ) => {
            let shrinks = match (old, new) {
                (Value::Mtu(old), Value::Mtu(new)) => new < old,
                (_, new) => is_down(new),
            };
            let inner = if shrinks { -depth(to) } else { depth(to) };
            (rank(&key, new), u8::from(!shrinks), inner, key, true)
        }
        (_, Action::Remove(item)) => (rank(&key, &item.value), 0, 0, key, false),
    }
}

fn is_down(value: &Value) -> bool {
    matches!(value, Value::State(State::Down))
}

/// The interface whose packets a step interrupts. What is new interrupts nobody, unless it is about
/// an interface that is there and stays.
fn interrupts(action: &Action, from: &Items, to: &Items, gone: &BTreeSet<Key>) -> Option<String> {
    let of = |key: &Key| key.interface().map(str::to_owned);
    // Drivers restart their queues for another MTU.
    let port = |owner: &Key| matches!(from.get(owner), Some(Value::Port { .. }));
    match action {
        Action::Create(Item { key, .. }) => {
            let interface = of(key).filter(|name| {
                let owner = Key::Interface(name.clone());
                from.contains_key(&owner) && !gone.contains(&owner)
            });
            interface.filter(|_| match key {
                Key::Of(owner, Field::Mtu) => port(owner),
                Key::Of(_, field) => *field == Field::Mac,
                Key::Address(..) | Key::Input(_) | Key::Output(_) => false,
                _ => true,
            })
        }
        Action::Remove(Item { key, value, .. }) => match (key, value) {
            (Key::Of(_, Field::Mac), _) => of(key),
            (Key::Of(owner, Field::Mtu), _) => of(key).filter(|_| port(owner)),
            // Another length of the address is there already.
            (Key::Address(..), _)
                if is_late(key, to) && successor(key, to).is_none() && !to.contains_key(key) =>
            {
                None
            }
            (Key::Of(..) | Key::Input(_) | Key::Output(_), _) => None,
            // A route that comes back is missing meanwhile.
            (Key::Route(table, ..), Value::Route { via, .. }) if to.contains_key(key) => {
                let mut interfaces = via.iter().filter_map(|hop| hop.interface.clone());
                interfaces.next().or_else(|| match table {
                    Table::Vrf(vrf) => Some(vrf.clone()),
                    Table::Number(_) => None,
                })
            }
            _ => of(key),
        },
        Action::Change { key, to: new, .. } => match (key, new) {
            (Key::Of(_, Field::State), Value::State(State::Down)) => of(key),
            (Key::Of(_, Field::Mac), _) => of(key),
            (Key::Of(owner, Field::Mtu), _) => of(key).filter(|_| port(owner)),
            (
                Key::Interface(_)
                | Key::Lcp(_)
                | Key::VrfMember(_)
                | Key::BondMember(_)
                | Key::BridgeMember(_)
                | Key::CrossConnect(_)
                | Key::Unnumbered(_),
                _,
            ) => of(key),
            _ => None,
        },
    }
}
