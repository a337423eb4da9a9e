//! ICMP for IPv6 (RFC 4443): the protocols that its messages belong to.

/// Neighbor and router discovery, redirects among it (RFC 4861).
pub const fn is_neighbor_discovery(kind: u8) -> bool {
    matches!(kind, 133..=137)
}

/// Multicast listener discovery (RFC 2710, RFC 3810).
pub const fn is_listener_discovery(kind: u8) -> bool {
    matches!(kind, 130..=132 | 143)
}
