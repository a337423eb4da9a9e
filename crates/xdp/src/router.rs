//! The router's programs, one instance for each port, and the tables that they share.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tables::mem::Cells;

use crate::Verdict;
use crate::attach::{Attachment, Mode};
use crate::error::Error;
use crate::map::{ARRAY, MMAPABLE, Map, Mapping, Shared};
use crate::object::{Loaded, elf};
use crate::sys::MapSpec;

/// Bytes and words of a map's value: one cache line.
const LINE: u32 = 64;
const WORDS: u32 = 16;
/// First level of the DIR-24-8 table: 2^24 words.
const FIRST_LINES: u32 = 1 << 20;
/// A second-level group is 256 words.
const GROUP_LINES: u32 = 256 / WORDS;
/// The config word: the flag above the 48 bits of the address.
const L2: u64 = 1 << 48;

/// How large the tables are; each a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSizes {
    /// Second-level groups, 1 KiB each: one for each /24 that holds a longer prefix.
    pub second_groups: u32,
    /// Next-hop groups, 64 bytes each.
    pub nexthop_groups: u32,
    /// Adjacencies, 64 bytes each.
    pub adjacencies: u32,
}

impl Default for TableSizes {
    fn default() -> Self {
        Self {
            second_groups: 1 << 16,
            nexthop_groups: 1 << 12,
            adjacencies: 1 << 12,
        }
    }
}

/// The memory of the tables, for `tables` to build upon. The programs read it, userspace alone writes it.
#[derive(Clone)]
pub struct Tables {
    /// DIR-24-8 first level: 2^24 words.
    pub first: Cells,
    /// DIR-24-8 second level: 256 words a group.
    pub second: Cells,
    /// Next-hop groups: 16 words each.
    pub groups: Cells,
    /// Adjacencies: 16 words each.
    pub adjacencies: Cells,
}

/// The tables in BPF maps, and what is needed to put the program on ports. One for a daemon.
pub struct Router {
    maps: TableMaps,
    tables: Tables,
}

struct TableMaps {
    first: Map,
    second: Map,
    groups: Map,
    adjacencies: Map,
}

impl TableMaps {
    fn new(sizes: TableSizes) -> Result<Self, Error> {
        let array = |name: &str, count: u32, lines_each: u32| {
            let entries = count
                .checked_mul(lines_each)
                .filter(|_| count.is_power_of_two());
            let entries = entries
                .filter(|entries| *entries <= 1 << 26)
                .ok_or_else(|| {
                    Error::Parameter(format!(
                        "table size {count} ({name}) is not a power of two, or too large"
                    ))
                })?;
            Map::new(
                MapSpec {
                    kind: ARRAY,
                    key: 4,
                    value: LINE,
                    entries,
                    flags: MMAPABLE,
                },
                name,
            )
        };
        Ok(Self {
            first: array("ip4_first", FIRST_LINES, 1)?,
            second: array("ip4_second", sizes.second_groups, GROUP_LINES)?,
            groups: array("nexthop_groups", sizes.nexthop_groups, 1)?,
            adjacencies: array("adjacencies", sizes.adjacencies, 1)?,
        })
    }
}

impl Router {
    /// Makes the tables (64 MiB for the first level, the rest as asked), all zero: no route anywhere.
    ///
    /// # Errors
    /// [`Error::Permission`], [`Error::Parameter`] for sizes that are no powers of two, or no memory.
    pub fn new(sizes: TableSizes) -> Result<Self, Error> {
        crate::sys::unlimit_locked_memory();
        let maps = TableMaps::new(sizes)?;
        let tables = Tables {
            first: maps.first.cells()?,
            second: maps.second.cells()?,
            groups: maps.groups.cells()?,
            adjacencies: maps.adjacencies.cells()?,
        };
        Ok(Self { maps, tables })
    }

    /// The tables' memory. It stays valid after the router is dropped.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Puts the program on an interface, in the first of `modes` that works. Sockets are registered afterwards; until
    /// then the kernel gets everything.
    ///
    /// # Errors
    /// [`Error::Conflict`] if another XDP program is there, [`Error::Attach`], [`Error::NoInterface`],
    /// [`Error::Permission`], or a program that this kernel refuses.
    pub fn attach(
        &self,
        ifindex: u32,
        config: PortConfig,
        modes: &[Mode],
    ) -> Result<RouterPort, Error> {
        let mut port = self.load(config)?;
        port.attachment = Some(Attachment::new(port.program.as_fd(), ifindex, modes)?);
        Ok(port)
    }

