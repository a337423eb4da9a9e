//! Layer 2: bridge domains, and what interfaces do there instead of routing.

use std::{io, mem};

use control::config::BridgeSettings;
use control::config::desired::{Bridge, Layer2};
use router::{ArpRequests, BridgeDomain, Change, DomainId, InterfaceId, L2};

use super::device::Carries;
use super::filters;
use super::slot::{BVI_NUMBERS, Ids, Slot};
use super::{Interfaces, Phase};
use crate::routing::Routing;

const TOO_MANY: &str = "all numbers of bridge domains are in use";

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

    /// One by its name, made if it is not there; `None`: there are too many.
    fn entry(&mut self, name: &str) -> Option<&mut (DomainId, Bridge)> {
        let known = self.0.iter().position(|(_, bridge)| bridge.name == name);
        if let Some(at) = known {
            return self.0.get_mut(at);
        }
        let is_free = |id: &DomainId| self.0.iter().all(|(taken, _)| taken != id);
        let id = (1..=DomainId::MAX).find(is_free)?;
        let bridge = Bridge {
            name: name.to_owned(),
            settings: BridgeSettings::default(),
            bvi: None,
        };
        Some(self.0.push_mut((id, bridge)))
    }
}

/// A bridge domain, as the router has it, without its BVI.
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
        arp: match (settings.arp_termination, settings.arp_unicast_forward) {
            (true, _) => ArpRequests::Answer,
            (false, true) => ArpRequests::Forward,
            (false, false) => ArpRequests::Flood,
        },
    }
}

impl Interfaces {
    /// A bridge domain comes, or its settings change.
    ///
    /// # Errors
    /// There are too many.
    pub fn set_bridge(
        &mut self,
        name: &str,
        settings: BridgeSettings,
        routing: &mut Routing,
    ) -> Result<(), String> {
        let (_, bridge) = self.bridges.entry(name).ok_or(TOO_MANY)?;
        bridge.settings = settings;
        self.tell_bridge(name, routing)
    }

    /// A loopback routes for this bridge domain from now on, and for no other; `None`: for none.
    ///
    /// # Errors
    /// There is no number for it, nor such a loopback. It is as it was then.
    pub fn set_bvi(
        &mut self,
        name: &str,
        of: Option<&str>,
        routing: &mut Routing,
    ) -> Result<(), String> {
        let is_there = |slot: &Slot| slot.config.name == name;
        let at = self.slots.iter().position(is_there);
        let at = at.ok_or("there is no such loopback")?;
        if of.is_some() {
            self.give_numbers(at, routing)?;
        }
        let all = self.bridges.0.iter_mut().map(|(_, bridge)| bridge);
        let mut told = Vec::new();
        for bridge in all {
            let (is, was) = (
                of == Some(&bridge.name),
                bridge.bvi.as_deref() == Some(name),
            );
            if is != was {
                bridge.bvi = is.then(|| name.to_owned());
                // The old one first.
                told.insert(if is { told.len() } else { 0 }, bridge.name.clone());
            }
        }
        for bridge in told {
            self.tell_bridge(&bridge, routing)?;
        }
        self.slots[at].is_bvi = of.is_some();
        self.serve_bvi(at, routing);
        Ok(())
    }

