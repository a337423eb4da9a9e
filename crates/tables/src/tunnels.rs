//! VXLAN tunnels, by what their packets have around their frames: XDP programs give these packets,
//! though they are for an own address, to the workers.
//!
//! A line is that of the interface that the tunnel is. It begins a chain, too, of the tunnels whose
//! network identifiers have its number as hash.

use std::net::Ipv6Addr;
use std::sync::atomic::Ordering::{Relaxed, Release};

use crate::field::Field;
use crate::mem::{Cells, LINE};

/// Number of the last line; in line 0 alone.
const LAST: Field = Field::word("LAST", 0);
/// The first tunnel of the chain that begins here; 0: there is none.
const FIRST: Field = Field::word("FIRST", 1);
/// The tunnel behind this one in its chain; 0: it is the last.
const NEXT: Field = Field::word("NEXT", 2);
/// The network identifier, and [`USED`].
const VNI: Field = Field::word("VNI", 3);
/// Both ends: four words each, in the order of bytes that packets have.
const REMOTE: Field = Field::word("REMOTE", 4);
const LOCAL: Field = Field::word("LOCAL", 8);

pub(crate) const FIELDS: &[Field] = &[LAST, FIRST, NEXT, VNI, REMOTE, LOCAL];

/// The line holds a tunnel.
pub(crate) const USED: u32 = 1 << 31;
/// Most tunnels that are looked at in a chain.
pub(crate) const STEPS: usize = 32;
/// What a network identifier is multiplied by; the upper half is the hash (Fibonacci hashing).
pub(crate) const FACTOR: u32 = 0x9e37_79b1;

/// What a tunnel's packets have around their frames. IPv4 addresses are mapped into IPv6 (RFC 4291
/// section 2.5.5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tunnel {
    /// The own end.
    pub local: Ipv6Addr,
    /// The other end.
    pub remote: Ipv6Addr,
    /// The network identifier (VNI), of 24 bits.
    pub vni: u32,
}

impl Tunnel {
    /// The words of its line from [`VNI`] on.
    fn words(&self) -> [u32; 9] {
        let mut words = [self.vni | USED; 9];
        let [remote, local] = [self.remote, self.local].map(|end| end.octets());
        let ends = remote.as_chunks().0.iter().chain(local.as_chunks().0);
        for (word, bytes) in words[1..].iter_mut().zip(ends) {
            *word = u32::from_ne_bytes(*bytes);
        }
        words
    }
}

/// The tunnels of all interfaces. There is one writer.
#[derive(Debug)]
pub struct Tunnels(Cells);

impl Tunnels {
    /// No tunnels, in zeroed memory of a line for each interface.
    pub fn new(cells: Cells) -> Self {
        let lines = cells.iter().count() / LINE;
        cells.at(LAST.word).store(lines as u32 - 1, Release);
        Tunnels(cells)
    }

    /// An interface is this tunnel from now on, or none. Packets of a tunnel that changes may be
    /// the host's meanwhile.
    ///
    /// # Panics
    /// If there is no line of this number, or it is 0, which is no interface.
    pub fn set(&mut self, interface: u16, tunnel: Option<&Tunnel>) {
        let number = u32::from(interface);
        assert!((1..=self.word(0, LAST)).contains(&number));
        let old = self.word(number, VNI);
        if old & USED != 0 {
            self.unlink(number, old & !USED);
            self.store(number, VNI, 0);
        }
        let Some(tunnel) = tunnel else { return };
        let head = self.head(tunnel.vni);
        for (at, word) in tunnel.words().into_iter().enumerate() {
            let cell = self.0.at(number as usize * LINE + VNI.word + at);
            cell.store(word, Release);
        }
        self.store(number, NEXT, self.word(head, FIRST));
        self.store(head, FIRST, number);
    }

    /// Takes a tunnel out of its chain.
    fn unlink(&self, number: u32, vni: u32) {
        let mut at = (self.head(vni), FIRST);
        while self.word(at.0, at.1) != number {
            at = (self.word(at.0, at.1), NEXT);
        }
        self.store(at.0, at.1, self.word(number, NEXT));
    }

    /// The line that begins the chain of a network identifier.
    fn head(&self, vni: u32) -> u32 {
        vni.wrapping_mul(FACTOR) >> 16 & self.word(0, LAST)
    }

    fn word(&self, line: u32, field: Field) -> u32 {
        self.0.at(line as usize * LINE + field.word).load(Relaxed)
    }

    fn store(&self, line: u32, field: Field, value: u32) {
        let cell = self.0.at(line as usize * LINE + field.word);
        cell.store(value, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const LINES: u16 = 8192;

    fn tunnels(lines: u16) -> Tunnels {
        Tunnels::new(Cells::boxed(usize::from(lines) * LINE))
    }

    /// What the XDP program does.
    fn holds(tunnels: &Tunnels, tunnel: &Tunnel) -> bool {
        let mut number = tunnels.word(tunnels.head(tunnel.vni), FIRST);
        for _ in 0..STEPS {
            let line = number as usize * LINE;
            let mut cells = (VNI.word..).map(|word| tunnels.0.at(line + word).load(Relaxed));
            if tunnel
                .words()
                .into_iter()
                .all(|word| cells.next() == Some(word))
            {
                return true;
            }
            number = tunnels.word(number, NEXT);
        }
        false
    }

    fn tunnel(number: u32, vni: u32) -> Tunnel {
        let end = |last: u32| Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(last));
        Tunnel {
            local: end(number),
            remote: end(number + 1),
            vni,
        }
    }

    /// Against a list, with few networks, so that chains are long.
    #[test]
    fn each_is_found_and_no_other() {
        let mut table = tunnels(16);
        let mut list = [None; 16];
        let mut random = Random::new(1);
        for _ in 0..10_000 {
            let bits = random.bits() as u32;
            let number = (bits & 15).max(1);
            let new = tunnel(bits >> 8 & 3, bits >> 16 & 1);
            let is_there = list.contains(&Some(new));
            let set = (bits >> 4 & 1 == 1 && !is_there).then_some(new);
            list[number as usize] = set;
            table.set(number as u16, set.as_ref());
            for (end, vni) in (0..4).flat_map(|end| [(end, 0), (end, 1)]) {
                let asked = tunnel(end, vni);
                assert_eq!(holds(&table, &asked), list.contains(&Some(asked)));
            }
        }
        for number in 1..16 {
            table.set(number, None);
        }
        let left = table.0.iter().skip(1).step_by(LINE);
        assert!(left.into_iter().all(|first| first.load(Relaxed) == 0));
    }

    /// As many as there can be, however their networks are numbered.
    #[test]
    fn no_chain_is_too_long() {
        for step in [1, 2, 100, 256, 1000, 1024, 4095, 4096] {
            let mut table = tunnels(LINES);
            let all = (1..LINES / 2).map(|n| (n, tunnel(7, u32::from(n) * step)));
            for (number, tunnel) in all.clone() {
                table.set(number, Some(&tunnel));
            }
            for (number, tunnel) in all {
                assert!(holds(&table, &tunnel), "{number} by {step}");
            }
        }
    }

    #[test]
    #[should_panic = "contains"]
    fn an_interface_without_a_line_is_none() {
        tunnels(16).set(16, None);
    }
}
