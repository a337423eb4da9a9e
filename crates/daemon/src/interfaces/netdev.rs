//! Network devices of the kernel, by AF_XDP.

use std::io;
use std::sync::Arc;

use tracing::warn;

use ::io::af_xdp;
use control::config::desired::{Interface, OpenPort};
use control::config::{Desired, Mode, PortKind};
use control::facts::Link;
use control::netdev;
use graph::Pool;
use graph::pool::{DATA, STRIDE_AF_XDP};
use ports::OpenError;

use super::device::{Carries, Device};
use super::open::OpenInterface;
use super::opener::Opener;
use crate::host::{DeviceQueues, processors};

/// Bytes in front of an IP packet: Ethernet, and two VLAN tags.
const LAYER_2: u32 = 22;
/// Bytes of the largest IP packet that one buffer of AF_XDP holds.
pub const ONE_BUFFER: u32 = STRIDE_AF_XDP as u32 - DATA as u32 - LAYER_2;
/// The remedy for a device that is to have larger packets.
pub const LONGER: &str = "use Linux 6.6 or later, where `mode: copy` and `generic` take them";

/// A network device: the port, and the kernel's device too. It is put back as it was found.
pub struct Netdev;

impl Device for Netdev {
    fn numbers(&self) -> usize {
        1
    }

    fn awaits(&self, config: &Interface, name: &str) -> bool {
        match config.port_kind() {
            Some(PortKind::Netdev(wanted)) => wanted == name,
            // Any may be at its PCI address.
            _ => true,
        }
    }

    fn possible(&self, opener: &Opener, config: &Interface) -> Result<(), OpenError> {
        let (place, link) = match opener.devices.find(config) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found?,
        };
        netdev::possible(&link, config)?;
        takes(config, opener.host.has_long_packets())?;
        let program = opener.host.foreign_program(place.as_deref(), link.index)?;
        program.map_or(Ok(()), |program| {
            let name = &link.name;
            Err(OpenError::Setup(io::Error::other(format!(
                "{name} already has an XDP program ({program}): stop what holds it, or remove it \
                 with `ip link set dev {name} xdp off`"
            ))))
        })
    }

    fn to_be(&self, opener: &Opener, config: &Interface) -> io::Result<Option<(String, u32)>> {
        let (place, link) = match opener.devices.find(config) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found?,
        };
        let own = opener.devices.before(&link).mtu;
        let stays = place == opener.netns;
        let name = config.lcp.clone().filter(|_| !stays).unwrap_or(link.name);
        Ok(Some((name, own)))
    }

    fn open(
        &self,
        opener: &mut Opener,
        config: &Interface,
        carries: Carries,
        pool: &Arc<Pool>,
    ) -> Result<OpenInterface, OpenError> {
        let (link, opened) = try_open(opener, config, carries, pool)?;
        if opened.is_err()
            && let Err(error) = undo(opener, &link)
        {
            let name = &link.name;
            warn!("cannot put {name} back as it was: {error} (parshall cleanup tries again)");
        }
        opened
    }

    fn reopen(
        &self,
        opener: &mut Opener,
        config: &Interface,
        carries: Carries,
        pool: &Arc<Pool>,
    ) -> Result<OpenInterface, OpenError> {
        try_open(opener, config, carries, pool)?.1
    }

    fn rename(
        &self,
        opener: &mut Opener,
        _: &Interface,
        open: &OpenInterface,
        name: Option<&str>,
    ) -> io::Result<String> {
        opener.devices.rename(&open.netdev, name)
    }

    fn close(&self, opener: &mut Opener, _: &Interface, netdev: &str) -> io::Result<()> {
        opener.devices.release(netdev)
    }
}

/// Prepares a device, and says how opening it went then.
fn try_open(
    opener: &mut Opener,
    config: &Interface,
    carries: Carries,
    pool: &Arc<Pool>,
) -> Result<(Link, Result<OpenInterface, OpenError>), OpenError> {
    Netdev.possible(opener, config)?;
    let link = opener.devices.prepare(config).map_err(there)?;
    let opened = prepared(opener, config, &link, carries, pool);
    Ok((link, opened))
}

