//! Our interfaces, by the kernel's index of their device.

use std::collections::{BTreeSet, HashMap};

use router::change::{InterfaceId, L2, Spread, Tags, Tunnel};

/// An interface of the router that stands for a device of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The router's index.
    pub id: InterfaceId,
    /// Name as configured.
    pub name: String,
    /// The router's index of the host interface, where the device is a tap that stands for a port
    /// without a device of its own, or for a sub-interface, or where something is translated.
    pub host: Option<InterfaceId>,
    /// True if the port itself is up, where the device cannot tell (a tap always has carrier).
    pub port_up: bool,
    /// True if it takes packets in. Before, routes by it count all the same.
    pub serving: bool,
    /// The interface that it is on top of, and its tags, if it is a sub-interface: it is up only
    /// while that one is.
    pub on: Option<(InterfaceId, Tags)>,
    /// How it spreads what leaves over its members, if it is a bond: it is up only while one of them
    /// is.
    pub bond: Option<Spread>,
    /// What its packets have around their frames, if it is a VXLAN tunnel.
    pub tunnel: Option<Tunnel>,
    /// What it does at layer 2 instead of routing, or the bond that it is a member of. The host sends nothing by it then.
    pub l2: Option<L2>,
}

/// All of them. A change of one interface costs as much as it has sub-interfaces, however many
/// others there are.
#[derive(Debug, Default)]
pub(super) struct Owned {
    bindings: HashMap<u32, Binding>,
    links: HashMap<InterfaceId, u32>,
    /// Interfaces with the devices of what is on top of them.
    subs: BTreeSet<(InterfaceId, u32)>,
}

impl Owned {
    /// The interface of a device.
    pub fn get(&self, link: u32) -> Option<&Binding> {
        self.bindings.get(&link)
    }

    /// All of them, with their devices.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Binding)> {
        self.bindings.iter().map(|(&link, owned)| (link, owned))
    }

    /// The device of an interface.
    pub fn link(&self, id: InterfaceId) -> Option<u32> {
        self.links.get(&id).copied()
    }

    /// The devices of what is on top of an interface, in their order.
    pub fn subs(&self, parent: InterfaceId) -> impl Iterator<Item = u32> {
        let its = self.subs.range((parent, 0)..=(parent, u32::MAX));
        its.map(|(_, link)| *link)
    }

    /// The devices of the members of a bond.
    pub fn members(&self, bond: InterfaceId) -> impl Iterator<Item = u32> {
        let is_member = move |owned: &Binding| owned.l2 == Some(L2::Bond(bond));
        let its = self.iter().filter(move |(_, owned)| is_member(owned));
        its.map(|(link, _)| link)
    }

    /// A device is an interface's from now on.
    pub fn insert(&mut self, link: u32, owned: Binding) {
        self.remove(link);
        self.links.insert(owned.id, link);
        self.subs.extend(owned.on.map(|(parent, _)| (parent, link)));
        self.bindings.insert(link, owned);
    }

    /// A device is no interface's any more; returns whose it was.
    pub fn remove(&mut self, link: u32) -> Option<Binding> {
        let owned = self.bindings.remove(&link)?;
        // The interface may have another device by now.
        if self.link(owned.id) == Some(link) {
            self.links.remove(&owned.id);
        }
        if let Some((parent, _)) = owned.on {
            self.subs.remove(&(parent, link));
        }
        Some(owned)
    }

    /// Changes what is known of an interface. True if that is another thing now.
    pub fn edit(&mut self, link: u32, edit: impl FnOnce(&mut Binding)) -> bool {
        let Some(before) = self.get(link) else {
            return false;
        };
        let mut owned = before.clone();
        edit(&mut owned);
        let changed = owned != *before;
        if changed {
            self.insert(link, owned);
        }
        changed
    }
}
