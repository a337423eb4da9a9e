//! Why the router answers a packet with an ICMP error, whichever its family.

use std::fmt;

/// The reason of an error, as a descriptor's [`argument`](graph::Desc::argument) carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// No route.
    NoRoute,
    /// The destination does not answer, or its route says so.
    Unreachable,
    /// Forbidden by the administrator.
    Prohibited,
    /// Time to live, or hop limit, exceeded in transit.
    Expired,
    /// Larger than the next link's MTU, in bytes, and not to be cut (RFC 1191, RFC 8201).
    TooBig(u16),
}

impl Error {
    /// As a descriptor carries it.
    pub const fn number(self) -> u32 {
        match self {
            Error::NoRoute => 0,
            Error::Unreachable => 1 << 16,
            Error::Prohibited => 2 << 16,
            Error::Expired => 3 << 16,
            Error::TooBig(mtu) => 4 << 16 | mtu as u32,
        }
    }

    /// From a descriptor.
    pub const fn from_number(number: u32) -> Self {
        match number >> 16 {
            1 => Error::Unreachable,
            2 => Error::Prohibited,
            3 => Error::Expired,
            4 => Error::TooBig(number as u16),
            _ => Error::NoRoute,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoRoute => f.write_str("no route"),
            Error::Unreachable => f.write_str("unreachable"),
            Error::Prohibited => f.write_str("prohibited"),
            Error::Expired => f.write_str("expired"),
            Error::TooBig(mtu) => write!(f, "too big for mtu {mtu}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_survives_its_descriptor() {
        use Error::*;
        for error in [
            NoRoute,
            Unreachable,
            Prohibited,
            Expired,
            TooBig(0),
            TooBig(u16::MAX),
        ] {
            assert_eq!(Error::from_number(error.number()), error);
        }
    }
}
