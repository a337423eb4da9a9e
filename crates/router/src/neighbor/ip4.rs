//! ip4-arp: IPv4 packets that wait for a neighbor.

use std::net::{IpAddr, Ipv4Addr};

use graph::edges;
use wire::ip4;

use super::Packets;

edges! {
    /// Ways out of ip4-arp.
    pub enum Next {
        /// Something has changed: try again.
        Lookup => Node("ip4-lookup"),
        /// The neighbor did not answer: send an ICMP error.
        Unresolved => Node("icmp4-error") as Answered,
        /// More packets than are held for one neighbor, or for all of them.
        Full => Drop("more packets than are held for unresolved neighbors"),
        /// Too many new neighbors at once; perhaps somebody scans the network.
        Limited => Drop("more unresolved neighbors than are asked for in a second"),
    }
}

/// IPv4 packets. Their next hop may be an IPv6 neighbor all the same (RFC 8950).
pub struct Ip4;

impl Packets for Ip4 {
    const NAME: &'static str = "ip4-arp";
    type Next = Next;
    const LOOKUP: Next = Next::Lookup;
    const UNRESOLVED: Next = Next::Unresolved;
    const FULL: Next = Next::Full;
    const LIMITED: Next = Next::Limited;

    fn destination(packet: &[u8]) -> Option<IpAddr> {
        let (header, _) = ip4::Header::parse(packet)?;
        Some(Ipv4Addr::from(header.dst()).into())
    }
}
