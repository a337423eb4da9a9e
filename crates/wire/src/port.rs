//! Well-known ports of TCP and UDP (IANA, "Service Name and Transport Protocol Port Number
//! Registry").

/// DHCP, at the server (RFC 2131).
pub const DHCP_SERVER: u16 = 67;
/// DHCP, at the client.
pub const DHCP_CLIENT: u16 = 68;
/// BGP (RFC 4271).
pub const BGP: u16 = 179;
/// RIP (RFC 2453).
pub const RIP: u16 = 520;
/// RIPng (RFC 2080).
pub const RIPNG: u16 = 521;
/// DHCPv6, at the client (RFC 8415).
pub const DHCP6_CLIENT: u16 = 546;
/// DHCPv6, at the server.
pub const DHCP6_SERVER: u16 = 547;
/// LDP (RFC 5036).
pub const LDP: u16 = 646;
/// BFD over one hop (RFC 5881).
pub const BFD: u16 = 3784;
/// The echo function of BFD (RFC 5881).
pub const BFD_ECHO: u16 = 3785;
/// BFD over several hops (RFC 5883).
pub const BFD_MULTIHOP: u16 = 4784;
/// VXLAN (RFC 7348).
pub const VXLAN: u16 = 4789;
/// Babel (RFC 8966).
pub const BABEL: u16 = 6696;
/// BFD on the members of a link aggregation group (RFC 7130).
pub const BFD_LAG: u16 = 6784;
