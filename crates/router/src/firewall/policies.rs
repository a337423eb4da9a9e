//! The policies that there are, and the interfaces that have them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Policy;
use crate::acl::Direction;
use crate::change::InterfaceId;

/// The policies, and the interfaces that have them.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    all: BTreeMap<String, Arc<Policy>>,
    attached: BTreeMap<(InterfaceId, Direction), String>,
}

impl Policies {
    /// Makes a policy, or replaces it.
    pub(crate) fn set(&mut self, name: &str, policy: &Policy) {
        self.all.insert(name.to_owned(), Arc::new(policy.clone()));
    }

    /// Removes a policy. Where it is attached, everything is dropped.
    pub(crate) fn delete(&mut self, name: &str) {
        self.all.remove(name);
    }

    /// Gives an interface this policy in a direction.
    pub(crate) fn attach(
        &mut self,
        interface: InterfaceId,
        direction: Direction,
        name: Option<&str>,
    ) {
        let at = (interface, direction);
        match name {
            Some(name) => self.attached.insert(at, name.to_owned()),
            None => self.attached.remove(&at),
        };
    }
}
