//! The rules that there are, and what they come to with the interfaces of now.

use std::sync::Arc;

use tables::mem::Cells;
use tables::translated::{Range, Translated};

use super::Rules;
use super::compiled::{Compiled, Hits, Inputs};
use crate::state::Links;

/// The translation as workers see it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Published {
    /// Grows with each change of what the rules say.
    pub generation: u64,
    /// `None`: nothing is translated.
    pub rules: Option<Arc<Compiled>>,
}

/// The translation.
#[derive(Debug)]
pub(crate) struct Nat {
    workers: usize,
    pub(super) rules: Rules,
    pub(super) hits: Arc<Hits>,
    published: Published,
    /// What is translated though it is for an own address, for XDP programs.
    table: Translated,
    /// What the table holds.
    own: Vec<Range>,
    is_stale: bool,
}

impl Nat {
    /// None, for so many workers, with a table in zeroed memory.
    pub(crate) fn new(workers: usize, cells: Cells) -> Self {
        let rules = Rules::default();
        Nat {
            workers,
            hits: Arc::new(Hits::new(&rules, workers)),
            rules,
            published: Published::default(),
            table: Translated::new(cells),
            own: Vec::new(),
            is_stale: false,
        }
    }

    /// True if something is translated.
    pub(crate) fn is_on(&self) -> bool {
        !self.rules.is_empty()
    }

    /// These rules hold from now on, and count from 0, unless they are the same.
    pub(crate) fn set(&mut self, rules: &Rules) {
        if self.rules != *rules {
            self.hits = Arc::new(Hits::new(rules, self.workers));
            self.rules = rules.clone();
            self.published.rules = None;
            self.is_stale = true;
        }
    }

    /// Interfaces or their addresses have changed.
    pub(crate) fn links_changed(&mut self) {
        self.is_stale |= self.is_on();
    }

    /// True if workers may be to know something else: [`follow`](Self::follow) finds out what.
    pub(crate) const fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Takes in what has become of rules, interfaces and their addresses.
    pub(crate) fn follow(&mut self, links: &Links) {
        if !std::mem::take(&mut self.is_stale) {
            return;
        }
        let inputs = Inputs::new(&self.rules, links);
        let own = inputs.to_own_addresses(links);
        if self.own != own {
            self.table.set(&own);
            self.own = own;
        }
        if !self.is_on() {
            self.published.generation += 1;
            return;
        }
        let is_same = self
            .published
            .rules
            .as_ref()
            .is_some_and(|old| old.is_of(&inputs));
        if !is_same {
            self.published.generation += 1;
            let compiled = Compiled::new(inputs, Arc::clone(&self.hits));
            self.published.rules = Some(Arc::new(compiled));
        }
    }

    /// What workers are to know.
    pub(crate) fn published(&self) -> Published {
        self.published.clone()
    }
}
