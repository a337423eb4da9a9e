//! The policies that there are, and the interfaces that have them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::compiled::Compiled;
use super::{Action, Policy};
use crate::acl::Direction;
use crate::by_number::ByNumber;
use crate::change::InterfaceId;

/// The policies of interfaces, as workers see them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attached {
    /// Grows with each change of what policies say.
    pub(super) generation: u64,
    all: ByNumber<Compiled>,
}

impl Attached {
    /// The policy of an interface, if it has one.
    #[inline(always)]
    pub(crate) fn of(&self, interface: InterfaceId, direction: Direction) -> Option<&Compiled> {
        self.all.get(direction.place(interface))?.as_deref()
    }
}

/// The policies, and the interfaces that have them.
#[derive(Debug)]
pub(crate) struct Policies {
    workers: usize,
    all: BTreeMap<String, Arc<Compiled>>,
    names: BTreeMap<(InterfaceId, Direction), String>,
    attached: Attached,
    /// All interfaces have the firewall, or none has it, as is to be.
    pub(crate) settled: bool,
}

impl Policies {
    /// None, for so many workers.
    pub(crate) fn new(workers: usize) -> Self {
        Policies {
            workers,
            all: BTreeMap::new(),
            names: BTreeMap::new(),
            attached: Attached::default(),
            settled: true,
        }
    }

    /// Those of interfaces, for workers.
    pub(crate) fn attached(&self) -> Attached {
        self.attached.clone()
    }

    /// Forgets the last dry run. Returns the number that the worker of the next one has here.
    pub(crate) fn rewind(&self) -> usize {
        let attached = self.attached.all.iter().flatten();
        attached.for_each(|policy| policy.rewind());
        self.workers
    }

    /// True if an interface has one.
    pub(crate) fn are_attached(&self) -> bool {
        !self.names.is_empty()
    }

    /// The policies, by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Compiled> {
        self.all.values().map(|policy| &**policy)
    }

    /// The interfaces that have a policy in a direction.
    pub(super) fn interfaces(
        &self,
        policy: &str,
        direction: Direction,
    ) -> impl Iterator<Item = InterfaceId> {
        let of = self.names.iter();
        let of = of.filter(move |((_, of), name)| *of == direction && *name == policy);
        of.map(|((interface, _), _)| *interface)
    }

    /// Makes a policy, or replaces it: its rules then count from 0. The same policy stays as it is.
    pub(crate) fn set(&mut self, name: &str, policy: &Policy) {
        if self.all.get(name).is_some_and(|old| old.policy == *policy) {
            return;
        }
        let compiled = Compiled::new(name, policy.clone(), self.workers);
        self.all.insert(name.to_owned(), Arc::new(compiled));
        self.show(|of| of == name);
    }

    /// Removes a policy. Where it is attached, everything is dropped.
    pub(crate) fn delete(&mut self, name: &str) {
        if self.all.remove(name).is_some() {
            self.show(|of| of == name);
        }
    }

    /// Gives an interface this policy in a direction.
    pub(crate) fn attach(
        &mut self,
        interface: InterfaceId,
        direction: Direction,
        name: Option<&str>,
    ) {
        let at = (interface, direction);
        if self.names.get(&at).map(String::as_str) == name {
            return;
        }
        match name {
            Some(name) => {
                self.names.insert(at, name.to_owned());
                self.show(|of| of == name);
            }
            None => {
                self.names.remove(&at);
                let mut all = self.attached.all.to_vec();
                all[direction.place(interface)] = None;
                self.publish(all);
            }
        }
    }

    /// Shows workers the policies of these names, where interfaces have them.
    fn show(&mut self, which: impl Fn(&str) -> bool) {
        let mut all = self.attached.all.to_vec();
        for ((interface, direction), name) in self.names.iter().filter(|(_, name)| which(name)) {
            let at = direction.place(*interface);
            all.resize(all.len().max(at + 1), None);
            let policy = self.all.get(name).cloned();
            all[at] = Some(policy.unwrap_or_else(|| Arc::new(nothing(name, self.workers))));
        }
        self.publish(all);
    }

    fn publish(&mut self, all: Vec<Option<Arc<Compiled>>>) {
        self.attached.all = all.into();
        self.attached.generation += 1;
    }
}

/// What stands for a policy that is not there.
fn nothing(name: &str, workers: usize) -> Compiled {
    let policy = Policy {
        rules: Vec::new(),
        default: Action::Drop,
    };
    Compiled::new(name, policy, workers)
}
