//! What the router does only so often, with all its workers together.

use crate::bucket::{Allowance, TokenBucket};
use crate::punt::{Class, allowances};
use crate::{arp, icmp4};

/// One for all workers of a router.
#[derive(Debug)]
pub struct Limits {
    /// Neighbors that the kernel is asked for.
    pub(crate) asks: Allowance,
    /// Packets that go to the host, by class.
    pub(crate) host: [Allowance; Class::COUNT],
    /// ICMP errors.
    pub(crate) icmp4: TokenBucket,
}

impl Limits {
    /// Nothing is used up.
    pub(crate) fn new() -> Self {
        Limits {
            asks: arp::allowance(),
            host: allowances(),
            icmp4: icmp4::allowance(),
        }
    }
}
