//! Opening what the configuration calls a port: sockets, shared memory, taps, files; and the kernel's end of it.

mod file;
mod opened;

use control::config::{self, Config, Mode, PortKind, Role};
use control::facts::Link;
use control::netdev::{self, Devices};
use control::netlink::Requests;
use graph::{Pool, Port};
use io::wrap::Sample;
use io::{af_xdp, memif, null, tap};
use kernel::netns::within;
use opened::Kind;
pub use opened::Opened;
use router::{Grace, InterfaceId, Mac};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tables::{Memory, Sizes};
use tracing::warn;
use wire::{eth, offload};

/// MTU of an interface whose configuration names none and whose port has none of its own.
const MTU: u16 = 1500;

/// How the names of our XDP programs begin, as the kernel shows them: the router's and the load tester's.
const PROGRAMS: &str = "parshall_";
/// How long a start waits for what is held by another one, and how long between two tries.
const LETTING_GO: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

/// Counter of sampled packets with a checksum that nobody finished.
const UNFINISHED: &str = "rx-checksum-unfinished";

/// Why a port is not open.
pub enum Closed {
    /// Its device is not there yet.
    Waits(String),
    /// It cannot be.
    Failed(String),
}

impl<E: std::fmt::Display> From<E> for Closed {
    fn from(e: E) -> Self {
        Closed::Failed(e.to_string())
    }
}

/// What opens ports.
pub struct Opener {
    netns: Option<PathBuf>,
    devices: Devices,
    programs: Option<xdp::Router>,
    memifs: Option<memif::Control>,
}

impl Opener {
    /// Makes what the ports of this configuration share.
    pub fn new(config: &Config) -> Result<Self, Box<dyn Error>> {
        let any = |f: fn(&PortKind) -> bool| config.interfaces.iter().any(|i| f(&i.port.kind));
        let programs = match any(PortKind::is_device) {
            true => Some(xdp::Router::new(Sizes::default())?),
            false => None,
        };
        let memifs = match any(|k| matches!(k, PortKind::Memif(_))) {
            true => Some(memif::Control::start()?),
            false => None,
        };
        let netns = config.netns.clone();
        let devices = Devices::new(None, netns.as_deref(), netdev::NOTES.as_ref());
        Ok(Opener {
            netns,
            devices,
            programs,
            memifs,
        })
    }

    /// The tables' memory: what the XDP programs share, where there are some.
    ///
    /// # Errors
    /// The operating system's, when there is not enough.
    pub fn memory(&self) -> std::io::Result<Memory> {
        match &self.programs {
            Some(programs) => Ok(programs.memory().clone()),
            None => Memory::mapped(Sizes::default()),
        }
    }

    /// Whether there are XDP programs: they read the tables, and packet memory must suit AF_XDP.
    pub fn has_programs(&self) -> bool {
        self.programs.is_some()
    }

    /// What the XDP programs did with the packets of an interface.
    pub fn program_counters(&self, id: InterfaceId) -> Option<xdp::Counters> {
        self.programs.as_ref()?.counters(id).ok()
    }

    /// Buffers that the ports of this configuration hold at most: those of devices, the others copy.
    pub fn buffers(&self, config: &Config) -> u32 {
        let devices = config.interfaces.iter().filter(|i| i.port.kind.is_device());
        devices.map(queues).sum::<u32>() * af_xdp::Queue::HOLDS
    }

