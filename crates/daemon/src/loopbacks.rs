//! Loopbacks: devices of the kernel that are there for their addresses.
//!
//! What is for such an address reaches the host as what is for any other. The devices are taps
//! that nobody reads from: unlike dummies they need no module of the kernel, and they go with the
//! process, whatever becomes of it.

use std::rc::Rc;

use control::config::{MTU, desired};
use control::netdev;
use control::netlink::Kernel;
use io::tap;
use ports::Open;

use super::interfaces::own_mac;
use crate::host::Host;

/// The loopbacks.
pub struct Loopbacks {
    host: Rc<dyn Host>,
    all: Vec<Loopback>,
}

struct Loopback {
    config: desired::Interface,
    /// The kernel's index of its device, and the tap that it is: it is there as long as this is.
    device: Option<(u32, Open)>,
}

impl Loopback {
    fn link(&self) -> Option<u32> {
        self.device.as_ref().map(|(link, _)| *link)
    }
}

impl Loopbacks {
    /// Those of a configuration; their devices will be on this machine.
    pub fn new(wanted: &[desired::Interface], host: Rc<dyn Host>) -> Self {
        let all = wanted.iter().map(|config| Loopback {
            config: config.clone(),
            device: None,
        });
        Loopbacks {
            all: all.collect(),
            host,
        }
    }

    /// Makes one.
    ///
    /// # Errors
    /// Its name is taken; what else the kernel reports.
    pub fn make(
        &mut self,
        config: desired::Interface,
        kernel: &mut dyn Kernel,
    ) -> Result<(), String> {
        let device = Some(device(&*self.host, &config, kernel)?);
        self.all.push(Loopback { config, device });
        Ok(())
    }

    /// What is wanted of a loopback, and the kernel's index of its device if that is there.
    pub fn named(&mut self, name: &str) -> Option<(&mut desired::Interface, Option<u32>)> {
        let mut all = self.all.iter_mut();
        let one = all.find(|one| one.config.name == name)?;
        let link = one.link();
        Some((&mut one.config, link))
    }

    /// What is wanted of each, and the kernel's index of its device if that is there.
    pub fn all(&self) -> impl Iterator<Item = (&desired::Interface, Option<u32>)> {
        self.all.iter().map(|one| (&one.config, one.link()))
    }

    /// Makes those that are not there: at the start, or since somebody has deleted them.
    ///
    /// # Errors
    /// The first that cannot be made, and why.
    pub fn renew(&mut self, kernel: &mut dyn Kernel) -> Result<(), String> {
        if self.all.is_empty() {
            return Ok(());
        }
        let there = kernel.links().map_err(|e| e.to_string())?;
        let is_there = |link: u32| there.iter().any(|its| its.index == link);
        let mut made = Ok(());
        for one in &mut self.all {
            if one.device.as_ref().is_some_and(|(link, _)| is_there(*link)) {
                continue;
            }
            one.device = None;
            match device(&*self.host, &one.config, kernel) {
                Ok(device) => one.device = Some(device),
                Err(why) => {
                    made = made.and(Err(format!("loopback {}: {why}", one.config.name)));
                }
            }
        }
        made
    }

    /// One is no more.
    pub fn remove(&mut self, name: &str) {
        self.all.retain(|loopback| loopback.config.name != name);
    }

    /// The name of one's device becomes another; `None`: its own.
    ///
    /// # Errors
    /// The name is taken.
    pub fn rename(
        &mut self,
        name: &str,
        lcp: Option<String>,
        kernel: &mut dyn Kernel,
    ) -> std::io::Result<()> {
        let Some((config, link)) = self.named(name) else {
            return Ok(());
        };
        if let Some(link) = link {
            kernel.rename(link, lcp.as_deref().unwrap_or(name))?;
        }
        config.lcp = lcp;
        Ok(())
    }
}

/// Makes the device of a loopback.
fn device(
    host: &dyn Host,
    config: &desired::Interface,
    kernel: &mut dyn Kernel,
) -> Result<(u32, Open), String> {
    let name = config.lcp.as_deref().unwrap_or(&config.name);
    let tap = host.tap(&tap::Config {
        name: name.to_owned(),
        mac: Some(config.mac.unwrap_or_else(|| own_mac(&config.name)).0),
        mtu: Some(config.mtu.unwrap_or(MTU).into()),
        up: false,
    });
    let tap = tap.map_err(|e| e.to_string())?;
    let link = kernel.link_named(name).map_err(|e| e.to_string())?;
    netdev::configure(kernel, &link, config).map_err(|e| e.to_string())?;
    Ok((link.index, tap))
}
