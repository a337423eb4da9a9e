//! AF_XDP: packets of any Linux interface in shared memory, with the kernel's driver in place.
//!
//! [`Interface::open`] binds one socket to each queue and returns a [`Queue`] (a port) for each.
//! The packet memory is the workers' pool itself. The XDP program on the interface decides which
//! packets come: it redirects them to the sockets ([`Interface::each_socket`]). Sending needs no
//! program.
//!
//! Modes are tried one by one with explicit flags, from which the kernel never falls back. Generic
//! mode is the program's matter: for the socket it is a copy mode.

mod counters;
mod owned;
mod queue;
mod ring;
mod socket;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use rustix::net::xdp::SocketAddrXdpFlags as Flags;

use graph::{Pool, Port, PortCounters};
use kernel::ethtool::Ethtool;
use kernel::netdev;

pub use queue::Queue;

/// The way of packets from the driver to the sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The best that works: zero-copy, else copy.
    #[default]
    Auto,
    /// The driver uses our memory. Error if it cannot.
    ZeroCopy,
    /// The kernel copies, the program runs in the driver.
    Copy,
    /// The kernel copies, the program runs on socket buffers (any driver).
    Generic,
}

impl std::str::FromStr for Mode {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "auto" => Ok(Mode::Auto),
            "zero-copy" => Ok(Mode::ZeroCopy),
            "copy" => Ok(Mode::Copy),
            "generic" => Ok(Mode::Generic),
            _ => Err(format!(
                "mode {s} is none of auto, zero-copy, copy, generic"
            )),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Auto => "auto",
            Mode::ZeroCopy => "zero-copy",
            Mode::Copy => "copy",
            Mode::Generic => "generic",
        })
    }
}

/// Reason why an interface cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such interface in this network namespace.
    #[error("{0}: no such interface")]
    NoInterface(String),
    /// The pool's buffers are not chunks that AF_XDP takes.
    #[error("AF_XDP needs packet buffers of 2048 or 4096 bytes, the pool has {0}")]
    Stride(usize),
    /// Somebody else's socket is on the queue.
    #[error("{interface} queue {queue}: another AF_XDP socket uses it: stop that program")]
    Busy {
        /// Name.
        interface: String,
        /// Queue.
        queue: u32,
    },
    /// The interface has fewer queues than were asked for.
    #[error(
        "{interface} has no receive queue {queue}: lower `queues`, or see `ethtool -L {interface}`"
    )]
    NoQueue {
        /// Name.
        interface: String,
        /// Queue.
        queue: u32,
    },
    /// The mode that was asked for does not work here.
    #[error("{interface} queue {queue}: {mode} is not available ({source}): use mode auto")]
    Unavailable {
        /// Name.
        interface: String,
        /// Queue.
        queue: u32,
        /// As asked for.
        mode: Mode,
        /// Error of the kernel.
        source: io::Error,
    },
    /// A system call failed.
    #[error("{interface}: {doing}: {source}{}", advice(.source))]
    Os {
        /// Name.
        interface: String,
        /// Operation that failed.
        doing: &'static str,
        /// Error of the kernel.
        source: io::Error,
    },
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; run as root or with CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF and CAP_SYS_RESOURCE"
        }
        _ => "",
    }
}

/// The control side of an interface: its mode, sockets and kernel counters.
#[derive(Debug)]
pub struct Interface {
    name: String,
    zero_copy: bool,
    chains: bool,
    lacks: Vec<String>,
    /// The queues own the sockets: with a queue its socket closes.
    sockets: Vec<(Weak<OwnedFd>, PortCounters)>,
    gone: Arc<AtomicBool>,
}

