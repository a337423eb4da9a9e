//! Devices to send by: which one is meant, and what becomes of the frames.

use std::fs;
use std::os::unix::fs::MetadataExt;

use kernel::netns::OWN;

use crate::error::Error;
use crate::inventory;
use crate::link::{DeviceCounters, Link};

/// A network device as it was when it was chosen. Its index alone does not name it: another
/// namespace has its own, and a number that is free again may go to another device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its index in its namespace.
    pub ifindex: u32,
    /// Its Ethernet address.
    pub mac: [u8; 6],
    /// Device and inode of the namespace's file.
    namespace: (u64, u64),
}

impl Device {
    /// The device that has this index in the calling thread's namespace now.
    ///
    /// # Errors
    /// [`Error::NoInterface`], no Ethernet device, or what the kernel says.
    pub fn here(ifindex: u32) -> Result<Self, Error> {
        let link = Link::get(ifindex).map_err(|e| inventory::of_interface(ifindex, e))?;
        let no_ethernet = || Error::Parameter(format!("interface {ifindex} is no Ethernet device"));
        Ok(Self {
            ifindex,
            mac: link.mac.ok_or_else(no_ethernet)?,
            namespace: namespace()?,
        })
    }

    /// Fails if the calling thread would take another device for it, and says why.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let other = |why: &str| Error::AnotherDevice {
            ifindex: self.ifindex,
            why: why.to_owned(),
        };
        if namespace()? != self.namespace {
            return Err(other("it was chosen in another network namespace"));
        }
        let now = Self::here(self.ifindex)?;
        if now.mac != self.mac {
            return Err(other("its address has changed"));
        }
        Ok(())
    }
}

/// The calling thread's network namespace.
fn namespace() -> Result<(u64, u64), Error> {
    let file = fs::metadata(OWN);
    let file = file.map_err(Error::doing("asking for the network namespace"))?;
    Ok((file.dev(), file.ino()))
}

/// The counters of a device of the calling thread's namespace.
///
/// # Errors
/// [`Error::NoInterface`], or what the kernel says.
pub fn device_counters(ifindex: u32) -> Result<DeviceCounters, Error> {
    let link = Link::get(ifindex).map_err(|e| inventory::of_interface(ifindex, e))?;
    Ok(link.counters)
}
