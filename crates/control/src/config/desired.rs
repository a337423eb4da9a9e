//! The router's task: the part of a configuration that it can carry out today.

use std::net::IpAddr;
use std::path::PathBuf;

use router::bond::{Headers, Spread};
use router::change::{Mac, Tunnel};

use super::forms::{self, Address};
use super::model::{
    self, Acl, Attached, Balance, BondMode, BridgeSettings, Config, Control, Encapsulation,
    Firewall, Hop, Mode, Named, Nat, Policy, Port, PortKind, PrefixList, Sflow, State, Tables, Tap,
    TapHost, Workers,
};
use super::problem::Findings;
use super::refusals::Refusing;
use super::view::{AllInterfaces, AnyInterface, InterfaceKind};
use super::yaml::Node;

/// The router's task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Desired {
    /// Interfaces of every kind: loopbacks, then those of `interfaces`, each before its
    /// sub-interfaces, then those that only `ports` or `taps` names, each in the order of the file.
    pub interfaces: Vec<Interface>,
    /// Bridge domains.
    pub bridges: Vec<Bridge>,
    /// Lists of networks that ACLs and policies name.
    pub prefixlists: Named<PrefixList>,
    /// Access control lists.
    pub acls: Named<Acl>,
    /// Policies of the firewall.
    pub policies: Named<Policy>,
    /// Translation of addresses.
    pub nat: Nat,
    /// Samples of packets: who gets them and how many there are; `None`: there are none.
    pub sflow: Option<Sflow>,
    /// Static routes, for the kernel to have.
    pub routes: Vec<Route>,
    /// The threads that forward packets.
    pub workers: Workers,
    /// The sizes of the tables.
    pub tables: Tables,
    /// Path of the network namespace in which the network devices and routes live; `None`: that of
    /// the process.
    pub netns: Option<PathBuf>,
    /// The control socket, and the groups that may use it.
    pub control: Control,
}

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Words for people.
    pub description: Option<String>,
    /// Ethernet address to set; `None`: as it is.
    pub mac: Option<Mac>,
    /// Name of the kernel's device for it; `None`: as it is.
    pub lcp: Option<String>,
    /// Largest IP packet, 128 to 9216 bytes; `None`: as it is.
    pub mtu: Option<u16>,
    /// Its addresses, its own or borrowed.
    pub addresses: Vec<Address>,
    /// Administratively up.
    pub up: bool,
    /// What it does at layer 2 instead of routing.
    pub l2: Option<Layer2>,
    /// The ACLs of its packets.
    pub acls: Attached,
    /// The policies of what is forwarded.
    pub firewall: Firewall,
    /// Its packets are sampled.
    pub sampled: bool,
    /// Its kind.
    pub kind: Kind,
}

/// What an interface does at layer 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layer2 {
    /// What comes in leaves by the interface of this name.
    CrossConnect(String),
    /// It is a member of the bridge domain of this name.
    Bridge(String),
    /// It is a member of the bond of this name.
    Bond(String),
}

/// A bridge domain. Its members are the interfaces that say so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bridge {
    /// Its name.
    pub name: String,
    /// How it learns, floods and forwards.
    pub settings: BridgeSettings,
    /// The loopback that routes for it.
    pub bvi: Option<String>,
}

/// A kind of interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Packets come and go by a port.
    Port(OpenPort),
    /// No packets come or go: it is there for its addresses.
    Loopback,
    /// Packets come and go by its members, which are the interfaces that say so.
    Bond(Spread),
    /// Packets come and go in UDP.
    Vxlan(Tunnel),
    /// What has its tags on another interface.
    Sub {
        /// The interface that it is on top of.
        parent: String,
        /// Its tags.
        encapsulation: Encapsulation,
    },
    /// Packets come and go by a tap, whose other end is the host's.
    Tap {
        /// The host's end.
        host: Box<TapHost>,
        /// Packets that wait there for the router at most.
        queue: u16,
    },
}

/// A static route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The destinations.
    pub prefix: Address,
    /// Number of the table that it is in; 254 is the main one.
    pub table: u32,
    /// Of equal prefixes the lowest is used; `None`: the kernel's choice.
    pub metric: Option<u32>,
    /// Next hops; none: packets are dropped.
    pub via: Vec<Hop>,
}

