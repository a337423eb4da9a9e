//! The interfaces of a configuration, of every kind in one form, with the values that follow from
//! others.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use indexmap::IndexSet;

use router::change::Mac;

use super::forms::Address;
use super::model::{
    Attached, Config, Encapsulation, Firewall, Hop, Interface, Loopback, Route, State, SubInterface,
};
use super::yaml::Step;

/// The kind of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterfaceKind<'c> {
    /// In `interfaces`.
    Interface(&'c Interface),
    /// In `sub-interfaces` of another.
    Sub(&'c str, u32, &'c SubInterface),
    /// In `loopbacks`.
    Loopback(&'c Loopback),
}

/// An interface.
#[derive(Debug, Clone)]
pub struct AnyInterface<'c> {
    /// Its kind.
    pub kind: InterfaceKind<'c>,
    /// Its name; of a sub-interface `PARENT.NUMBER`.
    pub name: String,
    /// Words for people.
    pub description: Option<&'c str>,
    /// Ethernet address, of a bond that of `bondethernets`, of a sub-interface its parent's.
    pub mac: Option<Mac>,
    /// Name of the host's device.
    pub lcp: Option<&'c str>,
    /// Largest IP packet, bytes, as far as rules can know it: its [own](Self::own_mtu), else 1500.
    pub mtu: u16,
    /// The MTU that the configuration names for it, of a sub-interface that names none its parent's;
    /// `None`: it has that of its device.
    pub own_mtu: Option<u16>,
    /// Its addresses.
    pub addresses: &'c [Address],
    /// Interface whose addresses it borrows.
    pub unnumbered: Option<&'c str>,
    /// Interface that gets what it receives.
    pub l2xc: Option<&'c str>,
    /// Its administrative state: packets pass only if it is up.
    pub state: State,
    /// True if it accepts MPLS.
    pub mpls: bool,
    /// VRF that it belongs to.
    pub vrf: Option<&'c str>,
    /// ACLs that apply.
    pub acls: Option<&'c Attached>,
    /// Policies of the firewall that apply.
    pub firewall: &'c Firewall,
}

/// The way to a field of an interface.
pub(super) fn field(entry: &AnyInterface<'_>, field: &str) -> Vec<Step> {
    let mut path = whole(entry);
    path.push(field.into());
    path
}

/// The way to an interface.
pub(super) fn whole(entry: &AnyInterface<'_>) -> Vec<Step> {
    let name = &entry.name;
    match entry.kind {
        InterfaceKind::Interface(_) => vec!["interfaces".into(), name.into()],
        InterfaceKind::Sub(parent, id, _) => {
            let section = ["interfaces", parent, "sub-interfaces"];
            section
                .map(Step::from)
                .into_iter()
                .chain([id.into()])
                .collect()
        }
        InterfaceKind::Loopback(_) => vec!["loopbacks".into(), name.into()],
    }
}

/// MTU of an interface that does not give one: that of Ethernet.
pub const MTU: u16 = 1500;

impl<'c> AnyInterface<'c> {
    fn interface(name: &str, i: &'c Interface) -> Self {
        AnyInterface {
            kind: InterfaceKind::Interface(i),
            name: name.to_owned(),
            description: i.description.as_deref(),
            mac: i.mac,
            lcp: i.lcp.as_deref(),
            mtu: i.mtu.unwrap_or(MTU),
            own_mtu: i.mtu,
            addresses: &i.addresses,
            unnumbered: i.unnumbered.as_deref(),
            l2xc: i.l2xc.as_deref(),
            state: i.state.unwrap_or_default(),
            mpls: i.mpls.unwrap_or_default(),
            vrf: i.vrf.as_deref(),
            acls: Some(&i.acls),
            firewall: &i.firewall,
        }
    }

    fn sub(parent: &'c str, above: &Interface, id: u32, s: &'c SubInterface) -> Self {
        AnyInterface {
            kind: InterfaceKind::Sub(parent, id, s),
            name: format!("{parent}.{id}"),
            description: s.description.as_deref(),
            mac: above.mac,
            lcp: s.lcp.as_deref(),
            mtu: s.mtu.or(above.mtu).unwrap_or(MTU),
            own_mtu: s.mtu.or(above.mtu),
            addresses: &s.addresses,
            unnumbered: s.unnumbered.as_deref(),
            l2xc: s.l2xc.as_deref(),
            state: s.state.unwrap_or_default(),
            mpls: s.mpls.unwrap_or_default(),
            vrf: s.vrf.as_deref(),
            acls: Some(&s.acls),
            firewall: &s.firewall,
        }
    }

