//! A configuration as items, with all that follows from defaults.

use crate::config::wanted::OpenPort;
use crate::config::{
    Config, Entry, EntryKind, Hop, Interface, Route, State, Tables, View, Workers,
};

use super::item::{Field, Found, Items, Key, Table, Value};

/// The items of a configuration.
pub fn items(config: &Config) -> Items {
    let view = View::new(config);
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
    view: &'c View<'c>,
    items: Items,
}

impl Building<'_> {
    fn add(&mut self, key: Key, value: Value) {
        self.items.insert(key, value);
    }

    fn attribute(&mut self, of: &Key, field: Field, value: Option<Value>) {
        if let Some(value) = value {
            self.add(of.clone().of(field), value);
        }
    }

    fn description(&mut self, of: &Key, text: Option<&str>) {
        let text = text.filter(|text| !text.is_empty());
        self.attribute(
            of,
            Field::Description,
            text.map(|text| Value::Name(text.to_owned())),
        );
    }

    fn entry(&mut self, entry: &Entry<'_>) {
        let name = entry.name.clone();
        let key = Key::Interface(name.clone());
        match entry.kind {
            EntryKind::Interface(interface) => {
                let value = self.kind(&name);
                self.add(key.clone(), value);
                self.sflow(&key, interface);
            }
            EntryKind::Sub(parent, ..) => {
                let value = Value::Sub {
                    parent: parent.to_owned(),
                    encapsulation: entry.encapsulation().unwrap_or_default(),
                };
                self.add(key.clone(), value);
            }
            EntryKind::Loopback(_) => self.add(key.clone(), Value::Loopback {}),
        }
        self.description(&key, entry.description);
        self.attribute(&key, Field::Mac, entry.mac.map(Value::Mac));
        self.attribute(&key, Field::Mtu, entry.own_mtu().map(Value::Mtu));
        self.attribute(&key, Field::Mpls, entry.mpls.then_some(Value::Flag(true)));
        if !matches!(entry.kind, EntryKind::Loopback(_)) {
            self.attribute(&key, Field::State, Some(Value::State(entry.state)));
        }
        self.relations(entry);
    }

    fn sflow(&mut self, key: &Key, interface: &Interface) {
        let on = interface.sflow.unwrap_or_default();
        self.attribute(key, Field::Sflow, on.then_some(Value::Flag(true)));
    }

    /// What an entry of `interfaces` is.
    fn kind(&self, name: &str) -> Value {
        let config = self.config;
        if let Some(bond) = config.bondethernets.get(name) {
            return Value::Bond {
                mode: bond.mode,
                load_balance: bond.balance(),
            };
        }
        if let Some(tunnel) = config.vxlan_tunnels.get(name) {
            return Value::Vxlan {
                local: tunnel.local,
                remote: tunnel.remote,
                vni: tunnel.vni,
            };
        }
        if let Some(tap) = config.taps.get(name) {
            return Value::Tap {
                host: Box::new(tap.host.clone()),
                rx_ring_size: tap.rx_ring_size,
                tx_ring_size: tap.tx_ring_size,
            };
        }
        // A port that is named as it would be anyway is the same one.
        let usual = OpenPort::of(name, None);
        let port = config.ports.get(name);
        let port = port.filter(|port| OpenPort::of(name, Some(port)) != usual);
        Value::Port {
            port: port.cloned().map(Box::new),
        }
    }

    /// What an interface has to do with others.
    fn relations(&mut self, entry: &Entry<'_>) {
        let name = &entry.name;
        if let Some(lcp) = entry.lcp {
            self.add(Key::Lcp(name.clone()), Value::Name(lcp.to_owned()));
        }
        if let Some(vrf) = entry.vrf {
            self.add(Key::VrfMember(name.clone()), Value::Name(vrf.to_owned()));
        }
        for address in entry.addresses {
            let vrf = entry.vrf.map(str::to_owned);
            self.add(Key::Address(name.clone(), *address), Value::Address { vrf });
        }
        if let Some(lender) = entry.unnumbered {
            let lender = self.view.canonical(lender);
            self.add(Key::Unnumbered(name.clone()), Value::Name(lender));
        }
        if let Some(target) = entry.l2xc {
            let value = Value::CrossConnect {
                target: self.view.canonical(target),
                tags: entry.tags(),
            };
            self.add(Key::CrossConnect(name.clone()), value);
        }
        let Some(acls) = entry.acls else { return };
        if !acls.input.is_empty() {
            self.add(Key::Input(name.clone()), Value::Names(acls.input.clone()));
        }
        if !acls.output.is_empty() {
            self.add(Key::Output(name.clone()), Value::Names(acls.output.clone()));
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
            let key = Key::Interface(name.clone());
            let value = self.kind(name);
            self.items.entry(key.clone()).or_insert(value);
            if !self.items.contains_key(&key.clone().of(Field::Description)) {
                self.description(&key, description.as_deref());
            }
        }
        for name in config.ports.keys() {
            let key = Key::Interface(name.clone());
            if !self.items.contains_key(&key) {
                let value = self.kind(name);
                self.attribute(&key, Field::State, Some(Value::State(State::Up)));
                self.add(key, value);
            }
        }
    }

    fn bonds(&mut self) {
        let config = self.config;
        for (name, bond) in &config.bondethernets {
            let key = Key::Interface(name.clone());
            self.attribute(&key, Field::Mac, bond.mac.map(Value::Mac));
            if !self.items.contains_key(&key.clone().of(Field::Description)) {
                self.description(&key, bond.description.as_deref());
            }
            for member in &bond.interfaces {
                let member = self.view.canonical(member);
                self.add(Key::BondMember(member), Value::Name(name.clone()));
            }
        }
    }

    fn bridges(&mut self) {
        let config = self.config;
        for (name, bridge) in &config.bridgedomains {
            let key = Key::Bridge(name.clone());
            self.add(key.clone(), Value::Bridge(bridge.settings));
            self.description(&key, bridge.description.as_deref());
            self.attribute(
                &key,
                Field::Mtu,
                Some(Value::Mtu(bridge.mtu.unwrap_or(1500))),
            );
            let bvi = bridge.bvi.iter().map(|bvi| (bvi, true));
            let members = bridge.interfaces.iter().map(|member| (member, false));
            for (member, bvi) in bvi.chain(members) {
                let value = Value::BridgeMember {
                    bridge: name.clone(),
                    bvi,
                    tags: self.view.get(member).map_or(0, Entry::tags),
                };
                self.add(Key::BridgeMember(self.view.canonical(member)), value);
            }
        }
    }

    fn lists(&mut self) {
        let config = self.config;
        for (name, list) in &config.prefixlists {
            let key = Key::PrefixList(name.clone());
            self.add(key.clone(), Value::Networks(list.members.clone()));
            self.description(&key, list.description.as_deref());
        }
        for (name, acl) in &config.acls {
            let key = Key::Acl(name.clone());
            self.add(key.clone(), Value::Terms(acl.terms.clone()));
            self.description(&key, acl.description.as_deref());
        }
        if let Some(sflow) = config.sflow {
            self.add(Key::Sflow, Value::Sflow(sflow));
        }
    }

    fn routes(&mut self) {
        let config = self.config;
        for (name, vrf) in &config.vrfs {
            let key = Key::Vrf(name.clone());
            self.add(key.clone(), Value::Vrf { table: vrf.table });
            self.description(&key, vrf.description.as_deref());
        }
        for route in &config.routes {
            let Some(prefix) = route.prefix else { continue };
            let key = Key::Route(self.table(route), prefix, route.metric());
            let via = route.via.iter().map(|hop| self.resolved(route, hop));
            let unnamed = route.via.iter().enumerate();
            let unnamed = unnamed.filter(|(_, hop)| hop.interface.is_none());
            let value = Value::Route {
                via: via.collect(),
                found: Found(unnamed.map(|(at, _)| at).collect()),
            };
            self.add(key.clone(), value);
            self.description(&key, route.description.as_deref());
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
            (None, None) => Table::Number(254),
        }
    }

    fn resolved(&self, route: &Route, hop: &Hop) -> Hop {
        let named = hop.interface.as_ref().map(|name| self.view.canonical(name));
        let link = || {
            let link = self.view.link(route.vrf.as_deref(), hop.address?)?;
            Some(link.to_owned())
        };
        Hop {
            interface: named.or_else(link),
            ..hop.clone()
        }
    }

    /// What the process is started with.
    fn process(&mut self) {
        let config = self.config;
        if config.workers != Workers::default() {
            self.add(Key::Workers, Value::Workers(config.workers.clone()));
        }
        if config.tables != Tables::default() {
            self.add(Key::Tables, Value::Tables(config.tables));
        }
        if let Some(netns) = &config.netns {
            self.add(Key::Netns, Value::Name(netns.clone()));
        }
        self.add(Key::Control, Value::Control(config.control.clone()));
    }
}

impl Value {
    /// How many tags an interface's packets have.
    pub(super) fn tags(&self) -> u8 {
        match self {
            Value::Sub { encapsulation, .. } if encapsulation.inner_dot1q > 0 => 2,
            Value::Sub { .. } => 1,
            _ => 0,
        }
    }
}
