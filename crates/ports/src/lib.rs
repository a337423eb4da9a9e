//! Opens ports, for the router and the load tester alike: network devices by AF_XDP with the
//! program that feeds the sockets, memif, taps, capture files.
//!
//! An open port is an [`Open`]: queues for workers to serve, and control's part of it.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

mod device;
mod error;
mod open;
mod pcap;

use std::io;
use std::path::{Path, PathBuf};

use ::io::{memif, null, tap};
use graph::Port;
use kernel::netns::within;
use kernel::{netdev, redirect};

pub use device::{Device, Receive, foreign_program};
pub use error::OpenError;
pub use open::Open;
pub use pcap::pcap;

use open::Kind;

/// Opens ports in one network namespace.
#[derive(Default)]
pub struct Opener {
    netns: Option<PathBuf>,
    /// Started with the first memif.
    memifs: Option<memif::Control>,
}

impl Opener {
    /// For ports in this namespace, a file as under /run/netns (`None`: our own).
    pub fn new(netns: Option<&Path>) -> Self {
        Opener {
            netns: netns.map(Path::to_owned),
            memifs: None,
        }
    }

    /// Opens a memif. It connects, and connects again, by itself.
    ///
    /// # Errors
    /// Values out of range, a socket or an id that is taken; no control thread.
    pub fn memif(&mut self, config: memif::Config) -> Result<Open, OpenError> {
        let control = match &self.memifs {
            Some(control) => control,
            None => self
                .memifs
                .insert(memif::Control::start().map_err(memif::Error::Io)?),
        };
        let (interface, queues) = control.add(config)?;
        Ok(Open::new(Kind::Memif(interface), queues))
    }
}

/// Makes a tap in a network namespace (`None`: our own).
///
/// # Errors
/// A name that is taken or is none, an address or MTU that the kernel refuses, no permission; the
/// namespace cannot be entered.
pub fn tap(netns: Option<&Path>, config: &tap::Config) -> Result<Open, OpenError> {
    let made = within(netns, || tap::Tap::new(config));
    let tap = made.map_err(|source| OpenError::Tap {
        name: config.name.clone(),
        source,
    })?;
    Ok(Open::new(Kind::Tap(tap.gone()), vec![tap]))
}

/// Makes a tap in a network namespace (`None`: our own) by which packets that have come in by a device
/// are given to its kernel: there they come in by that device. `device` is its index, `mac` its
/// address.
///
/// # Errors
/// As [`tap()`]; there is no such device; a kernel without the modules sch_ingress, cls_u32 and
/// act_mirred.
pub fn punt_tap(netns: Option<&Path>, device: u32, mac: [u8; 6]) -> Result<Open, OpenError> {
    let name = format!("punt{device}");
    let made = within(netns, || {
        let tap = tap::Tap::new(&tap::Config {
            name: name.clone(),
            mac: Some(mac),
            deaf: true,
            ..tap::Config::default()
        })?;
        let index = netdev::index(&name).ok_or(io::ErrorKind::NotFound)?;
        redirect::ingress(index, device)?;
        tap.set_up()?;
        Ok(tap)
    });
    let tap = made.map_err(|source| OpenError::Tap { name, source })?;
    Ok(Open::new(Kind::Tap(tap.gone()), vec![tap]))
}

/// A port of these queues, in software.
pub fn software<P: Port + 'static>(queues: Vec<P>) -> Open {
    Open::new(Kind::Null, queues)
}

/// A port from which nothing comes, and which drops what it is given.
pub fn null() -> Open {
    software(vec![null::Null])
}
