//! The setup that a result describes: the device, its ports, the load, and the processors used.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A known word, or any other: the user's own name for something, or nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Word<T> {
    /// A known word.
    Ours(T),
    /// Any other word; empty if nothing is known.
    Other(String),
}

impl<T> Default for Word<T> {
    fn default() -> Self {
        Self::Other(String::new())
    }
}

impl<T> From<T> for Word<T> {
    fn from(word: T) -> Self {
        Self::Ours(word)
    }
}

impl<T: fmt::Display> fmt::Display for Word<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours(word) => word.fmt(f),
            Self::Other(word) => word.fmt(f),
        }
    }
}

/// A device under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dut {
    /// Forwarding by the Linux kernel.
    Kernel,
    /// `parshall run`.
    Parshall,
}

impl fmt::Display for Dut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Kind of the ports between generator and device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Io {
    /// Pairs of virtual Ethernet links.
    Veth,
    /// Shared memory over a unix socket.
    Memif,
}

impl fmt::Display for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The part of the system that forwards the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lane {
    /// The Linux kernel.
    Kernel,
    /// The router's workers.
    Userspace,
    /// The router's XDP program, in the kernel.
    Xdp,
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Size of the frames, with frame check sequence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Size {
    /// All frames have this many bytes.
    Bytes(u32),
    /// A mix of sizes.
    #[default]
    Imix,
}

impl Size {
    /// The size with its unit, as in `64 B`.
    pub(crate) fn in_words(self) -> String {
        match self {
            Self::Bytes(bytes) => format!("{bytes} B"),
            Self::Imix => "imix".to_owned(),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Imix => f.pad("imix"),
        }
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "imix" => Ok(Self::Imix),
            _ => text
                .parse()
                .map(Self::Bytes)
                .map_err(|_| format!("size `{text}`: expected bytes or imix")),
        }
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// Directions of the load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From the first port to the second.
    #[default]
    OneWay,
    /// From each port to the other; rates are totals of both.
    BothWays,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneWay => "one way",
            Self::BothWays => "both ways",
        })
    }
}

/// Number of flows of the load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flows {
    /// Addresses vary from packet to packet.
    #[default]
    Many,
    /// Every packet has the same addresses and ports.
    One,
}

/// Version of IP, as results name it: whoever reads them needs no router, which has its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// IPv4.
    #[default]
    Ip4,
    /// IPv6.
    Ip6,
}

/// What a device does with the packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Forwarding {
    /// It routes them.
    #[default]
    Routed,
    /// It routes them from one VLAN to another.
    Vlan,
    /// It is a bridge.
    Bridged,
}

impl Forwarding {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Routed, Self::Vlan, Self::Bridged];

    fn is_routed(&self) -> bool {
        *self == Self::Routed
    }

    /// As a row of a table ends, as in `, bridged`; empty for what is usual.
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::Routed => "",
            Self::Vlan => ", VLAN",
            Self::Bridged => ", bridged",
        }
    }
}

/// The traffic sent through a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Frame size with frame check sequence.
    pub size: Size,
    /// Number of flows.
    pub flows: Flows,
    /// One way or both ways.
    pub direction: Direction,
    /// Version of IP.
    #[serde(default)]
    pub family: Family,
    /// Routes of the device that destinations are spread over at random; 0: they are behind one
    /// route a side.
    #[serde(default)]
    pub routes: u32,
    /// What the device does with it; not written where it routes.
    #[serde(default, skip_serializing_if = "Forwarding::is_routed")]
    pub forwarding: Forwarding,
}

impl Load {
    /// Sizes from here on are not called small.
    const SMALL: u32 = 128;

    /// The frames in words, as in `IPv6 66 B`.
    pub(crate) fn frames(&self) -> String {
        let family = match self.family {
            Family::Ip4 => "",
            Family::Ip6 => "IPv6 ",
        };
        format!("{family}{}", self.size.in_words())
    }

    /// The routes in words, as in `, 250 k routes`; empty if none were added.
    pub(crate) fn spread(&self) -> String {
        match self.routes {
            0 => String::new(),
            many if many % 1000 == 0 => format!(", {} k routes", many / 1000),
            some => format!(", {some} routes"),
        }
    }
}

impl fmt::Display for Load {
    /// As in the table, with the number of flows where it matters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flows = match (self.flows, self.size) {
            (Flows::One, _) => " one flow",
            (Flows::Many, Size::Bytes(..Self::SMALL)) if self.routes == 0 => " many flows",
            (Flows::Many, _) => "",
        };
        let (frames, routes) = (self.frames(), self.spread());
        let forwarding = self.forwarding.in_words();
        write!(f, "{}, {frames}{flows}{routes}{forwarding}", self.direction)
    }
}

/// Distance of the two processors, by the round trip of a cache line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// They share a cache.
    Near,
    /// They share none, and whatever crosses from one to the other is several times slower.
    Far,
    /// The probes before and after the run disagree. Do not compare this run with others.
    Flipped,
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The processors that generator and device ran on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// Generator, device and receiver on one processor.
    Shared,
    /// The device on a processor of its own.
    Apart,
}
