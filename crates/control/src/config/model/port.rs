//! Ports, which carry the packets of interfaces.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A port as the file has it: it names exactly one device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Port {
    /// A network device of the kernel, by name.
    pub netdev: Option<String>,
    /// The network device of a PCI function, as in `0000:03:00.0`.
    pub pci: Option<String>,
    /// Shared memory with another program.
    pub memif: Option<Memif>,
    /// A tap device.
    pub tap: Option<TapPort>,
    /// Packets from and to files.
    pub pcap: Option<PcapPort>,
    /// Receives nothing and swallows what it is given.
    #[serde(rename = "null")]
    pub nothing: Option<Nothing>,
    /// Queues to use, 1 to 256; `None`: all that there are.
    pub queues: Option<u16>,
    /// The way in which AF_XDP moves packets.
    #[serde(skip_serializing_if = "super::is_usual")]
    pub mode: Mode,
}

/// `{}`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// A tap device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TapPort {
    /// Name to give it; `None`: that of the interface.
    pub name: Option<String>,
}

/// Capture files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PcapPort {
    /// File to replay.
    pub rx: Option<PathBuf>,
    /// File to write.
    pub tx: Option<PathBuf>,
}

impl Port {
    /// The devices that it names.
    pub fn kinds(&self) -> Vec<PortKind> {
        let pcap = |files: PcapPort| PortKind::Pcap {
            rx: files.rx,
            tx: files.tx,
        };
        let pci = self.pci.as_ref().map(|pci| pci.to_ascii_lowercase());
        let kinds = [
            self.netdev.clone().map(PortKind::Netdev),
            pci.map(PortKind::Pci),
            self.memif.clone().map(PortKind::Memif),
            self.tap.clone().map(|tap| PortKind::Tap { name: tap.name }),
            self.pcap.clone().map(pcap),
            self.nothing.map(|_| PortKind::Null),
        ];
        kinds.into_iter().flatten().collect()
    }
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
    /// Returns true if it is a network device of the kernel, which is then the host's end itself;
    /// all others have a host interface.
    pub fn is_device(&self) -> bool {
        matches!(self, PortKind::Netdev(_) | PortKind::Pci(_))
    }
}

/// A memif. The socket is empty only in a configuration that is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Memif {
    /// The socket by which both sides meet.
    pub socket: PathBuf,
    /// Number of the interface on that socket; both sides give the same.
    #[serde(skip_serializing_if = "super::is_usual")]
    pub id: u32,
    /// The side that we are.
    #[serde(skip_serializing_if = "super::is_usual")]
    pub role: Role,
    /// Ring pairs, 1 to [`Memif::RINGS`].
    #[serde(skip_serializing_if = "Memif::rings")]
    pub rings: u16,
    /// Descriptors of a ring: a power of two, 64 to 16384.
    #[serde(skip_serializing_if = "Memif::ring_size")]
    pub ring_size: u16,
    /// The secret that the peer must know.
    pub secret: Option<Secret>,
    /// The packets that it carries.
    #[serde(skip_serializing_if = "super::is_usual")]
    pub mode: MemifMode,
}

impl Memif {
    /// Ring pairs at most, as many as `io::memif` opens.
    pub const RINGS: u16 = 256;
}

impl Default for Memif {
    fn default() -> Self {
        Memif {
            socket: PathBuf::new(),
            id: 0,
            role: Role::Client,
            rings: 1,
            ring_size: 1024,
            secret: None,
            mode: MemifMode::Ethernet,
        }
    }
}

usual!(Memif: rings: u16, ring_size: u16);

/// The packets that a memif carries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemifMode {
    /// Ethernet packets.
    #[default]
    Ethernet,
}

/// A shared secret, which is not shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "&'static str", from = "String")]
pub struct Secret(String);

impl Secret {
    /// Bytes of a memif's secret at most: the size of its field in the protocol.
    pub const MEMIF: usize = 24;

    /// The secret itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(secret: String) -> Self {
        Secret(secret)
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Listens on the socket.
    Server,
    /// Connects, and owns the memory.
    #[default]
    Client,
}

/// The way in which AF_XDP moves packets. The ports have the same modes once more: a configuration
/// is read and checked without them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
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
