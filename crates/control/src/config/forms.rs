//! Forms of values: Ethernet addresses, addresses and prefixes, names with a number.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use router::change::Mac;
use router::sflow;

/// An address with the length of its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// The address, host part kept.
    pub address: IpAddr,
    /// Prefix length, 0 to 32 or 128.
    pub length: u8,
}

impl Address {
    /// Bits of an address of its family.
    fn width(address: IpAddr) -> u8 {
        if address.is_ipv4() { 32 } else { 128 }
    }

    /// The network that the address is in.
    pub fn network(&self) -> Address {
        let host = Self::width(self.address) - self.length;
        let address = match self.address {
            IpAddr::V4(v4) => {
                let bits = v4.to_bits().checked_shr(host.into()).unwrap_or(0);
                Ipv4Addr::from_bits(bits.checked_shl(host.into()).unwrap_or(0)).into()
            }
            IpAddr::V6(v6) => {
                let bits = v6.to_bits().checked_shr(host.into()).unwrap_or(0);
                Ipv6Addr::from_bits(bits.checked_shl(host.into()).unwrap_or(0)).into()
            }
        };
        Address { address, ..*self }
    }

    /// The address alone: its network is the host.
    pub fn host(&self) -> Address {
        let length = Self::width(self.address);
        Address { length, ..*self }
    }

    /// Returns true if its network contains an address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let other = Address {
            address,
            length: self.length,
        };
        self.address.is_ipv4() == address.is_ipv4() && self.network() == other.network()
    }

    /// Returns true if the network of one contains that of the other.
    pub fn overlaps(&self, other: &Address) -> bool {
        if self.length < other.length {
            self.contains(other.address)
        } else {
            other.contains(self.address)
        }
    }

    /// Returns true if it is link-local (RFC 3927, RFC 4291 section 2.5.6): every link has these
    /// for itself.
    pub fn is_link_local(&self) -> bool {
        match self.address {
            IpAddr::V4(v4) => v4.is_link_local(),
            IpAddr::V6(v6) => v6.is_unicast_link_local(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// The error of a text that does not have the form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is no address of this form")
    }
}

impl std::error::Error for Malformed {}

impl FromStr for Address {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let (host, length) = text.split_once('/').ok_or(Malformed)?;
        let address: IpAddr = host.parse().map_err(|_| Malformed)?;
        let digits = !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit());
        let length: Option<u8> = digits.then(|| length.parse().ok()).flatten();
        let length = length.filter(|length| *length <= Self::width(address));
        Ok(Address {
            address,
            length: length.ok_or(Malformed)?,
        })
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The place that samples are sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Collector(pub SocketAddr);

impl fmt::Display for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.port() {
            sflow::PORT => self.0.ip().fmt(f),
            _ => self.0.fmt(f),
        }
    }
}

impl FromStr for Collector {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let alone = |address: IpAddr| SocketAddr::new(address, sflow::PORT);
        let place = text.parse().map(alone).or_else(|_| text.parse());
        // A zone (`fe80::1%2`) would be lost.
        let place = place.ok().filter(|place: &SocketAddr| {
            place.port() != 0 && !matches!(place, SocketAddr::V6(v6) if v6.scope_id() != 0)
        });
        place.map(Collector).ok_or(Malformed)
    }
}

impl Serialize for Collector {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Collector {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A prefix, which has no host bits.
pub(super) fn prefix(text: &str) -> Option<Address> {
    let prefix: Address = text.parse().ok()?;
    (prefix.network() == prefix).then_some(prefix)
}

/// An address, or a prefix with a length or an IPv4 netmask; host bits do not matter.
pub(super) fn network(text: &str) -> Option<Address> {
    if let Ok(address) = text.parse::<IpAddr>() {
        let length = Address::width(address);
        return Some(Address { address, length });
    }
    if let Ok(prefix) = text.parse::<Address>() {
        return Some(prefix.network());
    }
    let (address, mask) = text.split_once('/')?;
    let mask = mask.parse::<Ipv4Addr>().ok()?.to_bits();
    let length = mask.leading_ones();
    let contiguous = mask.checked_shl(length).unwrap_or(0) == 0;
    let address = address.parse::<Ipv4Addr>().ok().filter(|_| contiguous)?;
    let length = u8::try_from(length).ok()?;
    let address = address.into();
    Some(Address { address, length }.network())
}

/// A namespace is named as under /run/netns, or by its path.
pub fn netns(name: &str) -> PathBuf {
    if name.contains('/') {
        name.into()
    } else {
        PathBuf::from("/run/netns").join(name)
    }
}

/// Six groups of two hex digits or three of four, separated by `:`, `-` or nothing.
pub(super) fn mac(text: &str) -> Option<Mac> {
    let separator = text.chars().find(|c| !c.is_ascii_hexdigit());
    let digits = match separator {
        None => text.to_owned(),
        Some(separator @ (':' | '-')) => {
            let groups: Vec<&str> = text.split(separator).collect();
            let even = |count, digits| {
                groups.len() == count && groups.iter().all(|group| group.len() == digits)
            };
            (even(6, 2) || even(3, 4)).then(|| groups.concat())?
        }
        Some(_) => return None,
    };
    if digits.len() != 12 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let bits = u64::from_str_radix(&digits, 16).ok()?.to_be_bytes();
    Mac::try_from(&bits[2..]).ok()
}

/// The number at the end of a name that begins so, `loop7`; `None` if it has none or one that is
/// too large for any purpose.
pub(super) fn instance(name: &str, begin: &str) -> Option<u64> {
    name.strip_prefix(begin)?.parse().ok()
}

/// Characters of a network device's name at most: IFNAMSIZ is 16, with a zero at the end.
const DEVICE_NAME: usize = 15;

/// Name of the device that is made for an interface where no `lcp` gives it another: the first 15
/// characters of the interface's, with slashes and blanks replaced.
pub fn device_name(interface: &str) -> String {
    let sub = interface.rsplit_once('.');
    let sub = sub.filter(|(_, id)| id.len() <= 10 && id.bytes().all(|byte| byte.is_ascii_digit()));
    match sub {
        // Its number stays, however long the name is.
        Some((parent, id)) => made_of(parent, &format!(".{id}")),
        None => made_of(interface, ""),
    }
}

/// Name of the tap that is the port of an interface and is given none: the interface's, cut to the
/// room that there is before `-port`.
pub(super) fn tap_name(interface: &str) -> String {
    made_of(interface, "-port")
}

/// Name of the kernel's device that has the settings of a TAP's interface: `tap0-router` of `tap0`.
/// The host's end may have that name itself.
pub(crate) fn router_end(interface: &str) -> String {
    made_of(interface, "-router")
}

fn made_of(interface: &str, end: &str) -> String {
    let allowed = |c: char| match c {
        '/' => '-',
        c if c.is_whitespace() => '-',
        c => c,
    };
    let begin = interface.chars().take(DEVICE_NAME - end.len());
    begin.map(allowed).chain(end.chars()).collect()
}

/// Returns true if Linux would take it as the name of a network device (IFNAMSIZ is 16;
/// `dev_valid_name`).
pub(super) fn is_device_name(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_graphic() && c != '/' && c != ':';
    !name.is_empty()
        && name.len() <= DEVICE_NAME
        && name.chars().all(legal)
        && name != "."
        && name != ".."
}
