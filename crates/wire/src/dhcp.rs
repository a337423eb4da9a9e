//! DHCP (RFC 2131 section 2): the field of a message that the packet path reads.

/// Offset of the client's Ethernet address in the message (`chaddr`).
pub const CLIENT_MAC_AT: usize = 28;