/// Opens a device that has its name and is in its place.
fn prepared(
    opener: &mut Opener,
    config: &Interface,
    link: &Link,
    carries: Carries,
    pool: &Arc<Pool>,
) -> Result<OpenInterface, OpenError> {
    opener.devices.keep_vlan_tags(link).map_err(there)?;
    let mtu = config.mtu.map_or(link.mtu, u32::from);
    let mut kernel = opener.kernel()?;
    netdev::takes_ip6(&mut *kernel, &link.name, mtu, config)?;
    // The settings first: a program may make the driver refuse some.
    netdev::configure(&mut *kernel, link, config)?;
    let mode = config.port().map(|port| port.mode).unwrap_or_default();
    let device = DeviceQueues {
        name: &link.name,
        queues: config.port().and_then(|port| port.queues).map(u32::from),
        mode: match mode {
            Mode::Auto => af_xdp::Mode::Auto,
            Mode::ZeroCopy => af_xdp::Mode::ZeroCopy,
            Mode::Copy => af_xdp::Mode::Copy,
            Mode::Generic => af_xdp::Mode::Generic,
        },
        interface: carries.interface,
    };
    let port = opener.host.device(&device, pool)?;
    takes(config, port.long_packets())?;
    let promiscuous = || opener.host.promiscuous(link.index);
    let promiscuous = carries.everything.then(promiscuous).transpose()?;
    Ok(OpenInterface {
        queues: port.queues.len(),
        port: Some(port),
        tap: None,
        punt: None,
        ifindex: link.index,
        netdev: link.name.clone(),
        found: Some(opener.devices.before(link)),
        promiscuous,
    })
}

/// Puts back what was done to a device that could not be opened, addresses too.
fn undo(opener: &mut Opener, link: &Link) -> io::Result<()> {
    let mut kernel = opener.kernel()?;
    let taken = netdev::take_addresses(&mut *kernel, link.index, &[]);
    opener.devices.release(&link.name).and(taken.map(drop))
}

/// Checks that packets of an interface's MTU fit into its port; `long`: it takes
/// packets of several buffers.
///
/// # Errors
/// They do not.
pub fn takes(config: &Interface, long: bool) -> io::Result<()> {
    match config.mtu.map(u32::from) {
        Some(mtu) if mtu > ONE_BUFFER && !long => Err(io::Error::other(format!(
            "cannot have an MTU of {mtu}: its port takes packets of {ONE_BUFFER} bytes at most; \
             lower it, or {LONGER}"
        ))),
        _ => Ok(()),
    }
}

/// The error of a device that cannot be prepared.
fn there(error: io::Error) -> OpenError {
    match error.kind() {
        io::ErrorKind::NotFound => OpenError::NotThere(error.to_string()),
        _ => error.into(),
    }
}

/// Buffers that the ports of a configuration hold at most: those of devices, as the others copy.
/// `present`: queues of a device, by its name; `None`: it is not there.
pub fn buffers(config: &Desired, present: impl Fn(&str) -> Option<u32>) -> u32 {
    let devices = config.interfaces.iter().filter_map(Interface::netdev);
    let count: u32 = devices.map(|port| queues(port, &present)).sum();
    count * af_xdp::Queue::HOLDS
}

/// Queues that a device will have at most. For one that is not there yet: as many as there are
/// processors.
pub fn queues(port: &OpenPort, present: impl Fn(&str) -> Option<u32>) -> u32 {
    let present = match &port.kind {
        PortKind::Netdev(name) => present(name),
        _ => None,
    };
    let configured = port.queues.map(u32::from);
    configured.or(present).unwrap_or_else(processors)
}

#[cfg(test)]
mod tests {
    use control::config::desired::Kind;

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
            let mut config = Interface::plain("e0", Kind::Loopback);
            config.mtu = mtu;
            let taken = takes(&config, long);
            assert_eq!(taken.is_ok(), fits, "{mtu:?} {long}: {taken:?}");
        }
        // Every port that is no device takes them.
        assert!(ports::null().long_packets());
    }
}
