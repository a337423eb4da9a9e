//! DHCP (RFC 2131 section 2): what the packet path must find in a message.

/// Where in the message the client's Ethernet address begins (`chaddr`).
pub const CLIENT_MAC_AT: usize = 28;
