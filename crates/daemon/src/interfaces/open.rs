//! Opens interfaces: ports, and the kernel's ends of them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use tracing::warn;

use ::io::{af_xdp, memif, tap};
use control::config::{self, Desired, MTU, Mode, PortKind, Role, desired, device_name};
use control::facts::Link;
use control::netdev::{self, Devices, Kept, Record};
use control::netlink::Kernel;
use graph::pool::{DATA, STRIDE_AF_XDP};
use graph::{Pool, PortCounters};
use ports::{Open, OpenError};
use router::{InterfaceId, Mac};

use crate::host::{DeviceQueues, Host, processors};

/// Bytes in front of an IP packet: Ethernet, and two VLAN tags.
const LAYER_2: u32 = 22;
/// Bytes of the largest IP packet that one buffer of AF_XDP holds.
pub const ONE_BUFFER: u32 = STRIDE_AF_XDP as u32 - DATA as u32 - LAYER_2;
/// What lets a device have packets that are larger.
pub const LONGER: &str = "use Linux 6.6 or later, where `mode: copy` and `generic` take them";

/// An interface that is open.
pub struct OpenInterface {
    /// The port.
    pub port: Open,
    /// The tap that is the kernel's end of a port without a device.
    pub tap: Option<Open>,
    /// The kernel's device: the port's own, or that tap.
    pub netdev: String,
    /// Its index.
    pub ifindex: u32,
    /// A network device as it was before anything was changed about it.
    pub found: Option<Link>,
    /// Queues of port and tap, all in all.
    pub queues: usize,
}

impl OpenInterface {
    /// What it is, for log and `show hardware`.
    pub fn describe(&self) -> String {
        let port = self.port.describe();
        match &self.tap {
            Some(_) => format!("{port}, host by tap {}", self.netdev),
            None => port,
        }
    }

    /// Counters of the port's queues and of the tap, by name, up to date.
    pub fn counters(&self) -> impl Iterator<Item = &(String, PortCounters)> {
        self.port.refresh();
        let tap = self.tap.iter().flat_map(|tap| &tap.counters);
        self.port.counters.iter().chain(tap)
    }
}

/// Opens interfaces.
pub struct Opener {
    /// The machine.
    pub host: Rc<dyn Host>,
    netns: Option<PathBuf>,
    devices: Devices,
}

impl Opener {
    /// Of a configuration's devices on a machine; what is changed about them is written down in
    /// the directory `notes`.
    pub fn new(config: &Desired, host: Rc<dyn Host>, notes: &Path) -> Self {
        let netns = config.netns.as_deref();
        Self {
            devices: Devices::of(host.namespaces(), None, netns, notes),
            netns: config.netns.clone(),
            host,
        }
    }

    /// The kernel of the namespace that devices live in.
    ///
    /// # Errors
    /// The namespace cannot be entered; there are no more file descriptors.
    pub fn kernel(&self) -> io::Result<Box<dyn Kernel>> {
        (self.host.namespaces())(self.netns.as_deref())
    }

    /// Opens an interface.
    ///
    /// # Errors
    /// NotThere: its device is not there yet. Otherwise why it cannot be opened.
    pub fn open(
        &mut self,
        config: &desired::Interface,
        id: InterfaceId,
        pool: &Arc<Pool>,
    ) -> Result<OpenInterface, OpenError> {
        if config.port.kind.is_device() {
            return self.device(config, id, pool);
        }
        let port = self.port(config)?;
        let (netdev, ifindex, tap) = self.tap(config)?;
        Ok(OpenInterface {
            queues: port.queues.len() + tap.queues.len(),
            port,
            tap: Some(tap),
            netdev,
            ifindex,
            found: None,
        })
    }

    /// A device of the kernel, by AF_XDP. One that cannot be opened is as it was before.
    fn device(
        &mut self,
        config: &desired::Interface,
        id: InterfaceId,
        pool: &Arc<Pool>,
    ) -> Result<OpenInterface, OpenError> {
        let (link, opened) = self.try_device(config, id, pool)?;
        if opened.is_err()
            && let Err(error) = self.undo(&link)
        {
            let name = &link.name;
            warn!("cannot put {name} back as it was: {error} (parshall cleanup tries again)");
        }
        opened
    }

