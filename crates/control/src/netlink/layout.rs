//! Layouts of route messages: the fixed header of each kind, and the numbers that libc lacks.
//!
//! From linux/rtnetlink.h, linux/if_link.h, linux/if_addr.h, linux/neighbour.h, linux/nexthop.h and
//! linux/fib_rules.h. Fields are in the machine's byte order.

use zerocopy::{FromBytes, Immutable, IntoBytes};

use kernel::netlink::{Attributes, Builder};

/// Address family of requests for every family (AF_UNSPEC).
pub const UNSPEC: u8 = 0;
/// Address family of IPv4 (AF_INET).
pub const INET: u8 = 2;
/// Address family of IPv6 (AF_INET6).
pub const INET6: u8 = 10;

// libc has them as 32-bit numbers.
const _: () = assert!(
    UNSPEC as i32 == libc::AF_UNSPEC
        && INET as i32 == libc::AF_INET
        && INET6 as i32 == libc::AF_INET6
);

pub const RTM_NEWNEXTHOP: u16 = 104;
pub const RTM_DELNEXTHOP: u16 = 105;
pub const RTM_GETNEXTHOP: u16 = 106;
pub const RTM_NEWLINKPROP: u16 = 108;
pub const RTM_DELLINKPROP: u16 = 109;

/// A route's next-hop object.
pub const RTA_NH_ID: u16 = 30;
/// Within RTA_METRICS.
pub const RTAX_MTU: u16 = 2;
/// Where a policy rule stands.
pub const FRA_PRIORITY: u16 = 6;

/// A next-hop object's number.
pub const NHA_ID: u16 = 1;
/// Members, each a [`Member`].
pub const NHA_GROUP: u16 = 2;
/// A flag.
pub const NHA_BLACKHOLE: u16 = 4;
/// Index of a device.
pub const NHA_OIF: u16 = 5;
/// An address of the header's family.
pub const NHA_GATEWAY: u16 = 6;
pub const NHA_ENCAP_TYPE: u16 = 7;
/// A flag: for a bridge's forwarding table.
pub const NHA_FDB: u16 = 11;

/// The fixed header of a message. Its first byte is the family.
pub trait Header: FromBytes + IntoBytes + Immutable + Sized {
    /// The header of a request that says no more than a family (`AF_*`).
    fn of(family: u8) -> Self {
        let mut header = Self::new_zeroed();
        header.as_mut_bytes()[0] = family;
        header
    }

    /// A message of a type (`RTM_*`) that begins with this.
    fn message(&self, kind: u16) -> Builder {
        Builder::new(kind, self.as_bytes())
    }
}

/// Reads a header, and what comes after it as attributes; `None` if it is cut off.
pub fn read<H: FromBytes>(bytes: &[u8]) -> Option<(H, Attributes<'_>)> {
    let (header, rest) = H::read_from_prefix(bytes).ok()?;
    Some((header, Attributes(rest)))
}

/// `struct ifinfomsg`: a link.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct LinkHeader {
    pub family: u8,
    pub reserved: u8,
    /// ARPHRD_*.
    pub kind: u16,
    pub index: u32,
    /// IFF_*.
    pub flags: u32,
    /// Those of the flags that a request changes.
    pub change: u32,
}

/// `struct ifaddrmsg`: an address.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct AddressHeader {
    pub family: u8,
    /// Prefix length.
    pub length: u8,
    /// IFA_F_*.
    pub flags: u8,
    /// RT_SCOPE_*.
    pub scope: u8,
    /// Index of the device.
    pub link: u32,
}

/// `struct ndmsg`: a neighbor.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct NeighborHeader {
    pub family: u8,
    pub reserved: [u8; 3],
    /// Index of the device.
    pub link: u32,
    /// NUD_*.
    pub state: u16,
    /// NTF_*.
    pub flags: u8,
    pub kind: u8,
}

/// `struct rtmsg`: a route.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct RouteHeader {
    pub family: u8,
    /// Prefix length of the destination.
    pub length: u8,
    pub source_length: u8,
    pub tos: u8,
    /// RT_TABLE_*; RTA_TABLE overrides it.
    pub table: u8,
    pub protocol: u8,
    pub scope: u8,
    /// RTN_*.
    pub kind: u8,
    /// RTM_F_*.
    pub flags: u32,
}

/// `struct rtnexthop`: a hop in RTA_MULTIPATH.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct HopHeader {
    /// Bytes, with the attributes that follow.
    pub length: u16,
    pub flags: u8,
    /// Its share of the flows, less 1.
    pub share: u8,
    /// Index of the device.
    pub link: u32,
}

/// `struct nhmsg`: a next-hop object.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct NexthopHeader {
    pub family: u8,
    pub scope: u8,
    pub protocol: u8,
    pub reserved: u8,
    pub flags: u32,
}

/// `struct nexthop_grp`: a member of a group of next-hop objects.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Member {
    pub id: u32,
    /// Its weight less 1, the low byte; the high one is of kernels from 6.12.
    pub weight: u8,
    pub weight_high: u8,
    pub reserved: u16,
}

/// `struct fib_rule_hdr`: a policy rule.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct RuleHeader {
    pub family: u8,
    pub destination_length: u8,
    pub source_length: u8,
    pub tos: u8,
    /// RT_TABLE_*.
    pub table: u8,
    pub reserved: [u8; 2],
    pub action: u8,
    pub flags: u32,
}

impl Header for LinkHeader {}
impl Header for AddressHeader {}
impl Header for NeighborHeader {}
impl Header for RouteHeader {}
impl Header for NexthopHeader {}
impl Header for RuleHeader {}
