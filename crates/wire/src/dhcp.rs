//! DHCP (RFC 2131 section 2): the field of a message that the packet path reads.

/// Where in the message the client's Ethernet address begins (`chaddr`).
pub const CLIENT_MAC_AT: usize = 28;
