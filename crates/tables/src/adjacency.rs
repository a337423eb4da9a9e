//! Adjacencies: the last step of a look-up, where a packet goes and what is put in front of it.
//!
//! An adjacency is one 64-byte line. It is written before anything names it and never edited while
//! readers may hold its number: a neighbor's new address is a new adjacency, put into the buckets
//! of the groups ([`Groups::replace`](crate::nexthop::Groups::replace)) in place of the old one.
//!
//! | word | |
//! | --- | --- |
//! | 0 | kind, transmit interface << 16 |
//! | 1 | MTU in bytes of IP packet, fast MTU << 16 |
//! | 2-5 | 16 bytes in memory order: the first 14 of the header, its length as a native 16-bit number |
//! | 6-9 | address of the next hop, in network byte order |
//! | 10-13 | address that the router itself sends from, in network byte order |
//! | 14, 15 | the other 8 bytes of the header, in memory order |
//!
//! A header is that of Ethernet with up to two VLAN tags. With tags there is no fast MTU: XDP
//! programs and the fast path write 14 bytes.
//!
//! An address is IPv6, or IPv4 mapped into it (`::ffff:0:0/96`, RFC 4291 section 2.5.5.2), or 0 for
//! none. The next hop need not be of the family of the packets: IPv4 goes by IPv6 neighbors, too
//! (RFC 8950).

use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::Ordering::Relaxed;

use crate::field::Field;
use crate::ids::{Full, Ids, Retired, Usage};
use crate::mem::{Cells, LINE};
use crate::special::FIRST_FREE;

/// The number of an adjacency. Below [`FIRST_FREE`] it is a decision: see
/// [`Special::of`](crate::special::Special::of).
pub type AdjacencyId = u32;

const KIND: Field = Field::low("KIND", 0);
const TX_IF: Field = Field::high("TX_IF", 0);
const MTU: Field = Field::low("MTU", 1);
const FAST_MTU: Field = Field::high("FAST_MTU", 1);
/// The first of four words.
const HEADER: Field = Field::word("HEADER", 2);
/// The first of four words.
const NEXT_HOP: Field = Field::word("NEXT_HOP", 6);
/// The first of four words.
const SOURCE: Field = Field::word("SOURCE", 10);
/// The first of two words.
const HEADER_END: Field = Field::word("HEADER_END", 14);

pub(crate) const FIELDS: &[Field] = &[
    KIND, TX_IF, MTU, FAST_MTU, HEADER, NEXT_HOP, SOURCE, HEADER_END,
];

/// Bytes of an Ethernet header without tags.
const UNTAGGED: usize = 14;
/// Most bytes of a header: Ethernet's with two VLAN tags.
pub const HEADER_MAX: usize = 22;

/// The kind of an adjacency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Kind {
    /// Nothing.
    Free = 0,
    /// Put the Ethernet header in front and send.
    Rewrite = 1,
    /// The destination itself is on the link and must be resolved.
    Glean = 2,
    /// The next hop is being resolved.
    Incomplete = 3,
    /// Drop.
    Drop = 4,
    /// The number says it: see [`Special::of`](crate::special::Special::of).
    Special = 5,
}

impl Kind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::Free,
        Self::Rewrite,
        Self::Glean,
        Self::Incomplete,
        Self::Drop,
        Self::Special,
    ];

    #[inline]
    const fn of(code: u32) -> Self {
        match code {
            0 => Self::Free,
            1 => Self::Rewrite,
            2 => Self::Glean,
            3 => Self::Incomplete,
            5 => Self::Special,
            _ => Self::Drop,
        }
    }
}

/// An adjacency as the writer knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adjacency {
    /// Its kind.
    pub kind: Kind,
    /// Interface to send by.
    pub tx_if: u16,
    /// Largest IP packet of that interface, in bytes.
    pub mtu: u16,
    /// Packets up to this many bytes need nothing but a header of 14 bytes in front of them. 0
    /// where there is more to do, such as tags, or a feature on the way out: then the slower path
    /// decides.
    pub fast_mtu: u16,
    /// Destination and source address, tags, and type. Where nothing is put in front of packets,
    /// only the type stands here, where it is without tags.
    pub header: [u8; HEADER_MAX],
    /// Bytes of `header` that are used: 0, 14, 18 or 22.
    pub header_len: u16,
    /// The next hop; `None`: the packet's destination itself.
    pub next_hop: Option<IpAddr>,
    /// Source address of the router's own packets by this adjacency.
    pub source: Option<IpAddr>,
}

