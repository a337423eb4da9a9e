//! A configuration as items, with all that follows from defaults.

use router::acl::Direction;

use crate::config::desired::{MAIN, OpenPort};
use crate::config::{
    AllInterfaces, AnyInterface, Config, InterfaceKind, Nat, Policy, Route, State, Tables, Workers,
};

use super::item::{Found, Item, Items, Key, Kind, Object, Table};

/// The items of a configuration.
pub fn items(config: &Config) -> Items {
    let view = AllInterfaces::new(config);
    let mut building = Building {
        config,
        view: &view,
        items: Items::new(),
    };
    for entry in &view.entries {
        building.entry(entry);
    }
    building.devices();
    building.bonds();
    building.bridges();
    building.lists();
    building.routes();
    building.process();
    building.items
}

struct Building<'c> {
    config: &'c Config,
    view: &'c AllInterfaces<'c>,
    items: Items,
}

impl Building<'_> {
    fn add(&mut self, item: Item) {
        self.items.insert(item.key(), item);
    }

    /// Describes an object, unless something else has done so.
    fn description(&mut self, of: Object, text: Option<&str>) {
        let text = text.filter(|text| !text.is_empty());
        let has_one = self.items.contains_key(&Key::Description(of.clone()));
        if let (Some(text), false) = (text, has_one) {
            let text = text.to_owned();
            self.add(Item::Description { of, text });
        }
    }

    fn entry(&mut self, entry: &AnyInterface<'_>) {
        let (name, of) = (entry.name.clone(), || entry.name.clone());
        let object = Object::interface(&name);
        let kind = match entry.kind {
            InterfaceKind::Interface(interface) => {
                if interface.sflow.unwrap_or_default() {
                    self.add(Item::Sampled { of: of() });
                }
                self.kind(&name)
            }
            InterfaceKind::Sub(parent, ..) => Kind::Sub {
                parent: parent.to_owned(),
                encapsulation: entry.encapsulation().unwrap_or_default(),
            },
            InterfaceKind::Loopback(_) => Kind::Loopback {},
        };
        self.add(Item::Interface { name, kind });
        self.description(object.clone(), entry.description);
        if let Some(mac) = entry.mac {
            self.add(Item::Mac { of: of(), mac });
        }
        if let Some(mtu) = entry.own_mtu {
            self.add(Item::Mtu { of: object, mtu });
        }
        if entry.mpls {
            self.add(Item::Mpls { of: of() });
        }
        if !matches!(entry.kind, InterfaceKind::Loopback(_)) {
            let state = entry.state;
            self.add(Item::State { of: of(), state });
        }
        self.relations(entry);
    }

    /// The kind of an entry of `interfaces`.
    fn kind(&self, name: &str) -> Kind {
        let config = self.config;
        if let Some(bond) = config.bondethernets.get(name) {
            return Kind::Bond {
                mode: bond.mode,
                load_balance: bond.balance(),
            };
        }
        if let Some(tunnel) = config.vxlan_tunnels.get(name) {
            return Kind::Vxlan {
                local: tunnel.local,
                remote: tunnel.remote,
                vni: tunnel.vni,
            };
        }
        if let Some(tap) = config.taps.get(name) {
            return Kind::Tap {
                host: Box::new(tap.host.clone()),
                rx_ring_size: tap.rx_ring_size,
                tx_ring_size: tap.tx_ring_size,
            };
        }
        // A port that is named as it would be anyway is the same one.
        let usual = OpenPort::of(name, None);
        let port = config.ports.get(name);
        let port = port.filter(|port| OpenPort::of(name, Some(port)) != usual);
        Kind::Port {
            port: port.cloned().map(Box::new),
        }
    }

    /// Adds an interface's relations to others.
    fn relations(&mut self, entry: &AnyInterface<'_>) {
        let of = || entry.name.clone();
        if let Some(name) = entry.lcp.map(str::to_owned) {
            self.add(Item::Lcp { of: of(), name });
        }
        if let Some(vrf) = entry.vrf.map(str::to_owned) {
            self.add(Item::VrfMember { of: of(), vrf });
        }
        for address in self.view.addresses(entry) {
            let (of, vrf) = (of(), entry.vrf.map(str::to_owned));
            self.add(Item::Address { of, address, vrf });
        }
        if let Some(lender) = entry.unnumbered {
            let lender = self.view.canonical(lender);
            self.add(Item::Unnumbered { of: of(), lender });
        }
        if let Some(target) = entry.l2xc {
            let (target, tags) = (self.view.canonical(target), entry.tags());
            let of = of();
            self.add(Item::CrossConnect { of, target, tags });
        }
        for direction in Direction::ALL {
            if let Some(policy) = entry.firewall.policy(direction).cloned() {
                let of = of();
                self.add(Item::Firewall {
                    of,
                    direction,
                    policy,
                });
            }
        }
        let Some(acls) = entry.acls else { return };
        if !acls.input.is_empty() {
            let acls = acls.input.clone();
            self.add(Item::Input { of: of(), acls });
        }
        if !acls.output.is_empty() {
            let acls = acls.output.clone();
            self.add(Item::Output { of: of(), acls });
        }
    }

    /// Interfaces that have no entry in `interfaces`.
    fn devices(&mut self) {
        let config = self.config;
        let described = (config
            .vxlan_tunnels
            .iter()
            .map(|(name, v)| (name, &v.description)))
        .chain(
            config
                .taps
                .iter()
                .map(|(name, tap)| (name, &tap.description)),
        );
        for (name, description) in described {
            self.alone(name);
            self.description(Object::interface(name), description.as_deref());
        }
        for name in config.ports.keys() {
            self.alone(name);
        }
    }

    /// Adds an interface, which is up, unless it is there.
    fn alone(&mut self, name: &str) {
        if !self.items.contains_key(&Key::interface(name)) {
            let (name, kind) = (name.to_owned(), self.kind(name));
            let (of, state) = (name.clone(), State::Up);
            self.add(Item::Interface { name, kind });
            self.add(Item::State { of, state });
        }
    }

    fn bonds(&mut self) {
        let config = self.config;
        for (name, bond) in &config.bondethernets {
            if let Some(mac) = bond.mac {
                let of = name.clone();
                self.add(Item::Mac { of, mac });
            }
            self.description(Object::interface(name), bond.description.as_deref());
            for member in &bond.interfaces {
                let (of, bond) = (self.view.canonical(member), name.clone());
                self.add(Item::BondMember { of, bond });
            }
        }
    }

    fn bridges(&mut self) {
        let config = self.config;
        for (name, bridge) in &config.bridgedomains {
            self.add(Item::Bridge {
                name: name.clone(),
                settings: bridge.settings,
            });
            self.description(Object::bridge(name), bridge.description.as_deref());
            self.add(Item::Mtu {
                of: Object::bridge(name),
                mtu: bridge.mtu.unwrap_or(1500),
            });
            let bvi = bridge.bvi.iter().map(|bvi| (bvi, true));
            let members = bridge.interfaces.iter().map(|member| (member, false));
            for (member, bvi) in bvi.chain(members) {
                self.add(Item::BridgeMember {
                    of: self.view.canonical(member),
                    bridge: name.clone(),
                    bvi,
                    tags: self.view.get(member).map_or(0, AnyInterface::tags),
                });
            }
        }
    }

    fn lists(&mut self) {
        let config = self.config;
        for (name, list) in &config.prefixlists {
            let object = Object::PrefixList(name.clone());
            let (name, members) = (name.clone(), list.members.clone());
            self.add(Item::PrefixList { name, members });
            self.description(object, list.description.as_deref());
        }
        for (name, acl) in &config.acls {
            let object = Object::Acl(name.clone());
            let (name, terms) = (name.clone(), acl.terms.clone());
            self.add(Item::Acl { name, terms });
            self.description(object, acl.description.as_deref());
        }
        for (name, policy) in &config.policies {
            let object = Object::Policy(name.clone());
            self.description(object, policy.description.as_deref());
            let policy = Policy {
                description: None,
                ..policy.clone()
            };
            let name = name.clone();
            self.add(Item::Policy { name, policy });
        }
        if config.nat != Nat::default() {
            self.add(Item::Nat(config.nat.without_descriptions()));
        }
        if let Some(sflow) = config.sflow {
            self.add(Item::Sflow(sflow));
        }
    }

    fn routes(&mut self) {
        let config = self.config;
        for (name, vrf) in &config.vrfs {
            let object = Object::vrf(name);
            let (name, table) = (name.clone(), vrf.table);
            self.add(Item::Vrf { name, table });
            self.description(object, vrf.description.as_deref());
        }
        for route in &config.routes {
            let Some(prefix) = route.prefix else { continue };
            let (table, metric) = (self.table(route), route.metric());
            let object = Object::Route(table.clone(), prefix, metric);
            let via = route.via.iter().map(|hop| self.view.resolved(route, hop));
            let unnamed = route.via.iter().enumerate();
            let unnamed = unnamed.filter(|(_, hop)| hop.interface.is_none());
            let item = Item::Route {
                table,
                prefix,
                metric,
                via: via.collect(),
                found: Found(unnamed.map(|(at, _)| at).collect()),
            };
            self.add(item);
            self.description(object, route.description.as_deref());
        }
    }

    /// The one name of a route's table.
    fn table(&self, route: &Route) -> Table {
        match (&route.vrf, route.table) {
            (Some(vrf), _) => Table::Vrf(vrf.clone()),
            (None, Some(number)) => {
                let mut vrfs = self.config.vrfs.iter();
                let of = vrfs.find(|(_, vrf)| vrf.table == number);
                of.map_or(Table::Number(number), |(name, _)| Table::Vrf(name.clone()))
            }
            (None, None) => Table::Number(MAIN),
        }
    }

    /// Adds the settings with which the process is started.
    fn process(&mut self) {
        let config = self.config;
        if config.workers != Workers::default() {
            self.add(Item::Workers(config.workers.clone()));
        }
        if config.tables != Tables::default() {
            self.add(Item::Tables(config.tables));
        }
        if let Some(name) = config.netns.clone() {
            self.add(Item::Netns { name });
        }
        self.add(Item::Control(config.control.clone()));
    }
}
