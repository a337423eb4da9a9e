//! Translation of addresses.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::super::forms;
use super::acl::{Family, Fields, Value};

/// The rules of translation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Nat {
    /// What sources become; the first that matches decides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source: Vec<Source>,
    /// What destinations become; the first that matches decides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub destination: Vec<Destination>,
    /// Addresses that stand for others.
    #[serde(rename = "static", skip_serializing_if = "Vec::is_empty")]
    pub fixed: Vec<Static>,
}

impl Nat {
    /// What its rules match.
    pub fn fields(&self) -> impl Iterator<Item = &Fields> {
        let source = self.source.iter().map(|rule| &rule.fields);
        source.chain(self.destination.iter().map(|rule| &rule.fields))
    }

    /// The same for packets.
    pub fn without_descriptions(&self) -> Nat {
        let mut nat = self.clone();
        nat.source
            .iter_mut()
            .for_each(|rule| rule.description = None);
        nat.destination
            .iter_mut()
            .for_each(|rule| rule.description = None);
        nat.fixed
            .iter_mut()
            .for_each(|rule| rule.description = None);
        nat
    }
}

/// A rule for sources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Source {
    /// Words for people.
    pub description: Option<String>,
    /// The interface that packets leave by; `None`: any.
    pub interface: Option<String>,
    /// The packets that match.
    #[serde(flatten)]
    pub fields: Fields,
    /// As [`To::parse`] reads it.
    pub to: String,
    /// Ports to choose from; `None`: [`Source::ports`] says which.
    pub ports: Option<Value>,
    /// Ports that each source has for itself.
    pub ports_per_host: Option<u16>,
}

/// What a source becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum To {
    /// The address of the interface that the packet leaves by.
    Interface,
    /// It stays.
    Same,
    /// One of these.
    Addresses(RangeInclusive<Ipv4Addr>),
}

impl To {
    /// Reads `interface`, `none`, an address, a network, or two addresses with `-` between.
    pub fn parse(text: &str) -> Option<To> {
        match text {
            "interface" => return Some(To::Interface),
            "none" => return Some(To::Same),
            _ => {}
        }
        if let Some((first, last)) = text.split_once('-') {
            let range = first.parse().ok()?..=last.parse().ok()?;
            return (!range.is_empty()).then_some(To::Addresses(range));
        }
        let network = match text.contains('/') {
            true => forms::prefix(text),
            false => forms::network(text),
        }?;
        let IpAddr::V4(first) = network.address else {
            return None;
        };
        Some(To::Addresses(range(first, network.length)))
    }
}

impl Source {
    /// The ports to choose from: for an address of the host's own those that its kernel does not
    /// take for itself (`ip_local_port_range`, whose usual value is 32768 to 60999), and that few
    /// servers have.
    pub fn ports(&self) -> Option<(u64, u64)> {
        match &self.ports {
            Some(ports) => ports.ports(),
            None if To::parse(&self.to) == Some(To::Interface) => Some((10000, 32767)),
            None => Some((1024, 65535)),
        }
    }
}

/// A rule for destinations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Destination {
    /// Words for people.
    pub description: Option<String>,
    /// The interface that packets come in by; `None`: any.
    pub interface: Option<String>,
    /// The packets that match. Without a destination: those to an address of the interface.
    #[serde(flatten)]
    pub fields: Fields,
    /// The new destination.
    pub to: Option<IpAddr>,
    /// The new port; of several, the first one's.
    pub to_port: Option<u16>,
}

/// An address, or a network, that stands for another one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Static {
    /// Words for people.
    pub description: Option<String>,
    /// The interface that packets leave by whose source becomes the outer address; `None`: any.
    pub interface: Option<String>,
    /// As it is seen outside: an address or a network.
    pub outside: String,
    /// What it stands for, as long.
    pub inside: String,
}

impl Static {
    /// First addresses of both, and the length of their prefixes; `None`: they are not two IPv4
    /// networks of one size.
    pub fn networks(&self) -> Option<(Ipv4Addr, Ipv4Addr, u8)> {
        let [outside, inside] = [&self.outside, &self.inside].map(|text| {
            let network = forms::network(text)?;
            match network.address {
                IpAddr::V4(address) => Some((address, network.length)),
                IpAddr::V6(_) => None,
            }
        });
        let ((outside, length), (inside, other)) = (outside?, inside?);
        (length == other).then_some((outside, inside, length))
    }
}

/// The addresses of a network.
pub fn range(first: Ipv4Addr, length: u8) -> RangeInclusive<Ipv4Addr> {
    let host = u32::MAX.checked_shr(length.into()).unwrap_or(0);
    first..=Ipv4Addr::from_bits(first.to_bits() | host)
}

/// The fields of a rule, which are of IPv4 whatever they say.
pub fn of_ip4(fields: &Fields) -> Fields {
    Fields {
        family: Family::Ipv4,
        ..fields.clone()
    }
}
