//! Reasons for which the router answers a packet with an ICMP error, whichever its family.

use graph::Pkt;
use wire::eth;

use crate::bucket::{BySender, TokenBucket};

/// Most errors of a kind a second, and at once, as Linux's `icmp_msgs_per_sec` and
/// `icmp_msgs_burst`.
const RATE: u64 = 1000;
const BURST: u64 = 50;

/// The allowance of all workers together for a kind of errors.
pub(crate) fn allowance() -> TokenBucket {
    TokenBucket::new(RATE, BURST)
}

/// Most messages of "too big" that a sender is told a second, and at once: one is enough for each of
/// its connections, and all senders together cannot make a worker send nothing else.
const TOO_BIG_RATE: u64 = 100;
const TOO_BIG_BURST: u64 = 50;

/// The allowance of each sender for packets that are too big.
pub(crate) fn too_big_allowance() -> BySender {
    BySender::new(TOO_BIG_RATE, TOO_BIG_BURST)
}

/// Writes down why, for the node behind the edge `next`, which makes the error.
pub(crate) fn tell<N>(p: &mut Pkt<'_>, why: Error, next: N) -> N {
    p.set_argument(why.number());
    next
}

/// True if a frame is multicast or broadcast on its link: about such a packet there is no error.
pub(crate) fn is_group(frame: &[u8]) -> bool {
    eth::Header::parse(frame).is_some_and(|(ethernet, _)| ethernet.dst.is_group())
}

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