    /// Says what a bridge domain is like now.
    fn tell_bridge(&self, name: &str, routing: &mut Routing) -> Result<(), String> {
        let mut all = self.bridges.0.iter();
        let Some((id, bridge)) = all.find(|(_, bridge)| bridge.name == name) else {
            return Ok(());
        };
        let mut slots = self.slots.iter();
        let bvi = slots.find(|slot| bridge.bvi.as_deref() == Some(slot.config.name.as_str()));
        let domain = BridgeDomain {
            bvi: bvi.map(|slot| slot.ids.port),
            ..domain(*id, bridge)
        };
        let change = Change::BridgeSet(domain);
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
    /// There is no such interface or bridge domain; its device takes in only frames to itself. It
    /// does what it did then.
    pub fn set_l2(
        &mut self,
        name: &str,
        l2: Option<Layer2>,
        routing: &mut Routing,
    ) -> Result<(), String> {
        let number = l2.as_ref().map(|l2| self.l2(l2)).transpose()?;
        let slot = self.named(name).ok_or("there is no such interface")?;
        let before = (mem::replace(&mut slot.config.l2, l2), slot.l2);
        slot.l2 = number;
        let (link, carrier) = (slot.link, slot.carrier());
        if let Err(error) = self.listen(carrier) {
            if let Some(slot) = self.named(name) {
                (slot.config.l2, slot.l2) = before;
            }
            return Err(error.to_string());
        }
        if let Some(link) = link {
            routing.set_l2(link, number);
        }
        Ok(())
    }

    /// What the port of this number is to carry.
    pub(super) fn carries(&self, port: InterfaceId) -> Carries {
        let more = |slot: &Slot| slot.l2.is_some() || slot.on.is_some();
        let mut its = self.slots.iter().filter(|slot| slot.carrier() == port);
        Carries {
            interface: port,
            everything: its.any(more),
        }
    }

    /// Makes the network device of a port, by the port's number, take in frames to every station if
    /// it is at layer 2 or has sub-interfaces, and only those to itself if not.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn listen(&mut self, port: InterfaceId) -> io::Result<()> {
        let wanted = self.carries(port).everything;
        let is_it = |slot: &&mut Slot| slot.ids.port == port && slot.config.netdev().is_some();
        let slot = self.slots.iter_mut().find(is_it);
        let Some(Phase::Open(open)) = slot.map(|slot| &mut slot.phase) else {
            return Ok(());
        };
        match (wanted, &open.promiscuous) {
            (true, None) => open.promiscuous = Some(self.opener.host.promiscuous(open.ifindex)?),
            (false, Some(_)) => open.promiscuous = None,
            _ => {}
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
        for Bridge {
            name,
            settings,
            bvi,
        } in bridges
        {
            self.set_bridge(&name, settings, routing)?;
            if let Some(bvi) = bvi {
                self.set_bvi(&bvi, Some(&name), routing)?;
            }
        }
        for at in 0..self.slots.len() {
            let l2 = self.slots[at].config.l2.clone();
            let l2 = l2.map(|l2| self.l2(&l2)).transpose()?;
            self.slots[at].l2 = l2;
            // A device may have been reserved before.
            if let Some(link) = self.slots[at].link {
                routing.set_l2(link, l2);
            }
        }
        Ok(())
    }

    /// What an interface does at layer 2, by numbers.
    fn l2(&self, l2: &Layer2) -> Result<L2, String> {
        match l2 {
            Layer2::CrossConnect(to) => self.number_of(to).map(L2::CrossConnect),
            Layer2::Bond(name) => self.number_of(name).map(L2::Bond),
            Layer2::Bridge(name) => {
                let id = self.bridges.number(name).map(L2::Bridge);
                id.ok_or_else(|| format!("there is no bridge domain {name}"))
            }
        }
    }

    /// The router's number of an interface.
    fn number_of(&self, name: &str) -> Result<InterfaceId, String> {
        let mut slots = self.slots.iter();
        let slot = slots.find(|slot| slot.config.name == name);
        let id = slot.map(|slot| slot.ids.port);
        id.ok_or_else(|| format!("there is no interface {name}"))
    }

    /// A loopback gets numbers in the router, which it keeps until it goes: workers have its tap
    /// from then on.
    fn give_numbers(&mut self, at: usize, routing: &mut Routing) -> Result<(), String> {
        if self.slots[at].ids == Ids::default() {
            let ids = Ids::take(BVI_NUMBERS, &mut routing.router);
            self.slots[at].ids = ids.ok_or_else(|| self.full())?;
            filters::attach_policies(&self.slots[at], routing)?;
        }
        Ok(())
    }

    /// Makes the router have a loopback that is open and a BVI, or have it no longer.
    fn serve_bvi(&mut self, at: usize, routing: &mut Routing) {
        let slot = &mut self.slots[at];
        if !slot.is_bvi {
            if let Some(link) = slot.link.take() {
                routing.unbind(link);
            }
            return;
        }
        let waiting = Phase::Waiting("its numbers change".into());
        match mem::replace(&mut slot.phase, waiting) {
            Phase::Open(open) => self.put_to_work(at, open, None, routing),
            phase => slot.phase = phase,
        }
    }
}
