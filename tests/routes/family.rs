//! What differs between the families of addresses.

use std::collections::BTreeSet;

use tables::prefix::{Address, Prefix};
use tables::synthetic;

use crate::harness::craft::{Ip4, Ip6};
use crate::harness::random::Random;
use crate::harness::topology::{self, H0, HOST, HOST6, R0};

/// A family of addresses.
pub trait Family: Address {
    /// What the router calls it.
    const SHOW: &'static str;
    /// Behind the right host, by a route of the topology.
    const FAR: Self;
    /// Lengths of prefixes, shortest and longest, that leave the topology its own networks.
    const LENGTHS: [u8; 2];

    /// Routes like the Internet's.
    fn synthetic(count: usize, seed: u64) -> Vec<Prefix<Self>>;

    /// An address of these bits or, if there are too many, the last of them.
    fn of(bits: u128) -> Self;

    /// Whether an address is in a network of the topology or the host.
    fn ours(self) -> bool;

    /// One of 16 neighbors of a side.
    fn gateway(side: usize, number: usize) -> Self;

    /// A packet from the left host to this address.
    fn packet(self, id: u16) -> Vec<u8>;
}

impl Family for u32 {
    const SHOW: &'static str = "ip";
    const FAR: Self = 0x3002_0001;
    const LENGTHS: [u8; 2] = [9, 32];

    fn synthetic(count: usize, seed: u64) -> Vec<Prefix<Self>> {
        synthetic::ip4::routes(count, seed)
    }

    fn of(bits: u128) -> Self {
        bits as u32
    }

    fn ours(self) -> bool {
        [16, 48, 127, 198].contains(&(self >> 24))
    }

    fn gateway(side: usize, number: usize) -> Self {
        u32::from(HOST[side]) + number as u32 % 16
    }

    fn packet(self, id: u16) -> Vec<u8> {
        Ip4::udp([16, 0, 0, 1].into(), self.into(), id, 26).frame(H0, R0)
    }
}

impl Family for u128 {
    const SHOW: &'static str = "ip6";
    const FAR: Self = 0x2001_0db8_4802_0000_0000_0000_0000_0001;
    const LENGTHS: [u8; 2] = [4, 128];

    fn synthetic(count: usize, seed: u64) -> Vec<Prefix<Self>> {
        synthetic::ip6::routes(count, seed)
    }

    fn of(bits: u128) -> Self {
        bits
    }

    fn ours(self) -> bool {
        self >> 96 == 0x2001_0db8
    }

    fn gateway(side: usize, number: usize) -> Self {
        u128::from(HOST6[side]) + number as u128 % 16
    }

    fn packet(self, id: u16) -> Vec<u8> {
        Ip6::udp(topology::ip6(0x1600, 1), self.into(), id, 26).frame(H0, R0)
    }
}

/// An address in a prefix.
pub fn inside<A: Family>(random: &mut Random, prefix: Prefix<A>) -> A {
    let bits = u128::from(random.bits()) << 64 | u128::from(random.bits());
    prefix.addr() | A::of(bits) & !A::mask(prefix.len())
}

/// Prefixes as in the Internet's table, and one in a hundred of any length; none of them the
/// topology's own.
pub fn prefixes<A: Family>(random: &mut Random, count: usize) -> Vec<Prefix<A>> {
    let mut found = BTreeSet::new();
    let mut taken = |prefix: &Prefix<A>| !prefix.addr().ours() && found.insert(*prefix);
    let [shortest, longest] = A::LENGTHS;
    // Some more than wanted, for those that are left out.
    let made = A::synthetic(count + count / 16 + 16, random.bits());
    let made = made.into_iter().map(|prefix| match random.below(100) {
        0 => {
            let length = shortest + random.below(usize::from(longest - shortest) + 1) as u8;
            Prefix::cut(inside(random, prefix), length)
        }
        _ => prefix,
    });
    let prefixes: Vec<_> = made.filter(|p| taken(p)).take(count).collect();
    assert_eq!(prefixes.len(), count);
    prefixes
}