    /// Opens a network device again that we have prepared: it is ours still if that fails.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn reopen(
        &mut self,
        config: &desired::Interface,
        id: InterfaceId,
        pool: &Arc<Pool>,
    ) -> Result<OpenInterface, OpenError> {
        self.try_device(config, id, pool)?.1
    }

    /// Prepares a device, and says how opening it went then.
    fn try_device(
        &mut self,
        config: &desired::Interface,
        id: InterfaceId,
        pool: &Arc<Pool>,
    ) -> Result<(Link, Result<OpenInterface, OpenError>), OpenError> {
        self.possible(config)?;
        let link = self.devices.prepare(config).map_err(there)?;
        let opened = self.prepared(config, &link, id, pool);
        Ok((link, opened))
    }

    /// Whether a device can be opened, as far as that can be known before anything is changed. One
    /// that is not there yet may be.
    ///
    /// # Errors
    /// What is in the way.
    pub fn possible(&self, config: &desired::Interface) -> Result<(), OpenError> {
        let (place, link) = match self.devices.find(&config.port.kind) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found?,
        };
        netdev::possible(&link, config)?;
        takes(config, self.host.has_long_packets())?;
        let program = self.host.foreign_program(place.as_deref(), link.index)?;
        program.map_or(Ok(()), |program| {
            let name = &link.name;
            Err(OpenError::Setup(io::Error::other(format!(
                "{name} already has an XDP program ({program}): stop what holds it, or remove it \
                 with `ip link set dev {name} xdp off`"
            ))))
        })
    }

    /// The name, where it is to live, of the kernel's device that an interface will have, and its
    /// own MTU in bytes; `None`: that device is not there yet.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn device_to_be(&self, config: &desired::Interface) -> io::Result<Option<(String, u32)>> {
        let lcp = config.lcp.clone();
        if !config.port.kind.is_device() {
            let name = lcp.unwrap_or_else(|| device_name(&config.name));
            return Ok(Some((name, MTU.into())));
        }
        let (place, link) = match self.devices.find(&config.port.kind) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found?,
        };
        let own = self.devices.before(&link).mtu;
        let stays = place == self.netns;
        let name = lcp.filter(|_| !stays).unwrap_or(link.name);
        Ok(Some((name, own)))
    }

    /// A device that has its name and is in its place.
    fn prepared(
        &mut self,
        config: &desired::Interface,
        link: &Link,
        id: InterfaceId,
        pool: &Arc<Pool>,
    ) -> Result<OpenInterface, OpenError> {
        self.devices.keep_vlan_tags(link).map_err(there)?;
        let mtu = config.mtu.map_or(link.mtu, u32::from);
        let mut kernel = self.kernel()?;
        netdev::takes_ip6(&mut *kernel, &link.name, mtu, config)?;
        // The settings first: a program may make the driver refuse some.
        netdev::configure(&mut *kernel, link, config)?;
        let device = DeviceQueues {
            name: &link.name,
            queues: config.port.queues.map(u32::from),
            mode: match config.port.mode {
                Mode::Auto => af_xdp::Mode::Auto,
                Mode::ZeroCopy => af_xdp::Mode::ZeroCopy,
                Mode::Copy => af_xdp::Mode::Copy,
                Mode::Generic => af_xdp::Mode::Generic,
            },
            interface: id,
        };
        let port = self.host.device(&device, pool)?;
        takes(config, port.long_packets())?;
        Ok(OpenInterface {
            queues: port.queues.len(),
            port,
            tap: None,
            ifindex: link.index,
            netdev: link.name.clone(),
            found: Some(self.devices.before(link)),
        })
    }

    /// Puts back what was done to a device that could not be opened, addresses too.
    fn undo(&mut self, link: &Link) -> io::Result<()> {
        let mut kernel = self.kernel()?;
        let taken = netdev::take_addresses(&mut *kernel, link.index, &[]);
        self.release(&link.name).and(taken.map(drop))
    }

    /// Makes again what somebody has deleted of an interface without a device: its tap, or the tap
    /// that is the port itself.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub fn renew(
        &mut self,
        config: &desired::Interface,
        open: &mut OpenInterface,
        what: Part,
    ) -> Result<(), OpenError> {
        match what {
            Part::Port => open.port = self.port(config)?,
            Part::Tap => {
                let (netdev, ifindex, tap) = self.tap(config)?;
                (open.netdev, open.ifindex, open.tap) = (netdev, ifindex, Some(tap));
            }
        }
        Ok(())
    }

    /// The tap that is the kernel's end of a port, its name, and the kernel's index of it.
    fn tap(&self, config: &desired::Interface) -> Result<(String, u32, Open), OpenError> {
        let name = config.lcp.clone();
        let name = name.unwrap_or_else(|| device_name(&config.name));
        let tap = self.host.tap(&tap::Config {
            name: name.clone(),
            mac: Some(config.mac.unwrap_or_else(|| own_mac(&config.name)).0),
            mtu: Some(u32::from(config.mtu.unwrap_or(MTU))),
            up: false,
        })?;
        let mut kernel = self.kernel()?;
        let link = kernel.link_named(&name)?;
        netdev::configure(&mut *kernel, &link, config)?;
        Ok((name, link.index, tap))
    }

    /// A port that is not a device.
    fn port(&mut self, config: &desired::Interface) -> Result<Open, OpenError> {
        match &config.port.kind {
            PortKind::Memif(m) => self.host.memif(memif_config(config, m)?),
            PortKind::Tap { .. } => self.host.tap(&tap::Config {
                name: config.port.tap(&config.name).unwrap_or_default(),
                mac: None,
                mtu: config.mtu.map(u32::from),
                up: true,
            }),
            PortKind::Pcap { rx, tx } => ports::pcap(&config.name, rx.as_deref(), tx.as_deref()),
            _ => Ok(ports::null()),
        }
    }

    /// Gives up an interface's device, as it was found: Ethernet address, MTU, up or down, name and
    /// place. A device that is gone is no error.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn release(&mut self, device: &str) -> io::Result<()> {
        self.devices.release(device)
    }

    /// Gives the kernel's device of an open interface another name, in place; `None`: its own.
    ///
    /// # Errors
    /// The name is taken; it has its old one then.
    pub fn rename(
        &mut self,
        config: &desired::Interface,
        open: &mut OpenInterface,
        name: Option<&str>,
    ) -> io::Result<()> {
        open.netdev = match &open.tap {
            None => self.devices.rename(&open.netdev, name)?,
            Some(_) => {
                let name = name.map_or_else(|| device_name(&config.name), str::to_owned);
                self.kernel()?.rename(open.ifindex, &name)?;
                name
            }
        };
        open.port.renamed(&open.netdev);
        Ok(())
    }

    /// Writes down what a device is about to be given: Ethernet address, MTU in bytes.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn note(&mut self, device: &str, mac: Option<Mac>, mtu: Option<u16>) -> io::Result<()> {
        self.devices.note(device, mac, mtu.map(u32::from))
    }

    /// Undoes what routers that died have done to devices, where it is not wanted of an interface.
    pub fn put_back_unwanted(&mut self, wanted: &[desired::Interface]) {
        report(self.devices.put_back_unwanted(wanted));
    }

    /// Undoes what was done to devices.
    pub fn restore(&mut self) {
        report(self.devices.restore(Kept::Settings));
    }
}

