//! The order of things.

use std::collections::{BTreeMap, BTreeSet};

use super::item::{Item, Items, Key, Kind};
use super::rule::{Interrupts, Leaves, Phase, Rule};
use super::rules::rule;

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its phase.
    pub phase: Phase,
    /// Its action.
    pub action: Action,
    /// The interface whose packets are interrupted by it, even those that both configurations
    /// carry.
    pub interrupts: Option<String>,
}

/// The action of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// It is no more.
    Remove {
        /// The item that goes.
        item: Item,
        /// Its attributes, which go with it.
        attributes: Vec<Item>,
    },
    /// It is there from now on.
    Create {
        /// The item that comes.
        item: Item,
        /// Its attributes if it comes back, the state last.
        attributes: Vec<Item>,
    },
    /// It becomes another, in place.
    Change {
        /// The item before.
        from: Item,
        /// The item after.
        to: Item,
    },
}

impl Action {
    /// The action that takes it back.
    #[must_use]
    pub fn reverse(self) -> Action {
        match self {
            Action::Remove { item, attributes } => Action::Create { item, attributes },
            Action::Create { item, attributes } => Action::Remove { item, attributes },
            Action::Change { from, to } => Action::Change { from: to, to: from },
        }
    }

    /// The item that it acts on, as it is after the action, or before if it is removed.
    pub fn item(&self) -> &Item {
        match self {
            Action::Remove { item, .. } | Action::Create { item, .. } => item,
            Action::Change { to, .. } => to,
        }
    }
}

/// The steps from one set of items to another.
pub(super) fn steps(from: &Items, to: &Items) -> Vec<Step> {
    let gone = gone(from, to);
    let mut steps = removals_and_changes(from, to, &gone);
    for (key, item) in to {
        let rule = rule(item);
        let again = match owner(&rule) {
            Some(owner) => gone.contains(&owner),
            None => gone.contains(key),
        };
        if again || !from.contains_key(key) {
            let action = Action::Create {
                item: item.clone(),
                attributes: Vec::new(),
            };
            steps.push((rule.made, action));
        }
    }
    let order =
        |(phase, action): &(Phase, Action)| (*phase, order(*phase, action, from, to, &gone));
    steps.sort_by_cached_key(order);
    let step = |(phase, action)| Step {
        phase,
        interrupts: interrupts(&action, from, to, &gone),
        action,
    };
    steps.into_iter().map(step).collect()
}

/// The fate of the items that are there: removals and changes.
fn removals_and_changes(from: &Items, to: &Items, gone: &BTreeSet<Key>) -> Vec<(Phase, Action)> {
    let mut attributes = attributes(from);
    let mut steps = Vec::new();
    for (key, item) in from {
        // An attribute goes with what it is of.
        let goes_along = |of: Key| !to.contains_key(&of) || gone.contains(&of);
        if owner(&rule(item)).is_some_and(goes_along) {
            continue;
        }
        let mut remove = || {
            let attributes = attributes.remove(key).unwrap_or_default();
            Action::Remove {
                item: item.clone(),
                attributes: attributes.into_iter().cloned().collect(),
            }
        };
        match to.get(key) {
            _ if gone.contains(key) => steps.push((Phase::Prune, remove())),
            None => steps.push((Phase::Sync, remove())),
            Some(new) if new != item => {
                let (from, to) = (item.clone(), new.clone());
                steps.push((Phase::Sync, Action::Change { from, to }));
            }
            Some(_) => {}
        }
    }
    steps
}

/// The object of an attribute.
fn owner(rule: &Rule<'_>) -> Option<Key> {
    rule.is_attribute.then(|| Key::Object(rule.object.clone()))
}

/// The attributes of each item.
fn attributes(items: &Items) -> BTreeMap<Key, Vec<&Item>> {
    let mut attributes: BTreeMap<Key, Vec<&Item>> = BTreeMap::new();
    for item in items.values() {
        if let Some(owner) = owner(&rule(item)) {
            attributes.entry(owner).or_default().push(item);
        }
    }
    attributes
}

