//! The kinds of interfaces: what differs between them when they come, change and go.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use tracing::warn;

use ::io::tap;
use control::config::desired::{Interface, Kind};
use control::config::{Desired, MTU, device_name};
use control::netdev::{self, Devices, Kept, Record};
use control::netlink::Kernel;
use graph::Pool;
use ports::{Open, OpenError};
use router::{InterfaceId, Mac};

use super::loopback::Loopback;
use super::netdev::Netdev;
use super::open::{OpenInterface, Part, own_mac};
use super::software::Software;
use crate::host::Host;

/// A kind of interface.
pub trait Device {
    /// Numbers of the router's interfaces that it takes: one for a port, and one for a host
    /// interface that workers serve.
    fn numbers(&self) -> usize;

    /// Whether a network device of this name may be the one that the interface waits for.
    fn awaits(&self, _: &Interface, _name: &str) -> bool {
        false
    }

    /// Looks whether it can be opened, as far as that can be known before anything is changed. One
    /// whose device is not there yet may be.
    ///
    /// # Errors
    /// What is in the way.
    fn possible(&self, _: &Opener, _: &Interface) -> Result<(), OpenError> {
        Ok(())
    }

    /// The name, where it is to live, of the kernel's device that it will have, and its own MTU in
    /// bytes; `None`: that device is not there yet.
    ///
    /// # Errors
    /// What the kernel reports.
    fn to_be(&self, _: &Opener, config: &Interface) -> io::Result<Option<(String, u32)>> {
        Ok(Some((tap_name(config), MTU.into())))
    }

    /// Opens it: port and kernel's device, which gets its settings and addresses. What cannot be
    /// opened is left as it was.
    ///
    /// # Errors
    /// NotThere: its device is not there yet. Otherwise why it cannot be opened.
    fn open(
        &self,
        opener: &mut Opener,
        config: &Interface,
        id: InterfaceId,
        pool: &Arc<Pool>,
    ) -> Result<OpenInterface, OpenError>;

    /// Opens it again on the kernel's device that is ours already, and stays so if this fails.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn reopen(
        &self,
        opener: &mut Opener,
        config: &Interface,
        id: InterfaceId,
        pool: &Arc<Pool>,
    ) -> Result<OpenInterface, OpenError> {
        self.open(opener, config, id, pool)
    }

    /// Makes a part of it again that somebody has deleted.
    ///
    /// # Errors
    /// Why it cannot be made.
    fn renew(
        &self,
        opener: &mut Opener,
        config: &Interface,
        open: &mut OpenInterface,
        _: Part,
    ) -> Result<(), OpenError> {
        open.renew_tap(opener, config)
    }

    /// Gives the kernel's device another name, in place; `None`: its own. Returns the name.
    ///
    /// # Errors
    /// The name is taken; it has its old one then.
    fn rename(
        &self,
        opener: &mut Opener,
        config: &Interface,
        open: &OpenInterface,
        name: Option<&str>,
    ) -> io::Result<String> {
        let name = name.map_or_else(|| device_name(&config.name), str::to_owned);
        opener.kernel()?.rename(open.ifindex, &name)?;
        Ok(name)
    }

    /// Gives up the kernel's device, by its name, as it was found: Ethernet address, MTU, up or
    /// down, name and place. One that is gone is no error.
    ///
    /// # Errors
    /// What the kernel reports.
    fn close(&self, _: &mut Opener, _netdev: &str) -> io::Result<()> {
        Ok(())
    }
}

/// The kind that an interface is of.
pub fn of(config: &Interface) -> &'static dyn Device {
    match &config.kind {
        Kind::Port(port) if port.kind.is_device() => &Netdev,
        Kind::Port(_) => &Software,
        Kind::Loopback => &Loopback,
    }
}

/// The machine that interfaces are opened on.
pub struct Opener {
    /// The machine.
    pub host: Rc<dyn Host>,
    pub(super) netns: Option<PathBuf>,
    pub(super) devices: Devices,
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

    /// Makes the tap that is the kernel's end of an interface: its name, its ifindex, the tap.
    ///
    /// # Errors
    /// Its name is taken; what else the kernel reports.
    pub(super) fn tap(&self, config: &Interface) -> Result<(String, u32, Open), OpenError> {
        let name = tap_name(config);
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

    /// Writes down what a device is about to be given: Ethernet address, MTU in bytes.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn note(&mut self, device: &str, mac: Option<Mac>, mtu: Option<u16>) -> io::Result<()> {
        self.devices.note(device, mac, mtu.map(u32::from))
    }

    /// Undoes what routers that died have done to devices, where it is not wanted of an interface.
    pub fn put_back_unwanted(&mut self, wanted: &[Interface]) {
        report(self.devices.put_back_unwanted(wanted));
    }

    /// Undoes what was done to devices.
    pub fn restore(&mut self) {
        report(self.devices.restore(Kept::Settings));
    }
}

/// The name of the tap that is the kernel's end of an interface.
fn tap_name(config: &Interface) -> String {
    let given = config.lcp.clone();
    given.unwrap_or_else(|| device_name(&config.name))
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