    fn loopback(name: &str, l: &'c Loopback) -> Self {
        AnyInterface {
            kind: InterfaceKind::Loopback(l),
            name: name.to_owned(),
            description: l.description.as_deref(),
            mac: l.mac,
            lcp: l.lcp.as_deref(),
            mtu: l.mtu.unwrap_or(MTU),
            own_mtu: l.mtu,
            addresses: &l.addresses,
            unnumbered: l.unnumbered.as_deref(),
            l2xc: None,
            state: State::Up,
            mpls: l.mpls.unwrap_or_default(),
            vrf: l.vrf.as_deref(),
            acls: None,
            firewall: &l.firewall,
        }
    }

    /// Its kind in messages.
    pub fn word(&self) -> &'static str {
        match self.kind {
            InterfaceKind::Interface(_) => "interface",
            InterfaceKind::Sub(..) => "sub-interface",
            InterfaceKind::Loopback(_) => "loopback",
        }
    }

    /// The interface that it is on top of.
    pub fn parent(&self) -> Option<&'c str> {
        match self.kind {
            InterfaceKind::Sub(parent, ..) => Some(parent),
            _ => None,
        }
    }

    /// Its tags, if it is a sub-interface.
    pub fn encapsulation(&self) -> Option<Encapsulation> {
        let InterfaceKind::Sub(_, id, sub) = self.kind else {
            return None;
        };
        let usual = Encapsulation {
            dot1q: id,
            exact_match: true,
            ..Encapsulation::default()
        };
        Some(sub.encapsulation.unwrap_or(usual))
    }

    /// The number of tags that its packets have.
    pub fn tags(&self) -> u8 {
        self.encapsulation().map_or(0, |tags| match tags {
            tags if tags.inner_dot1q > 0 => 2,
            tags => u8::from(tags.dot1q > 0 || tags.dot1ad > 0),
        })
    }
}

