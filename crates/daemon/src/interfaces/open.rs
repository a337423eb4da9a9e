//! An interface that is open.

use control::config::desired::{Interface, Kind};
use control::facts::Link;
use graph::PortCounters;
use ports::{Open, OpenError};

use super::opener::Opener;
use super::punt_tap::PuntTap;
use crate::host::Promiscuous;

/// An interface that is open.
pub struct OpenInterface {
    /// The port; `None`: a loopback has none.
    pub port: Option<Open>,
    /// The tap that is the kernel's end of an interface without a network device.
    pub tap: Option<Open>,
    /// What a network device gives the kernel its packets by, where some are translated.
    pub punt: Option<PuntTap>,
    /// The kernel's device: the port's own, or that tap.
    pub netdev: String,
    /// Its index.
    pub ifindex: u32,
    /// A network device as it was before anything was changed about it.
    pub found: Option<Link>,
    /// Queues of the port, which the workers serve.
    pub queues: usize,
    /// What makes a network device take in frames to every station, where that is needed.
    pub promiscuous: Option<Promiscuous>,
}

impl OpenInterface {
    /// Describes it, for log and `show hardware`; `astray`: where the host's end of a TAP is, if that
    /// is not its place.
    pub fn describe(&self, config: &Interface, astray: Option<&String>) -> String {
        let (port, tap) = (self.port.as_ref().map(Open::describe), &self.netdev);
        match (port, &self.tap) {
            (Some(_), Some(_)) if let Kind::Tap { host, .. } = &config.kind => {
                let end = astray.cloned();
                let end = end.unwrap_or_else(|| super::host_end::in_words(host));
                format!("{end}, settings by tap {tap}")
            }
            (Some(port), Some(_)) => format!("{port}, host by tap {tap}"),
            (Some(port), None) => port,
            (None, _) => match &config.kind {
                Kind::Bond(_) => format!("bond, host by tap {tap}"),
                Kind::Vxlan(tunnel) => format!(
                    "vxlan {} from {} to {}, host by tap {tap}",
                    tunnel.vni(),
                    tunnel.local(),
                    tunnel.remote()
                ),
                Kind::Sub { parent, .. } => format!("tags on {parent}, host by tap {tap}"),
                _ => format!("loopback, tap {tap}"),
            },
        }
    }

    /// Counters of the port's queues and of the tap, by name, up to date.
    pub fn counters(&self) -> impl Iterator<Item = &(String, PortCounters)> {
        self.port.iter().for_each(Open::refresh);
        let both = self.port.iter().chain(&self.tap);
        both.flat_map(|end| &end.counters)
    }

    /// The index of the tap that is the kernel's end of it, if it has one.
    pub(super) fn own_tap(&self) -> Option<u32> {
        self.tap.as_ref().map(|_| self.ifindex)
    }

    /// Takes its XDP program off: from then on the kernel gets every packet.
    pub fn detach(&mut self) {
        self.port.iter_mut().for_each(Open::detach);
    }

    /// The kernel's device has this name from now on.
    pub(super) fn renamed(&mut self, name: String) {
        self.netdev = name;
        self.port
            .iter_mut()
            .for_each(|port| port.renamed(&self.netdev));
    }

    /// An interface whose kernel's device is a tap.
    ///
    /// # Errors
    /// The tap cannot be made.
    pub(super) fn tap(
        opener: &Opener,
        config: &Interface,
        port: Option<Open>,
    ) -> Result<Self, OpenError> {
        let (netdev, ifindex, tap) = opener.tap(config)?;
        Ok(OpenInterface {
            queues: port.as_ref().map_or(0, |port| port.queues.len()),
            port,
            tap: Some(tap),
            punt: None,
            netdev,
            ifindex,
            found: None,
            promiscuous: None,
        })
    }

    /// Makes its tap again.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn renew_tap(
        &mut self,
        opener: &Opener,
        config: &Interface,
    ) -> Result<(), OpenError> {
        let (netdev, ifindex, tap) = opener.tap(config)?;
        (self.netdev, self.ifindex, self.tap) = (netdev, ifindex, Some(tap));
        Ok(())
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
