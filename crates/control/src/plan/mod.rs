//! From one configuration to another: what changes, and in which steps.
//!
//! A configuration is a set of items, each under its key ([`items`]). Everything follows from the
//! two sets and a row for each kind of item (`rules.rs`): what changes, item by item, and the steps.
//! Nothing is asked and nothing is changed here, and the steps are plain data, so that whoever
//! executes one knows how to take it back ([`Action::reverse`]). `docs/add-a-plan-item.md` adds a
//! kind.
//!
//! The steps come in three phases. *Prune* removes what is not wanted or cannot become what is
//! wanted, users before what they use, inner before outer. *Create* makes new objects, in the
//! opposite order. *Sync* sets what can be set while packets flow.

mod item;
mod items;
mod rule;
mod rules;
mod show;
mod steps;

pub use item::{Item, Items, Key, Kind, Object, Table};
pub use items::items;
pub use rule::Phase;
pub use show::{Change, Fate, FieldChange};
pub use steps::{Action, Step};

use crate::config::Config;

/// A plan: the steps from one configuration to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The changes, by object.
    pub changes: Vec<Change>,
    /// In the order in which they are to be taken.
    pub steps: Vec<Step>,
}

impl Plan {
    /// From one configuration to another. Both have passed every check.
    pub fn new(from: &Config, to: &Config) -> Plan {
        let (from, to) = (items(from), items(to));
        Plan {
            changes: show::changes(&from, &to),
            steps: steps::steps(&from, &to),
        }
    }

    /// Returns true if nothing changes.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

#[cfg(test)]
pub(crate) mod tests;
