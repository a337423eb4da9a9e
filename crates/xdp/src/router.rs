//! The router's programs, one instance for each port, and what they share: tables, counters, ways
//! out.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use kernel::netdev;
use tables::mem::LINE;
use tables::{Memory, Sizes};

use crate::Verdict;
use crate::attach::Attachment;
use crate::device::Device;
use crate::error::Error;
use crate::inventory::{self, Features};
use crate::map::{ARRAY, DEVMAP, MMAPABLE, Map, PERCPU_ARRAY, Shared};
use crate::mode::Mode;
use crate::object::{Loaded, elf};
use crate::receiver;
use crate::sys::{self, MapSpec};

/// Bytes of a table's line, which is a map's value.
const LINE_BYTES: u32 = sys::count(4 * LINE);
/// Lines of the largest table: 4 GiB. Some kernels compute the place of a line in a map in 32 bits.
const MOST: usize = 1 << 26;

/// Reasons for which the programs drop packets: stage and edge of the graph that say the same.
/// `enum drop` of router.bpf.c.
pub const DROPS: [(&str, &str); 5] = [
    ("ip4-input", "BadChecksum"),
    ("ip4-lookup", "Blackhole"),
    ("ip4-rewrite", "Gone"),
    ("ip6-lookup", "Blackhole"),
    ("ip6-rewrite", "Gone"),
];
/// Words of `struct counters` of router.bpf.c.
const WORDS: usize = 6 + DROPS.len();

/// The tables in BPF maps, and what is needed to put the program on ports. One for a daemon.
pub struct Router {
    /// The tables.
    maps: Vec<(&'static str, Map)>,
    memory: Memory,
    /// By interface: what the programs did, and the devices that they may send by.
    counters: Map,
    egress: Map,
    interfaces: u32,
}

impl Router {
    /// Makes the tables (64 MiB for the first level, the rest as asked), all zero: no interface, no
    /// route anywhere.
    ///
    /// # Errors
    /// [`Error::Permission`], [`Error::Parameter`] for sizes that are no powers of two or too large,
    /// or no memory.
    pub fn new(sizes: Sizes) -> Result<Self, Error> {
        sys::unlimit_locked_memory();
        let mut maps = Vec::new();
        let memory = Memory::of(sizes, |name, words| {
            let map = Map::new(table(name, words / LINE)?, name)?;
            let cells = map.cells()?;
            maps.push((name, map));
            Ok(cells)
        })?;
        let by_interface = |kind, value, name| {
            let spec = MapSpec {
                kind,
                key: 4,
                value,
                entries: sizes.interfaces,
                flags: 0,
            };
            Map::new(spec, name)
        };
        Ok(Self {
            maps,
            memory,
            counters: by_interface(PERCPU_ARRAY, sys::count(8 * WORDS), "counters")?,
            egress: by_interface(DEVMAP, 4, "egress")?,
            interfaces: sizes.interfaces,
        })
    }

    /// The tables' memory, for `tables` to build upon: the programs read it, userspace alone writes
    /// it. It stays valid after the router is dropped.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Puts the program on a device, in the first of `modes` that works. The line of `interface` in
    /// the table of interfaces says what it does with packets; until that is up and sockets are
    /// registered, the kernel gets everything.
    ///
    /// # Errors
    /// [`Error::Conflict`] if another XDP program is there, [`Error::Attach`],
    /// [`Error::NoInterface`], [`Error::Permission`], or a program that this kernel refuses.
    pub fn attach(
        &self,
        ifindex: u32,
        interface: u16,
        modes: &[Mode],
    ) -> Result<RouterPort, Error> {
        let mut port = self.load(interface)?;
        port.attachment = Some(Attachment::new(port.program.as_fd(), ifindex, modes)?);
        Ok(port)
    }

