//! The parts of a configuration that can change one by one.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;

use router::change::Mac;

use crate::config::{
    Address, Balance, BondMode, BridgeSettings, Control, Encapsulation, Hop, Port, Sflow, State,
    Tables, TapHost, Term, Workers,
};

/// A configuration, item by item.
pub type Items = BTreeMap<Key, Value>;

/// A part of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Which.
    pub key: Key,
    /// What it is.
    pub value: Value,
    /// Of what is removed, the attributes that go with it, so that it can come back as it was.
    pub attributes: Vec<(Field, Value)>,
}

/// Which part.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A VRF.
    Vrf(String),
    /// An interface of any kind; the value says which.
    Interface(String),
    /// A bridge domain.
    Bridge(String),
    /// The name of the host's device for an interface.
    Lcp(String),
    /// A prefix list.
    PrefixList(String),
    /// An access control list.
    Acl(String),
    /// The VRF of an interface.
    VrfMember(String),
    /// The bond of an interface.
    BondMember(String),
    /// The bridge of an interface.
    BridgeMember(String),
    /// The cross-connect from an interface.
    CrossConnect(String),
    /// An address of an interface.
    Address(String, Address),
    /// The lender of an interface's addresses.
    Unnumbered(String),
    /// ACLs for what an interface receives.
    Input(String),
    /// ACLs for what an interface sends.
    Output(String),
    /// A route by table, prefix and metric.
    Route(Table, Address, Option<u32>),
    /// Packet samples.
    Sflow,
    /// An attribute of another item, which lives and dies with it.
    Of(Box<Key>, Field),
    /// Threads that forward packets.
    Workers,
    /// How large the tables of routes are.
    Tables,
    /// Network namespace.
    Netns,
    /// Where the router is asked.
    Control,
}

/// A routing table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// By number; 254 is the main table.
    Number(u32),
    /// That of a VRF.
    Vrf(String),
}

/// An attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// Words for people.
    Description,
    /// Ethernet address.
    Mac,
    /// Largest IP packet.
    Mtu,
    /// Accept MPLS.
    Mpls,
    /// Sample packets.
    Sflow,
    /// Administrative state.
    State,
}

impl Field {
    /// Every attribute.
    pub const ALL: [Field; 6] = [
        Field::Description,
        Field::Mac,
        Field::Mtu,
        Field::Mpls,
        Field::Sflow,
        Field::State,
    ];
}

/// What a part is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged, rename_all_fields = "kebab-case")]
pub enum Value {
    /// A VRF.
    Vrf {
        /// Its routing table.
        table: u32,
    },
    /// An interface on a port; `None`: the network device of its name.
    Port {
        /// What carries its packets.
        port: Option<Box<Port>>,
    },
    /// A loopback.
    Loopback {},
    /// A bond.
    Bond {
        /// How packets are spread.
        mode: BondMode,
        /// What is hashed.
        load_balance: Option<Balance>,
    },
    /// A VXLAN tunnel.
    Vxlan {
        /// Our address.
        local: Option<IpAddr>,
        /// The other end's.
        remote: Option<IpAddr>,
        /// Number of the network.
        vni: u32,
    },
    /// A TAP.
    Tap {
        /// The host's end.
        host: Box<TapHost>,
        /// Descriptors.
        rx_ring_size: u16,
        /// Descriptors.
        tx_ring_size: u16,
    },
    /// A sub-interface.
    Sub {
        /// The interface that it is on top of.
        parent: String,
        /// Its tags.
        encapsulation: Encapsulation,
    },
    /// A bridge domain.
    Bridge(BridgeSettings),
    /// A member of a bridge.
    BridgeMember {
        /// The bridge.
        bridge: String,
        /// It routes for the bridge.
        bvi: bool,
        /// Tags to take from what comes in, and to put on what goes out.
        tags: u8,
    },
    /// A cross-connect.
    CrossConnect {
        /// Where packets go.
        target: String,
        /// Tags to take from what comes in.
        tags: u8,
    },
    /// A name: of a device, bond, lender or VRF; or words.
    Name(String),
    /// An address, with the VRF of its interface.
    Address {
        /// The VRF.
        vrf: Option<String>,
    },
    /// Names of ACLs.
    Names(Vec<String>),
    /// Members of a prefix list.
    Networks(Vec<Address>),
    /// Terms of an ACL.
    Terms(Vec<Term>),
    /// A route; without next hops a blackhole.
    Route {
        /// With the interface of each, where the configuration says which.
        via: Vec<Hop>,
        /// Those whose interface follows from their address.
        #[serde(skip)]
        found: Found,
    },
    /// Packet samples.
    Sflow(Sflow),
    /// An Ethernet address.
    Mac(#[serde(serialize_with = "text")] Mac),
    /// An MTU, bytes.
    Mtu(u16),
    /// Yes or no.
    Flag(bool),
    /// Up or down.
    State(State),
    /// Threads.
    Workers(Workers),
    /// Routes that the tables have room for.
    Tables(Tables),
    /// The control socket.
    Control(Control),
}

fn text<S: serde::Serializer>(mac: &Mac, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(mac)
}

/// Which next hops have an interface that nobody has written, from 0 on. A route is the same whether
/// it is written or not.
#[derive(Debug, Clone, Default)]
pub struct Found(pub(super) Vec<usize>);

impl PartialEq for Found {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Found {}

impl Key {
    /// The attribute of an item.
    pub fn of(self, field: Field) -> Key {
        Key::Of(Box::new(self), field)
    }

