//! Interfaces of every kind.

use std::net::IpAddr;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use router::acl::Direction;
use router::change::Mac;

use super::super::forms::{Address, Collector};

/// Administrative state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It carries packets.
    #[default]
    Up,
    /// It does not.
    Down,
}

/// A port, or what stands for a bond, tunnel or TAP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Interface {
    /// Words for people.
    pub description: Option<String>,
    /// Only `dpdk`; of no effect.
    pub device_type: Option<String>,
    /// Ethernet address.
    #[serde(with = "super::text")]
    pub mac: Option<Mac>,
    /// Name of the host's device.
    pub lcp: Option<String>,
    /// Largest IP packet, bytes.
    pub mtu: Option<u16>,
    /// Its addresses.
    pub addresses: Vec<Address>,
    /// Interface whose addresses it borrows.
    pub unnumbered: Option<String>,
    /// Interface that gets what it receives.
    pub l2xc: Option<String>,
    /// `None`: up.
    pub state: Option<State>,
    /// `None`: no.
    pub mpls: Option<bool>,
    /// `None`: no.
    pub sflow: Option<bool>,
    /// By number.
    pub sub_interfaces: IndexMap<u32, SubInterface>,
    /// VRF that it belongs to.
    pub vrf: Option<String>,
    /// ACLs that apply.
    #[serde(skip_serializing_if = "super::is_usual")]
    pub acls: Attached,
    /// Policies of the firewall that apply.
    #[serde(skip_serializing_if = "super::is_usual")]
    pub firewall: Firewall,
}

/// A sub-interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SubInterface {
    /// Words for people.
    pub description: Option<String>,
    /// Name of the host's device.
    pub lcp: Option<String>,
    /// Largest IP packet, bytes; `None`: the interface's.
    pub mtu: Option<u16>,
    /// Its addresses.
    pub addresses: Vec<Address>,
    /// Interface whose addresses it borrows.
    pub unnumbered: Option<String>,
    /// Interface that gets what it receives.
    pub l2xc: Option<String>,
    /// `None`: up.
    pub state: Option<State>,
    /// `None`: no.
    pub mpls: Option<bool>,
    /// Its tags; `None`: its number, exactly.
    pub encapsulation: Option<Encapsulation>,
    /// VRF that it belongs to.
    pub vrf: Option<String>,
    /// ACLs that apply.
    #[serde(skip_serializing_if = "super::is_usual")]
    pub acls: Attached,
    /// Policies of the firewall that apply.
    #[serde(skip_serializing_if = "super::is_usual")]
    pub firewall: Firewall,
}

/// VLAN tags; 0: none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Encapsulation {
    /// Outer tag of type 0x8100.
    #[serde(skip_serializing_if = "super::is_usual")]
    pub dot1q: u32,
    /// Outer tag of type 0x88a8.
    #[serde(skip_serializing_if = "super::is_usual")]
    pub dot1ad: u32,
    /// Inner tag of type 0x8100.
    #[serde(skip_serializing_if = "super::is_usual")]
    pub inner_dot1q: u32,
    /// Only packets with exactly these tags.
    #[serde(skip_serializing_if = "super::is_usual")]
    pub exact_match: bool,
}

/// ACLs of an interface, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Attached {
    /// For what comes in.
    #[serde(deserialize_with = "super::one_or_several")]
    pub input: Vec<String>,
    /// For what goes out.
    #[serde(deserialize_with = "super::one_or_several")]
    pub output: Vec<String>,
}

/// Policies of an interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Firewall {
    /// For what comes in by it and is forwarded.
    #[serde(rename = "in")]
    pub input: Option<String>,
    /// For what is forwarded and leaves by it.
    #[serde(rename = "out")]
    pub output: Option<String>,
}

impl Firewall {
    /// The policy of a direction.
    pub fn policy(&self, direction: Direction) -> Option<&String> {
        match direction {
            Direction::Input => self.input.as_ref(),
            Direction::Output => self.output.as_ref(),
        }
    }

    /// The field of a direction, as it is written.
    pub fn word(direction: Direction) -> &'static str {
        match direction {
            Direction::Input => "in",
            Direction::Output => "out",
        }
    }
}

/// An interface without a port; always up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Loopback {
    /// Words for people.
    pub description: Option<String>,
    /// Ethernet address.
    #[serde(with = "super::text")]
    pub mac: Option<Mac>,
    /// Name of the host's device.
    pub lcp: Option<String>,
    /// Largest IP packet, bytes.
    pub mtu: Option<u16>,
    /// Its addresses.
    pub addresses: Vec<Address>,
    /// Interface whose addresses it borrows.
    pub unnumbered: Option<String>,
    /// `None`: no.
    pub mpls: Option<bool>,
    /// VRF that it belongs to.
    pub vrf: Option<String>,
    /// Policies of the firewall that apply.
    #[serde(skip_serializing_if = "super::is_usual")]
    pub firewall: Firewall,
}

/// Interfaces that are one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Bond {
    /// Words for people.
    pub description: Option<String>,
    /// Ethernet address.
    #[serde(with = "super::text")]
    pub mac: Option<Mac>,
    /// Its members.
    pub interfaces: Vec<String>,
    /// The mode in which packets are spread over the members.
    #[serde(skip_serializing_if = "super::is_usual")]
    pub mode: BondMode,
    /// The headers that are hashed; `None`: the mode's default.
    pub load_balance: Option<Balance>,
}

