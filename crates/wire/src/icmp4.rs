//! ICMP for IPv4 (RFC 792; errors of a router as of RFC 1812 section 4.3, next-hop MTU as of RFC 1191).

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{checksum, ip4, view};

/// Type of the answer to an echo request.
pub const ECHO_REPLY: u8 = 0;
/// Type of "destination unreachable".
pub const UNREACHABLE: u8 = 3;
/// Type of "source quench", obsolete (RFC 6633).
pub const SOURCE_QUENCH: u8 = 4;
/// Type of "redirect".
pub const REDIRECT: u8 = 5;
/// Type of an echo request.
pub const ECHO_REQUEST: u8 = 8;
/// Type of "time exceeded".
pub const TIME_EXCEEDED: u8 = 11;
/// Type of "parameter problem".
pub const PARAMETER_PROBLEM: u8 = 12;

/// The most bytes of the offending packet that an error quotes: the error is not to exceed 576 bytes (RFC 1812, section
/// 4.3.2.3).
pub const MAX_QUOTE: usize = 576 - ip4::LEN - LEN;

/// What a router tells a packet's source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// There is no route.
    NetUnreachable,
    /// The next hop does not answer.
    HostUnreachable,
    /// Nobody takes this protocol.
    ProtocolUnreachable,
    /// Nobody listens on this port.
    PortUnreachable,
    /// The packet is larger than the next link and must not be fragmented.
    FragmentationNeeded {
        /// Bytes that do fit.
        mtu: u16,
    },
    /// Forbidden by administration.
    Prohibited,
    /// The TTL is used up.
    TtlExceeded,
    /// Something in the header is wrong.
    ParameterProblem {
        /// Offset of the wrong byte.
        pointer: u8,
    },
}

impl Error {
    /// Type, code, and the four bytes that follow the checksum.
    pub const fn fields(self) -> (u8, u8, u32) {
        match self {
            Self::NetUnreachable => (UNREACHABLE, 0, 0),
            Self::HostUnreachable => (UNREACHABLE, 1, 0),
            Self::ProtocolUnreachable => (UNREACHABLE, 2, 0),
            Self::PortUnreachable => (UNREACHABLE, 3, 0),
            Self::FragmentationNeeded { mtu } => (UNREACHABLE, 4, mtu as u32),
            Self::Prohibited => (UNREACHABLE, 13, 0),
            Self::TtlExceeded => (TIME_EXCEEDED, 0, 0),
            Self::ParameterProblem { pointer } => (PARAMETER_PROBLEM, 0, (pointer as u32) << 24),
        }
    }

    /// Writes the ICMP message about `packet` (from its IPv4 header on; link padding after it is not quoted) to the start of
    /// `out` and returns its length. `None` if `packet` has no header or `out` no room.
    pub fn write(self, packet: &[u8], out: &mut [u8]) -> Option<usize> {
        let total = usize::from(ip4::Header::parse(packet)?.0.total_len());
        let quote = &packet[..packet.len().min(total.max(ip4::LEN)).min(MAX_QUOTE)];
        let out = out.get_mut(..LEN + quote.len())?;
        let (kind, code, rest) = self.fields();
        out[..LEN].copy_from_slice(Header::new(kind, code, rest).bytes());
        out[LEN..].copy_from_slice(quote);
        seal(out);
        Some(out.len())
    }
}

/// Messages of this type report an error; no error is ever sent about them (RFC 1812, section 4.3.2.7).
pub const fn is_error(kind: u8) -> bool {
    matches!(
        kind,
        UNREACHABLE | SOURCE_QUENCH | REDIRECT | TIME_EXCEEDED | PARAMETER_PROBLEM
    )
}

/// The header common to all messages.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    /// Type.
    pub kind: u8,
    /// Meaning depends on the type.
    pub code: u8,
    checksum: U16,
    rest: U32,
}

view!(Header, 8);

impl Header {
    /// A header without a checksum; `rest` is what follows it: identifier and sequence number of an echo, for example.
    pub fn new(kind: u8, code: u8, rest: u32) -> Self {
        Self {
            kind,
            code,
            checksum: U16::ZERO,
            rest: rest.into(),
        }
    }

    /// The checksum field.
    pub fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// The four bytes after the checksum.
    pub fn rest(&self) -> u32 {
        self.rest.get()
    }
}

/// Computes the checksum of a whole message and puts it in; too short a message is left alone.
pub fn seal(message: &mut [u8]) {
    if let Some((header, _)) = Header::parse_mut(message) {
        header.checksum = U16::ZERO;
        let sum = checksum::of(message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

        #[test]
        fn an_error_about_any_bytes(packet in prop::collection::vec(any::<u8>(), 0..700), room in 0usize..700) {
            let mut out = vec![0; room];
            if let Some(len) = Error::TtlExceeded.write(&packet, &mut out) {
                prop_assert!(len <= MAX_QUOTE + LEN);
                prop_assert_eq!(&out[LEN..len], &packet[..len - LEN]);
                prop_assert_eq!(checksum::of(&out[..len]), 0);
            } else {
                prop_assert!(packet.len() < ip4::LEN || room < LEN + packet.len().min(MAX_QUOTE));
            }
        }
    }

    #[test]
    fn errors_quote_the_packet_and_not_its_padding() {
        let header = ip4::Header::new(1, 2, ip4::UDP, 8);
        let mut packet = header.bytes().to_vec();
        packet.resize(46, 7);
        let mut out = [0; 576];
        let len = Error::FragmentationNeeded { mtu: 1400 }
            .write(&packet, &mut out)
            .unwrap();
        assert_eq!(len, LEN + 28);
        let read = Header::parse(&out).unwrap().0;
        assert_eq!((read.kind, read.code, read.rest()), (UNREACHABLE, 4, 1400));
        assert_eq!(out[LEN..len], packet[..28]);
        assert!(is_error(read.kind) && !is_error(ECHO_REQUEST));
    }
}
