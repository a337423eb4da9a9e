//! Layouts of route and firewall messages: the fixed header of each kind, and the numbers that libc
//! lacks.
//!
//! From linux/rtnetlink.h, linux/if_link.h, linux/if_addr.h, linux/neighbour.h, linux/nexthop.h,
//! linux/fib_rules.h and linux/netfilter/nfnetlink.h. Fields are in the machine's byte order.

use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::{Attributes, Builder};

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

/// A next-hop object is there, or is to be made.
pub const RTM_NEWNEXTHOP: u16 = 104;
/// A next-hop object is gone, or is to go.
pub const RTM_DELNEXTHOP: u16 = 105;
/// Asks for next-hop objects.
pub const RTM_GETNEXTHOP: u16 = 106;
/// Adds alternative names to a link.
pub const RTM_NEWLINKPROP: u16 = 108;
/// Removes alternative names of a link.
pub const RTM_DELLINKPROP: u16 = 109;

/// Originator of an address (from Linux 5.18 on).
pub const IFA_PROTO: u16 = 11;
/// A route's next-hop object.
pub const RTA_NH_ID: u16 = 30;
/// Within RTA_METRICS.
pub const RTAX_MTU: u16 = 2;
/// Place of a policy rule among all.
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
/// The kind of an encapsulation.
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
    /// AF_*.
    pub family: u8,
    /// Zero.
    pub reserved: u8,
    /// ARPHRD_*.
    pub kind: u16,
    /// Index of the device; 0 for none.
    pub index: u32,
    /// IFF_*.
    pub flags: u32,
    /// Those of the flags that a request changes.
    pub change: u32,
}

impl LinkHeader {
    /// Names a link by its index; 0 names none.
    pub fn named(index: u32) -> Self {
        Self {
            index,
            ..Self::of(UNSPEC)
        }
    }
}

/// `struct ifaddrmsg`: an address.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct AddressHeader {
    /// AF_*.
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
    /// AF_*.
    pub family: u8,
    /// Zero.
    pub reserved: [u8; 3],
    /// Index of the device.
    pub link: u32,
    /// NUD_*.
    pub state: u16,
    /// NTF_*.
    pub flags: u8,
    /// RTN_*.
    pub kind: u8,
}

/// `struct rtmsg`: a route.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct RouteHeader {
    /// AF_*.
    pub family: u8,
    /// Prefix length of the destination.
    pub length: u8,
    /// Prefix length of the source.
    pub source_length: u8,
    /// Type of service.
    pub tos: u8,
    /// RT_TABLE_*; RTA_TABLE overrides it.
    pub table: u8,
    /// RTPROT_*: who made it.
    pub protocol: u8,
    /// RT_SCOPE_*.
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
    /// RTNH_F_*.
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
    /// AF_*.
    pub family: u8,
    /// RT_SCOPE_*.
    pub scope: u8,
    /// RTPROT_*: who made it.
    pub protocol: u8,
    /// Zero.
    pub reserved: u8,
    /// RTNH_F_*.
    pub flags: u32,
}

/// `struct nexthop_grp`: a member of a group of next-hop objects.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Member {
    /// Its number.
    pub id: u32,
    /// Its weight less 1, the low byte.
    pub weight: u8,
    /// The high byte; 0 before Linux 6.12.
    pub weight_high: u8,
    /// Zero.
    pub reserved: u16,
}

/// `struct fib_rule_hdr`: a policy rule.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct RuleHeader {
    /// AF_*.
    pub family: u8,
    /// Prefix length of the destination.
    pub destination_length: u8,
    /// Prefix length of the source.
    pub source_length: u8,
    /// Type of service.
    pub tos: u8,
    /// RT_TABLE_*.
    pub table: u8,
    /// Zero.
    pub reserved: [u8; 2],
    /// FR_ACT_*.
    pub action: u8,
    /// FIB_RULE_*.
    pub flags: u32,
}

/// `struct nfgenmsg`: a thing of the firewall.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct FirewallHeader {
    /// NFPROTO_*.
    pub family: u8,
    /// NFNETLINK_V0.
    pub version: u8,
    /// In network byte order.
    pub resource: [u8; 2],
}

impl Header for FirewallHeader {}
impl Header for LinkHeader {}
impl Header for AddressHeader {}
impl Header for NeighborHeader {}
impl Header for RouteHeader {}
impl Header for NexthopHeader {}
impl Header for RuleHeader {}
