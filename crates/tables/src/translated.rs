//! What is translated though it is for an own address, by protocol and port: XDP programs give these
//! packets to the workers, which give the host what is of no flow of theirs.
//!
//! A bit each for the protocols of which all packets are, and for those of which some are: their
//! later fragments tell no port. Then a bit for each destination port of TCP, of UDP, and for each
//! identifier of ICMP echoes.

use std::ops::RangeInclusive;
use std::sync::atomic::Ordering::{Relaxed, Release};

use crate::mem::{Cells, LINE};

/// Words of a bit for each protocol.
const PROTOCOLS: usize = 256 / 32;
/// Lines of a bit for each port.
pub(crate) const PORT_LINES: usize = (1 << 16) / (32 * LINE);
/// All lines: the protocols', those of each [`Ports`], and what makes it a power of two.
pub(crate) const LINES: usize = (1 + 3 * PORT_LINES).next_power_of_two();

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Kinds of ports, in the table's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ports {
    Tcp,
    Udp,
    Echo,
}

impl Ports {
    pub(crate) const ALL: [Self; 3] = [Ports::Tcp, Ports::Udp, Ports::Echo];

    const fn of(protocol: u8) -> Option<Self> {
        match protocol {
            TCP => Some(Ports::Tcp),
            UDP => Some(Ports::Udp),
            ICMP => Some(Ports::Echo),
            _ => None,
        }
    }

    /// The first line.
    pub(crate) const fn line(self) -> usize {
        1 + self as usize * PORT_LINES
    }
}

/// The packets of a protocol that are translated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// Their protocol; `None`: any.
    pub protocol: Option<u8>,
    /// Their destination ports, or identifiers of echoes. Of a protocol that has neither port nor
    /// identifier here (all but TCP, UDP and ICMP), all packets are.
    pub ports: RangeInclusive<u16>,
}

/// The table. There is one writer.
#[derive(Debug)]
pub struct Translated(Cells);

impl Translated {
    /// Nothing is translated, in zeroed memory.
    pub fn new(cells: Cells) -> Self {
        Translated(cells)
    }

    /// This is translated from now on, and nothing else. What was before and is still stays so
    /// meanwhile.
    pub fn set(&mut self, ranges: &[Range]) {
        let mut words = vec![0u32; LINES * LINE];
        let mut add = |bit: usize| words[bit / 32] |= 1 << (bit % 32);
        for range in ranges {
            let all = range.protocol.map_or(0..=u8::MAX, |one| one..=one);
            for protocol in all {
                let (whole, some) = (
                    usize::from(protocol),
                    32 * PROTOCOLS + usize::from(protocol),
                );
                add(some);
                match Ports::of(protocol) {
                    None => add(whole),
                    Some(of) => {
                        let first = of.line() * LINE * 32;
                        let ports = range.ports.clone();
                        ports.for_each(|port| add(first + usize::from(port)));
                    }
                }
            }
        }
        for (cell, word) in self.0.iter().zip(words) {
            if cell.load(Relaxed) != word {
                cell.store(word, Release);
            }
        }
    }

    /// True if packets of a protocol to this port, or with this identifier, are translated.
    pub fn has(&self, protocol: u8, port: u16) -> bool {
        let bit = match Ports::of(protocol) {
            None => usize::from(protocol),
            Some(of) => of.line() * LINE * 32 + usize::from(port),
        };
        self.bit(bit)
    }

    /// True if some packets of a protocol are translated.
    pub fn has_some(&self, protocol: u8) -> bool {
        self.bit(32 * PROTOCOLS + usize::from(protocol))
    }

    fn bit(&self, bit: usize) -> bool {
        self.0.at(bit / 32).load(Relaxed) >> (bit % 32) & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(ranges: &[Range]) -> Translated {
        let mut table = Translated::new(Cells::boxed(LINES * LINE));
        // What was before leaves no trace.
        table.set(&[Range {
            protocol: None,
            ports: 0..=u16::MAX,
        }]);
        table.set(ranges);
        table
    }

    #[test]
    fn what_is_translated_is_just_what_was_asked_for() {
        let asked = [
            (Some(TCP), 10_000..=32_767),
            (Some(UDP), 53..=53),
            (Some(47), 0..=0),
            (Some(TCP), 65_535..=65_535),
        ];
        let ranges = asked.map(|(protocol, ports)| Range { protocol, ports });
        let table = table(&ranges);
        for protocol in 0..=u8::MAX {
            let some = [TCP, UDP, 47].contains(&protocol);
            assert_eq!(table.has_some(protocol), some, "{protocol}");
            for port in 0..=u16::MAX {
                let is = match protocol {
                    TCP => (10_000..=32_767).contains(&port) || port == 65_535,
                    UDP => port == 53,
                    other => other == 47,
                };
                assert_eq!(table.has(protocol, port), is, "{protocol} {port}");
            }
        }
    }

    #[test]
    fn a_rule_of_any_protocol_is_about_all() {
        let table = table(&[Range {
            protocol: None,
            ports: 1024..=1024,
        }]);
        for protocol in 0..=u8::MAX {
            assert!(table.has_some(protocol) && table.has(protocol, 1024));
        }
        for protocol in [TCP, UDP, ICMP] {
            assert!(!table.has(protocol, 1023) && !table.has(protocol, 1025));
        }
        let none = Translated::new(Cells::boxed(LINES * LINE));
        assert!((0..=u8::MAX).all(|protocol| !none.has_some(protocol)));
    }
}