    /// Opens the port of an interface.
    pub fn open(
        &mut self,
        config: &config::Interface,
        id: InterfaceId,
        pool: &Arc<Pool>,
    ) -> Result<Opened, Closed> {
        if !config.port.kind.is_device() {
            return self.with_tap(config, id);
        }
        let waits = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::NotFound => Closed::Waits(e.to_string()),
            _ => e.into(),
        };
        let link = self.devices.prepare(config).map_err(waits)?;
        self.devices.keep_vlan_tags(config, &link).map_err(waits)?;
        self.af_xdp(config, id, &link, pool)
    }

    /// A device of the kernel, by AF_XDP.
    fn af_xdp(
        &mut self,
        config: &config::Interface,
        id: InterfaceId,
        link: &Link,
        pool: &Arc<Pool>,
    ) -> Result<Opened, Closed> {
        let programs = self.programs.as_ref().ok_or("no XDP programs were made")?;
        let (mode, attach): (_, &[xdp::Mode]) = match config.port.mode {
            Mode::Auto => (af_xdp::Mode::Auto, &[xdp::Mode::Native, xdp::Mode::Generic]),
            Mode::ZeroCopy => (af_xdp::Mode::ZeroCopy, &[xdp::Mode::Native]),
            Mode::Copy => (af_xdp::Mode::Copy, &[xdp::Mode::Native]),
            Mode::Generic => (af_xdp::Mode::Generic, &[xdp::Mode::Generic]),
        };
        // The settings first: a program may make the driver refuse some.
        netdev::configure(&mut Requests::open(self.netns.as_deref())?, link, config)?;
        if link.mac.is_none() {
            return Err(format!("{} is no Ethernet device", link.name).into());
        }
        let queues = config.port.queues.map(u32::from);
        let (program, (interface, ports)) = within(self.netns.as_deref(), || {
            let ours = |e: &xdp::Error| matches!(e, xdp::Error::Conflict { name, .. } if name.starts_with(PROGRAMS));
            let program = patiently(|| programs.attach(link.index, id, attach), ours)
                .map_err(std::io::Error::other)?;
            let busy = |e: &af_xdp::Error| matches!(e, af_xdp::Error::Busy { .. });
            let open = || af_xdp::Interface::open(&link.name, queues, mode, pool);
            let sockets = patiently(open, busy).map_err(std::io::Error::other)?;
            Ok((program, sockets))
        })?;
        interface.each_socket(|queue, socket| program.register(queue, socket))?;
        let queues = ports.len();
        let ports: Vec<_> = ports
            .into_iter()
            .map(|p| Sample::new(p, UNFINISHED, is_unfinished))
            .collect();
        let counters = ports
            .iter()
            .flat_map(|p| [p.counters(), p.found()].map(|c| (p.name().to_string(), c)))
            .collect();
        Ok(Opened {
            netdev: link.name.clone(),
            ifindex: link.index,
            has_twin: false,
            queues: ports
                .into_iter()
                .map(|p| Box::new(p) as Box<dyn Port>)
                .collect(),
            twin: None,
            counters,
            kind: Kind::AfXdp {
                interface,
                program: Some(program),
                queues,
            },
        })
    }

    /// A port without a device, and the tap that stands for it in the kernel.
    fn with_tap(&mut self, config: &config::Interface, id: InterfaceId) -> Result<Opened, Closed> {
        let (kind, queues) = self.port(config)?;
        let (ifindex, tap) = self.twin(config, id)?;
        let mut opened = Opened {
            netdev: tap.name().to_owned(),
            ifindex,
            has_twin: true,
            queues,
            twin: Some(Box::new(tap)),
            counters: Vec::new(),
            kind,
        };
        opened.add_counters();
        Ok(opened)
    }

    /// Makes again what somebody has deleted of a port without a device: its tap, or the tap that is the port itself.
    ///
    /// # Errors
    /// Why it cannot be made, in words.
    pub fn renew(
        &mut self,
        config: &config::Interface,
        id: InterfaceId,
        opened: &mut Opened,
        of_twin: bool,
    ) -> Result<(), String> {
        let done = if of_twin {
            self.twin(config, id).map(|(ifindex, tap)| {
                opened.ifindex = ifindex;
                opened.twin = Some(Box::new(tap));
            })
        } else {
            self.port(config)
                .map(|(kind, queues)| (opened.kind, opened.queues) = (kind, queues))
        };
        done.map_err(|(Closed::Waits(why) | Closed::Failed(why))| why)?;
        opened.add_counters();
        Ok(())
    }

    /// The tap that stands for a port in the kernel, and the kernel's index of it.
    fn twin(&self, config: &config::Interface, id: InterfaceId) -> Result<(u32, tap::Tap), Closed> {
        let name = config
            .lcp
            .clone()
            .unwrap_or_else(|| device_name(&config.name));
        let tap = self.tap(tap::Config {
            name: name.clone(),
            mac: Some(config.mac.unwrap_or_else(|| own_mac(&config.name, id)).0),
            mtu: Some(u32::from(config.mtu.unwrap_or(MTU))),
            up: false,
        })?;
        let mut requests = Requests::open(self.netns.as_deref())?;
        let link = requests.link_named(&name)?;
        netdev::configure(&mut requests, &link, config)?;
        Ok((link.index, tap))
    }

    fn tap(&self, config: tap::Config) -> std::io::Result<tap::Tap> {
        let failed = |e: std::io::Error| {
            let advice = match e.kind() {
                std::io::ErrorKind::ResourceBusy => ": a device has that name; choose another",
                _ => "",
            };
            std::io::Error::other(format!("making tap {}: {e}{advice}", config.name))
        };
        within(self.netns.as_deref(), || {
            tap::Tap::new(&config).map_err(failed)
        })
    }

    fn port(&mut self, config: &config::Interface) -> Result<(Kind, Vec<Box<dyn Port>>), Closed> {
        Ok(match &config.port.kind {
            PortKind::Memif(m) => {
                let memifs = self.memifs.as_ref().ok_or("no memif control was started")?;
                let (interface, queues) = memifs.add(memif_config(config, m)?)?;
                (
                    Kind::Memif(interface),
                    queues
                        .into_iter()
                        .map(|q| Box::new(q) as Box<dyn Port>)
                        .collect(),
                )
            }
            PortKind::Tap { name } => {
                let name = name
                    .clone()
                    .unwrap_or_else(|| format!("{}-port", device_name(&config.name)));
                let mtu = config.mtu.map(u32::from);
                let port = self.tap(tap::Config {
                    name,
                    mac: None,
                    mtu,
                    up: true,
                })?;
                (
                    Kind::Tap(port.gone()),
                    vec![Box::new(port) as Box<dyn Port>],
                )
            }
            PortKind::Pcap { rx, tx } => (
                Kind::Other("pcap"),
                vec![Box::new(file::open(&config.name, rx.as_deref(), tx.as_deref())?) as _],
            ),
            _ => (
                Kind::Other("null"),
                vec![Box::new(null::Null::new(Vec::new(), None)) as _],
            ),
        })
    }

    /// Undoes what was done to devices.
    pub fn restore(&mut self) {
        for (device, done) in self.devices.restore() {
            if let Err(e) = done {
                warn!("putting {} back as it was: {e}", device.name);
            }
        }
    }
}