    /// The interface that it belongs to.
    pub fn interface(&self) -> Option<&str> {
        match self {
            Key::Interface(name)
            | Key::Lcp(name)
            | Key::VrfMember(name)
            | Key::BondMember(name)
            | Key::BridgeMember(name)
            | Key::CrossConnect(name)
            | Key::Address(name, _)
            | Key::Unnumbered(name)
            | Key::Input(name)
            | Key::Output(name) => Some(name),
            Key::Of(of, _) => of.interface(),
            _ => None,
        }
    }
}

/// The items without which an item cannot be.
pub(super) fn needs(key: &Key, value: &Value) -> Vec<Key> {
    let mut needs: Vec<Key> = match key {
        Key::Interface(_) => Vec::new(),
        Key::Of(of, _) => vec![(**of).clone()],
        key => key
            .interface()
            .map(|name| Key::Interface(name.to_owned()))
            .into_iter()
            .collect(),
    };
    match (key, value) {
        (_, Value::Sub { parent, .. }) => needs.push(Key::Interface(parent.clone())),
        (_, Value::BridgeMember { bridge, .. }) => needs.push(Key::Bridge(bridge.clone())),
        (_, Value::CrossConnect { target, .. }) => needs.push(Key::Interface(target.clone())),
        (Key::BondMember(_) | Key::Unnumbered(_), Value::Name(other)) => {
            needs.push(Key::Interface(other.clone()));
        }
        (Key::VrfMember(_), Value::Name(vrf)) => needs.push(Key::Vrf(vrf.clone())),
        (Key::Address(name, _), Value::Address { vrf: Some(_) }) => {
            needs.push(Key::VrfMember(name.clone()));
        }
        (_, Value::Names(acls)) => needs.extend(acls.iter().cloned().map(Key::Acl)),
        (_, Value::Terms(terms)) => {
            let ends = terms
                .iter()
                .flat_map(|term| [&term.source, &term.destination]);
            let lists = ends.flatten().filter(|text| Term::is_list(text));
            needs.extend(lists.cloned().map(Key::PrefixList));
        }
        (Key::Route(table, ..), Value::Route { via, .. }) => {
            if let Table::Vrf(vrf) = table {
                needs.push(Key::Vrf(vrf.clone()));
            }
            let interfaces = via.iter().filter_map(|hop| hop.interface.clone());
            needs.extend(interfaces.map(Key::Interface));
        }
        _ => {}
    }
    needs
}

/// What only one item may have at a time.
pub(super) fn claims(key: &Key, value: &Value) -> Vec<String> {
    match (key, value) {
        (Key::Lcp(_), Value::Name(name)) => vec![format!("device {name}")],
        (Key::Vrf(name), Value::Vrf { table }) => {
            vec![format!("device {name}"), format!("table {table}")]
        }
        (
            _,
            Value::Sub {
                parent,
                encapsulation,
            },
        ) => vec![format!("tags {parent} {encapsulation:?}")],
        (_, Value::Vxlan { vni, .. }) => vec![format!("vni {vni}")],
        (_, Value::Tap { host, .. }) => vec![format!("tap {}", host.name)],
        _ => Vec::new(),
    }
}
