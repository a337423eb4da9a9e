//! What an operator wants, read from YAML: the `interfaces:` of the vppcfg dialect, and what stands
//! behind them.
//!
//! `schema` is the language as data; `check` turns it into the plain [`Config`] or says what is
//! wrong and where. The kernel stays the truth about what is there: this is only what is wanted.

mod check;
mod conflicts;
mod forms;
mod ports;
mod problem;
mod schema;

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde::Serialize;

use router::change::Mac;

pub use problem::{Problem, Problems};

/// A whole configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Config {
    /// The interfaces in the order of the file; those named only in `ports` come last.
    pub interfaces: Vec<Interface>,
    /// Who does the work.
    pub workers: Workers,
    /// Path of the network namespace in which the network devices and routes live; `None`: that of
    /// the process.
    pub netns: Option<PathBuf>,
    /// Where the router is asked.
    pub control: Control,
}

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Words for people.
    pub description: Option<String>,
    /// Ethernet address to set; `None`: as it is.
    #[serde(with = "crate::mac")]
    pub mac: Option<Mac>,
    /// Name of the kernel's device for it; `None`: as it is.
    pub lcp: Option<String>,
    /// Largest IP packet, 128 to 9216 bytes; `None`: as it is.
    pub mtu: Option<u16>,
    /// Its addresses, at most 6.
    pub addresses: Vec<Address>,
    /// Administratively up.
    pub up: bool,
    /// What carries its packets.
    pub port: Port,
}

/// An address with the prefix length of its link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Address {
    /// The address, host part kept.
    pub address: IpAddr,
    /// Prefix length, 0 to 32 or 128.
    pub length: u8,
}

impl Address {
    /// Whether the network of one contains that of the other.
    pub fn overlaps(&self, other: &Address) -> bool {
        let shorter = u32::from(self.length.min(other.length));
        match (self.address, other.address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                (a.to_bits() ^ b.to_bits())
                    .checked_shr(32 - shorter)
                    .unwrap_or(0)
                    == 0
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                (a.to_bits() ^ b.to_bits())
                    .checked_shr(128 - shorter)
                    .unwrap_or(0)
                    == 0
            }
            _ => false,
        }
    }

    /// Whether both are in the same network.
    pub fn same_network(&self, other: &Address) -> bool {
        self.length == other.length && self.overlaps(other)
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// What carries the packets of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Port {
    /// Which device or file.
    pub kind: PortKind,
    /// Queues to use, 1 to 256; `None`: all that there are.
    pub queues: Option<u16>,
    /// How AF_XDP is to move packets.
    pub mode: Mode,
}

/// The kinds of ports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortKind {
    /// A network device of the kernel, by name.
    Netdev(String),
    /// The network device of a PCI function, as in `0000:03:00.0`.
    Pci(String),
    /// Shared memory with another program.
    Memif(Memif),
    /// A tap device.
    Tap {
        /// Name to give it; `None`: that of the interface.
        name: Option<String>,
    },
    /// Packets from and to files.
    Pcap {
        /// File to replay.
        rx: Option<PathBuf>,
        /// File to write.
        tx: Option<PathBuf>,
    },
    /// Receives nothing and swallows what it is given.
    Null,
}

impl PortKind {
    /// Whether it is a network device of the kernel, which is then the host's end itself; all
    /// others have a host interface.
    pub fn is_device(&self) -> bool {
        matches!(self, PortKind::Netdev(_) | PortKind::Pci(_))
    }
}

/// A memif.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Memif {
    /// The socket by which both sides meet.
    pub socket: PathBuf,
    /// Number of the interface on that socket; both sides give the same.
    pub id: u32,
    /// Which side we are.
    pub role: Role,
    /// Ring pairs, 1 to [`Memif::RINGS`].
    pub rings: u16,
    /// Descriptors of a ring: a power of two, 64 to 16384.
    pub ring_size: u16,
    /// What the peer must know.
    pub secret: Option<Secret>,
}

impl Memif {
    /// Ring pairs at most.
    pub const RINGS: u16 = 256;
}

/// A shared secret, which is not shown.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(into = "&'static str")]
pub struct Secret(String);

impl Secret {
    /// Bytes of a memif's secret at most.
    pub const MEMIF: usize = 24;

    /// The secret itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<Secret> for &'static str {
    fn from(_: Secret) -> Self {
        "(hidden)"
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.clone().into())
    }
}

/// The side of a memif.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Listens on the socket.
    Server,
    /// Connects, and owns the memory.
    Client,
}

/// How AF_XDP moves packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The best that works: zero-copy, else copy, else generic.
    #[default]
    Auto,
    /// The driver puts packets where the router reads them.
    ZeroCopy,
    /// The driver runs the program, the kernel copies.
    Copy,
    /// The kernel runs the program in its network stack.
    Generic,
}

/// Who does the work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Workers {
    /// How many; `None`: as many as `cpus`, or one.
    pub count: Option<u16>,
    /// The processors to pin them to, in order; empty: chosen by the router.
    pub cpus: Vec<u16>,
}

/// Where the router is asked, and by whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Control {
    /// The Unix socket.
    pub socket: PathBuf,
    /// Group that may ask and change; root always may.
    pub group: Option<String>,
    /// Group that may only ask.
    pub show_group: Option<String>,
}

impl Default for Control {
    fn default() -> Self {
        Control {
            socket: "/run/parshall/cli.sock".into(),
            group: Some("parshall".into()),
            show_group: None,
        }
    }
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or [`Config::parse`] finds something wrong.
    pub fn load(path: &Path) -> Result<Config, Problems> {
        let name = path.display().to_string();
        match fs::read(path).map(String::from_utf8) {
            Ok(Ok(text)) => Self::parse(&name, &text),
            Ok(Err(_)) => Err(Problems::unreadable(&name, "it is not UTF-8 text")),
            Err(error) => Err(Problems::unreadable(&name, &error.to_string())),
        }
    }

    /// Reads a text; `name` is what messages call it.
    ///
    /// # Errors
    /// All that is wrong. If the text is not of the language at all, only the first place that is
    /// not.
    pub fn parse(name: &str, text: &str) -> Result<Config, Problems> {
        let (config, problems) = match schema::read(text) {
            Ok(document) => check::check(document),
            Err(problem) => (Config::default(), vec![problem]),
        };
        if problems.is_empty() {
            Ok(config)
        } else {
            Err(Problems::new(name, text, problems))
        }
    }

    /// The interface of a name.
    pub fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces
            .iter()
            .find(|interface| interface.name == name)
    }
}

#[cfg(test)]
mod tests;