/// Says which devices could not be put back as they were.
fn report(put_back: Vec<(Record, io::Result<()>)>) {
    for (device, done) in put_back {
        if let Err(e) = done {
            let name = device.name;
            warn!("cannot put {name} back as it was: {e} (parshall cleanup tries again)");
        }
    }
}

/// A part of an interface without a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The port.
    Port,
    /// The tap that is the kernel's end of it.
    Tap,
}

/// Whether packets of the MTU that is wanted of an interface fit into its port; `long`: it takes
/// packets of several buffers.
///
/// # Errors
/// They do not.
pub fn takes(config: &desired::Interface, long: bool) -> io::Result<()> {
    match config.mtu.map(u32::from) {
        Some(mtu) if mtu > ONE_BUFFER && !long => Err(io::Error::other(format!(
            "cannot have an MTU of {mtu}: its port takes packets of {ONE_BUFFER} bytes at most; \
             lower it, or {LONGER}"
        ))),
        _ => Ok(()),
    }
}

/// What it means that a device cannot be prepared.
fn there(error: io::Error) -> OpenError {
    match error.kind() {
        io::ErrorKind::NotFound => OpenError::NotThere(error.to_string()),
        _ => error.into(),
    }
}

/// Whether a device of this name is what the interface waits for.
pub fn stands_for(config: &desired::Interface, name: &str) -> bool {
    match &config.port.kind {
        PortKind::Netdev(wanted) => wanted == name,
        PortKind::Pci(_) => true,
        _ => false,
    }
}

