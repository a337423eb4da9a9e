//! The machine that a daemon runs on.

use std::any::Any;
use std::cell::RefCell;
use std::error::Error;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use ::io::{af_xdp, memif, tap};
use control::config::Desired;
use control::mirror::{Mirror, Options};
use control::netlink::{self, Namespaces};
use graph::Pool;
use kernel::ethtool::Ethtool;
use kernel::netns::within;
use ports::{Device, Open, OpenError, Receive};
use router::{Grace, InterfaceId, Mac};
use tables::{Memory, Sizes};
use tracing::warn;

use crate::inbox::Message;

/// The daemon's machine: the kernel's namespaces and news of them, and ports.
///
/// [`Linux`] is the running one. Tests have one in memory.
pub trait Host {
    /// The kernel, by network namespace.
    fn namespaces(&self) -> Namespaces;
    /// Asks for news of all that the kernel has done by now: a batch with
    /// [`CaughtUp`](control::facts::Event::CaughtUp) and the number that is returned ends them.
    fn catch_up(&self) -> u64;
    /// Settings of the kernel that are in the router's way, a sentence each.
    fn warnings(&self) -> Vec<String>;
    /// Returns true if there are XDP programs for network devices.
    fn has_programs(&self) -> bool;
    /// Returns true if a device can be opened so that packets may be longer than a buffer.
    fn has_long_packets(&self) -> bool;
    /// Receive queues of a device; `None`: it is not there.
    fn queues(&self, device: &str) -> Option<u32>;
    /// Name of somebody else's XDP program on a device of a namespace.
    ///
    /// # Errors
    /// The device is not there; the kernel's.
    fn foreign_program(&self, netns: Option<&Path>, link: u32)
    -> Result<Option<String>, OpenError>;
    /// Opens a network device by AF_XDP, with `pool` as packet memory.
    ///
    /// # Errors
    /// It is not there, is somebody else's, or cannot do what is asked.
    fn device(&self, device: &DeviceQueues<'_>, pool: &Arc<Pool>) -> Result<Open, OpenError>;
    /// Makes a tap in a namespace.
    ///
    /// # Errors
    /// Its name is taken or is none; the kernel's.
    fn tap(&self, netns: Option<&Path>, config: &tap::Config) -> Result<Open, OpenError>;
    /// Makes a tap in a namespace by which packets come in there by the device of this index and
    /// Ethernet address.
    ///
    /// # Errors
    /// Its name is taken; there is no such device; the kernel's.
    fn punt_tap(&self, netns: Option<&Path>, device: u32, mac: Mac) -> Result<Open, OpenError>;
    /// Opens a memif.
    ///
    /// # Errors
    /// Values out of range, a socket or an id that is taken.
    fn memif(&self, config: memif::Config) -> Result<Open, OpenError>;
    /// Makes a device take in frames to every station, until what is returned is dropped.
    ///
    /// # Errors
    /// The device is not there; the kernel's.
    fn promiscuous(&self, link: u32) -> io::Result<Promiscuous>;
    /// A socket that datagrams to this address are sent by, which never waits.
    ///
    /// # Errors
    /// The kernel's.
    fn udp_socket(&self, to: SocketAddr) -> io::Result<UdpSocket>;
    /// Packets that the XDP program has seen on an interface; `None`: it has none.
    fn program_counters(&self, interface: InterfaceId) -> Option<xdp::Counters>;
    /// The source of devices' speed, rings and offloads; `None`: there is none.
    fn ethtool(&self) -> Option<Ethtool>;
}

/// What keeps a device promiscuous.
pub type Promiscuous = Box<dyn Any>;

/// A network device, and how it is opened.
pub struct DeviceQueues<'a> {
    /// Name of the device.
    pub name: &'a str,
    /// Queues; `None`: all that it has.
    pub queues: Option<u32>,
    /// The way of packets from the driver to the sockets.
    pub mode: af_xdp::Mode,
    /// The interface that packets come in by.
    pub interface: InterfaceId,
}

/// The running Linux: ports and kernel of one network namespace.
pub struct Linux {
    netns: Option<PathBuf>,
    programs: Option<xdp::Router>,
    ports: RefCell<ports::Opener>,
    mirror: Mirror,
}

