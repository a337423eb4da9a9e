//! A configuration as plain data: the sections and fields of the language under the names that they
//! have there.

/// For fields of an object whose own default says what they are where the file is silent: functions
/// of their names that say whether they are that.
macro_rules! usual {
    ($of:ident: $($field:ident: $type:ty),+) => {
        impl $of {
            $(fn $field(value: &$type) -> bool {
                *value == $of::default().$field
            })+
        }
    };
}

mod acl;
mod interface;
pub mod nat;
pub mod policy;
mod port;
mod route;
mod text;

use std::path::PathBuf;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

pub use acl::{Acl, Action, Family, Fields, PrefixList, Term, Value};
pub use interface::{
    Attached, Balance, Bond, BondMode, Bridge, BridgeSettings, Encapsulation, Firewall, Interface,
    Loopback, Sflow, State, SubInterface, Tap, TapHost, Vxlan,
};
pub use nat::Nat;
pub use policy::Policy;
pub use port::{Memif, MemifMode, Mode, PcapPort, Port, PortKind, Role, Secret, TapPort};
pub use route::{Hop, Route, Vrf};

/// Objects by name, in the order of the file; the order makes no difference.
pub type Named<T> = IndexMap<String, T>;

/// A whole configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Interfaces.
    pub interfaces: Named<Interface>,
    /// Interfaces without a port.
    pub loopbacks: Named<Loopback>,
    /// Interfaces that are several.
    pub bondethernets: Named<Bond>,
    /// Ethernet bridges.
    pub bridgedomains: Named<Bridge>,
    /// VXLAN tunnels.
    pub vxlan_tunnels: Named<Vxlan>,
    /// TAPs.
    pub taps: Named<Tap>,
    /// Lists of networks.
    pub prefixlists: Named<PrefixList>,
    /// Access control lists.
    pub acls: Named<Acl>,
    /// Policies of the firewall.
    pub policies: Named<Policy>,
    /// Translation of addresses.
    #[serde(skip_serializing_if = "is_usual")]
    pub nat: Nat,
    /// Packet samples.
    pub sflow: Option<Sflow>,
    /// Static routes.
    pub routes: Vec<Route>,
    /// VRFs.
    pub vrfs: Named<Vrf>,
    /// The ports, which carry the packets of interfaces.
    pub ports: Named<Port>,
    /// The threads that forward packets.
    #[serde(skip_serializing_if = "is_usual")]
    pub workers: Workers,
    /// The sizes of the tables.
    #[serde(skip_serializing_if = "is_usual")]
    pub tables: Tables,
    /// Name or path of the network namespace of devices and routes; `None`: that of the process.
    pub netns: Option<String>,
    /// The control socket, and the groups that may use it.
    #[serde(skip_serializing_if = "is_usual")]
    pub control: Control,
}

/// Returns true if leaving it out of the file would mean the same.
fn is_usual<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// One value or several.
fn one_or_several<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Values<T> {
        One(T),
        Several(Vec<T>),
    }
    Ok(match Values::deserialize(from)? {
        Values::One(value) => vec![value],
        Values::Several(values) => values,
    })
}

/// The threads that forward packets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Workers {
    /// Their number; `None`: as many as `cpus`, or one.
    pub count: Option<u16>,
    /// The processors to pin them to, in order; empty: chosen by the router.
    pub cpus: Vec<u16>,
}

/// Routes and flows that the tables have room for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tables {
    /// IPv4 routes, 1000 to 50,000,000; `None`: by the machine's memory.
    pub ip4_routes: Option<u32>,
    /// IPv6 routes, 1000 to 50,000,000; `None`: by the machine's memory.
    pub ip6_routes: Option<u32>,
    /// Flows of each worker, 1000 to 16,000,000; `None`: as many as [`Tables::FLOWS`].
    pub flows: Option<u32>,
}

impl Tables {
    /// Flows that each worker has room for if nothing else is said.
    pub const FLOWS: u32 = 1_000_000;
}

/// The control socket, and the groups that may use it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Control {
    /// The Unix socket.
    pub socket: PathBuf,
    /// Group that may ask and change, which is as good as root; root always may.
    pub group: Option<String>,
    /// Group that may only ask.
    pub show_group: Option<String>,
}

/// The control socket of a router that says nothing else.
pub const SOCKET: &str = "/run/parshall/cli.sock";

impl Default for Control {
    fn default() -> Self {
        Control {
            socket: SOCKET.into(),
            group: Some("parshall".into()),
            show_group: None,
        }
    }
}