/// Buffers that the ports of a configuration hold at most: those of devices, as the others copy.
/// `present`: queues of a device, by its name; `None`: it is not there.
pub fn buffers(config: &Desired, present: impl Fn(&str) -> Option<u32>) -> u32 {
    let devices = config.interfaces.iter().filter(|i| i.port.kind.is_device());
    let count: u32 = devices.map(|device| queues(device, &present)).sum();
    count * af_xdp::Queue::HOLDS
}

/// Queues that a device will have at most. For one that is not there yet: as many as there are
/// processors.
pub fn queues(config: &desired::Interface, present: impl Fn(&str) -> Option<u32>) -> u32 {
    let present = match &config.port.kind {
        PortKind::Netdev(name) => present(name),
        _ => None,
    };
    let configured = config.port.queues.map(u32::from);
    configured.or(present).unwrap_or_else(processors)
}

// The language allows just what a memif can be.
const _: () =
    assert!(config::Secret::MEMIF == memif::SECRET && config::Memif::RINGS == memif::QUEUES);

fn memif_config(config: &desired::Interface, m: &config::Memif) -> io::Result<memif::Config> {
    let socket = m.socket.to_str();
    let socket = socket.ok_or_else(|| io::Error::other("the socket's path is not UTF-8"))?;
    let directory = m.socket.parent().filter(|d| !d.as_os_str().is_empty());
    if let Some(directory) = directory.filter(|_| !socket.starts_with('@')) {
        fs::create_dir_all(directory).map_err(|e| {
            io::Error::new(
                e.kind(),
                format!("cannot make directory {}: {e}", directory.display()),
            )
        })?;
    }
    let role = match m.role {
        Role::Server => memif::Role::Server,
        Role::Client => memif::Role::Client,
    };
    Ok(memif::Config {
        id: m.id,
        queues: m.rings,
        log2_ring: m.ring_size.max(2).ilog2() as u8,
        secret: m.secret.as_ref().map(|s| s.reveal().to_owned()),
        ..memif::Config::new(&config.name, socket, role)
    })
}

/// A locally administered address made of the name, so that restarts do not change it, nor other
/// interfaces that come or go.
pub fn own_mac(name: &str) -> Mac {
    // FNV-1a.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    });
    let [a, b, c, d, ..] = hash.to_be_bytes();
    Mac([0x02, 0xfe, a, b, c, d])
}

#[cfg(test)]
mod tests {
    use control::config::desired::OpenPort;

    use super::*;

    #[test]
    fn packets_of_several_buffers_need_a_port_that_takes_them() {
        let one = ONE_BUFFER as u16;
        for (mtu, long, fits) in [
            (None, false, true),
            (Some(1500), false, true),
            (Some(one), false, true),
            (Some(one + 1), false, false),
            (Some(9216), false, false),
            (Some(9216), true, true),
        ] {
            let mut config = desired::Interface::plain("e0", OpenPort::NONE);
            config.mtu = mtu;
            let taken = takes(&config, long);
            assert_eq!(taken.is_ok(), fits, "{mtu:?} {long}: {taken:?}");
        }
        // Every port that is no device takes them.
        assert!(ports::null().long_packets());
    }
}