/// The items that are removed before anything else happens, even if they come back afterwards.
/// Attributes, which go with their objects, are left out.
fn gone(from: &Items, to: &Items) -> BTreeSet<Key> {
    // What stays as it is has what it claims already.
    let mut wanted: BTreeMap<String, Vec<(&Key, Option<&str>)>> = BTreeMap::new();
    for (key, item) in to.iter().filter(|(key, item)| from.get(key) != Some(item)) {
        let rule = rule(item);
        for claim in rule.claims {
            let claimers = wanted.entry(claim).or_default();
            claimers.push((key, rule.interface));
        }
    }
    let rules = from.iter().map(|(key, item)| (key, item, rule(item)));
    let objects = rules.filter(|(_, _, rule)| !rule.is_attribute);
    let mut ordered: Vec<(&Key, &Item, Rule<'_>)> = objects.collect();
    // What an item needs comes before it in this order.
    ordered.sort_by_key(|(_, _, rule)| rule.rank);
    let mut gone = BTreeSet::new();
    for (key, item, rule) in ordered {
        let leaves = match to.get(key) {
            None => rule.leaves == Leaves::First && variant(&rule, key, to).is_none(),
            Some(new) => new != item && !becomes(&rule, new),
        };
        // An interface may give its device the name that it has by itself.
        let another =
            |(by, of): &(&Key, Option<&str>)| *by != key && (of.is_none() || *of != rule.interface);
        let other = |claim| wanted.get(claim).is_some_and(|by| by.iter().any(another));
        let claimed = rule.claims.iter().any(other);
        if leaves || claimed || rule.needs.iter().any(|need| gone.contains(need)) {
            gone.insert(key.clone());
        }
    }
    gone
}

/// Another variant of an item.
fn variant<'i>(rule: &Rule<'_>, key: &Key, items: &'i Items) -> Option<&'i Key> {
    let variants = items.range(rule.variants.as_ref()?.keys.clone());
    let mut others = variants.map(|(other, _)| other);
    others.find(|other| *other != key)
}

/// The item that comes at once in place of a removed one, beside which it cannot be.
fn successor<'i>(rule: &Rule<'_>, key: &Key, to: &'i Items) -> Option<&'i Key> {
    let together = rule.variants.as_ref()?.together;
    variant(rule, key, to).filter(|_| !together)
}

/// Returns true if an item can become another without being removed.
fn becomes(old: &Rule<'_>, new: &Item) -> bool {
    old.mould.is_some() && old.mould == rule(new).mould
}

/// The order of a step within its phase. The last part puts steps that make room before those that
/// take it.
type Order = (u8, u8, i16, Key, bool);

fn order(phase: Phase, action: &Action, from: &Items, to: &Items, gone: &BTreeSet<Key>) -> Order {
    let (key, rule) = (action.item().key(), rule(action.item()));
    let rank = rule.rank;
    match (phase, action) {
        (Phase::Prune, Action::Remove { .. }) => {
            (u8::MAX - rank, 0, -depth(&rule, from), key, false)
        }
        (_, Action::Remove { .. }) => match successor(&rule, &key, to) {
            Some(successor) => (rank, 1, depth(&rule, to), successor.clone(), false),
            // It may grow or shrink by that, so it makes no rule for others from then on.
            None if rule.leaves == Leaves::InTurn => (rank, 0, -depth(&rule, to), key, false),
            // What is removed late goes when everything else is done, users first.
            None => (100, u8::MAX - rank, 0, key, false),
        },
        (_, Action::Create { .. } | Action::Change { .. }) => {
            let gives_room = match action {
                Action::Change { from, .. } => rule.room < self::rule(from).room,
                // What is new takes nothing away, and comes behind what it is on top of.
                _ => rule.room == Some(0) && stays(&rule, from, gone),
            };
            let outer = depth(&rule, to);
            let outer = if gives_room { -outer } else { outer };
            (rank, u8::from(!gives_room), outer, key, true)
        }
    }
}

/// True if the interface that an item belongs to was there before, and is not made anew.
fn stays(of: &Rule<'_>, from: &Items, gone: &BTreeSet<Key>) -> bool {
    let interface = of.interface.map(Key::interface);
    interface.is_some_and(|interface| from.contains_key(&interface) && !gone.contains(&interface))
}

/// The depth of the interface that an item belongs to.
fn depth(of: &Rule<'_>, items: &Items) -> i16 {
    let interface = of
        .interface
        .and_then(|name| items.get(&Key::interface(name)));
    interface.map_or(0, |interface| rule(interface).depth)
}

/// The interface whose packets a step interrupts. What is new interrupts nobody, unless it is about
/// an interface that is there and stays.
fn interrupts(action: &Action, from: &Items, to: &Items, gone: &BTreeSet<Key>) -> Option<String> {
    let (key, rule) = (action.item().key(), rule(action.item()));
    let before = rule
        .interface
        .and_then(|name| from.get(&Key::interface(name)));
    let stays = stays(&rule, from, gone);
    let whose = match (rule.interrupts, action) {
        (_, Action::Create { .. }) if !stays => None,
        (Interrupts::Always, _) => rule.interface,
        // Drivers restart their queues for another MTU.
        (Interrupts::Port, _) => rule.interface.filter(|_| is_port(before)),
        (Interrupts::Change, Action::Change { .. }) => rule.interface,
        (Interrupts::Removal, Action::Remove { .. }) => {
            let another =
                variant(&rule, &key, to).is_some() && successor(&rule, &key, to).is_none();
            let missing = !another || to.contains_key(&key);
            rule.interface.filter(|_| missing)
        }
        // What comes back is missing meanwhile.
        (Interrupts::Absence(whose), Action::Remove { .. }) => {
            whose.filter(|_| to.contains_key(&key))
        }
        (
            Interrupts::Never | Interrupts::Change | Interrupts::Removal | Interrupts::Absence(_),
            _,
        ) => None,
    };
    whose.map(str::to_owned)
}

fn is_port(item: Option<&Item>) -> bool {
    matches!(
        item,
        Some(Item::Interface {
            kind: Kind::Port { .. },
            ..
        })
    )
}