impl Adjacency {
    const FREE: Self = Self {
        kind: Kind::Free,
        tx_if: 0,
        mtu: 0,
        fast_mtu: 0,
        header: [0; HEADER_MAX],
        header_len: 0,
        next_hop: None,
        source: None,
    };

    /// Drops its packets.
    pub const DROP: Self = Self {
        kind: Kind::Drop,
        ..Self::FREE
    };

    /// Sends to a resolved neighbor, with nothing else to do.
    ///
    /// # Panics
    /// If the header is longer than [`HEADER_MAX`].
    pub fn rewrite(tx_if: u16, mtu: u16, header: &[u8], next_hop: IpAddr) -> Self {
        let mut this = Self {
            kind: Kind::Rewrite,
            tx_if,
            mtu,
            fast_mtu: if header.len() == UNTAGGED { mtu } else { 0 },
            header_len: header.len() as u16,
            next_hop: Some(next_hop),
            ..Self::FREE
        };
        this.header[..header.len()].copy_from_slice(header);
        this
    }

    /// Destinations on the link of `tx_if`.
    pub const fn glean(tx_if: u16, mtu: u16) -> Self {
        Self {
            kind: Kind::Glean,
            tx_if,
            mtu,
            ..Self::FREE
        }
    }

    /// A neighbor without an Ethernet address yet.
    pub const fn incomplete(tx_if: u16, mtu: u16, next_hop: IpAddr) -> Self {
        Self {
            kind: Kind::Incomplete,
            tx_if,
            mtu,
            next_hop: Some(next_hop),
            ..Self::FREE
        }
    }

    /// The same for packets of this EtherType.
    pub const fn with_type(mut self, ethertype: u16) -> Self {
        let at = self.type_at();
        [self.header[at], self.header[at + 1]] = ethertype.to_be_bytes();
        self
    }

    /// The EtherType of its packets.
    pub const fn ethertype(&self) -> u16 {
        let at = self.type_at();
        u16::from_be_bytes([self.header[at], self.header[at + 1]])
    }

    /// Offset of the EtherType.
    const fn type_at(&self) -> usize {
        match self.header_len as usize {
            len @ UNTAGGED..=HEADER_MAX => len - 2,
            _ => UNTAGGED - 2,
        }
    }

    /// The same for a router that sends from `source`.
    pub const fn with_source(self, source: Option<IpAddr>) -> Self {
        Self { source, ..self }
    }

    /// The words of the table above.
    pub fn encode(&self) -> [u32; LINE] {
        let (start, end) = self.header.split_at(UNTAGGED);
        let mut bytes = [0; 16];
        bytes[..UNTAGGED].copy_from_slice(start);
        bytes[UNTAGGED..].copy_from_slice(&self.header_len.to_ne_bytes());
        let mut words = [0; LINE];
        for (field, value) in [
            (KIND, self.kind as u32),
            (TX_IF, u32::from(self.tx_if)),
            (MTU, u32::from(self.mtu)),
            (FAST_MTU, u32::from(self.fast_mtu)),
        ] {
            words[field.word] |= field.put(value);
        }
        for (word, bytes) in words[HEADER.word..].iter_mut().zip(bytes.as_chunks().0) {
            *word = u32::from_ne_bytes(*bytes);
        }
        for (word, bytes) in words[HEADER_END.word..].iter_mut().zip(end.as_chunks().0) {
            *word = u32::from_ne_bytes(*bytes);
        }
        words[NEXT_HOP.word..][..4].copy_from_slice(&address_words(self.next_hop));
        words[SOURCE.word..][..4].copy_from_slice(&address_words(self.source));
        words
    }

    /// The adjacency of these words; an unknown kind is a drop.
    pub fn decode(words: &[u32; LINE]) -> Self {
        let hot = Hot {
            head: words[KIND.word],
            mtus: words[MTU.word],
            words: std::array::from_fn(|word| words[HEADER.word + word]),
        };
        Self {
            kind: hot.kind(),
            tx_if: hot.tx_if(),
            mtu: hot.mtu(),
            fast_mtu: hot.fast_mtu(),
            header: hot.whole(|word| words[HEADER_END.word + word]),
            header_len: hot.header_len(),
            next_hop: address(|word| words[NEXT_HOP.word + word]),
            source: address(|word| words[SOURCE.word + word]),
        }
    }
}

