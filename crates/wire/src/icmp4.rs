//! ICMP for IPv4 (RFC 792; errors of a router as of RFC 1812 section 4.3, next-hop MTU as of RFC
//! 1191).

use crate::{checksum, icmp, ip4};

pub use crate::icmp::{CHECKSUM_AT, Header, LEN};

/// Type of the answer to an echo request.
pub const ECHO_REPLY: u8 = 0;
/// Type of "destination unreachable".
pub const UNREACHABLE: u8 = 3;
/// Type of an echo request.
pub const ECHO_REQUEST: u8 = 8;
/// Type of "time exceeded".
pub const TIME_EXCEEDED: u8 = 11;
/// Type of "parameter problem".
pub const PARAMETER_PROBLEM: u8 = 12;

/// Code of "unreachable": there is no route to the network.
pub const NET: u8 = 0;
/// Code of "unreachable": the host does not answer.
pub const HOST: u8 = 1;
/// Code of "unreachable": the host does not know the protocol.
pub const PROTOCOL: u8 = 2;
/// Code of "unreachable": no one listens on the port.
pub const PORT: u8 = 3;
/// Code of "unreachable": the packet is larger than the next link and may not be fragmented.
pub const FRAGMENTATION_NEEDED: u8 = 4;
/// Code of "unreachable": forbidden by the administrator (RFC 1812 section 5.2.7.1).
pub const PROHIBITED: u8 = 13;
/// Code of "time exceeded": the TTL has run out in transit.
pub const IN_TRANSIT: u8 = 0;

/// The most bytes of the offending packet that an error quotes: the error must not exceed 576 bytes
/// (RFC 1812 section 4.3.2.3).
pub const MAX_QUOTE: usize = 576 - ip4::LEN - LEN;

/// Queries and their answers, about which errors may be sent (RFC 1122 section 3.2.2). Router
/// discovery (9, 10) counts as an error, as it does in Linux.
pub const fn is_query(kind: u8) -> bool {
    matches!(kind, ECHO_REPLY | ECHO_REQUEST | 13..=18)
}

/// Errors, which quote the packet that they are about: RFC 792's, source quench (4) and redirect (5)
/// among them.
pub const fn is_error(kind: u8) -> bool {
    matches!(
        kind,
        UNREACHABLE | 4 | 5 | TIME_EXCEEDED | PARAMETER_PROBLEM
    )
}

/// Computes and sets the checksum of a whole message; one that is too short is left alone.
pub fn seal(message: &mut [u8]) {
    icmp::seal(message, checksum::of);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn round_trip(kind: u8, code: u8, rest: u32, payload: [u8; 13]) {
            let header = Header::new(kind, code, rest);
            let mut message = [&header.bytes()[..], &payload].concat();
            seal(&mut message);
            let read = Header::parse(&message).unwrap().0;
            prop_assert_eq!((read.kind, read.code, read.rest()), (kind, code, rest));
            prop_assert_eq!(read.checksum(), u16::from_be_bytes([message[2], message[3]]));
            prop_assert_eq!(checksum::of(&message), 0);
        }
    }
}
