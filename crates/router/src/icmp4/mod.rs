//! ICMP for IPv4: the errors that a router sends about packets that it forwards (RFC 792, RFC 1812
//! section 4.3).

mod error;

pub(crate) use error::allowance;
pub use error::{Errors, Next};

use wire::icmp4;

/// Type, code and MTU of an error, as a descriptor's [`argument`](graph::Desc::argument) carries
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error(u32);

impl Error {
    /// No route.
    pub const NET_UNREACHABLE: Error = Error::new(icmp4::UNREACHABLE, icmp4::NET, 0);
    /// The destination does not answer.
    pub const HOST_UNREACHABLE: Error = Error::new(icmp4::UNREACHABLE, icmp4::HOST, 0);
    /// Forbidden by the administrator.
    pub const PROHIBITED: Error = Error::new(icmp4::UNREACHABLE, icmp4::PROHIBITED, 0);
    /// Time to live exceeded in transit.
    pub const TTL_EXPIRED: Error = Error::new(icmp4::TIME_EXCEEDED, icmp4::IN_TRANSIT, 0);

    const fn new(kind: u8, code: u8, mtu: u16) -> Self {
        Error((kind as u32) << 24 | (code as u32) << 16 | mtu as u32)
    }
    /// Fragmentation needed and DF set (RFC 1191): `mtu` of the next link in bytes.
    pub const fn fragmentation_needed(mtu: u16) -> Self {
        Error::new(icmp4::UNREACHABLE, icmp4::FRAGMENTATION_NEEDED, mtu)
    }
    /// As a descriptor carries it.
    pub const fn number(self) -> u32 {
        self.0
    }
    /// From a descriptor.
    pub(crate) const fn from_number(number: u32) -> Self {
        Error(number)
    }
    /// The header of its message, without a checksum.
    fn header(self) -> icmp4::Header {
        let [kind, code, high, low] = self.0.to_be_bytes();
        icmp4::Header::new(kind, code, u16::from_be_bytes([high, low]).into())
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [kind, code, high, low] = self.0.to_be_bytes();
        write!(f, "icmp error type {kind} code {code}")?;
        match u16::from_be_bytes([high, low]) {
            0 => Ok(()),
            mtu => write!(f, " mtu {mtu}"),
        }
    }
}