/// An address as it lies in a line.
fn address_words(address: Option<IpAddr>) -> [u32; 4] {
    let bytes = match address {
        Some(IpAddr::V4(address)) => address.to_ipv6_mapped().octets(),
        Some(IpAddr::V6(address)) => address.octets(),
        None => [0; 16],
    };
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u32::from_ne_bytes(*bytes);
    }
    words
}

/// The address of four words.
fn address(word: impl Fn(usize) -> u32) -> Option<IpAddr> {
    let mut bytes = [0; 16];
    for (at, bytes) in bytes.as_chunks_mut().0.iter_mut().enumerate() {
        *bytes = word(at).to_ne_bytes();
    }
    let address = Ipv6Addr::from(bytes);
    (!address.is_unspecified()).then(|| address.to_canonical())
}

/// The part of an adjacency that packets need.
#[derive(Debug, Clone, Copy)]
pub struct Hot {
    head: u32,
    mtus: u32,
    /// The first 12 bytes of the header in memory order, then its last two and its length: see the
    /// module's table.
    pub words: [u32; 4],
}

impl Hot {
    /// Its kind.
    #[inline(always)]
    pub const fn kind(&self) -> Kind {
        Kind::of(KIND.of(self.head))
    }

    /// Interface to send by.
    #[inline(always)]
    pub const fn tx_if(&self) -> u16 {
        TX_IF.of(self.head) as u16
    }

    /// Largest IP packet of that interface, in bytes.
    #[inline(always)]
    pub const fn mtu(&self) -> u16 {
        MTU.of(self.mtus) as u16
    }

    /// See [`Adjacency::fast_mtu`]. Not 0 only if the kind is [`Kind::Rewrite`].
    #[inline(always)]
    pub const fn fast_mtu(&self) -> u16 {
        FAST_MTU.of(self.mtus) as u16
    }

    /// Writes the first 14 bytes of the header in front of a packet.
    #[inline(always)]
    pub fn write(&self, to: &mut [u8; 14]) {
        let [a, b, c, d] = self.words;
        to[0..4].copy_from_slice(&a.to_ne_bytes());
        to[4..8].copy_from_slice(&b.to_ne_bytes());
        to[8..12].copy_from_slice(&c.to_ne_bytes());
        to[12..14].copy_from_slice(&d.to_ne_bytes()[..2]);
    }

    /// The first 14 bytes of the header: without tags, all of it.
    #[inline(always)]
    pub fn header(&self) -> [u8; UNTAGGED] {
        let bytes = self.bytes();
        std::array::from_fn(|at| bytes[at])
    }

    /// The header, with what the last two words of the line have of it.
    fn whole(&self, word: impl Fn(usize) -> u32) -> [u8; HEADER_MAX] {
        let mut header = [0; HEADER_MAX];
        let (start, end) = header.split_at_mut(UNTAGGED);
        start.copy_from_slice(&self.header());
        for (at, bytes) in end.as_chunks_mut().0.iter_mut().enumerate() {
            *bytes = word(at).to_ne_bytes();
        }
        header
    }

    /// Bytes of the header that are used.
    #[inline(always)]
    pub fn header_len(&self) -> u16 {
        let bytes = self.bytes();
        u16::from_ne_bytes([bytes[14], bytes[15]])
    }

    #[inline(always)]
    fn bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(self.words) {
            *bytes = word.to_ne_bytes();
        }
        bytes
    }
}

/// All adjacencies; the one writer.
#[derive(Debug)]
pub struct Slab {
    cells: Cells,
    ids: Ids<Self>,
}

impl Slab {
    /// Room for as many adjacencies as `cells` has lines, of which the first [`FIRST_FREE`] are the
    /// special ones.
    ///
    /// # Panics
    /// If there is not even room for those, or for more than 2^30.
    pub fn new(cells: Cells) -> Self {
        let lines = cells.len() / LINE;
        assert!(
            (FIRST_FREE as usize..=1 << 30).contains(&lines),
            "room for {lines} adjacencies"
        );
        let this = Self {
            cells,
            ids: Ids::new(FIRST_FREE, lines as u32),
        };
        let special = Adjacency {
            kind: Kind::Special,
            ..Adjacency::FREE
        };
        (0..FIRST_FREE).for_each(|id| this.store(id, &special));
        this
    }