/// All interfaces of a configuration, and what they are to each other.
pub struct AllInterfaces<'c> {
    /// In the order of the sections, sub-interfaces behind theirs.
    pub entries: Vec<AnyInterface<'c>>,
    places: HashMap<String, usize>,
    /// Single-tagged sub-interfaces by parent, kind of tag and tag.
    middles: HashMap<(&'c str, bool, u32), usize>,
    /// The number of sub-interfaces of a parent with the same tags.
    tagged: HashMap<(&'c str, Encapsulation), usize>,
    /// The bridge domain of each member.
    bridged: HashMap<String, &'c str>,
    /// The bond of each member.
    bonded: HashMap<String, &'c str>,
    layer2: HashSet<String>,
}

impl<'c> AllInterfaces<'c> {
    /// Of a configuration.
    pub fn new(config: &'c Config) -> Self {
        let mut entries = Vec::new();
        for (name, interface) in &config.interfaces {
            let bond = config.bondethernets.get(name);
            let mac = interface.mac.or(bond.and_then(|bond| bond.mac));
            let of_bond = |entry| AnyInterface { mac, ..entry };
            entries.push(of_bond(AnyInterface::interface(name, interface)));
            let subs = interface.sub_interfaces.iter();
            let subs = subs.map(|(id, sub)| AnyInterface::sub(name, interface, *id, sub));
            entries.extend(subs.map(of_bond));
        }
        let loopbacks = config.loopbacks.iter();
        entries.extend(loopbacks.map(|(name, loopback)| AnyInterface::loopback(name, loopback)));
        let mut view = AllInterfaces {
            places: HashMap::new(),
            middles: HashMap::new(),
            tagged: HashMap::new(),
            entries,
            bridged: HashMap::new(),
            bonded: HashMap::new(),
            layer2: HashSet::new(),
        };
        for (place, entry) in view.entries.iter().enumerate().rev() {
            view.places.insert(entry.name.clone(), place);
            let Some((parent, tags)) = entry.parent().zip(entry.encapsulation()) else {
                continue;
            };
            *view.tagged.entry((parent, tags)).or_default() += 1;
            if entry.tags() == 1 {
                let key = (parent, tags.dot1ad > 0, tags.dot1q.max(tags.dot1ad));
                view.middles.insert(key, place);
            }
        }
        view.find_layer2(config);
        for (bond, its) in &config.bondethernets {
            let members = its.interfaces.iter().map(|member| view.canonical(member));
            let members: Vec<_> = members.map(|member| (member, bond.as_str())).collect();
            view.bonded.extend(members);
        }
        view
    }

    fn find_layer2(&mut self, config: &'c Config) {
        let bridges = config.bridgedomains.iter();
        let members =
            bridges.flat_map(|(bridge, its)| its.interfaces.iter().map(move |m| (bridge, m)));
        for (bridge, member) in members {
            let name = self.canonical(member);
            self.bridged.insert(name.clone(), bridge);
            self.layer2.insert(name);
        }
        let connects = self.entries.iter().filter_map(|entry| {
            let target = self.canonical(entry.l2xc?);
            Some([entry.name.clone(), target])
        });
        let connects: Vec<String> = connects.flatten().collect();
        self.layer2.extend(connects);
    }

    /// The interface of a name. A sub-interface's number may have zeros in front.
    pub fn get(&self, name: &str) -> Option<&AnyInterface<'c>> {
        self.place(name).map(|place| &self.entries[place])
    }

    fn place(&self, name: &str) -> Option<usize> {
        if let Some(place) = self.places.get(name) {
            return Some(*place);
        }
        let (parent, id) = name.rsplit_once('.')?;
        let digits = !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit());
        let id: u32 = digits.then(|| id.parse().ok()).flatten()?;
        self.places.get(&format!("{parent}.{id}")).copied()
    }

    /// An interface other than a loopback.
    pub fn port(&self, name: &str) -> Option<&AnyInterface<'c>> {
        let found = self.get(name);
        found.filter(|entry| !matches!(entry.kind, InterfaceKind::Loopback(_)))
    }

    /// The interface on whose link an address is.
    pub fn link(&self, vrf: Option<&str>, address: IpAddr) -> Option<&str> {
        let reaches = |entry: &&AnyInterface<'_>| {
            entry.vrf == vrf && entry.addresses.iter().any(|own| own.contains(address))
        };
        self.entries
            .iter()
            .find(reaches)
            .map(|entry| entry.name.as_str())
    }

    /// The addresses of an interface: its own, or those that it borrows, each without a network:
    /// what is in that network is behind the lender. Every link has link-local ones for itself.
    pub fn addresses(&self, entry: &AnyInterface<'c>) -> Vec<Address> {
        let Some(lender) = entry.unnumbered else {
            return entry.addresses.to_vec();
        };
        let routes = !self.is_layer2(&entry.name);
        let lender = self.get(lender).filter(|_| routes);
        let all = lender.into_iter().flat_map(|lender| lender.addresses);
        let lent = all.filter(|address| !address.is_link_local());
        let lent: IndexSet<Address> = lent.map(Address::host).collect();
        lent.into_iter().collect()
    }

    /// The one spelling of a name, whether such an interface is there or not.
    pub fn canonical(&self, name: &str) -> String {
        self.get(name).map_or(name, |entry| &entry.name).to_owned()
    }

    /// A next hop of a route with its interface: the one that is given, by its one name, or the one
    /// on whose link its address is.
    pub fn resolved(&self, route: &Route, hop: &Hop) -> Hop {
        let named = hop.interface.as_ref().map(|name| self.canonical(name));
        let link = || {
            let link = self.link(route.vrf.as_deref(), hop.address?)?;
            Some(link.to_owned())
        };
        Hop {
            interface: named.or_else(link),
            ..hop.clone()
        }
    }

    /// Returns true if it is a member of a bridge.
    pub fn is_bridged(&self, name: &str) -> bool {
        self.bridged.contains_key(name)
    }

    /// The bridge domain that it is a member of.
    pub fn bridge(&self, name: &str) -> Option<&'c str> {
        self.bridged.get(name).copied()
    }

    /// The bond that it is a member of.
    pub fn bond(&self, name: &str) -> Option<&'c str> {
        self.bonded.get(name).copied()
    }

    /// Returns true if it bridges or cross-connects, or is the target of a cross-connect.
    pub fn is_layer2(&self, name: &str) -> bool {
        self.layer2.contains(name)
    }

    /// Counts the sub-interfaces beside a sub-interface that have its tags, itself included.
    pub fn alike(&self, entry: &AnyInterface<'c>) -> usize {
        let key = entry.parent().zip(entry.encapsulation());
        key.and_then(|key| self.tagged.get(&key))
            .copied()
            .unwrap_or(0)
    }

    /// Of a double-tagged sub-interface the single-tagged one with the same outer tag.
    pub fn middle(&self, entry: &AnyInterface<'c>) -> Option<&AnyInterface<'c>> {
        let tags = entry.encapsulation().filter(|_| entry.tags() == 2)?;
        let key = (
            entry.parent()?,
            tags.dot1ad > 0,
            tags.dot1q.max(tags.dot1ad),
        );
        self.middles.get(&key).map(|place| &self.entries[*place])
    }
}
