//! What workers read of the state beside the tables: immutable, published as a whole.

use crate::change::{InterfaceId, Mac};

/// Interfaces that a router can have, index 0 (never an interface) included.
pub const INTERFACES: usize = 256;

/// How an interface's packets are taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// No such interface, or it is down: nothing is taken in.
    #[default]
    Down,
    /// Routed.
    Routed,
    /// Routed, has a twin, and no address yet: the host may be asking a DHCP server for one.
    Unaddressed,
    /// The kernel's end of another interface.
    Twin(InterfaceId),
}

/// An interface as the packet path sees it.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(32))]
pub struct Face {
    /// Ethernet address, its first byte lowest; compared with the first 48 bits of a frame read as a little-endian number.
    pub mac: u64,
    /// How packets are taken in.
    pub mode: Mode,
    /// The tap by which the host is reached; 0 for none.
    pub twin: InterfaceId,
    /// Largest IP packet in bytes.
    pub mtu: u16,
}

impl Face {
    /// `mac` as [`Face::mac`] holds it.
    pub fn number(mac: Mac) -> u64 {
        let [a, b, c, d, e, f] = mac;
        u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
    }
}

/// The published state.
#[derive(Debug)]
pub struct Snapshot {
    /// By interface.
    pub faces: [Face; INTERFACES],
    /// An own address to send from where the adjacency names none; 0 for none.
    pub source: u32,
}

impl Default for Snapshot {
    fn default() -> Self {
        Snapshot {
            faces: [Face::default(); INTERFACES],
            source: 0,
        }
    }
}