    /// A reader of the adjacencies; clone it for every worker.
    pub fn reader(&self) -> Reader {
        Reader {
            cells: self.cells.clone(),
        }
    }

    /// Writes a new adjacency, which nothing names yet.
    ///
    /// # Errors
    /// [`Full`].
    pub fn alloc(&mut self, adjacency: &Adjacency) -> Result<AdjacencyId, Full> {
        let id = self.ids.alloc()?;
        self.store(id, adjacency);
        Ok(id)
    }

    /// A live or special adjacency.
    pub fn get(&self, id: AdjacencyId) -> Option<Adjacency> {
        let known = id < FIRST_FREE || self.ids.is_live(id);
        known.then(|| {
            Adjacency::decode(&std::array::from_fn(|word| {
                self.cells.line(id as usize)[word].load(Relaxed)
            }))
        })
    }

    /// The numbers of all live adjacencies, in order.
    pub fn ids(&self) -> impl Iterator<Item = AdjacencyId> {
        self.ids.live()
    }

    /// Lets go of an adjacency that no bucket names any more. False if there is none of this
    /// number.
    pub fn retire(&mut self, id: AdjacencyId) -> bool {
        self.ids.retire(id)
    }

    /// The adjacencies retired since the last call. Wait for a grace period (see [`crate::ids`]),
    /// then [`reclaim`](Self::reclaim) them.
    pub fn retired(&mut self) -> Retired<Self> {
        self.ids.take_retired()
    }

    /// Makes numbers usable again that no reader holds any more.
    pub fn reclaim(&mut self, retired: Retired<Self>) {
        retired
            .numbers()
            .iter()
            .for_each(|&id| self.store(id, &Adjacency::FREE));
        self.ids.reclaim(retired);
    }

    /// Number of adjacencies: in all, free, retired.
    pub fn usage(&self) -> Usage {
        self.ids.usage()
    }

    fn store(&self, id: AdjacencyId, adjacency: &Adjacency) {
        // Nobody reads the line yet; the store that names it publishes it.
        for (cell, word) in self.cells.line(id as usize).iter().zip(adjacency.encode()) {
            cell.store(word, Relaxed);
        }
    }
}

/// The workers' side.
#[derive(Debug, Clone)]
pub struct Reader {
    cells: Cells,
}

impl Reader {
    /// The adjacency that a bucket named.
    #[inline(always)]
    pub fn load(&self, id: AdjacencyId) -> Hot {
        let line = self.cells.line(id as usize);
        Hot {
            head: line[KIND.word].load(Relaxed),
            mtus: line[MTU.word].load(Relaxed),
            words: std::array::from_fn(|word| line[HEADER.word + word].load(Relaxed)),
        }
    }

    /// What follows the first 14 bytes of an adjacency's header: 4 bytes for each tag.
    #[inline(always)]
    pub fn header_end(&self, id: AdjacencyId) -> [[u8; 4]; 2] {
        let line = self.cells.line(id as usize);
        std::array::from_fn(|word| line[HEADER_END.word + word].load(Relaxed).to_ne_bytes())
    }

    /// The next hop; `None`: the packet's destination itself.
    pub fn next_hop(&self, id: AdjacencyId) -> Option<IpAddr> {
        self.address(id, NEXT_HOP)
    }

    /// Source address of the router's own packets.
    pub fn source(&self, id: AdjacencyId) -> Option<IpAddr> {
        self.address(id, SOURCE)
    }

    fn address(&self, id: AdjacencyId, field: Field) -> Option<IpAddr> {
        let line = self.cells.line(id as usize);
        address(|word| line[field.word + word].load(Relaxed))
    }

    /// Prefetches the line of an adjacency.
    #[inline(always)]
    pub fn prefetch(&self, id: AdjacencyId) {
        self.cells.prefetch(id as usize * LINE);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::random::Random;

    const HEADER: [u8; 14] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];