    /// A port's program that is on no interface: for dry runs ([`RouterPort::run_once`]).
    ///
    /// # Errors
    /// As [`attach`](Self::attach).
    pub fn load(&self, config: PortConfig) -> Result<RouterPort, Error> {
        let shared = [("first", &self.maps.first), ("second", &self.maps.second)];
        let program = Loaded::new(elf!("router"), "parshall_router", &shared)?;
        let variables = Arc::new(program.map(".bss").mapping()?);
        let port = RouterPort {
            program,
            variables,
            attachment: None,
        };
        port.configure(config);
        Ok(port)
    }
}

/// What a port's program needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// The interface's own address: frames to any other stay with the kernel.
    pub mac: [u8; 6],
    /// Everything goes to the socket: the interface is the router's alone (bridge member, bond member, cross connect).
    pub l2: bool,
}

impl PortConfig {
    /// The address in memory order in the low 48 bits, then the flags.
    fn encode(self) -> u64 {
        let m = self.mac;
        let low = u32::from_ne_bytes([m[0], m[1], m[2], m[3]]);
        let high = u16::from_ne_bytes([m[4], m[5]]);
        u64::from(low) | u64::from(high) << 32 | if self.l2 { L2 } else { 0 }
    }
}

/// Packets that a port's program has seen, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Left to the kernel (also when there is no socket on the queue).
    pub passed: u64,
    /// Given to the sockets. What a socket had no room for is counted there (`XDP_STATISTICS`).
    pub redirected: u64,
}

/// The variables of a port's program.
#[repr(C)]
struct Variables {
    port: AtomicU64,
}

// SAFETY: repr(C), one atomic.
#[allow(unsafe_code)]
unsafe impl Shared for Variables {}

/// The program on one interface. Dropping it takes the program off and the kernel forwards again.
#[derive(Debug)]
pub struct RouterPort {
    program: Loaded,
    variables: Arc<Mapping>,
    attachment: Option<Attachment>,
}

impl RouterPort {
    /// Where the program runs; None if it was only loaded.
    pub fn attachment(&self) -> Option<&Attachment> {
        self.attachment.as_ref()
    }

    /// Changes the port's address or mode; packets see it from the next one on.
    pub fn configure(&self, config: PortConfig) {
        self.variables
            .view::<Variables>()
            .port
            .store(config.encode(), Ordering::Relaxed);
    }

    /// Changes the port's address; its mode stays.
    pub fn set_mac(&self, mac: [u8; 6]) {
        let port = &self.variables.view::<Variables>().port;
        let l2 = port.load(Ordering::Relaxed) & L2 != 0;
        self.configure(PortConfig { mac, l2 });
    }

    /// Gives the packets of a receive queue (at most 256 of them) to an AF_XDP socket, in place of an earlier one.
    ///
    /// # Errors
    /// The descriptor is no AF_XDP socket with rings, or the queue number is too large.
    pub fn register(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), Error> {
        let socket = socket.as_raw_fd() as u32;
        self.program
            .map("xsks")
            .set(queue, socket)
            .map_err(Error::doing("registering an AF_XDP socket"))
    }

    /// Gives a queue's packets back to the kernel. A socket that closes does so by itself.
    ///
    /// # Errors
    /// The queue number is too large.
    pub fn unregister(&self, queue: u32) -> Result<(), Error> {
        match self.program.map("xsks").unset(queue) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(Error::doing("removing an AF_XDP socket")(e))
            }
            _ => Ok(()),
        }
    }

    /// The counters, summed over CPUs.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn counters(&self) -> Result<PortCounters, Error> {
        let sum = self.program.map("counters").sum::<2>(0);
        let [passed, redirected] = sum.map_err(Error::doing("reading the counters of a port"))?;
        Ok(PortCounters { passed, redirected })
    }

    /// What the program does with a packet that arrives on queue 0; it goes nowhere, but it is counted.
    ///
    /// # Errors
    /// A packet shorter than 14 bytes.
    pub fn run_once(&self, packet: &[u8]) -> Result<Verdict, Error> {
        self.program.run_once(packet)
    }
}
