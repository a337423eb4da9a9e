//! Facts about a device's hardware, from ethtool and sysfs.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use kernel::ethtool::{Count, Ethtool};

use crate::facts::Link;

/// The details that `show hardware` adds to those of every device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Hardware {
    /// Driver (`mlx5_core`, `veth` ...).
    pub driver: Option<String>,
    /// PCI address, as in `0000:03:00.0`.
    pub pci: Option<String>,
    /// Link speed in Mbit/s, if the link is up and the driver says.
    pub speed: Option<u32>,
    /// Full duplex.
    pub full_duplex: Option<bool>,
    /// Receive ring: descriptors now and at most.
    pub rx_ring: Option<Count>,
    /// Transmit ring: descriptors now and at most.
    pub tx_ring: Option<Count>,
    /// Receive queues now and at most.
    pub rx_queues: Option<Count>,
    /// Transmit queues now and at most.
    pub tx_queues: Option<Count>,
    /// Offloads that are on, by the kernel's names.
    pub offloads: Vec<String>,
}

impl Hardware {
    /// All that can be found out about a device; what it does not support is left out.
    pub fn of(link: &Link, ethtool: &mut Ethtool) -> Self {
        let mode = ethtool.link_mode(link.index).unwrap_or_default();
        let rings = ethtool.rings(link.index).unwrap_or_default();
        let queues = ethtool.queues(link.index).unwrap_or_default();
        let features = ethtool.features(link.index).unwrap_or_default();
        Hardware {
            driver: driver(link),
            pci: pci_address(link),
            speed: mode.speed,
            full_duplex: mode.full_duplex,
            rx_ring: rings.rx,
            tx_ring: rings.tx,
            rx_queues: queues.rx,
            tx_queues: queues.tx,
            offloads: features.into_iter().map(|feature| feature.name).collect(),
        }
    }
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

/// The PCI function that the device is on, directly or (virtio) by its parent.
pub fn pci_address(link: &Link) -> Option<String> {
    let directory = bus_directory(link)?;
    let is_pci = |path: &&Path| {
        fs::read_link(path.join("subsystem"))
            .is_ok_and(|bus| bus.file_name().is_some_and(|name| name == "pci"))
    };
    // Further up are bridges, which are functions, too, and not the device.
    directory
        .ancestors()
        .take(3)
        .find(is_pci)
        .and_then(file_name)
}

fn file_name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_string_lossy().into_owned())
}