/// Bytes of the largest IP packet that a link must carry to have IPv6 at all: RFC 8200 section 5.
pub const IP6_MTU: u16 = 1280;

/// The main routing table.
pub const MAIN: u32 = libc::RT_TABLE_MAIN as u32;

/// The port that carries the packets of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenPort {
    /// Its device or file.
    pub kind: PortKind,
    /// Queues to use, 1 to 256; `None`: all that there are.
    pub queues: Option<u16>,
    /// The way in which AF_XDP moves packets.
    pub mode: Mode,
}

impl Interface {
    /// An interface of which only the kind is given.
    pub fn plain(name: &str, kind: Kind) -> Self {
        Interface {
            name: name.to_owned(),
            description: None,
            mac: None,
            lcp: None,
            mtu: None,
            addresses: Vec::new(),
            up: true,
            l2: None,
            acls: Attached::default(),
            firewall: Firewall::default(),
            sampled: false,
            kind,
        }
    }

    /// Its port; `None`: it has none.
    pub fn port(&self) -> Option<&OpenPort> {
        self.kind.port()
    }

    /// The kind of its port; `None`: it has none.
    pub fn port_kind(&self) -> Option<&PortKind> {
        self.port().map(|port| &port.kind)
    }

    /// Its port, if that is a network device.
    pub fn netdev(&self) -> Option<&OpenPort> {
        self.port().filter(|port| port.kind.is_device())
    }

    /// Name of the kernel's device that is made for it where no `lcp` gives it another.
    pub fn own_device(&self) -> String {
        match self.kind {
            Kind::Tap { .. } => forms::router_end(&self.name),
            _ => forms::device_name(&self.name),
        }
    }

    /// The first of its IPv6 addresses.
    pub fn ip6(&self) -> Option<&Address> {
        let mut addresses = self.addresses.iter();
        addresses.find(|own| own.address.is_ipv6())
    }
}

impl Kind {
    /// Its port; `None`: it has none that `ports` describes.
    pub fn port(&self) -> Option<&OpenPort> {
        match self {
            Kind::Port(port) => Some(port),
            Kind::Loopback
            | Kind::Bond(_)
            | Kind::Vxlan(_)
            | Kind::Sub { .. }
            | Kind::Tap { .. } => None,
        }
    }

    /// Of a TAP.
    pub fn tap(tap: &Tap) -> Self {
        Kind::Tap {
            host: Box::new(tap.host.clone()),
            queue: tap.rx_ring_size,
        }
    }
}

impl OpenPort {
    /// The port of an interface: the network device of its name, unless something else is given.
    pub fn of(interface: &str, given: Option<&Port>) -> Self {
        let kind = given.and_then(|port| port.kinds().pop());
        OpenPort {
            kind: kind.unwrap_or_else(|| PortKind::Netdev(interface.to_owned())),
            queues: given.and_then(|port| port.queues),
            mode: given.map(|port| port.mode).unwrap_or_default(),
        }
    }

    /// Name of the device of an interface with this port where no `lcp` gives it another; `None`: a
    /// network card's that is found by its PCI address.
    pub(crate) fn device(&self, interface: &str) -> Option<String> {
        match &self.kind {
            PortKind::Netdev(device) => Some(device.clone()),
            PortKind::Pci(_) => None,
            _ => Some(forms::device_name(interface)),
        }
    }

    /// Name of the tap that is the port, if it is one: given, or made of the interface's.
    pub fn tap(&self, interface: &str) -> Option<String> {
        match &self.kind {
            PortKind::Tap { name } => {
                let own = || forms::tap_name(interface);
                Some(name.clone().unwrap_or_else(own))
            }
            _ => None,
        }
    }
}

impl Desired {
    /// Returns true if a router that starts with it has network devices, or may get some. One that
    /// starts with ports of other kinds alone has memory that suits these best.
    pub fn may_have_devices(&self) -> bool {
        let mut ports = self.interfaces.iter().filter_map(Interface::port);
        let any = |port: &OpenPort| port.kind.is_device();
        ports.clone().next().is_none() || ports.any(any)
    }

