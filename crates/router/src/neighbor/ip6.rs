//! ip6-discover-neighbor: IPv6 packets that wait for a neighbor.

use std::net::IpAddr;

use graph::edges;
use wire::ip6;

use super::Packets;

edges! {
    /// Ways out of ip6-discover-neighbor.
    pub enum Next {
        /// Something has changed: try again.
        Lookup => Node("ip6-lookup"),
        /// The neighbor did not answer: send an ICMP error.
        Unresolved => Node("icmp6-error") as Answered,
        /// More packets than are held for one neighbor, or for all of them.
        Full => Drop("more packets than are held for unresolved neighbors"),
        /// Too many new neighbors at once; perhaps somebody scans the network.
        Limited => Drop("more unresolved neighbors than are asked for in a second"),
    }
}

/// IPv6 packets.
pub struct Ip6;

impl Packets for Ip6 {
    const NAME: &'static str = "ip6-discover-neighbor";
    type Next = Next;
    const LOOKUP: Next = Next::Lookup;
    const UNRESOLVED: Next = Next::Unresolved;
    const FULL: Next = Next::Full;
    const LIMITED: Next = Next::Limited;

    fn destination(packet: &[u8]) -> Option<IpAddr> {
        let (header, _) = ip6::Header::parse(packet)?;
        Some(IpAddr::V6(header.dst.into()))
    }
}
