//! The parts of a configuration that can change one by one.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use serde::Serialize;

use router::acl::Direction;
use router::change::Mac;

use crate::config::desired::MAIN;
use crate::config::{
    Address, Balance, BondMode, BridgeSettings, Control, Encapsulation, Hop, Nat, Policy, Port,
    Sflow, State, Tables, TapHost, Term, Workers,
};

/// A configuration, item by item, each under its [`Key`].
pub type Items = BTreeMap<Key, Item>;

/// A part of a configuration: which, and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A VRF.
    Vrf {
        /// Its name.
        name: String,
        /// Number of its routing table.
        table: u32,
    },
    /// An interface of any kind.
    Interface {
        /// Its name.
        name: String,
        /// Its kind.
        kind: Kind,
    },
    /// A bridge domain.
    Bridge {
        /// Its name.
        name: String,
        /// Its settings for learning and forwarding.
        settings: BridgeSettings,
    },
    /// The name of the host's device for an interface.
    Lcp {
        /// The interface.
        of: String,
        /// The device's name.
        name: String,
    },
    /// A prefix list.
    PrefixList {
        /// Its name.
        name: String,
        /// Its networks.
        members: Vec<Address>,
    },
    /// An access control list.
    Acl {
        /// Its name.
        name: String,
        /// Its terms, the first that fits counts.
        terms: Vec<Term>,
    },
    /// A policy of the firewall.
    Policy {
        /// Its name.
        name: String,
        /// It, without its description.
        policy: Policy,
    },
    /// The VRF of an interface.
    VrfMember {
        /// The interface.
        of: String,
        /// The VRF.
        vrf: String,
    },
    /// The bond of an interface.
    BondMember {
        /// The interface.
        of: String,
        /// The bond.
        bond: String,
    },
    /// The bridge of an interface.
    BridgeMember {
        /// The interface.
        of: String,
        /// The bridge.
        bridge: String,
        /// It routes for the bridge.
        bvi: bool,
        /// Tags to take from what comes in, and to put on what goes out.
        tags: u8,
    },
    /// The cross-connect from an interface.
    CrossConnect {
        /// The interface.
        of: String,
        /// The interface that sends its packets.
        target: String,
        /// Tags to take from what comes in.
        tags: u8,
    },
    /// An address of an interface.
    Address {
        /// The interface.
        of: String,
        /// The address.
        address: Address,
        /// The VRF of the interface.
        vrf: Option<String>,
    },
    /// The lender of an interface's addresses.
    Unnumbered {
        /// The interface.
        of: String,
        /// The lender.
        lender: String,
    },
    /// ACLs for what an interface receives.
    Input {
        /// The interface.
        of: String,
        /// Their names.
        acls: Vec<String>,
    },
    /// ACLs for what an interface sends.
    Output {
        /// The interface.
        of: String,
        /// Their names.
        acls: Vec<String>,
    },
    /// Translation of addresses.
    Nat(Nat),
    /// The policy for what an interface forwards.
    Firewall {
        /// The interface.
        of: String,
        /// What comes in by it, or what leaves by it.
        direction: Direction,
        /// The policy's name.
        policy: String,
    },
    /// A route; without next hops a blackhole.
    Route {
        /// Its table.
        table: Table,
        /// Its destinations.
        prefix: Address,
        /// Of equal prefixes the lowest is used; `None`: the kernel's choice.
        metric: Option<u32>,
        /// Next hops, with the interface of each, where the configuration says which.
        via: Vec<Hop>,
        /// Those whose interface follows from their address.
        found: Found,
    },
    /// Packet samples.
    Sflow(Sflow),
    /// Words for people.
    Description {
        /// The object that is described.
        of: Object,
        /// The words.
        text: String,
    },
    /// The Ethernet address of an interface.
    Mac {
        /// The interface.
        of: String,
        /// The address.
        mac: Mac,
    },
    /// The largest IP packet.
    Mtu {
        /// Of an interface or a bridge.
        of: Object,
        /// Bytes.
        mtu: u16,
    },
    /// An interface accepts MPLS.
    Mpls {
        /// The interface.
        of: String,
    },
    /// An interface's packets are sampled.
    Sampled {
        /// The interface.
        of: String,
    },
    /// The administrative state of an interface.
    State {
        /// The interface.
        of: String,
        /// Up or down.
        state: State,
    },
    /// Threads that forward packets.
    Workers(Workers),
    /// The sizes of the tables.
    Tables(Tables),
    /// Network namespace.
    Netns {
        /// Its name.
        name: String,
    },
    /// The control socket, and the groups that may use it.
    Control(Control),
}

/// The kind of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged, rename_all_fields = "kebab-case")]
pub enum Kind {
    /// On a port; `None`: the network device of its name.
    Port {
        /// The port that carries its packets.
        port: Option<Box<Port>>,
    },
    /// A loopback.
    Loopback {},
    /// A bond.
    Bond {
        /// The mode in which packets are spread over the members.
        mode: BondMode,
        /// The headers that are hashed.
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
}

/// The identity of an item. A configuration has one of each at most.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// An object that exists by itself.
    Object(Object),
    /// [`Item::Lcp`] of an interface.
    Lcp(String),
    /// [`Item::VrfMember`] of an interface.
    VrfMember(String),
    /// [`Item::BondMember`] of an interface.
    BondMember(String),
    /// [`Item::BridgeMember`] of an interface.
    BridgeMember(String),
    /// [`Item::CrossConnect`] of an interface.
    CrossConnect(String),
    /// One [`Item::Address`] of an interface.
    Address(String, Address),
    /// [`Item::Unnumbered`] of an interface.
    Unnumbered(String),
    /// [`Item::Input`] of an interface.
    Input(String),
    /// [`Item::Output`] of an interface.
    Output(String),
    /// [`Item::Firewall`] of an interface in a direction.
    Firewall(String, Direction),
    /// [`Item::Description`] of an object.
    Description(Object),
    /// [`Item::Mac`] of an interface.
    Mac(String),
    /// [`Item::Mtu`] of an interface or a bridge.
    Mtu(Object),
    /// [`Item::Mpls`] of an interface.
    Mpls(String),
    /// [`Item::Sampled`] of an interface.
    Sampled(String),
    /// [`Item::State`] of an interface.
    State(String),
}