    /// Converts a configuration that has passed every check.
    ///
    /// # Errors
    /// Everything that cannot be done yet, by name, a line each.
    pub fn of(config: &Config) -> Result<Self, Vec<String>> {
        wanted(config, &Node::default()).map_err(|findings| {
            let lines = findings.0.into_iter().map(|problem| problem.message);
            lines.collect()
        })
    }

    /// The interface of a name.
    pub fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces
            .iter()
            .find(|interface| interface.name == name)
    }
}

/// Returns the router's task, or all parts of the configuration that it cannot carry out yet.
pub(super) fn wanted(config: &Config, tree: &Node) -> Result<Desired, Findings> {
    let mut refusing = Refusing {
        tree,
        findings: Findings::default(),
    };
    let view = AllInterfaces::new(config);
    refusing.sections(config);
    let loopbacks = config.loopbacks.iter();
    let mut interfaces: Vec<_> = loopbacks.map(|of| loopback(&view, of)).collect();
    for entry in &view.entries {
        match entry.kind {
            InterfaceKind::Loopback(_) => continue,
            InterfaceKind::Sub(parent, ..) => {
                refusing.fields(&view, entry);
                let encapsulation = entry.encapsulation().unwrap_or_default();
                let parent = parent.to_owned();
                let kind = Kind::Sub {
                    parent,
                    encapsulation,
                };
                interfaces.push(interface(&view, entry, kind));
            }
            InterfaceKind::Interface(_) if config.bondethernets.contains_key(&entry.name) => {
                refusing.fields(&view, entry);
                interfaces.extend(bond(config, &view, entry));
            }
            InterfaceKind::Interface(_) if config.vxlan_tunnels.contains_key(&entry.name) => {
                refusing.fields(&view, entry);
                let described = &config.vxlan_tunnels[&entry.name];
                let routed = |kind| Interface {
                    description: (entry.description.map(str::to_owned))
                        .or_else(|| described.description.clone()),
                    ..interface(&view, entry, kind)
                };
                interfaces.extend(vxlan(described).map(routed));
            }
            InterfaceKind::Interface(_) if config.taps.contains_key(&entry.name) => {
                refusing.fields(&view, entry);
                let tap = &config.taps[&entry.name];
                let routed = interface(&view, entry, Kind::tap(tap));
                interfaces.push(Interface {
                    description: routed.description.or_else(|| tap.description.clone()),
                    ..routed
                });
            }
            InterfaceKind::Interface(_) => {
                let port = OpenPort::of(&entry.name, config.ports.get(&entry.name));
                refusing.fields(&view, entry);
                refusing.port(entry, &port.kind);
                interfaces.push(interface(&view, entry, Kind::Port(port)));
            }
        }
    }
    let others = config
        .ports
        .keys()
        .filter(|name| !config.interfaces.contains_key(*name));
    let port = |name: &String| Kind::Port(OpenPort::of(name, config.ports.get(name)));
    let plain = |name: &String| Interface::plain(name, port(name));
    interfaces.extend(others.map(plain));
    let others = config.taps.iter();
    let others = others.filter(|(name, _)| !config.interfaces.contains_key(*name));
    interfaces.extend(others.map(|(name, tap)| Interface {
        description: tap.description.clone(),
        ..Interface::plain(name, Kind::tap(tap))
    }));
    let others = config.vxlan_tunnels.iter();
    let others = others.filter(|(name, _)| !config.interfaces.contains_key(*name));
    interfaces.extend(others.filter_map(|(name, tunnel)| {
        Some(Interface {
            description: tunnel.description.clone(),
            ..Interface::plain(name, vxlan(tunnel)?)
        })
    }));
    if !refusing.findings.0.is_empty() {
        return Err(refusing.findings);
    }
    let bridges = config.bridgedomains.iter().map(|(name, bridge)| Bridge {
        name: name.clone(),
        settings: bridge.settings,
        bvi: bridge.bvi.clone(),
    });
    let routes = config.routes.iter();
    let routes = routes.filter_map(|of| route(&view, of));
    Ok(Desired {
        interfaces,
        bridges: bridges.collect(),
        prefixlists: config.prefixlists.clone(),
        acls: config.acls.clone(),
        policies: config.policies.clone(),
        nat: config.nat.clone(),
        sflow: config.sflow,
        routes: routes.collect(),
        workers: config.workers.clone(),
        tables: config.tables,
        netns: config.netns.as_deref().map(forms::netns),
        control: config.control.clone(),
    })
}

