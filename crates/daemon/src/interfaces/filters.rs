//! The access control lists and policies of interfaces.

use router::Change;
use router::acl::Direction;

use super::Interfaces;
use super::slot::Slot;
use crate::routing::Routing;

impl Interfaces {
    /// An interface's packets pass these ACLs in a direction from now on; none: all pass.
    ///
    /// # Errors
    /// There is no such interface, or the router's: it has those that it had then.
    pub fn set_acls(
        &mut self,
        name: &str,
        direction: Direction,
        acls: &[String],
        routing: &mut Routing,
    ) -> Result<(), String> {
        let slot = self.named(name).ok_or("there is no such interface")?;
        attach_acls(slot, direction, acls, routing)?;
        let all = &mut slot.config.acls;
        match direction {
            Direction::Input => all.input = acls.to_vec(),
            Direction::Output => all.output = acls.to_vec(),
        }
        Ok(())
    }

    /// What an interface forwards in a direction passes this policy from now on; `None`: all passes.
    ///
    /// # Errors
    /// There is no such interface, or the router's: it has the one that it had then.
    pub fn set_policy(
        &mut self,
        name: &str,
        direction: Direction,
        policy: Option<&String>,
        routing: &mut Routing,
    ) -> Result<(), String> {
        let slot = self.named(name).ok_or("there is no such interface")?;
        attach_policy(slot, direction, policy, routing)?;
        let all = &mut slot.config.firewall;
        match direction {
            Direction::Input => all.input = policy.cloned(),
            Direction::Output => all.output = policy.cloned(),
        }
        Ok(())
    }

    /// Makes interfaces of the start have their ACLs and policies, before they are open.
    ///
    /// # Errors
    /// The router's.
    pub(super) fn start_filters(&self, routing: &mut Routing) -> Result<(), String> {
        for slot in &self.slots {
            let all = &slot.config.acls;
            for (direction, acls) in [
                (Direction::Input, &all.input),
                (Direction::Output, &all.output),
            ] {
                if !acls.is_empty() {
                    attach_acls(slot, direction, acls, routing)?;
                }
            }
            attach_policies(slot, routing)?;
        }
        Ok(())
    }
}

fn attach_acls(
    slot: &Slot,
    direction: Direction,
    acls: &[String],
    routing: &mut Routing,
) -> Result<(), String> {
    let change = Change::AclsAttach {
        interface: slot.ids.port,
        direction,
        acls: acls.to_vec(),
    };
    routing.configure(vec![change]).map_err(|e| e.to_string())
}

/// An interface gets the policies that its configuration names.
///
/// # Errors
/// The router's.
pub(super) fn attach_policies(slot: &Slot, routing: &mut Routing) -> Result<(), String> {
    for direction in Direction::ALL {
        let policy = slot.config.firewall.policy(direction);
        if policy.is_some() {
            attach_policy(slot, direction, policy, routing)?;
        }
    }
    Ok(())
}

/// The router has no loopback that routes for no bridge: one gets its policies with its number.
fn attach_policy(
    slot: &Slot,
    direction: Direction,
    policy: Option<&String>,
    routing: &mut Routing,
) -> Result<(), String> {
    if slot.ids.port == 0 {
        return Ok(());
    }
    let change = Change::PolicyAttach {
        interface: slot.ids.port,
        direction,
        policy: policy.cloned(),
    };
    routing.configure(vec![change]).map_err(|e| e.to_string())
}