impl Linux {
    /// Loads the XDP programs, if a configuration may have devices, with tables of these sizes, and
    /// starts the mirror of the kernel, whose batches go to `sender`.
    ///
    /// # Errors
    /// The programs cannot be loaded; the namespace cannot be entered.
    pub fn start(
        config: &Desired,
        sizes: Sizes,
        sender: SyncSender<Message>,
    ) -> Result<Self, Box<dyn Error>> {
        let netns = config.netns.as_deref();
        let programs = config.may_have_devices().then(|| xdp::Router::new(sizes));
        let options = Options {
            netns: config.netns.clone(),
            ..Options::default()
        };
        Ok(Linux {
            programs: programs.transpose()?,
            ports: ports::Opener::new(netns).into(),
            netns: config.netns.clone(),
            mirror: Mirror::start(options, sender)?,
        })
    }

    /// The memory of tables of these sizes: the one that the XDP programs read, where there are
    /// some.
    ///
    /// # Errors
    /// The operating system's, when there is not enough.
    pub fn memory(&self, sizes: Sizes) -> io::Result<Memory> {
        match &self.programs {
            Some(programs) => Ok(programs.memory().clone()),
            None => Memory::mapped(sizes),
        }
    }

    /// Waits until no XDP program on any processor reads what was there before; `None`: there is
    /// none.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn grace(&self) -> Result<Option<Grace>, xdp::Error> {
        if self.programs.is_none() {
            return Ok(None);
        }
        let grace = xdp::Grace::new()?;
        Ok(Some(Box::new(move || {
            let waited = grace.wait();
            waited.inspect_err(|e| warn!("{e}")).is_ok()
        })))
    }
}

impl Host for Linux {
    fn namespaces(&self) -> Namespaces {
        netlink::namespaces()
    }

    fn catch_up(&self) -> u64 {
        self.mirror.catch_up()
    }

    fn warnings(&self) -> Vec<String> {
        netlink::warnings(self.netns.as_deref())
    }

    fn has_programs(&self) -> bool {
        self.programs.is_some()
    }

    fn has_long_packets(&self) -> bool {
        af_xdp::has_long_packets()
    }

    fn queues(&self, device: &str) -> Option<u32> {
        queues(self.netns.as_deref(), device)
    }

    fn foreign_program(
        &self,
        netns: Option<&Path>,
        link: u32,
    ) -> Result<Option<String>, OpenError> {
        Ok(within(netns, || Ok(ports::foreign_program(link)))??)
    }

    fn device(&self, device: &DeviceQueues<'_>, pool: &Arc<Pool>) -> Result<Open, OpenError> {
        let missing = || OpenError::Setup(io::Error::other("no XDP programs were loaded"));
        let programs = self.programs.as_ref().ok_or_else(missing)?;
        let device = Device {
            name: device.name,
            queues: device.queues,
            mode: device.mode,
            receive: Receive::Router(programs, device.interface),
        };
        self.ports.borrow().device(&device, pool)
    }

    fn tap(&self, netns: Option<&Path>, config: &tap::Config) -> Result<Open, OpenError> {
        ports::tap(netns, config)
    }

    fn punt_tap(&self, netns: Option<&Path>, device: u32, mac: Mac) -> Result<Open, OpenError> {
        ports::punt_tap(netns, device, mac.0)
    }

    fn memif(&self, config: memif::Config) -> Result<Open, OpenError> {
        self.ports.borrow_mut().memif(config)
    }

    fn promiscuous(&self, link: u32) -> io::Result<Promiscuous> {
        let on = within(self.netns.as_deref(), || {
            kernel::promiscuous::Promiscuous::new(link)
        })?;
        Ok(Box::new(on))
    }

    fn udp_socket(&self, to: SocketAddr) -> io::Result<UdpSocket> {
        within(self.netns.as_deref(), || udp_socket(to))
    }

    fn program_counters(&self, interface: InterfaceId) -> Option<xdp::Counters> {
        self.programs.as_ref()?.counters(interface).ok()
    }

    fn ethtool(&self) -> Option<Ethtool> {
        Ethtool::open(self.netns.as_deref()).ok()
    }
}

/// A socket of this thread's namespace for datagrams to an address, which never waits.
pub fn udp_socket(to: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Processors that there are for the router.
pub fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

/// Receive queues of a device of a namespace that a program will serve; `None`: it is not there.
pub fn queues(netns: Option<&Path>, device: &str) -> Option<u32> {
    let ask = || Ok(af_xdp::queues_with_program(device, processors()));
    within(netns, ask).ok().flatten()
}