    /// A port's program that is on no device: for dry runs ([`RouterPort::run_once`]).
    ///
    /// # Errors
    /// As [`attach`](Self::attach).
    pub fn load(&self, interface: u16) -> Result<RouterPort, Error> {
        let mut shared: Vec<_> = self.maps.iter().map(|(name, map)| (*name, map)).collect();
        shared.extend([("counters", &self.counters), ("egress", &self.egress)]);
        let program = Loaded::new(elf!("router"), "parshall_router", &shared)?;
        let variables = program.map(".bss").mapping()?;
        let number = &variables.view::<Variables>().interface;
        // Relaxed: the program runs only after a later system call.
        number.store(u64::from(interface), Ordering::Relaxed);
        Ok(RouterPort {
            program,
            attachment: None,
        })
    }

    /// The device by which programs send what is for an interface; it must be in the calling
    /// thread's namespace. They do once the interface's [`Lane`](tables::interface::Lane) says that
    /// they may. Returns what the kernel says that the device can do; None if it does not say
    /// (before Linux 6.3): then the caller has to know that it takes redirected frames.
    ///
    /// The kernel forgets a device that is deleted or goes to another namespace
    /// ([`has_egress`](Self::has_egress)).
    ///
    /// # Errors
    /// [`Error::AnotherDevice`] if the index means another device than it did,
    /// [`Error::NoInterface`], [`Error::NoTransmit`], or what the kernel says.
    pub fn set_egress(&self, interface: u16, device: &Device) -> Result<Option<Features>, Error> {
        let ifindex = device.ifindex;
        device.check()?;
        let features = inventory::features(ifindex)?;
        if features.is_some_and(|can| !can.transmit()) {
            let name = netdev::name(ifindex).ok_or(Error::NoInterface(ifindex))?;
            return Err(Error::NoTransmit { interface: name });
        }
        let set = self.egress.set(interface.into(), ifindex);
        set.map_err(|e| match e.raw_os_error() {
            Some(libc::EINVAL) => Error::NoInterface(ifindex),
            _ => Error::doing("setting a device to send by")(e),
        })?;
        Ok(features)
    }

    /// True if the kernel still has a device to send by for an interface. Without one, programs
    /// drop what is for it, as `Gone` of [`DROPS`].
    ///
    /// # Errors
    /// The number is too large, or what the kernel says.
    pub fn has_egress(&self, interface: u16) -> Result<bool, Error> {
        if u32::from(interface) >= self.interfaces {
            return Err(Error::Parameter(format!("no interface {interface}")));
        }
        let has = self.egress.has(interface.into());
        has.map_err(Error::doing("asking for a device to send by"))
    }

    /// Takes the device back. What a program had on its way there is lost: end the interface's lane
    /// first, and wait for a grace period ([`Grace`](crate::Grace)).
    ///
    /// # Errors
    /// Error of the kernel.
    pub fn unset_egress(&self, interface: u16) -> Result<(), Error> {
        let unset = self.egress.unset(interface.into());
        unset.map_err(Error::doing("removing a device to send by"))
    }

    /// Counts of an interface's packets, by what the programs did with them, summed over CPUs.
    ///
    /// # Errors
    /// The number is too large, or what the kernel says.
    pub fn counters(&self, interface: u16) -> Result<Counters, Error> {
        let sum = self.counters.sum::<WORDS>(interface.into());
        let sum = sum.map_err(Error::doing("reading the counters of an interface"))?;
        let [
            passed,
            redirected,
            rx_packets,
            rx_bytes,
            tx_packets,
            tx_bytes,
            drops @ ..,
        ] = sum;
        Ok(Counters {
            passed,
            redirected,
            rx_packets,
            rx_bytes,
            tx_packets,
            tx_bytes,
            drops,
        })
    }
}

/// Counts of an interface's packets, by what the programs did with them. Bytes are without the
/// frame check sequence (FCS).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Received by it and left to the kernel (also when there is no socket on the queue).
    pub passed: u64,
    /// Received by it and given to the sockets. What a socket had no room for is counted there
    /// (`XDP_STATISTICS`).
    pub redirected: u64,
    /// Received by it and forwarded or dropped by the program.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Given to its device by programs, wherever they came in. What is lost after that is not taken
    /// off: see [`DeviceCounters`](crate::DeviceCounters).
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Received by it and dropped by the program, by reason: [`DROPS`].
    pub drops: [u64; DROPS.len()],
}

