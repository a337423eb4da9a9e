//! Access control lists and the lists of networks that they name.

use serde::{Deserialize, Serialize};

use super::super::forms::{self, Address};

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

/// A term of an ACL. Where there is no value, any will do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Term {
    /// Words for people.
    pub description: Option<String>,
    /// The effect on a packet that matches.
    pub action: Action,
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

impl Term {
    /// Returns true if the text of a source or destination is the name of a prefix list.
    pub fn is_list(text: &str) -> bool {
        text != "any" && forms::network(text).is_none()
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
