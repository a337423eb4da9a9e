//! Layer 2: bridge domains, and what interfaces do there instead of routing.

use control::config::desired::{Bridge, Layer2};
use router::{BridgeDomain, Change, DomainId, L2};

use super::Interfaces;
use crate::routing::Routing;

/// The bridge domains, by the router's number.
#[derive(Default)]
pub struct Bridges(Vec<(DomainId, Bridge)>);

impl Bridges {
    /// All of them, with the router's numbers.
    pub fn numbered(&self) -> impl Iterator<Item = &(DomainId, Bridge)> {
        self.0.iter()
    }

    /// The number of one.
    fn number(&self, name: &str) -> Option<DomainId> {
        let mut all = self.0.iter();
        all.find(|(_, bridge)| bridge.name == name)
            .map(|(id, _)| *id)
    }

    /// Takes in one that is new or has changed. Returns its number; `None`: there are too many.
    fn set(&mut self, bridge: Bridge) -> Option<DomainId> {
        if let Some((id, known)) = self
            .0
            .iter_mut()
            .find(|(_, known)| known.name == bridge.name)
        {
            *known = bridge;
            return Some(*id);
        }
        let is_free = |id: &DomainId| self.0.iter().all(|(taken, _)| taken != id);
        let id = (1..=DomainId::MAX).find(is_free)?;
        self.0.push((id, bridge));
        Some(id)
    }
}

/// A bridge domain, as the router has it.
fn domain(id: DomainId, bridge: &Bridge) -> BridgeDomain {
    let settings = &bridge.settings;
    BridgeDomain {
        id,
        name: bridge.name.clone(),
        learn: settings.learn,
        flood: settings.unicast_flood,
        unknown_flood: settings.unknown_unicast_flood,
        forward: settings.unicast_forward,
        bvi: None,
        age_minutes: Some(settings.mac_age_minutes).filter(|minutes| *minutes > 0),
        limit: None,
    }
}

impl Interfaces {
    /// A bridge domain comes, or its settings change.
    ///
    /// # Errors
    /// There are too many.
    pub fn set_bridge(&mut self, bridge: Bridge, routing: &mut Routing) -> Result<(), String> {
        let id = self.bridges.set(bridge.clone());
        let id = id.ok_or("all numbers of bridge domains are in use")?;
        let change = Change::BridgeSet(domain(id, &bridge));
        routing.configure(vec![change]).map_err(|e| e.to_string())
    }

    /// A bridge domain is no more. No interface is a member of it.
    ///
    /// # Errors
    /// The router's.
    pub fn remove_bridge(&mut self, name: &str, routing: &mut Routing) -> Result<(), String> {
        let Some(id) = self.bridges.number(name) else {
            return Ok(());
        };
        let change = Change::BridgeDelete(id);
        routing.configure(vec![change]).map_err(|e| e.to_string())?;
        self.bridges.0.retain(|(other, _)| *other != id);
        Ok(())
    }

    /// An interface does this at layer 2 from now on; `None`: it routes.
    ///
    /// # Errors
    /// There is no such interface or bridge domain.
    pub fn set_l2(
        &mut self,
        name: &str,
        l2: Option<Layer2>,
        routing: &mut Routing,
    ) -> Result<(), String> {
        let number = l2.as_ref().map(|l2| self.l2(l2)).transpose()?;
        let slot = self.named(name).ok_or("there is no such interface")?;
        (slot.config.l2, slot.l2) = (l2, number);
        if let Some(link) = slot.link {
            routing.set_l2(link, number);
        }
        Ok(())
    }

    /// Finds the numbers of what interfaces of the start do at layer 2, and makes the router have
    /// their bridge domains.
    ///
    /// # Errors
    /// The router's.
    pub(super) fn start_layer2(
        &mut self,
        bridges: Vec<Bridge>,
        routing: &mut Routing,
    ) -> Result<(), String> {
        for bridge in bridges {
            self.set_bridge(bridge, routing)?;
        }
        for at in 0..self.slots.len() {
            let l2 = self.slots[at].config.l2.clone();
            self.slots[at].l2 = l2.map(|l2| self.l2(&l2)).transpose()?;
        }
        Ok(())
    }

    /// What an interface does at layer 2, by numbers.
    fn l2(&self, l2: &Layer2) -> Result<L2, String> {
        match l2 {
            Layer2::CrossConnect(to) => {
                let mut slots = self.slots.iter();
                let other = slots.find(|slot| slot.config.name == *to);
                let id = other.map(|slot| L2::CrossConnect(slot.ids.port));
                id.ok_or_else(|| format!("there is no interface {to}"))
            }
            Layer2::Bridge(name) => {
                let id = self.bridges.number(name).map(L2::Bridge);
                id.ok_or_else(|| format!("there is no bridge domain {name}"))
            }
        }
    }
}
