//! The planner's knowledge of an item. [`rule`](super::rules::rule) has it, kind by kind.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use serde::Serialize;
use serde_json::Value as Json;

use super::item::{Key, Object};

/// The properties of an item that decide about its steps.
pub(super) struct Rule<'i> {
    /// The order of creation. What an item needs is of a lower rank.
    pub rank: u8,
    /// The phase in which it is made: [`Phase::Create`] or [`Phase::Sync`].
    pub made: Phase,
    /// The time of its removal, if it is not wanted any more.
    pub leaves: Leaves,
    /// It lives and dies with its object.
    pub is_attribute: bool,
    /// Only a new start can change it.
    pub is_for_start: bool,
    /// The object that it is, or that it is shown with.
    pub object: Object,
    /// The interface that it is, or belongs to.
    pub interface: Option<&'i str>,
    /// An item becomes another in place if this is the same of both; `None`: it never does.
    pub mould: Option<(&'static str, &'i str)>,
    /// Others that are nearly the same.
    pub variants: Option<Variants>,
    /// The size that it leaves to items further inside: a change that makes room comes before one
    /// that takes it.
    pub room: Option<u16>,
    /// The depth at which the interface lies inside others.
    pub depth: i16,
    /// The steps that traffic notices.
    pub interrupts: Interrupts<'i>,
    /// The items without which it cannot be.
    pub needs: Vec<Key>,
    /// The names and numbers that only one item may have at a time.
    pub claims: Vec<String>,
    /// The form in which people see it.
    pub shown: Shown<'i>,
}

/// The phase of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Removal of what must go.
    Prune,
    /// Creation of what is new.
    Create,
    /// Change of what stays.
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

/// The time at which an item that is not wanted any more is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaves {
    /// Before anything else is done.
    First,
    /// In the turn that its change would have, in the order of ranks.
    InTurn,
    /// Last of all: nothing uses it any more.
    Last,
}

/// The items that stand for the same thing.
pub(super) struct Variants {
    /// Their keys.
    pub keys: RangeInclusive<Key>,
    /// Two of them can be there at a time.
    pub together: bool,
}

/// The steps about an item that interrupt packets which both configurations carry.
#[derive(Clone, Copy)]
pub(super) enum Interrupts<'i> {
    /// None.
    Never,
    /// Each, those of its interface.
    Always,
    /// Each, if its interface is on a port.
    Port,
    /// That to this item from another, those of its interface.
    Change,
    /// Its removal, unless another variant is there already.
    Removal,
    /// Its removal if it comes back; whose packets.
    Absence(Option<&'i str>),
}

/// The fields that people see.
pub(super) enum Shown<'i> {
    /// One, and its value.
    Field(Cow<'i, str>, Cow<'i, str>),
    /// As many as a value has leaves, below a name.
    Leaves {
        /// The name; may be empty.
        name: &'static str,
        /// The value.
        value: &'i dyn Tree,
        /// Fields that nobody wrote: they matter only beside others.
        found: Vec<String>,
        /// The secret among them, which serializes as something else.
        secret: Option<&'i str>,
    },
}

/// A value that can be shown leaf by leaf.
pub(super) trait Tree {
    /// As JSON.
    fn json(&self) -> Json;
}

impl<T: Serialize> Tree for T {
    fn json(&self) -> Json {
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl<'i> Shown<'i> {
    /// A field.
    pub fn one(name: &'static str, value: impl Into<Cow<'i, str>>) -> Self {
        Shown::Field(name.into(), value.into())
    }

    /// The leaves of a value.
    pub fn of(value: &'i dyn Tree) -> Self {
        Shown::Leaves {
            name: "",
            value,
            found: Vec::new(),
            secret: None,
        }
    }
}

impl<'i> Rule<'i> {
    /// Of what is there by itself and is set while packets flow, without harm to any.
    pub fn plain(rank: u8, object: Object, shown: Shown<'i>) -> Self {
        Rule {
            rank,
            made: Phase::Sync,
            leaves: Leaves::Last,
            is_attribute: false,
            is_for_start: false,
            object,
            interface: None,
            mould: Some(("", "")),
            variants: None,
            room: None,
            depth: 0,
            interrupts: Interrupts::Never,
            needs: Vec::new(),
            claims: Vec::new(),
            shown,
        }
    }

    /// Of what the process is started with.
    pub fn start(object: Object, shown: Shown<'i>) -> Self {
        Rule {
            is_for_start: true,
            ..Rule::plain(30, object, shown)
        }
    }

    /// Of what others stand on.
    pub fn object(rank: u8, object: Object, shown: Shown<'i>) -> Self {
        Rule {
            made: Phase::Create,
            leaves: Leaves::First,
            ..Rule::plain(rank, object, shown)
        }
    }

    /// Of a setting of an interface, which is not the same without.
    pub fn setting(rank: u8, of: &'i str, shown: Shown<'i>) -> Self {
        Rule {
            leaves: Leaves::First,
            interface: Some(of),
            interrupts: Interrupts::Always,
            needs: vec![Key::interface(of)],
            ..Rule::plain(rank, Object::interface(of), shown)
        }
    }

    /// Of what lives and dies with an object.
    pub fn attribute(rank: u8, of: &'i Object, shown: Shown<'i>) -> Self {
        Rule {
            interface: of.as_interface(),
            is_attribute: true,
            needs: vec![Key::Object(of.clone())],
            ..Rule::plain(rank, of.clone(), shown)
        }
    }

    /// Of what lives and dies with an interface.
    pub fn own(rank: u8, of: &'i str, shown: Shown<'i>) -> Self {
        Rule {
            is_attribute: true,
            leaves: Leaves::Last,
            interrupts: Interrupts::Never,
            ..Rule::setting(rank, of, shown)
        }
    }

    /// The name of its object for people.
    pub fn label(&self) -> String {
        let object = &self.object;
        if self.is_for_start {
            format!("{object} (when the router starts again)")
        } else {
            object.to_string()
        }
    }

    /// It needs these, too.
    pub fn needs(mut self, needs: impl IntoIterator<Item = Key>) -> Self {
        self.needs.extend(needs);
        self
    }
}
