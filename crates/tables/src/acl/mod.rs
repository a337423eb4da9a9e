//! Access lists: the first rule that a packet matches, by addresses, protocol and ports.
//!
//! An [`Acl`] is immutable: it is compiled off the data path, and swapped as a whole. Up to 16 rules
//! are one block, which a single pass compares with a packet. Above that a tree of cuts leads each
//! packet to a few blocks. The tree only leaves out rules that cannot match: what a block says is the
//! whole rule.

mod block;
mod build;
#[cfg(test)]
mod tests;
mod tree;

use std::ops::RangeInclusive;

use crate::prefix::Prefix;
pub use tree::Acl;

/// Words of an IPv4 packet's [`Key`].
pub const IP4: usize = 3;
/// Words of an IPv6 packet's [`Key`].
pub const IP6: usize = 9;

/// Number of the rule of a packet that none matches.
pub const NONE: u32 = u32::MAX;

/// In the last word of a key, beside the protocol: its ports are known.
const PORTS: u32 = 1 << 8;
/// Nothing has this bit: what asks for it never matches.
const NEVER: u32 = 1 << 31;

/// A rule for packets of a family (`u32` or `u128`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule<A> {
    /// Where they come from.
    pub source: Prefix<A>,
    /// Where they go to.
    pub destination: Prefix<A>,
    /// Their protocol (of IPv6, the one behind the extension headers); `None`: any.
    pub protocol: Option<u8>,
    /// Their source ports, or ICMP types.
    pub source_ports: RangeInclusive<u16>,
    /// Their destination ports, or ICMP codes. A rule that does not take all of both kinds of ports
    /// matches no packet without them, such as a later fragment.
    pub destination_ports: RangeInclusive<u16>,
}

/// What rules are compared with: addresses, protocol and ports of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key<const W: usize> {
    /// The source address, the destination, and the protocol with [`PORTS`].
    words: [u32; W],
    /// The source port in the upper half, the destination's in the lower one.
    ports: u32,
}

impl<const W: usize> Key<W> {
    /// A key that is to be written.
    pub const EMPTY: Self = Key {
        words: [0; W],
        ports: 0,
    };

    #[inline(always)]
    fn new(words: [u32; W], ports: Option<(u16, u16)>) -> Self {
        let (source, destination) = ports.unwrap_or_default();
        let mut words = words;
        words[W - 1] |= if ports.is_some() { PORTS } else { 0 };
        Key {
            words,
            ports: u32::from(source) << 16 | u32::from(destination),
        }
    }
}

impl Key<IP4> {
    /// The key of an IPv4 packet. `ports` are its source and destination port, or its ICMP type and
    /// code; `None` if it does not carry them.
    #[inline(always)]
    pub fn ip4(source: u32, destination: u32, protocol: u8, ports: Option<(u16, u16)>) -> Self {
        Key::new([source, destination, protocol.into()], ports)
    }
}

impl Key<IP6> {
    /// The key of an IPv6 packet, as [`Key::ip4`].
    #[inline(always)]
    pub fn ip6(source: u128, destination: u128, protocol: u8, ports: Option<(u16, u16)>) -> Self {
        Key::new(join(source, destination, protocol.into()), ports)
    }
}

/// The words of two addresses, the first ones the highest, and a last word.
#[inline(always)]
fn join(source: u128, destination: u128, last: u32) -> [u32; IP6] {
    let word = |address: u128, at: usize| (address >> (96 - 32 * at)) as u32;
    std::array::from_fn(|at| match at {
        0..4 => word(source, at),
        4..8 => word(destination, at - 4),
        _ => last,
    })
}

/// A rule as keys are compared with it. That is the specification of what a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line<const W: usize> {
    /// What a key's words are to be.
    value: [u32; W],
    /// The bits of them that count.
    mask: [u32; W],
    /// The lowest ports, as in a key.
    low: u32,
    /// How many ports follow each of them.
    span: u32,
}

impl<const W: usize> Line<W> {
    /// Matches nothing.
    const NEVER: Self = Line {
        value: [NEVER; W],
        mask: [NEVER; W],
        low: 0,
        span: 0,
    };

    fn new<A>(rule: &Rule<A>, value: [u32; W], mask: [u32; W]) -> Self {
        let ports = [&rule.source_ports, &rule.destination_ports];
        if ports.iter().any(|range| range.is_empty()) {
            return Self::NEVER;
        }
        let pair = |of: fn(&RangeInclusive<u16>) -> u16| {
            let [source, destination] = ports.map(|range| u32::from(of(range)));
            source << 16 | destination
        };
        let any = ports.iter().all(|range| **range == (0..=u16::MAX));
        let bits = (rule.protocol.map_or(0, |_| 0xff)) | if any { 0 } else { PORTS };
        let (mut value, mut mask) = (value, mask);
        (value[W - 1], mask[W - 1]) = (
            bits & (PORTS | u32::from(rule.protocol.unwrap_or_default())),
            bits,
        );
        Line {
            value,
            mask,
            low: pair(|range| *range.start()),
            span: pair(|range| range.end() - range.start()),
        }
    }

    /// True if the rule matches the packet. Used by tests only, as what blocks must equal.
    #[cfg(test)]
    fn matches(&self, key: &Key<W>) -> bool {
        let words = std::iter::zip(key.words, std::iter::zip(self.value, self.mask));
        let within = |shift: u32| {
            let half = |pair: u32| (pair >> shift) as u16;
            half(key.ports).wrapping_sub(half(self.low)) <= half(self.span)
        };
        words
            .map(|(key, (value, mask))| (key ^ value) & mask)
            .all(|bits| bits == 0)
            && within(16)
            && within(0)
    }
}

impl From<&Rule<u32>> for Line<IP4> {
    fn from(rule: &Rule<u32>) -> Self {
        let [source, destination] = [rule.source, rule.destination];
        let mask = [source, destination].map(|p| !(p.addr() ^ p.last()));
        Line::new(
            rule,
            [source.addr(), destination.addr(), 0],
            [mask[0], mask[1], 0],
        )
    }
}

impl From<&Rule<u128>> for Line<IP6> {
    fn from(rule: &Rule<u128>) -> Self {
        let [source, destination] = [rule.source, rule.destination];
        let mask = [source, destination].map(|p| !(p.addr() ^ p.last()));
        Line::new(
            rule,
            join(source.addr(), destination.addr(), 0),
            join(mask[0], mask[1], 0),
        )
    }
}