/// A virtual link hands over what its transmit offload was to finish; redirected, it stays as it is, and is lost at its end.
fn is_unfinished(frame: &[u8]) -> bool {
    eth::Header::parse(frame).is_some_and(|(header, packet)| {
        header.ethertype() == eth::IP4 && offload::unfinished(packet)
    })
}

/// Whether a device of this name is what the interface waits for.
pub fn stands_for(config: &config::Interface, name: &str) -> bool {
    match &config.port.kind {
        PortKind::Netdev(wanted) => wanted == name,
        PortKind::Pci(_) => true,
        _ => false,
    }
}

/// Tries again for a while what another one may be about to let go of: the kernel frees sockets and programs of a
/// predecessor that was killed a moment after its end.
fn patiently<T, E>(
    mut attempt: impl FnMut() -> Result<T, E>,
    is_held: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let end = Instant::now() + LETTING_GO;
    loop {
        match attempt() {
            Err(e) if is_held(&e) && Instant::now() < end => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
}

/// What waits until no XDP program on any processor reads what was there before.
///
/// # Errors
/// What the kernel says.
pub fn grace() -> Result<Grace, xdp::Error> {
    let grace = xdp::Grace::new()?;
    Ok(Box::new(move || {
        let waited = grace.wait();
        waited.inspect_err(|e| warn!("{e}")).is_ok()
    }))
}

/// Queues that a device will have; one that is not there yet, as many as there are processors.
fn queues(config: &config::Interface) -> u32 {
    let present = match &config.port.kind {
        PortKind::Netdev(name) => af_xdp::queues(name),
        _ => None,
    };
    let processors = || std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let configured = config.port.queues.map(u32::from);
    configured.or(present).unwrap_or_else(processors)
}

// What the language allows is what a memif can be.
const _: () =
    assert!(config::Secret::MEMIF == memif::SECRET && config::Memif::RINGS == memif::QUEUES);

fn memif_config(config: &config::Interface, m: &config::Memif) -> Result<memif::Config, String> {
    let socket = m.socket.to_str().ok_or("the socket's path is not UTF-8")?;
    if let Some(directory) = m
        .socket
        .parent()
        .filter(|d| !socket.starts_with('@') && !d.as_os_str().is_empty())
    {
        std::fs::create_dir_all(directory)
            .map_err(|e| format!("making {}: {e}", directory.display()))?;
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

/// A name that the kernel takes for a device: its first 15 characters, slashes and blanks replaced.
fn device_name(name: &str) -> String {
    name.chars()
        .take(15)
        .map(|c| {
            if c == '/' || c.is_whitespace() {
                '-'
            } else {
                c
            }
        })
        .collect()
}

/// A locally administered address that stays the same over restarts: of the name and the index.
fn own_mac(name: &str, id: InterfaceId) -> Mac {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    });
    let [a, b, c, ..] = hash.to_be_bytes();
    Mac([0x02, 0xfe, a, b, c, id as u8])
}