/// The variables of a port's program.
#[repr(C)]
struct Variables {
    /// Number of the port's interface.
    interface: AtomicU64,
}

// SAFETY: repr(C), one atomic.
#[allow(unsafe_code)]
unsafe impl Shared for Variables {}

/// The program on one device. Dropping it takes the program off and the kernel forwards again.
#[derive(Debug)]
pub struct RouterPort {
    program: Loaded,
    attachment: Option<Attachment>,
}

impl RouterPort {
    /// Attachment to the interface; None if the program was only loaded.
    pub fn attachment(&self) -> Option<&Attachment> {
        self.attachment.as_ref()
    }

    /// Gives the packets of a receive queue (at most 256 of them) to an AF_XDP socket, in place of
    /// an earlier one.
    ///
    /// # Errors
    /// The descriptor is no AF_XDP socket with rings, or the queue number is too large.
    pub fn register(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), Error> {
        receiver::register(&self.program, queue, socket)
    }

    /// Gives a queue's packets back to the kernel. A socket that closes does so by itself.
    ///
    /// # Errors
    /// The queue number is too large.
    pub fn unregister(&self, queue: u32) -> Result<(), Error> {
        let unset = self.program.map("xsks").unset(queue);
        unset.map_err(Error::doing("removing an AF_XDP socket"))
    }

    /// Verdict of the program on a packet that arrives on queue 0, and the packet as it is
    /// afterwards; it goes nowhere, but it is counted.
    ///
    /// # Errors
    /// A packet shorter than 14 bytes, or longer than a page holds beside the kernel's own (about
    /// 3,500).
    pub fn run_once(&self, packet: &[u8]) -> Result<(Verdict, Vec<u8>), Error> {
        self.program.run_once(packet)
    }
}

/// A table's map: an array of lines.
fn table(name: &str, lines: usize) -> Result<MapSpec, Error> {
    let refused = |why: String| Err(Error::Parameter(format!("table {name}: {why}")));
    if !lines.is_power_of_two() {
        return refused(format!("{lines} lines are not a power of two"));
    }
    if lines > MOST {
        let [needed, most] = [lines, MOST].map(|lines| (lines * 4 * LINE) >> 20);
        return refused(format!(
            "{needed} MiB are more than the {most} MiB that a BPF map may have: ask for fewer lines"
        ));
    }
    Ok(MapSpec {
        kind: ARRAY,
        key: 4,
        value: LINE_BYTES,
        entries: sys::count(lines),
        flags: MMAPABLE,
    })
}

#[cfg(test)]
mod tests {
    use tables::mem::Cells;

    use super::*;

    /// Shows that XDP programs can have all that a configuration may ask for.
    #[test]
    fn the_most_routes_that_may_be_asked_for_fit_into_maps() {
        let fit = |routes| {
            let sizes = Sizes::default();
            let sizes = sizes.for_ip4_routes(routes).for_ip6_routes(routes);
            Memory::of(sizes, |name, words| {
                table(name, words / LINE).map(|_| Cells::boxed(LINE))
            })
        };
        assert!(fit(Sizes::MOST_ROUTES).is_ok());
        let error = fit(2 * Sizes::MOST_ROUTES).unwrap_err().to_string();
        let says = "table ip4_second: 8192 MiB are more than the 4096 MiB that a BPF map may have";
        assert!(error.contains(says), "{error}");
        let error = table("adjacencies", 3).unwrap_err().to_string();
        assert!(error.contains("3 lines are not a power of two"), "{error}");
    }
}