fn loopback(view: &AllInterfaces<'_>, (name, loopback): (&String, &model::Loopback)) -> Interface {
    let addresses = view.get(name).map(|entry| view.addresses(entry));
    Interface {
        description: loopback.description.clone(),
        mac: loopback.mac,
        lcp: loopback.lcp.clone(),
        mtu: loopback.mtu,
        addresses: addresses.unwrap_or_default(),
        firewall: loopback.firewall.clone(),
        ..Interface::plain(name, Kind::Loopback)
    }
}

/// A bond; `None` only in a configuration that is refused.
fn bond(config: &Config, view: &AllInterfaces<'_>, entry: &AnyInterface<'_>) -> Option<Interface> {
    let bond = config.bondethernets.get(&entry.name)?;
    let spread = spread(bond.mode, bond.balance());
    let given = interface(view, entry, Kind::Bond(spread));
    let own = given.description.clone().filter(|text| !text.is_empty());
    Some(Interface {
        description: own.or_else(|| bond.description.clone()),
        ..given
    })
}

/// A tunnel; `None` only in a configuration that is refused.
fn vxlan(described: &model::Vxlan) -> Option<Kind> {
    tunnel(described.local, described.remote, described.vni).map(Kind::Vxlan)
}

/// The tunnel between these ends, which are of one family.
pub fn tunnel(local: Option<IpAddr>, remote: Option<IpAddr>, vni: u32) -> Option<Tunnel> {
    Tunnel::new(local?, remote?, vni)
}

/// How a bond of this mode spreads what leaves.
pub fn spread(mode: BondMode, balance: Option<Balance>) -> Spread {
    let headers = match balance.unwrap_or(Balance::L34) {
        Balance::L2 => Headers::L2,
        Balance::L23 => Headers::L23,
        Balance::L34 => Headers::L34,
    };
    match mode {
        BondMode::RoundRobin => Spread::RoundRobin,
        BondMode::ActiveBackup => Spread::ActiveBackup,
        BondMode::Broadcast => Spread::Broadcast,
        BondMode::Xor => Spread::Xor(headers),
        BondMode::Lacp => Spread::Lacp(headers),
    }
}

fn interface(view: &AllInterfaces<'_>, entry: &AnyInterface<'_>, kind: Kind) -> Interface {
    let connect = entry
        .l2xc
        .map(|to| Layer2::CrossConnect(view.canonical(to)));
    let bridge = || {
        view.bridge(&entry.name)
            .map(|name| Layer2::Bridge(name.to_owned()))
    };
    let bond = || {
        view.bond(&entry.name)
            .map(|name| Layer2::Bond(name.to_owned()))
    };
    Interface {
        description: entry.description.map(str::to_owned),
        mac: entry.mac,
        lcp: entry.lcp.map(str::to_owned),
        mtu: entry.own_mtu,
        addresses: view.addresses(entry),
        up: entry.state == State::Up,
        l2: connect.or_else(bridge).or_else(bond),
        acls: entry.acls.cloned().unwrap_or_default(),
        firewall: entry.firewall.clone(),
        sampled: is_sampled(entry),
        ..Interface::plain(&entry.name, kind)
    }
}

/// Returns true if its packets are to be sampled.
fn is_sampled(entry: &AnyInterface<'_>) -> bool {
    matches!(entry.kind, InterfaceKind::Interface(interface) if interface.sflow == Some(true))
}

/// A route; `None` only in a configuration that is refused.
fn route(view: &AllInterfaces<'_>, route: &model::Route) -> Option<Route> {
    Some(Route {
        prefix: route.prefix?,
        table: route.table.unwrap_or(MAIN),
        metric: route.metric(),
        via: route
            .via
            .iter()
            .map(|hop| view.resolved(route, hop))
            .collect(),
    })
}