impl Interface {
    /// Opens `queues` queues (all of the interface's if `None`) of the interface `name` in the
    /// calling thread's network namespace, with `pool` (stride 2048 or 4096) as packet memory.
    ///
    /// # Errors
    /// No such interface, a queue in use, a forced mode that does not work, no permission
    /// (CAP_NET_RAW).
    pub fn open(
        name: &str,
        queues: Option<u32>,
        mode: Mode,
        pool: &Arc<Pool>,
    ) -> Result<(Self, Vec<Queue>), Error> {
        let ifindex = netdev::index(name).ok_or_else(|| Error::NoInterface(name.to_owned()))?;
        if ![2048, 4096].contains(&pool.stride()) {
            return Err(Error::Stride(pool.stride()));
        }
        let os = |doing| {
            move |source| Error::Os {
                interface: name.to_owned(),
                doing,
                source,
            }
        };
        let count = queues.or_else(|| self::queues(name)).unwrap_or(1).max(1);
        let mut interface = Self {
            name: name.to_owned(),
            zero_copy: false,
            chains: false,
            lacks: Vec::new(),
            sockets: Vec::new(),
            gone: Arc::default(),
        };
        let mut ports = Vec::new();
        let mut shared: Option<Arc<OwnedFd>> = None;
        for queue in 0..count {
            let (fd, rings) = match &shared {
                None => interface.first(ifindex, mode, pool)?,
                Some(shared) => {
                    let fd = socket::open().map_err(os("opening a socket"))?;
                    let rings = socket::rings(&fd).map_err(os("making its rings"))?;
                    socket::bind_shared(&fd, ifindex, queue, shared)
                        .map_err(|e| interface.refused(queue, mode, e))?;
                    (fd, rings)
                }
            };
            let fd = Arc::new(fd);
            let modes = [interface.zero_copy, interface.chains];
            let port = Queue::new(
                format!("{name}/{queue}"),
                fd.clone(),
                rings,
                pool.clone(),
                modes,
                interface.gone.clone(),
            )
            .map_err(os("making an eventfd"))?;
            interface
                .sockets
                .push((Arc::downgrade(&fd), port.counters()));
            shared.get_or_insert(fd);
            ports.push(port);
        }
        Ok((interface, ports))
    }

    /// Opens the first queue and finds the mode that works.
    fn first(
        &mut self,
        ifindex: u32,
        mode: Mode,
        pool: &Pool,
    ) -> Result<(OwnedFd, socket::Rings), Error> {
        let tries: &[Flags] = match mode {
            Mode::Auto => &[Flags::XDP_ZEROCOPY, Flags::XDP_COPY],
            Mode::ZeroCopy => &[Flags::XDP_ZEROCOPY],
            Mode::Copy | Mode::Generic => &[Flags::XDP_COPY],
        };
        let mut last = io::Error::from_raw_os_error(libc::EOPNOTSUPP);
        for &kind in tries {
            for chains in [Flags::XDP_USE_SG, Flags::empty()] {
                // A socket that failed to bind is not used again.
                let os = |doing| {
                    let interface = self.name.clone();
                    move |source| Error::Os {
                        interface,
                        doing,
                        source,
                    }
                };
                let fd = socket::open().map_err(os("opening an AF_XDP socket"))?;
                socket::register(&fd, pool).map_err(os("registering packet memory"))?;
                let rings = socket::rings(&fd).map_err(os("making rings"))?;
                let flags = kind | chains | Flags::XDP_USE_NEED_WAKEUP;
                match socket::bind(&fd, ifindex, 0, flags) {
                    Ok(()) => {
                        self.zero_copy =
                            socket::is_zero_copy(&fd).map_err(os("asking for the mode"))?;
                        self.chains = !chains.is_empty();
                        if !self.chains {
                            self.lacks.push(format!("multi-buffer: {last}"));
                        }
                        return Ok((fd, rings));
                    }
                    Err(e) if e.raw_os_error() == Some(libc::EBUSY) => {
                        return Err(self.refused(0, mode, e));
                    }
                    Err(e) => {
                        if kind == Flags::XDP_ZEROCOPY && chains.is_empty() {
                            self.lacks.push(format!("zero-copy: {e}"));
                        }
                        last = e;
                    }
                }
            }
        }
        Err(self.refused(0, mode, last))
    }

