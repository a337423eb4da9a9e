//! Numbers of the protocols above IPv4 and IPv6 (IANA, "Protocol Numbers").

/// Hop-by-hop options of IPv6 (RFC 8200 section 4.3).
pub const HOP_BY_HOP: u8 = 0;
/// ICMP for IPv4 (RFC 792).
pub const ICMP: u8 = 1;
/// IGMP (RFC 3376).
pub const IGMP: u8 = 2;
/// IPv4 in IP (RFC 2003).
pub const IP4: u8 = 4;
/// TCP (RFC 9293).
pub const TCP: u8 = 6;
/// UDP (RFC 768).
pub const UDP: u8 = 17;
/// IPv6 in IP (RFC 4213).
pub const IP6: u8 = 41;
/// RSVP (RFC 2205).
pub const RSVP: u8 = 46;
/// The routing header of IPv6 (RFC 8200 section 4.4).
pub const ROUTING: u8 = 43;
/// The fragment header of IPv6 (RFC 8200 section 4.5).
pub const FRAGMENT: u8 = 44;
/// GRE (RFC 2784).
pub const GRE: u8 = 47;
/// ESP (RFC 4303).
pub const ESP: u8 = 50;
/// The authentication header (RFC 4302).
pub const AH: u8 = 51;
/// ICMP for IPv6 (RFC 4443).
pub const ICMP6: u8 = 58;
/// No header follows in IPv6 (RFC 8200 section 4.7).
pub const NO_NEXT_HEADER: u8 = 59;
/// Destination options of IPv6 (RFC 8200 section 4.6).
pub const DESTINATION_OPTIONS: u8 = 60;
/// EIGRP (RFC 7868).
pub const EIGRP: u8 = 88;
/// OSPF (RFC 2328, RFC 5340).
pub const OSPF: u8 = 89;
/// PIM (RFC 7761).
pub const PIM: u8 = 103;
/// VRRP (RFC 9568).
pub const VRRP: u8 = 112;
/// SCTP (RFC 9260).
pub const SCTP: u8 = 132;
/// UDP-Lite (RFC 3828).
pub const UDP_LITE: u8 = 136;

/// True if the protocol's header begins with a source and a destination port.
#[inline(always)]
pub const fn has_ports(proto: u8) -> bool {
    matches!(proto, TCP | UDP | SCTP | UDP_LITE)
}

/// Explicit congestion notification: the low two bits of IPv4's type of service and of IPv6's
/// traffic class (RFC 3168 section 5).
pub mod ecn {
    /// The sender does not understand it.
    pub const NOT_ECT: u8 = 0;
    /// The sender understands it: ECT(1).
    pub const ECT1: u8 = 1;
    /// The sender understands it: ECT(0).
    pub const ECT0: u8 = 2;
    /// A router on the way has met congestion.
    pub const CE: u8 = 3;
}
