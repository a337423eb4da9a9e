//! Access control lists and the lists of networks that they name.

use serde::{Deserialize, Serialize};

use super::super::forms::{self, Address};
use super::super::registry;

/// A list of networks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PrefixList {
    /// Words for people.
    pub description: Option<String>,
    /// Addresses are networks of one.
    #[serde(deserialize_with = "networks")]
    pub members: Vec<Address>,
}

fn networks<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<Address>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    let read = texts.iter().map(|text| forms::network(text));
    let read: Option<Vec<Address>> = read.collect();
    read.ok_or_else(|| serde::de::Error::custom("not a network"))
}

/// An access control list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Acl {
    /// Words for people.
    pub description: Option<String>,
    /// The first that matches decides.
    pub terms: Vec<Term>,
}

/// A term of an ACL.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Term {
    /// Words for people.
    pub description: Option<String>,
    /// The effect on a packet that matches.
    pub action: Action,
    /// The packets that match.
    #[serde(flatten)]
    pub fields: Fields,
}

/// The packets that a term of an ACL or a rule of a policy matches, by their headers' fields. Where
/// there is no value, any will do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Fields {
    /// The address family of packets that match.
    #[serde(skip_serializing_if = "super::is_usual")]
    pub family: Family,
    /// Network, address or name of a prefix list.
    pub source: Option<String>,
    /// Network, address or name of a prefix list.
    pub destination: Option<String>,
    /// IP protocol.
    pub protocol: Option<Value>,
    /// Port or ports.
    pub source_port: Option<Value>,
    /// Port or ports.
    pub destination_port: Option<Value>,
    /// ICMP type or types.
    pub icmp_type: Option<Value>,
    /// ICMP code or codes.
    pub icmp_code: Option<Value>,
}

impl Fields {
    /// The prefix lists that it names.
    pub fn lists(&self) -> impl Iterator<Item = &String> {
        let ends = [&self.source, &self.destination].into_iter().flatten();
        ends.filter(|text| *text != "any" && forms::network(text).is_none())
    }

    /// The number of its protocol; 0: any.
    pub(crate) fn protocol_number(&self) -> Result<u8, ()> {
        match &self.protocol {
            None => Ok(0),
            Some(Value::Number(number)) => u8::try_from(*number).map_err(|_| ()),
            Some(Value::Text(name)) if name == "any" => Ok(0),
            Some(Value::Text(name)) => registry::protocol(name).ok_or(()),
        }
    }
}

/// A number, or a name or range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A number.
    Number(u16),
    /// A name or range.
    Text(String),
}

impl Value {
    /// The lowest and highest port that it says, by number or by the name of a service.
    pub(crate) fn ports(&self) -> Option<(u64, u64)> {
        let name = match self {
            Value::Text(text) => registry::service(text).map(|port| (port.into(), port.into())),
            Value::Number(_) => None,
        };
        name.or_else(|| range(self, 65535))
    }

    /// The lowest and highest ICMP type or code that it says.
    pub(crate) fn icmp(&self) -> Option<(u64, u64)> {
        range(self, 255)
    }
}

/// The lowest and highest number of a value: `80`, `1024-`, `-1023`, `80-88`, `any`.
fn range(value: &Value, most: u64) -> Option<(u64, u64)> {
    let text = match value {
        Value::Number(number) => return Some((u64::from(*number), u64::from(*number))),
        Value::Text(text) if text == "any" => return Some((0, most)),
        Value::Text(text) => text,
    };
    let (low, high) = text.split_once('-')?;
    // What does not fit is too large in any case.
    let number = |text: &str, usual| match text {
        "" => Some(usual),
        digits if digits.bytes().all(|b| b.is_ascii_digit()) => {
            Some(digits.parse().unwrap_or(u64::MAX))
        }
        _ => None,
    };
    Some((number(low, 0)?, number(high, most)?))
}

/// The effect of a term.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// Let pass.
    #[default]
    #[serde(rename = "permit")]
    Permit,
    /// Drop.
    #[serde(rename = "deny")]
    Deny,
    /// Let pass, and what answers.
    #[serde(rename = "permit+reflect")]
    Reflect,
}

/// Packets of which protocol: either family of the router's, or both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// Both.
    #[default]
    Any,
}

impl Family {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Family::Ipv4 => "ipv4",
            Family::Ipv6 => "ipv6",
            Family::Any => "any",
        }
    }
}