    fn refused(&self, queue: u32, mode: Mode, source: io::Error) -> Error {
        let interface = self.name.clone();
        match source.raw_os_error() {
            Some(libc::EBUSY) => Error::Busy { interface, queue },
            // The first queue was taken with the same words, so this is about the number.
            Some(libc::EINVAL) if queue > 0 => Error::NoQueue { interface, queue },
            _ if mode == Mode::Auto => Error::Os {
                interface,
                doing: "binding an AF_XDP socket",
                source,
            },
            _ => Error::Unavailable {
                interface,
                queue,
                mode,
                source,
            },
        }
    }

    /// Name of the interface.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True if the driver uses the packet memory itself, as the kernel reports it. If not, packets
    /// are copied; where, in the driver or on socket buffers, depends on how the program is
    /// attached.
    pub fn zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// True if packets longer than a buffer can be sent and received.
    pub fn long_packets(&self) -> bool {
        self.chains
    }

    /// Modes that were tried and refused before one worked: each with the kernel's error.
    pub fn lacks(&self) -> &[String] {
        &self.lacks
    }

    /// Calls `f` with each queue's number and socket, for the XDP program's map. Stops at the first
    /// error.
    pub fn each_socket<E>(
        &self,
        mut f: impl FnMut(u32, BorrowedFd<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        for (queue, (fd, _)) in (0..).zip(&self.sockets) {
            if let Some(fd) = fd.upgrade() {
                f(queue, fd.as_fd())?;
            }
        }
        Ok(())
    }

    /// True if the interface has vanished. Its queues are dead then; open it again when it is back.
    pub fn gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    /// Reads the kernel's counters into those of the ports. Call it now and then from the control
    /// thread.
    pub fn refresh(&self) {
        for (fd, counters) in &self.sockets {
            if let Some(Ok(s)) = fd.upgrade().map(|fd| socket::statistics(&fd)) {
                let values = [
                    s.rx_dropped,
                    s.rx_ring_full.unwrap_or(0),
                    s.rx_fill_ring_empty_descs.unwrap_or(0),
                    s.rx_invalid_descs,
                    s.tx_invalid_descs,
                ];
                for (index, value) in values.into_iter().enumerate() {
                    counters.set(index, value);
                }
            }
        }
    }
}

/// True if this kernel has packets longer than a buffer: Linux 6.6 and later. A driver may still
/// take none without a copy.
pub fn has_long_packets() -> bool {
    /// An index that no interface has: a kernel that knows the flag goes on to look for it.
    const NONE: u32 = i32::MAX as u32;
    let flags = Flags::XDP_COPY | Flags::XDP_USE_SG;
    let bound = socket::open().and_then(|socket| socket::bind(&socket, NONE, 0, flags));
    bound.err().and_then(|error| error.raw_os_error()) != Some(libc::EINVAL)
}

/// Receive queues of an interface of the calling thread's network namespace; `None` if there is
/// none of that name or its driver does not say.
pub fn queues(name: &str) -> Option<u32> {
    counts(name).map(|(now, _)| now)
}

/// As [`queues`], but how many there may be with an XDP program on it: a driver may add one for
/// each of `processors`, as virtio-net does. That of veth adds none, however many there may be.
pub fn queues_with_program(name: &str, processors: u32) -> Option<u32> {
    let (now, most) = counts(name)?;
    let is_veth = netdev::driver(name).is_some_and(|driver| driver == "veth");
    let added = if is_veth { 0 } else { processors };
    Some(most.min(now + added).max(now))
}

/// Receive queues now, and at most.
fn counts(name: &str) -> Option<(u32, u32)> {
    let queues = Ethtool::open(None)
        .ok()?
        .queues(netdev::index(name)?)
        .ok()?;
    queues.rx
}
