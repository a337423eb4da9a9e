//! Facts about a device's hardware, by ethtool netlink (linux/ethtool_netlink.h) and sysfs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::socket::Socket;
use super::wire::{Attributes, Builder, Message, text, u16_at, u32_at};
use crate::kernel::Link;

/// What `show hardware` says about a device beside what every device has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Hardware {
    /// Driver (`mlx5_core`, `veth` ...).
    pub driver: Option<String>,
    /// PCI address, as in `0000:03:00.0`.
    pub pci: Option<String>,
    /// Link speed in Mbit/s, if the link is up and the driver tells.
    pub speed: Option<u32>,
    /// Full duplex.
    pub full_duplex: Option<bool>,
    /// Receive ring: descriptors now and at most.
    pub rx_ring: Option<(u32, u32)>,
    /// Transmit ring: descriptors now and at most.
    pub tx_ring: Option<(u32, u32)>,
    /// Receive queues now and at most.
    pub rx_queues: Option<(u32, u32)>,
    /// Transmit queues now and at most.
    pub tx_queues: Option<(u32, u32)>,
    /// Offloads that are on, by the kernel's names.
    pub offloads: Vec<String>,
}

const HEADER: u16 = 1;
const LINKMODES_GET: u8 = 4;
const FEATURES_GET: u8 = 11;
const RINGS_GET: u8 = 15;
const CHANNELS_GET: u8 = 17;

/// Asks about the devices of one network namespace.
#[derive(Debug)]
pub struct Ethtool {
    socket: Socket,
    family: u16,
}

impl Ethtool {
    /// Opens a socket in a namespace (`None`: our own).
    ///
    /// # Errors
    /// The namespace cannot be entered; the kernel has no ethtool netlink (before 5.6).
    pub fn open(netns: Option<&Path>) -> io::Result<Self> {
        let mut socket = Socket::generic(netns)?;
        let mut family = None;
        // CTRL_CMD_GETFAMILY of nlctrl (16): CTRL_ATTR_FAMILY_NAME (2) asks, CTRL_ATTR_FAMILY_ID (1) answers.
        let request = Builder::new(16, libc::NLM_F_ACK as u16, &[3, 1, 0, 0]).string(2, "ethtool");
        socket.ask(request, |message| {
            family = Attributes::behind(message.payload, 4)
                .find(1)
                .and_then(|id| u16_at(id, 0));
        })?;
        let family = family.ok_or(io::ErrorKind::Unsupported)?;
        Ok(Ethtool { socket, family })
    }

    /// All that can be found out about a device; what it does not support is left out.
    pub fn hardware(&mut self, link: &Link) -> Hardware {
        let mut facts = Hardware {
            driver: driver(link),
            pci: pci_address(link),
            ..Hardware::default()
        };
        self.get(link, LINKMODES_GET, |attributes| {
            let known = |&speed: &u32| speed != u32::MAX && speed != 0;
            facts.speed = number(&attributes, 5).filter(known);
            facts.full_duplex = attributes
                .clone()
                .find(6)
                .and_then(|d| d.first().copied())
                .filter(|&d| d < 2)
                .map(|d| d == 1);
        });
        self.get(link, RINGS_GET, |attributes| {
            facts.rx_ring = pair(&attributes, 6, 2);
            facts.tx_ring = pair(&attributes, 9, 5);
        });
        self.get(link, CHANNELS_GET, |attributes| {
            let combined = pair(&attributes, 9, 5).unwrap_or((0, 0));
            let with = |(now, most): (u32, u32)| (now + combined.0, most.max(combined.1));
            let count = |now, most| {
                Some(with(pair(&attributes, now, most).unwrap_or((0, 0)))).filter(|q| q.0 > 0)
            };
            facts.rx_queues = count(6, 2);
            facts.tx_queues = count(7, 3);
        });
        self.get(link, FEATURES_GET, |attributes| {
            facts.offloads = attributes.find(4).map(bit_names).unwrap_or_default();
        });
        facts
    }

    fn get(&mut self, link: &Link, command: u8, mut each: impl FnMut(Attributes<'_>)) {
        let request = Builder::new(self.family, libc::NLM_F_ACK as u16, &[command, 1, 0, 0])
            .nested(HEADER, |header| header.number(1, link.index));
        // A device that does not support a command says so: the fact is then simply not known.
        let _ = self.socket.ask(request, |message: &Message<'_>| {
            each(Attributes::behind(message.payload, 4))
        });
    }
}

fn number(attributes: &Attributes<'_>, kind: u16) -> Option<u32> {
    attributes
        .clone()
        .find(kind)
        .and_then(|value| u32_at(value, 0))
}

fn pair(attributes: &Attributes<'_>, now: u16, most: u16) -> Option<(u32, u32)> {
    Some((
        number(attributes, now)?,
        number(attributes, most).unwrap_or(0),
    ))
}

/// The names of a verbose bit set: ETHTOOL_A_BITSET_BITS (3) of ETHTOOL_A_BITSET_BITS_BIT (1) with its name (2).
fn bit_names(bitset: &[u8]) -> Vec<String> {
    let bits = Attributes(bitset).find(3).unwrap_or_default();
    let bits = Attributes(bits).filter(|(kind, _)| *kind == 1);
    bits.filter_map(|(_, bit)| Attributes(bit).find(2).map(text))
        .collect()
}

fn bus_directory(link: &Link) -> Option<PathBuf> {
    let (bus, address) = (link.bus.as_deref()?, link.bus_address.as_deref()?);
    fs::canonicalize(
        Path::new("/sys/bus")
            .join(bus)
            .join("devices")
            .join(address),
    )
    .ok()
}

fn driver(link: &Link) -> Option<String> {
    let by_bus = bus_directory(link)
        .and_then(|directory| file_name(&fs::read_link(directory.join("driver")).ok()?));
    by_bus.or_else(|| link.kind.clone())
}

/// The PCI function that the device is on, itself or (virtio) by its parent.
pub(crate) fn pci_address(link: &Link) -> Option<String> {
    let directory = bus_directory(link)?;
    let is_pci = |path: &&Path| {
        fs::read_link(path.join("subsystem"))
            .is_ok_and(|bus| bus.file_name().is_some_and(|name| name == "pci"))
    };
    directory
        .ancestors()
        .take(3)
        .find(is_pci)
        .and_then(file_name)
}

fn file_name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_string_lossy().into_owned())
}