/// The mode in which a bond spreads packets over its members.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BondMode {
    /// One after the other.
    RoundRobin,
    /// One at a time.
    ActiveBackup,
    /// To all.
    Broadcast,
    /// By hash, as agreed by IEEE 802.1AX.
    #[default]
    Lacp,
    /// By hash.
    Xor,
}

/// The headers that a bond hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Balance {
    /// Ethernet addresses.
    L2,
    /// These and IP addresses.
    L23,
    /// IP addresses and ports.
    L34,
}

impl Bond {
    /// The headers that are hashed: in a mode that hashes, addresses and ports unless said
    /// otherwise.
    pub fn balance(&self) -> Option<Balance> {
        let hashes = matches!(self.mode, BondMode::Lacp | BondMode::Xor);
        self.load_balance.or(hashes.then_some(Balance::L34))
    }
}

/// An Ethernet bridge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bridge {
    /// Words for people.
    pub description: Option<String>,
    /// Largest IP packet, bytes.
    pub mtu: Option<u16>,
    /// Loopback that routes for it.
    pub bvi: Option<String>,
    /// Its members.
    pub interfaces: Vec<String>,
    /// Its settings.
    #[serde(skip_serializing_if = "super::is_usual")]
    pub settings: BridgeSettings,
}

/// A bridge's settings for learning, flooding and forwarding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct BridgeSettings {
    /// Learn where stations are.
    #[serde(skip_serializing_if = "BridgeSettings::learn")]
    pub learn: bool,
    /// Flood unicast.
    #[serde(skip_serializing_if = "BridgeSettings::unicast_flood")]
    pub unicast_flood: bool,
    /// Flood unicast to unknown stations.
    #[serde(skip_serializing_if = "BridgeSettings::unknown_unicast_flood")]
    pub unknown_unicast_flood: bool,
    /// Forward unicast to known stations.
    #[serde(skip_serializing_if = "BridgeSettings::unicast_forward")]
    pub unicast_forward: bool,
    /// Answer ARP from the table.
    #[serde(skip_serializing_if = "super::is_usual")]
    pub arp_termination: bool,
    /// Forward ARP as unicast.
    #[serde(skip_serializing_if = "super::is_usual")]
    pub arp_unicast_forward: bool,
    /// Minutes until a station is forgotten; 0: never.
    #[serde(skip_serializing_if = "super::is_usual")]
    pub mac_age_minutes: u8,
}

impl Default for BridgeSettings {
    fn default() -> Self {
        BridgeSettings {
            learn: true,
            unicast_flood: true,
            unknown_unicast_flood: true,
            unicast_forward: true,
            arp_termination: false,
            arp_unicast_forward: false,
            mac_age_minutes: 0,
        }
    }
}

usual!(BridgeSettings: learn: bool, unicast_flood: bool, unknown_unicast_flood: bool, unicast_forward: bool);

/// A VXLAN tunnel. What is required is 0 or `None` only in a configuration that is refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Vxlan {
    /// Words for people.
    pub description: Option<String>,
    /// Our address.
    pub local: Option<IpAddr>,
    /// The other end's.
    pub remote: Option<IpAddr>,
    /// Number of the network.
    pub vni: u32,
}

/// A TAP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tap {
    /// Words for people.
    pub description: Option<String>,
    /// The host's end.
    pub host: TapHost,
    /// Descriptors: a power of two.
    #[serde(skip_serializing_if = "Tap::rx_ring_size")]
    pub rx_ring_size: u16,
    /// Descriptors: a power of two.
    #[serde(skip_serializing_if = "Tap::tx_ring_size")]
    pub tx_ring_size: u16,
}

impl Default for Tap {
    fn default() -> Self {
        Tap {
            description: None,
            host: TapHost::default(),
            rx_ring_size: 256,
            tx_ring_size: 256,
        }
    }
}

usual!(Tap: rx_ring_size: u16, tx_ring_size: u16);

/// The host's end of a TAP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TapHost {
    /// Name of the device; empty only in a configuration that is refused.
    pub name: String,
    /// Its Ethernet address.
    #[serde(with = "super::text")]
    pub mac: Option<Mac>,
    /// Its MTU, bytes.
    pub mtu: Option<u16>,
    /// The host's bridge that it joins.
    pub bridge: Option<String>,
    /// Make that bridge.
    #[serde(skip_serializing_if = "super::is_usual")]
    pub bridge_create: bool,
    /// Network namespace that it is in.
    pub namespace: Option<String>,
    /// Make that namespace.
    #[serde(skip_serializing_if = "super::is_usual")]
    pub namespace_create: bool,
}

/// Packet samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Sflow {
    /// Where samples go.
    pub collector: Option<Collector>,
    /// The router's address for the collector; `None`: its lowest.
    pub agent: Option<IpAddr>,
    /// Bytes of a packet in a sample.
    #[serde(skip_serializing_if = "Sflow::header_bytes")]
    pub header_bytes: u16,
    /// Seconds between counters.
    #[serde(skip_serializing_if = "Sflow::polling_interval")]
    pub polling_interval: u16,
    /// A packet in so many.
    #[serde(skip_serializing_if = "Sflow::sampling_rate")]
    pub sampling_rate: u32,
}

impl Default for Sflow {
    fn default() -> Self {
        Sflow {
            collector: None,
            agent: None,
            header_bytes: 128,
            polling_interval: 20,
            sampling_rate: 10_000,
        }
    }
}

usual!(Sflow: header_bytes: u16, polling_interval: u16, sampling_rate: u32);