/// The objects of a configuration, as people see it: a plan says object by object what changes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Object {
    /// A VRF.
    Vrf(String),
    /// An interface of any kind.
    Interface(String),
    /// A bridge domain.
    Bridge(String),
    /// A prefix list.
    PrefixList(String),
    /// An access control list.
    Acl(String),
    /// A policy of the firewall.
    Policy(String),
    /// A route by table, prefix and metric.
    Route(Table, Address, Option<u32>),
    /// Translation of addresses.
    Nat,
    /// Packet samples.
    Sflow,
    /// Threads that forward packets.
    Workers,
    /// The sizes of the tables.
    Tables,
    /// Network namespace.
    Netns,
    /// The control socket, and the groups that may use it.
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

/// Next hops whose interface nobody has written, by index from 0 on. A route is the same whether it
/// is written or not.
#[derive(Debug, Clone, Default)]
pub struct Found(pub(super) Vec<usize>);

impl PartialEq for Found {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Found {}

impl Item {
    /// The identity of the item, which stays the same if it becomes another.
    pub fn key(&self) -> Key {
        match self {
            Item::Vrf { name, .. } => Key::Object(Object::vrf(name)),
            Item::Interface { name, .. } => Key::interface(name),
            Item::Bridge { name, .. } => Key::Object(Object::bridge(name)),
            Item::Lcp { of, .. } => Key::Lcp(of.clone()),
            Item::PrefixList { name, .. } => Key::Object(Object::PrefixList(name.clone())),
            Item::Acl { name, .. } => Key::Object(Object::Acl(name.clone())),
            Item::Policy { name, .. } => Key::Object(Object::Policy(name.clone())),
            Item::VrfMember { of, .. } => Key::VrfMember(of.clone()),
            Item::BondMember { of, .. } => Key::BondMember(of.clone()),
            Item::BridgeMember { of, .. } => Key::BridgeMember(of.clone()),
            Item::CrossConnect { of, .. } => Key::CrossConnect(of.clone()),
            Item::Address { of, address, .. } => Key::Address(of.clone(), *address),
            Item::Unnumbered { of, .. } => Key::Unnumbered(of.clone()),
            Item::Input { of, .. } => Key::Input(of.clone()),
            Item::Output { of, .. } => Key::Output(of.clone()),
            Item::Firewall { of, direction, .. } => Key::Firewall(of.clone(), *direction),
            Item::Route {
                table,
                prefix,
                metric,
                ..
            } => Key::Object(Object::Route(table.clone(), *prefix, *metric)),
            Item::Nat(_) => Key::Object(Object::Nat),
            Item::Sflow(_) => Key::Object(Object::Sflow),
            Item::Description { of, .. } => Key::Description(of.clone()),
            Item::Mac { of, .. } => Key::Mac(of.clone()),
            Item::Mtu { of, .. } => Key::Mtu(of.clone()),
            Item::Mpls { of } => Key::Mpls(of.clone()),
            Item::Sampled { of } => Key::Sampled(of.clone()),
            Item::State { of, .. } => Key::State(of.clone()),
            Item::Workers(_) => Key::Object(Object::Workers),
            Item::Tables(_) => Key::Object(Object::Tables),
            Item::Netns { .. } => Key::Object(Object::Netns),
            Item::Control(_) => Key::Object(Object::Control),
        }
    }
}

impl Key {
    /// An interface.
    pub fn interface(name: &str) -> Key {
        Key::Object(Object::interface(name))
    }
}

impl Object {
    /// An interface.
    pub fn interface(name: &str) -> Object {
        Object::Interface(name.to_owned())
    }

    /// A VRF.
    pub fn vrf(name: &str) -> Object {
        Object::Vrf(name.to_owned())
    }

    /// A bridge domain.
    pub fn bridge(name: &str) -> Object {
        Object::Bridge(name.to_owned())
    }

    /// The name of an interface; `None`: it is none.
    pub fn as_interface(&self) -> Option<&str> {
        if let Object::Interface(name) = self {
            Some(name)
        } else {
            None
        }
    }
}

/// The object's name for people.
impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Object::Vrf(name) => write!(f, "vrf {name}"),
            Object::Interface(name) => write!(f, "interface {name}"),
            Object::Bridge(name) => write!(f, "bridgedomain {name}"),
            Object::PrefixList(name) => write!(f, "prefixlist {name}"),
            Object::Acl(name) => write!(f, "acl {name}"),
            Object::Policy(name) => write!(f, "policy {name}"),
            Object::Route(table, prefix, metric) => {
                write!(f, "route {prefix}")?;
                if let Some(metric) = metric {
                    write!(f, " metric {metric}")?;
                }
                match table {
                    Table::Number(MAIN) => Ok(()),
                    Table::Number(number) => write!(f, " in table {number}"),
                    Table::Vrf(vrf) => write!(f, " in vrf {vrf}"),
                }
            }
            Object::Nat => f.write_str("nat"),
            Object::Sflow => f.write_str("sflow"),
            Object::Workers => f.write_str("workers"),
            Object::Tables => f.write_str("tables"),
            Object::Netns => f.write_str("netns"),
            Object::Control => f.write_str("control"),
        }
    }
}
