//! Limits on what all workers together do in a second.

use crate::bond::lacp;
use crate::bucket::{Allowance, BySender, TokenBucket};
use crate::punt::{Class, allowances};
use crate::{icmp, neighbor};

/// The limits of a router.
#[derive(Debug)]
pub struct Limits {
    /// On neighbors that the kernel is asked for.
    pub(crate) asks: Allowance,
    /// On LACPDUs and markers that are taken in.
    pub(crate) lacp: Allowance,
    /// On packets to the host, by class.
    pub(crate) host: [Allowance; Class::COUNT],
    /// On ICMP errors other than "fragmentation needed".
    pub(crate) icmp4: TokenBucket,
    /// On ICMPv6 errors other than "packet too big".
    pub(crate) icmp6: TokenBucket,
    /// On TCP resets of the firewall's.
    pub(crate) resets: TokenBucket,
    /// On "packet too big" and "fragmentation needed", by sender (Linux does not limit them at all):
    /// without them a connection stands still.
    pub(crate) too_big: BySender,
}

impl Limits {
    /// Limits with nothing used up, for interfaces 0 to `interfaces` - 1.
    pub(crate) fn new(interfaces: usize) -> Self {
        Limits {
            asks: neighbor::allowance(interfaces),
            lacp: lacp::allowance(interfaces),
            host: allowances(interfaces),
            icmp4: icmp::allowance(),
            icmp6: icmp::allowance(),
            resets: icmp::allowance(),
            too_big: icmp::too_big_allowance(),
        }
    }
}
