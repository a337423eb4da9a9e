//! The access control lists of interfaces.

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
        attach(slot, direction, acls, routing)?;
        let all = &mut slot.config.acls;
        match direction {
            Direction::Input => all.input = acls.to_vec(),
            Direction::Output => all.output = acls.to_vec(),
        }
        Ok(())
    }

    /// Makes interfaces of the start have their ACLs, before they are open.
    ///
    /// # Errors
    /// The router's.
    pub(super) fn start_acls(&self, routing: &mut Routing) -> Result<(), String> {
        for slot in &self.slots {
            let all = &slot.config.acls;
            for (direction, acls) in [
                (Direction::Input, &all.input),
                (Direction::Output, &all.output),
            ] {
                if !acls.is_empty() {
                    attach(slot, direction, acls, routing)?;
                }
            }
        }
        Ok(())
    }
}

fn attach(
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