    #[test]
    fn words_are_laid_out_as_documented() {
        let words = Adjacency::rewrite(3, 1500, &HEADER, Ipv4Addr::new(10, 0, 0, 1).into())
            .with_source("2001:db8::2".parse().ok())
            .encode();
        assert_eq!(words[0], 1 | 3 << 16);
        assert_eq!(words[1], 1500 | 1500 << 16);
        assert_eq!(words[2].to_ne_bytes(), HEADER[..4]);
        if cfg!(target_endian = "little") {
            assert_eq!((words[5] & 0xffff, words[5] >> 16), (0x0008, 14));
        }
        let bytes = |word: usize| {
            words[word..][..4]
                .iter()
                .flat_map(|word| word.to_ne_bytes())
        };
        let [next_hop, source] = ["::ffff:10.0.0.1", "2001:db8::2"];
        for (word, address) in [(6, next_hop), (10, source)] {
            let address: Ipv6Addr = address.parse().unwrap();
            assert!(bytes(word).eq(address.octets()), "{address}");
        }
        assert!(words[14..].iter().all(|&word| word == 0));
    }

    #[test]
    fn a_header_may_have_two_tags() {
        let header: Vec<u8> = (1..=22).collect();
        for len in [14, 18, 22] {
            let next_hop = Ipv4Addr::LOCALHOST.into();
            let adjacency = Adjacency::rewrite(3, 1500, &header[..len], next_hop);
            assert_eq!(adjacency.header[..len], header[..len]);
            assert_eq!(adjacency.fast_mtu, if len == 14 { 1500 } else { 0 });
            let typed = adjacency.with_type(0x86dd);
            assert_eq!(typed.ethertype(), 0x86dd);
            assert_eq!(typed.header[len - 2..len], [0x86, 0xdd]);
            assert_eq!(typed.header[..len - 2], header[..len - 2]);
        }
        let none = Adjacency::glean(3, 1500).with_type(0x0800);
        assert_eq!(
            (none.ethertype(), &none.header[12..14]),
            (0x0800, &[8, 0][..])
        );
    }

    fn address(random: &mut Random) -> Option<IpAddr> {
        let words: [u32; 4] = std::array::from_fn(|_| random.word());
        let ip6 = words
            .iter()
            .fold(0, |ip6, &word| ip6 << 32 | u128::from(word));
        match random.below(3) {
            0 => None,
            1 => Some(Ipv4Addr::from(words[0]).into()),
            _ => Some(Ipv6Addr::from(ip6).into()),
        }
    }

    #[test]
    fn any_adjacency_survives_the_table() {
        let mut random = Random::new(0x61_646a);
        let mut slab = Slab::new(Cells::boxed(64 * LINE));
        let reader = slab.reader();
        for _ in 0..100_000 {
            let adjacency = Adjacency {
                kind: Kind::of(random.below(6)),
                tx_if: random.word() as u16,
                mtu: random.word() as u16,
                fast_mtu: random.word() as u16,
                header: std::array::from_fn(|_| random.word() as u8),
                header_len: [0, 14, 18, 22][random.below(4) as usize],
                next_hop: address(&mut random),
                source: address(&mut random),
            };
            let id = slab.alloc(&adjacency).unwrap();
            let hot = reader.load(id);
            assert_eq!(slab.get(id), Some(adjacency));
            assert_eq!(
                (hot.kind(), hot.tx_if(), hot.mtu()),
                (adjacency.kind, adjacency.tx_if, adjacency.mtu)
            );
            assert_eq!(
                (hot.fast_mtu(), hot.header_len()),
                (adjacency.fast_mtu, adjacency.header_len)
            );
            assert_eq!(
                (reader.next_hop(id), reader.source(id)),
                (adjacency.next_hop, adjacency.source)
            );
            assert_eq!(hot.header(), adjacency.header[..14]);
            assert_eq!(reader.header_end(id).concat(), adjacency.header[14..]);
            assert!(slab.retire(id));
            let retired = slab.retired();
            slab.reclaim(retired);
            assert_eq!((slab.get(id), reader.load(id).kind()), (None, Kind::Free));
        }
    }

    #[test]
    fn special_adjacencies_are_there() {
        let mut slab = Slab::new(Cells::boxed(32 * LINE));
        for id in 0..FIRST_FREE {
            let hot = slab.reader().load(id);
            assert_eq!((hot.kind(), hot.fast_mtu()), (Kind::Special, 0));
            assert!(!slab.retire(id));
        }
        for id in FIRST_FREE..32 {
            assert_eq!(slab.alloc(&Adjacency::glean(1, 1500)), Ok(id));
        }
        assert_eq!(slab.alloc(&Adjacency::DROP), Err(Full));
        assert!(slab.ids().eq(FIRST_FREE..32));
        assert_eq!(slab.get(32), None);
        assert_eq!(Kind::of(77), Kind::Drop);
    }
}
