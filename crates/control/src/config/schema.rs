//! The language: every section, field and type. Unknown fields are errors, and so is a field
//! without a value; ranges, and what depends on other parts of the file, are checked afterwards.
//!
//! `interfaces` is the vppcfg dialect. Values are read as YAML 1.1 has them: `yes` and `on` are
//! booleans, `0x5dc`, `02734` and `1_500` integers. A key that is there twice is an error.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_saphyr::{Location, Spanned};

use super::problem::Problem;
use super::{Mode, Role};

/// A field with its place in the file, if it is there.
#[derive(Debug)]
pub(super) struct Given<T>(pub Option<Spanned<T>>);

/// A map in the order of the file.
#[derive(Debug)]
pub(super) struct Map<T>(pub Vec<(Spanned<String>, T)>);

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Document {
    pub interfaces: Given<Map<Interface>>,
    pub ports: Given<Map<Port>>,
    pub workers: Given<Workers>,
    pub netns: Given<String>,
    pub control: Given<Control>,
    pub bondethernets: Given<IgnoredAny>,
    pub loopbacks: Given<IgnoredAny>,
    pub bridgedomains: Given<IgnoredAny>,
    pub vxlan_tunnels: Given<IgnoredAny>,
    pub taps: Given<IgnoredAny>,
    pub prefixlists: Given<IgnoredAny>,
    pub acls: Given<IgnoredAny>,
    pub sflow: Given<IgnoredAny>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Interface {
    pub description: Given<Option<String>>,
    pub mac: Given<String>,
    pub lcp: Given<String>,
    pub mtu: Given<i64>,
    pub addresses: Given<Vec<Spanned<String>>>,
    pub state: Given<State>,
    pub device_type: Given<DeviceType>,
    pub unnumbered: Given<String>,
    pub l2xc: Given<String>,
    pub mpls: Given<bool>,
    pub sflow: Given<bool>,
    pub sub_interfaces: Given<Map<IgnoredAny>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum State {
    Up,
    Down,
}

/// Only of use in planning for a machine that is not there.
#[derive(Debug, Clone, Copy, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum DeviceType {
    Dpdk,
}

/// Read by hand, for the sake of its field `null`.
#[derive(Debug, Default)]
pub(super) struct Port {
    pub netdev: Given<String>,
    pub pci: Given<String>,
    pub memif: Given<Memif>,
    pub tap: Given<Tap>,
    pub pcap: Given<Pcap>,
    pub null: Given<Empty>,
    pub queues: Given<i64>,
    pub mode: Given<Mode>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Memif {
    pub socket: Given<String>,
    pub id: Given<i64>,
    pub role: Given<Role>,
    pub mode: Given<MemifMode>,
    pub rings: Given<i64>,
    pub ring_size: Given<i64>,
    pub secret: Given<String>,
}

#[derive(Debug, Clone, Copy, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum MemifMode {
    Ethernet,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Tap {
    pub name: Given<String>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Pcap {
    pub rx: Given<String>,
    pub tx: Given<String>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Empty {}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Workers {
    pub count: Given<i64>,
    pub cpus: Given<Vec<Spanned<i64>>>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Control {
    pub socket: Given<String>,
    pub group: Given<String>,
    pub show_group: Given<String>,
}

/// Reads a document; an empty text is a document that leaves everything out.
pub(super) fn read(text: &str) -> Result<Document, Problem> {
    let options = serde_saphyr::options! { legacy_octal_numbers: true, with_snippet: false };
    let document: Result<Option<Document>, _> = serde_saphyr::from_str_with_options(text, options);
    document
        .map(Option::unwrap_or_default)
        .map_err(|error| problem(&error))
}

fn problem(error: &serde_saphyr::Error) -> Problem {
    let at = error.location().unwrap_or(Location::UNKNOWN);
    let text = error.to_string();
    // The place is reported separately.
    let message = text
        .find(" at line ")
        .map_or(text.as_str(), |end| &text[..end]);
    let message = message.trim_end_matches([':', ',', ' ']);
    let plain = |what: &str| Problem::new(at, what);
    match message {
        "invalid i64" => plain("this is not a whole number").help("write it in digits"),
        "expected mapping start" => {
            plain("a map is expected here").help("write it as `key: value`, indented")
        }
        "expected sequence start" => {
            plain("a list is expected here").help("write it as `[ first, second ]`")
        }
        _ if message.starts_with("duplicate mapping key") => {
            let key = message.split(['(', ',']).next().unwrap_or(message);
            plain(key).help("remove one of the two, or merge what is in them")
        }
        _ if message.contains("null into string") => {
            plain("a value is missing here").help("write one, or remove the field")
        }
        _ if message.contains("unknown field") => {
            plain(message).help("check the spelling and the indentation")
        }
        _ => plain(message),
    }
}

/// The key of a port's field. `null`, unquoted, is nothing at all to YAML.
struct PortKey(String);

impl<'de> Deserialize<'de> for PortKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer)
            .map(|key: Option<String>| PortKey(key.unwrap_or_else(|| "null".into())))
    }
}

impl<'de> Deserialize<'de> for Port {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Port;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a port")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Port, A::Error> {
                const NAMES: &[&str] = &[
                    "netdev", "pci", "memif", "tap", "pcap", "null", "queues", "mode",
                ];
                let mut port = Port::default();
                while let Some(PortKey(key)) = map.next_key()? {
                    match key.as_str() {
                        "netdev" => port.netdev = map.next_value()?,
                        "pci" => port.pci = map.next_value()?,
                        "memif" => port.memif = map.next_value()?,
                        "tap" => port.tap = map.next_value()?,
                        "pcap" => port.pcap = map.next_value()?,
                        "null" => port.null = map.next_value()?,
                        "queues" => port.queues = map.next_value()?,
                        "mode" => port.mode = map.next_value()?,
                        _ => return Err(Error::unknown_field(&key, NAMES)),
                    }
                }
                Ok(port)
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

impl<T> Default for Given<T> {
    fn default() -> Self {
        Given(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Given<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Spanned::deserialize(deserializer).map(|value| Given(Some(value)))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Map<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = Map<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Map<T>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Map(entries))
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}
