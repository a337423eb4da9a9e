//! Ports that are no network devices: memif, tap, capture files, and the one that loses all.

use std::fs;
use std::io;

use ::io::{memif, tap};
use control::config::desired::Interface;
use control::config::{self, PortKind, Role};
use ports::{Open, OpenError};
use tracing::info;

use super::device::Device;
use super::opener::Opener;

/// A port that is no network device; a tap is the kernel's end of it.
pub struct Software;

impl Device for Software {
    fn numbers(&self) -> usize {
        2
    }

    fn port(&self, opener: &mut Opener, config: &Interface) -> Result<Option<Open>, OpenError> {
        port(opener, config).map(Some)
    }
}

/// Opens the port.
fn port(opener: &Opener, config: &Interface) -> Result<Open, OpenError> {
    let Some(port) = config.port() else {
        return Ok(ports::null());
    };
    match &port.kind {
        PortKind::Memif(memif) => opener.host.memif(memif_config(config, memif)?),
        PortKind::Tap { .. } => {
            let settings = tap::Config {
                name: port.tap(&config.name).unwrap_or_default(),
                mtu: config.mtu.map(u32::from),
                up: true,
                ..tap::Config::default()
            };
            opener.host.tap(opener.netns.as_deref(), &settings)
        }
        PortKind::Pcap { rx, tx } => ports::pcap(&config.name, rx.as_deref(), tx.as_deref()),
        _ => Ok(ports::null()),
    }
}

// The language allows just what a memif can be.
const _: () =
    assert!(config::Secret::MEMIF == memif::SECRET && config::Memif::RINGS == memif::QUEUES);

fn memif_config(config: &Interface, m: &config::Memif) -> io::Result<memif::Config> {
    let socket = m.socket.to_str();
    let socket = socket.ok_or_else(|| io::Error::other("the socket's path is not UTF-8"))?;
    let role = match m.role {
        Role::Server => memif::Role::Server,
        Role::Client => memif::Role::Client,
    };
    let directory = m.socket.parent().filter(|d| !d.as_os_str().is_empty());
    let is_file = !socket.starts_with('@');
    if let Some(directory) = directory.filter(|d| m.role == Role::Server && is_file && !d.exists())
    {
        let (name, shown) = (&config.name, directory.display());
        let failed = |e: io::Error| {
            let what = format!("cannot make directory {shown} of the memif's socket: {e}");
            io::Error::new(e.kind(), what)
        };
        fs::create_dir_all(directory).map_err(failed)?;
        info!("interface {name}: made directory {shown} for the memif's socket");
    }
    Ok(memif::Config {
        id: m.id,
        queues: m.rings,
        log2_ring: m.ring_size.max(2).ilog2() as u8,
        secret: m.secret.as_ref().map(|s| s.reveal().to_owned()),
        ..memif::Config::new(&config.name, socket, role)
    })
}
