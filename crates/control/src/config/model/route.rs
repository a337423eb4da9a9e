//! Static routes and VRFs.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::super::forms::Address;
use crate::netlink::usual_metric;

/// A static route. The prefix is `None` only in a configuration that is refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Route {
    /// Words for people.
    pub description: Option<String>,
    /// The destinations.
    pub prefix: Option<Address>,
    /// Next hops.
    #[serde(deserialize_with = "hops")]
    pub via: Vec<Hop>,
    /// Drop the packets.
    #[serde(skip_serializing_if = "super::is_usual")]
    pub blackhole: bool,
    /// VRF whose table it is in.
    pub vrf: Option<String>,
    /// Table that it is in; `None`: the VRF's, or the main one.
    pub table: Option<u32>,
    /// Of equal prefixes the lowest is used; `None`: the kernel's choice.
    pub metric: Option<u32>,
}

impl Route {
    /// The one form of its metric, which is part of what it is: `None` also where the file has the
    /// metric that the kernel chooses.
    pub fn metric(&self) -> Option<u32> {
        let usual = self.prefix.map(|prefix| usual_metric(prefix.address));
        self.metric.filter(|metric| Some(*metric) != usual)
    }
}

/// A next hop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hop {
    /// The neighbor; `None`: everyone is on the interface's link.
    pub address: Option<IpAddr>,
    /// Its interface; `None`: the link whose addresses contain it.
    pub interface: Option<String>,
    /// Its share of the packets, 1 to 256.
    #[serde(skip_serializing_if = "Hop::weight")]
    pub weight: u16,
}

impl Default for Hop {
    fn default() -> Self {
        Hop {
            address: None,
            interface: None,
            weight: 1,
        }
    }
}

usual!(Hop: weight: u16);

/// One address, or several next hops.
fn hops<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<Hop>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum One {
        Address(IpAddr),
        Hop(Hop),
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Via {
        // First, since a list would do for a hop, too.
        Several(Vec<One>),
        One(One),
    }
    let ones = match Via::deserialize(from)? {
        Via::One(one) => vec![one],
        Via::Several(several) => several,
    };
    let hop = |one| match one {
        One::Hop(hop) => hop,
        One::Address(address) => Hop {
            address: Some(address),
            ..Hop::default()
        },
    };
    Ok(ones.into_iter().map(hop).collect())
}

/// A routing table with interfaces of its own. The table is 0 only in a configuration that is
/// refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Vrf {
    /// Words for people.
    pub description: Option<String>,
    /// Number of the table.
    pub table: u32,
}
