//! The machine that interfaces are opened on.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use tracing::warn;

use ::io::tap::Config;
use control::config::desired::Interface;
use control::config::{Desired, MTU};
use control::history::Seed;
use control::netdev::{self, Devices, Kept, Places, Record};
use control::netlink::Kernel;
use ports::{Open, OpenError};
use router::Mac;

use super::host_end;
use crate::host::Host;

/// The machine that interfaces are opened on.
pub struct Opener {
    /// The machine.
    pub host: Rc<dyn Host>,
    pub(super) netns: Option<PathBuf>,
    pub(super) devices: Devices,
    /// Of the host's ends of taps.
    pub(super) places: Places,
    /// Of the Ethernet addresses of the router's own devices.
    pub(super) seed: Seed,
}

impl Opener {
    /// Of a configuration's devices on a machine; what is changed about them is written down in
    /// the directory `notes`.
    pub fn new(config: &Desired, host: Rc<dyn Host>, notes: &Path, seed: Seed) -> Self {
        let netns = config.netns.as_deref();
        Self {
            devices: Devices::of(host.namespaces(), None, netns, notes),
            places: Places::new(host.namespaces(), &notes.with_file_name("places")),
            netns: config.netns.clone(),
            host,
            seed,
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
        let settings = Config {
            name: name.clone(),
            mac: Some(config.mac.unwrap_or_else(|| self.seed.mac(&config.name)).0),
            mtu: Some(u32::from(config.mtu.unwrap_or(MTU))),
            ..Config::default()
        };
        let tap = self.host.tap(self.netns.as_deref(), &settings)?;
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
        let taps = wanted.iter().filter_map(|config| {
            let place = host_end::place(self.netns.as_deref(), config)?;
            Some((config.name.clone(), place))
        });
        report_places(self.places.take_over(taps).map(drop));
    }

    /// Removes the bridges and namespaces that were made for taps, and that none needs any more.
    pub(super) fn remove_places(&mut self) {
        report_places(self.places.remove_unneeded());
    }

    /// Undoes what was done to devices.
    pub fn restore(&mut self) {
        report(self.devices.restore(Kept::Settings));
        report_places(self.places.leave_all());
    }
}

/// The name of the tap that is the kernel's end of an interface.
pub fn tap_name(config: &Interface) -> String {
    let given = config.lcp.clone();
    given.unwrap_or_else(|| config.own_device())
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

/// Says so if what was made for taps could not be removed.
fn report_places(removed: io::Result<()>) {
    if let Err(e) = removed {
        warn!("cannot remove what was made for taps: {e} (parshall cleanup tries again)");
    }
}
