//! Limits on what all workers together do in a second.

use crate::bucket::{Allowance, TokenBucket};
use crate::punt::{Class, allowances};
use crate::{icmp, neighbor};

/// The limits of a router.
#[derive(Debug)]
pub struct Limits {
    /// On neighbors that the kernel is asked for.
    pub(crate) asks: Allowance,
    /// On packets to the host, by class.
    pub(crate) host: [Allowance; Class::COUNT],
    /// On ICMP errors.
    pub(crate) icmp4: TokenBucket,
    /// On ICMPv6 errors other than "packet too big".
    pub(crate) icmp6: TokenBucket,
    /// On "packet too big", apart (Linux does not limit it at all): without it a connection stands
    /// still.
    pub(crate) too_big: TokenBucket,
}

impl Limits {
    /// Limits with nothing used up.
    pub(crate) fn new() -> Self {
        Limits {
            asks: neighbor::allowance(),
            host: allowances(),
            icmp4: icmp::allowance(),
            icmp6: icmp::allowance(),
            too_big: icmp::allowance(),
        }
    }
}
