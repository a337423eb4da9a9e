//! ICMP for IPv6 (RFC 4443), and the protocols that its messages belong to.

use crate::{checksum, icmp, ip, ip6};

pub use crate::icmp::{CHECKSUM_AT, Header, LEN};

/// Type of "destination unreachable".
pub const UNREACHABLE: u8 = 1;
/// Type of "packet too big"; the MTU of the next link follows the checksum.
pub const TOO_BIG: u8 = 2;
/// Type of "time exceeded".
pub const TIME_EXCEEDED: u8 = 3;
/// Type of "parameter problem"; the offset of the wrong byte follows the checksum.
pub const PARAMETER_PROBLEM: u8 = 4;
/// Type of an echo request.
pub const ECHO_REQUEST: u8 = 128;
/// Type of the answer to an echo request.
pub const ECHO_REPLY: u8 = 129;
/// Type of a router solicitation (RFC 4861).
pub const ROUTER_SOLICITATION: u8 = 133;
/// Type of a router advertisement (RFC 4861).
pub const ROUTER_ADVERTISEMENT: u8 = 134;
/// Type of a neighbor solicitation (RFC 4861).
pub const NEIGHBOR_SOLICITATION: u8 = 135;
/// Type of a neighbor advertisement (RFC 4861).
pub const NEIGHBOR_ADVERTISEMENT: u8 = 136;
/// Type of a redirect (RFC 4861).
pub const REDIRECT: u8 = 137;

/// Code of "unreachable": there is no route to the destination.
pub const NO_ROUTE: u8 = 0;
/// Code of "unreachable": forbidden by the administrator.
pub const PROHIBITED: u8 = 1;
/// Code of "unreachable": beyond the scope of the source address.
pub const BEYOND_SCOPE: u8 = 2;
/// Code of "unreachable": the address does not answer.
pub const ADDRESS: u8 = 3;
/// Code of "unreachable": no one listens on the port.
pub const PORT: u8 = 4;
/// Code of "time exceeded": the hop limit has run out in transit.
pub const IN_TRANSIT: u8 = 0;

/// The most bytes of the offending packet that an error quotes: the error must not exceed the least
/// MTU (RFC 4443 section 2.4, c).
pub const MAX_QUOTE: usize = ip6::MIN_MTU as usize - ip6::LEN - LEN;

/// Errors, known or not; the other messages are informational (RFC 4443 section 2.1).
pub const fn is_error(kind: u8) -> bool {
    kind < 128
}

/// Neighbor and router discovery, redirects among it (RFC 4861).
pub const fn is_neighbor_discovery(kind: u8) -> bool {
    matches!(kind, ROUTER_SOLICITATION..=REDIRECT)
}

/// Multicast listener discovery (RFC 2710, RFC 3810).
pub const fn is_listener_discovery(kind: u8) -> bool {
    matches!(kind, 130..=132 | 143)
}

/// Computes and sets the checksum of a whole message between two addresses; one that is too short
/// is left alone.
pub fn seal(src: [u8; 16], dst: [u8; 16], message: &mut [u8]) {
    let sum = |message: &[u8]| checksum::transport(src, dst, ip::ICMP6, message);
    icmp::seal(message, sum);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn round_trip(src: [u8; 16], dst: [u8; 16], kind: u8, code: u8, rest: u32, payload: [u8; 13]) {
            let header = Header::new(kind, code, rest);
            let mut message = [&header.bytes()[..], &payload].concat();
            seal(src, dst, &mut message);
            let read = Header::parse(&message).unwrap().0;
            prop_assert_eq!((read.kind, read.code, read.rest()), (kind, code, rest));
            prop_assert_eq!(read.checksum(), u16::from_be_bytes([message[2], message[3]]));
            prop_assert_eq!(checksum::transport(src, dst, ip::ICMP6, &message), 0);
        }
    }

    #[test]
    fn protocols() {
        assert!(is_neighbor_discovery(NEIGHBOR_SOLICITATION) && is_neighbor_discovery(REDIRECT));
        assert!(!is_neighbor_discovery(ECHO_REQUEST) && !is_error(ECHO_REQUEST));
        assert!(is_error(TOO_BIG) && is_error(127) && !is_error(ROUTER_SOLICITATION));
    }
}
