//! Interface lines: what the packet path asks of an interface before anything else.
//!
//! A line is edited while readers read it, word by word. Each word stands by itself; while an
//! interface gets another address a packet may be compared with half of each, and then matches
//! neither.
//!
//! | word | |
//! | --- | --- |
//! | 0 | Ethernet address, its first 4 bytes, the first lowest |
//! | 1 | its last 2 bytes, the first lowest, mode << 16, whether there are features on what comes in << 31 |
//! | 2 | MTU in bytes of IP packet, peer << 16 |
//! | 3 | what XDP programs may do: forward what arrives here (bit 0), send here (1), also packets of several buffers (2) |
//! | 4 | features on IP packets that come in |
//! | 5 | features on IP packets that leave |
//! | 6 | features on frames that leave |
//! | 7 | parent, outer tag << 16 (VLAN identifier, of IEEE 802.1ad << 12) |
//! | 8 | inner tag (VLAN identifier), tags << 16, whether further ones may follow << 18 |
//! | 9 | at layer 2: what is done with what comes in (1: cross connect, 2: bridge, 3: bond), number of the other interface, domain or bond << 16 |
//! | 10 | features on frames that come in |
//! | 11-15 | 0 |
//!
//! The arguments of features lie apart from the lines, a word for each interface and feature.

mod feature;
mod l2;
mod outer_tags;
mod sub;
mod tags;

pub use feature::{Feature, Features, Mask};
pub use l2::L2;
pub use sub::Remembered;
pub use tags::Tags;

pub(crate) use outer_tags::LINES as OUTER_TAGS_LINES;

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::field::Field;
use crate::ids::{Full, Ids, Retired};
use crate::mem::{Cells, LINE, Line};
use outer_tags::OuterTags;
use sub::{Place, Subs};

const MAC: Field = Field::word("MAC", 0);
const MAC_END: Field = Field::low("MAC_END", 1);
const MODE: Field = Field::bits("MODE", 1, 16, 15);
/// In the word that every packet's address is compared with: the comparison fails where there is
/// more to do.
const FEATURED: Field = Field::bits("FEATURED", 1, 31, 1);
const MTU: Field = Field::low("MTU", 2);
const PEER: Field = Field::high("PEER", 2);

const XDP_FORWARD: Field = Field::bits("XDP_FORWARD", 3, 0, 1);
const XDP_SEND: Field = Field::bits("XDP_SEND", 3, 1, 1);
const XDP_SEND_LONG: Field = Field::bits("XDP_SEND_LONG", 3, 2, 1);

const FEATURES_IN: Field = Field::word("FEATURES_IN", 4);
const FEATURES_OUT: Field = Field::word("FEATURES_OUT", 5);
const FEATURES_INTERFACE_OUT: Field = Field::word("FEATURES_INTERFACE_OUT", 6);

/// Not among [`FIELDS`]: XDP programs look at FEATURED alone.
const FEATURES_INTERFACE_IN: Field = Field::word("FEATURES_INTERFACE_IN", 10);

const PARENT: Field = Field::low("PARENT", 7);
const OUTER_TAG: Field = Field::high("OUTER_TAG", 7);
const INNER_TAG: Field = Field::low("INNER_TAG", 8);
const TAGS: Field = Field::bits("TAGS", 8, 16, 2);
const TAGS_FURTHER: Field = Field::bits("TAGS_FURTHER", 8, 18, 1);

// One word: what is done and where to are never of two configurations.
const L2_WHAT: Field = Field::low("L2_WHAT", 9);
const L2_NUMBER: Field = Field::high("L2_NUMBER", 9);

pub(crate) const FIELDS: &[Field] = &[
    MAC,
    MAC_END,
    MODE,
    FEATURED,
    MTU,
    PEER,
    XDP_FORWARD,
    XDP_SEND,
    XDP_SEND_LONG,
    FEATURES_IN,
    FEATURES_OUT,
    FEATURES_INTERFACE_OUT,
    PARENT,
    OUTER_TAG,
    INNER_TAG,
    TAGS,
    TAGS_FURTHER,
    L2_WHAT,
    L2_NUMBER,
];

/// Way in which an interface's packets are taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u16)]
pub enum Mode {
    /// No such interface, or it is down: nothing is taken in.
    #[default]
    Down = 0,
    /// Routed.
    Routed = 1,
    /// Routed, has a host interface, and no address yet: the host may be asking a DHCP server for
    /// one.
    Unaddressed = 2,
    /// The host interface of a routed one: the kernel's end of it.
    Host = 3,
    /// At layer 2: see [`Interface::l2`]. Everything is the packet path's: an XDP program leaves
    /// nothing to the kernel.
    L2 = 4,
}

impl Mode {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 5] = [
        Self::Down,
        Self::Routed,
        Self::Unaddressed,
        Self::Host,
        Self::L2,
    ];

    #[inline]
    const fn of(number: u32) -> Self {
        match number {
            1 => Self::Routed,
            2 => Self::Unaddressed,
            3 => Self::Host,
            4 => Self::L2,
            _ => Self::Down,
        }
    }
}

/// Permissions of XDP programs on an interface; by default none: the workers do everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lane {
    /// Forward what arrives here, where its way out allows it.
    pub forward: bool,
    /// Send by it.
    pub send: bool,
    /// Send packets of several buffers by it, too.
    pub send_long: bool,
}

/// An interface as the packet path sees it; [`Interface::default`] is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Interface {
    /// Ethernet address.
    pub mac: [u8; 6],
    /// Way in which packets are taken in.
    pub mode: Mode,
    /// Largest IP packet in bytes.
    pub mtu: u16,
    /// The host interface of a routed one, the routed one of a host interface; 0 for none.
    pub peer: u16,
    /// Permissions of XDP programs.
    pub lane: Lane,
    /// Features that its packets pass.
    pub features: Features,
    /// The interface that a sub-interface is on top of; 0 for none.
    pub parent: u16,
    /// The tags that its packets have on the parent.
    pub tags: Tags,
    /// What is done in [`Mode::L2`] with what comes in; `None`: it is dropped. Other modes do not
    /// look at it.
    pub l2: Option<L2>,
}

impl Interface {
    fn encode(&self) -> [u32; LINE] {
        let [a, b, c, d, e, f] = self.mac;
        let (what, number) = L2::bits(self.l2);
        let mut words = [0; LINE];
        for (field, value) in [
            (MAC, u32::from_le_bytes([a, b, c, d])),
            (MAC_END, u32::from(u16::from_le_bytes([e, f]))),
            (MODE, self.mode as u32),
            (
                FEATURED,
                (self.features.input | self.features.interface_input != 0).into(),
            ),
            (MTU, u32::from(self.mtu)),
            (PEER, u32::from(self.peer)),
            (XDP_FORWARD, self.lane.forward.into()),
            (XDP_SEND, self.lane.send.into()),
            (XDP_SEND_LONG, self.lane.send_long.into()),
            (FEATURES_IN, self.features.input),
            (FEATURES_OUT, self.features.output),
            (FEATURES_INTERFACE_OUT, self.features.interface_output),
            (FEATURES_INTERFACE_IN, self.features.interface_input),
            (PARENT, u32::from(self.parent)),
            (OUTER_TAG, self.tags.outer_bits()),
            (INNER_TAG, self.tags.inner.into()),
            (TAGS, u32::from(self.tags.count)),
            (TAGS_FURTHER, self.tags.further.into()),
            (L2_WHAT, what),
            (L2_NUMBER, number),
        ] {
            words[field.word] |= field.put(value);
        }
        words
    }
}

/// All interfaces; the one writer.
#[derive(Debug)]
pub struct Interfaces {
    cells: Cells,
    /// By interface, then by feature. In memory of their own, as the next: no XDP program asks for
    /// them.
    arguments: Cells,
    subs: Subs,
    outer_tags: OuterTags,
    numbers: Ids<Interface>,
}

impl Interfaces {
    /// No interface yet, over zeroed memory: room for as many as `cells` has lines, number 0 (never
    /// an interface) included. See [`Memory`](crate::Memory) for both.
    pub fn new(cells: Cells, outer_tags: Cells) -> Self {
        let arguments = Cells::boxed(cells.len() / LINE * Feature::WORDS);
        let subs = Subs::new(cells.len() / LINE);
        let numbers = Ids::new(1, (cells.len() / LINE) as u32);
        Self {
            cells,
            arguments,
            subs,
            outer_tags: OuterTags(outer_tags),
            numbers,
        }
    }

    /// A number that no reader holds.
    ///
    /// # Errors
    /// [`Full`].
    pub fn alloc(&mut self) -> Result<u16, Full> {
        // A number is a u16 wherever one is kept, and so is the capacity.
        self.numbers.alloc().map(|number| number as u16)
    }

    /// Lets go of a number that was allocated, after its interface was [set](Self::set) to none.
    pub fn retire(&mut self, interface: u16) -> bool {
        self.numbers.retire(interface.into())
    }

    /// The numbers retired since the last call. Wait for a grace period (see [`crate::ids`]), then
    /// [`reclaim`](Self::reclaim) them.
    pub fn retired(&mut self) -> Retired<Interface> {
        self.numbers.take_retired()
    }

    /// Makes numbers usable again that no reader holds any more.
    pub fn reclaim(&mut self, retired: Retired<Interface>) {
        self.numbers.reclaim(retired);
    }

    /// The number of interfaces that there is room for, number 0 included.
    pub fn capacity(&self) -> usize {
        self.cells.len() / LINE
    }

    /// Sets an interface; readers see it from their next packet on.
    ///
    /// # Panics
    /// If there is no room for this number.
    pub fn set(&mut self, interface: u16, to: &Interface) {
        assert!(
            usize::from(interface) < self.capacity(),
            "interface {interface} of {}",
            self.capacity()
        );
        let words = to.encode();
        let old = self.reader().load(interface).place();
        let new = (to.parent != 0).then_some(Place::new(to.parent, to.tags));
        if let Some(old) = old.filter(|_| old != new) {
            // First out, last in: what a packet finds by its tags is never an interface half
            // changed.
            self.subs.remove(old, interface);
            let (parent, vlan) = (old.parent(), old.outer_vlan());
            let shared = || {
                (1..self.capacity())
                    .any(|other| other != interface.into() && self.is_sub_with(other, parent, vlan))
            };
            if !shared() {
                self.outer_tags.set(parent, vlan, false);
            }
        }
        let line = self.cells.line(usize::from(interface));
        // The mode last: an interface that comes up is complete.
        let others = (0..LINE).filter(|&word| word != MODE.word);
        for word in others.chain([MODE.word]) {
            if line[word].load(Relaxed) != words[word] {
                // Release keeps the order above; words that stay are not stored, as that would take
                // the line from the workers' caches.
                line[word].store(words[word], Release);
            }
        }
        if let Some(new) = new.filter(|_| old != new) {
            self.subs.insert(new, interface);
            self.outer_tags.set(new.parent(), new.outer_vlan(), true);
        }
    }

    /// True if it is a sub-interface of this parent with this outer VLAN identifier.
    fn is_sub_with(&self, interface: usize, parent: u16, vlan: u16) -> bool {
        let word = self.cells.line(interface)[OUTER_TAG.word].load(Relaxed);
        let place = Place {
            outer: word,
            inner: 0,
        };
        place.parent() == parent && place.outer_vlan() == vlan
    }

    /// Sets the argument of a feature of an interface. A new feature gets it before its bit is set,
    /// so that no packet passes by an old one.
    pub fn set_argument(&mut self, interface: u16, feature: Feature, argument: u32) {
        argument_of(&self.arguments, interface, feature).store(argument, Release);
    }

    /// A reader; clone it for every worker.
    pub fn reader(&self) -> Reader {
        Reader {
            cells: self.cells.clone(),
            arguments: self.arguments.clone(),
            subs: self.subs.clone(),
        }
    }
}

/// The word of an argument.
#[inline(always)]
fn argument_of(arguments: &Cells, interface: u16, feature: Feature) -> &AtomicU32 {
    arguments.at(usize::from(interface) * Feature::WORDS + feature.index())
}

/// The workers' side.
#[derive(Debug, Clone)]
pub struct Reader {
    cells: Cells,
    arguments: Cells,
    subs: Subs,
}

impl Reader {
    /// An interface. A number that there is no room for, a mistake of a node, is masked.
    #[inline(always)]
    pub fn load(&self, interface: u16) -> Hot<'_> {
        Hot {
            line: self.cells.line(usize::from(interface)),
        }
    }

    /// The argument of a feature that an interface has: which one, such as the number of an access
    /// list.
    #[inline(always)]
    pub fn argument(&self, interface: u16, feature: Feature) -> u32 {
        argument_of(&self.arguments, interface, feature).load(Acquire)
    }

    /// The sub-interface of `parent` for a frame that begins with these tags: the one that has
    /// exactly them, or else the one that has most of them and allows further ones. One of those
    /// that were found `before` is looked at first, which costs less than a search.
    #[inline(always)]
    pub fn sub(&self, parent: u16, tags: Tags, before: &mut Remembered) -> Option<u16> {
        if let found @ Some(_) = self.remembered(parent, tags, before) {
            return found;
        }
        let found = self.search(parent, tags);
        *before.like_mut(tags) = found.unwrap_or_default();
        found
    }

    /// The sub-interface of `parent` that has exactly these tags, if it is one of those that were
    /// found `before`.
    #[inline(always)]
    pub fn remembered(&self, parent: u16, tags: Tags, before: &Remembered) -> Option<u16> {
        let number = before.like(tags);
        let is_it = self.load(number).is_at(Place::new(parent, tags));
        is_it.then_some(number)
    }

    /// The same, among all.
    #[inline]
    fn search(&self, parent: u16, tags: Tags) -> Option<u16> {
        let exact = (!tags.further).then(|| self.sub_at(parent, tags));
        let or_further = || self.sub_of_more(parent, tags);
        exact.flatten().or_else(or_further)
    }

    /// The sub-interface of `parent` that allows further tags, for a frame that begins with these.
    #[cold]
    fn sub_of_more(&self, parent: u16, tags: Tags) -> Option<u16> {
        if !self.subs.any_further(parent) {
            return None;
        }
        let tags = tags.with_further();
        let outer = || self.sub_at(parent, tags.only_outer());
        self.sub_at(parent, tags).or_else(outer)
    }

    /// True if an interface has sub-interfaces.
    #[inline(always)]
    pub fn has_subs(&self, parent: u16) -> bool {
        self.subs.any(parent)
    }

    /// The sub-interface at this place.
    #[inline]
    fn sub_at(&self, parent: u16, tags: Tags) -> Option<u16> {
        let place = Place::new(parent, tags);
        let mut candidates = self.subs.candidates(place);
        candidates.find(|sub| self.load(*sub).is_at(place))
    }
}

/// The part of an interface that packets need; each field is read when it is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Hot<'a> {
    line: &'a Line,
}

impl Hot<'_> {
    /// True if the interface has this mode, no features on what comes in, and the address in the
    /// low 48 bits of `mac`, the first byte lowest; the other bits are ignored.
    #[inline(always)]
    pub fn is(self, mac: u64, mode: Mode) -> bool {
        let end = MAC_END.of((mac >> 32) as u32);
        self.word(MAC) == mac as u32 && self.word(MODE) == MAC_END.put(end) | MODE.put(mode as u32)
    }

    /// True if the interface has this address, given as to [`is`](Self::is).
    #[inline(always)]
    pub fn is_mac(self, mac: u64) -> bool {
        let end = MAC_END.of((mac >> 32) as u32);
        self.word(MAC) == mac as u32 && MAC_END.of(self.word(MAC_END)) == end
    }

    /// Its address.
    #[inline(always)]
    pub fn mac(self) -> [u8; 6] {
        let [a, b, c, d] = self.word(MAC).to_le_bytes();
        let [e, f, ..] = MAC_END.of(self.word(MAC_END)).to_le_bytes();
        [a, b, c, d, e, f]
    }

    /// Way in which packets are taken in.
    #[inline(always)]
    pub fn mode(self) -> Mode {
        Mode::of(MODE.of(self.word(MODE)))
    }

    /// True if there are features on what comes in.
    #[inline(always)]
    pub fn is_featured(self) -> bool {
        FEATURED.of(self.word(FEATURED)) != 0
    }

    /// Features that its packets pass.
    #[inline(always)]
    pub fn features(self) -> Features {
        Features {
            input: self.word(FEATURES_IN),
            output: self.word(FEATURES_OUT),
            interface_output: self.word(FEATURES_INTERFACE_OUT),
            interface_input: self.word(FEATURES_INTERFACE_IN),
        }
    }

    /// See [`Interface::parent`].
    #[inline(always)]
    pub fn parent(self) -> u16 {
        PARENT.of(self.word(PARENT)) as u16
    }

    /// See [`Interface::tags`].
    #[inline(always)]
    pub fn tags(self) -> Tags {
        let (first, second) = (self.word(OUTER_TAG), self.word(INNER_TAG));
        let (outer, inner) = (OUTER_TAG.of(first), INNER_TAG.of(second));
        let further = TAGS_FURTHER.of(second) != 0;
        Tags::of_bits(TAGS.of(second), further, outer, inner)
    }

    /// See [`Interface::l2`].
    #[inline(always)]
    pub fn l2(self) -> Option<L2> {
        let word = self.word(L2_WHAT);
        L2::of_bits(L2_WHAT.of(word), L2_NUMBER.of(word))
    }

    /// Parent and tags of a sub-interface.
    #[inline(always)]
    fn place(self) -> Option<Place> {
        let (outer, inner) = (self.word(PARENT), self.word(INNER_TAG));
        let place = Place { outer, inner };
        (place.parent() != 0).then_some(place)
    }

    /// True if it is the sub-interface at this place.
    #[inline(always)]
    fn is_at(self, place: Place) -> bool {
        self.word(PARENT) == place.outer && self.word(INNER_TAG) == place.inner
    }

    /// Largest IP packet in bytes.
    #[inline(always)]
    pub fn mtu(self) -> u16 {
        MTU.of(self.word(MTU)) as u16
    }

    /// See [`Interface::peer`].
    #[inline(always)]
    pub fn peer(self) -> u16 {
        PEER.of(self.word(PEER)) as u16
    }

    /// Permissions of XDP programs.
    pub fn lane(self) -> Lane {
        let has = |field: Field| field.of(self.word(field)) != 0;
        Lane {
            forward: has(XDP_FORWARD),
            send: has(XDP_SEND),
            send_long: has(XDP_SEND_LONG),
        }
    }

    /// The word that holds a field.
    #[inline(always)]
    fn word(self, field: Field) -> u32 {
        // Relaxed: each field is right by itself, whichever of two configurations it is of.
        self.line[field.word].load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const INTERFACES: usize = 256;

    fn empty() -> Interfaces {
        let outer_tags = Cells::boxed(INTERFACES * OUTER_TAGS_LINES * LINE);
        Interfaces::new(Cells::boxed(INTERFACES * LINE), outer_tags)
    }

    fn any_tags(random: &mut Random) -> Tags {
        let (outer, inner) = (random.below(1 << 12) as u16, random.below(1 << 12) as u16);
        let tags = [Tags::NONE, Tags::one(outer), Tags::two(outer, inner)];
        let tags = tags[random.below(3) as usize];
        match random.below(3) {
            0 => tags,
            1 => tags.with_further(),
            _ => tags.with_service(),
        }
    }

    fn any_l2(random: &mut Random) -> Option<L2> {
        let to = random.word() as u16;
        let all = [L2::CrossConnect, L2::Bridge, L2::Bond];
        let l2 = all.get(random.below(4) as usize);
        l2.map(|l2| l2(to))
    }

    /// The sub-interface for a frame, by asking every one: exact tags first, then most tags.
    fn slow_sub(
        all: &std::collections::BTreeMap<(u16, Tags), u16>,
        asked: (u16, Tags),
    ) -> Option<u16> {
        let (parent, frame) = asked;
        let begins = |tags: Tags| {
            let whole = Tags {
                further: false,
                ..tags
            };
            let frame = Tags {
                further: false,
                ..frame
            };
            whole == frame || whole == frame.only_outer()
        };
        let of_frame = all.iter().filter(|((of, tags), _)| match tags.further {
            true => *of == parent && begins(*tags),
            false => (*of, *tags) == (parent, frame),
        });
        let best = of_frame.max_by_key(|((_, tags), _)| (!tags.further, tags.count));
        best.map(|(_, sub)| *sub)
    }

    /// Sub-interfaces that come, go and change their tags are found by parent and tags, and by
    /// nothing else.
    #[test]
    fn sub_interfaces_are_found_by_their_tags() {
        let mut random = Random::new(0x7375);
        let mut interfaces = empty();
        let reader = interfaces.reader();
        let mut oracle = std::collections::BTreeMap::new();
        let mut before = Remembered::default();
        for _ in 0..100_000 {
            let number = 1 + random.below(INTERFACES as u32 - 1) as u16;
            let parent = random.below(3) as u16;
            let few = |random: &mut Random| random.below(12) as u16;
            let tags = match random.below(2) {
                0 => Tags::one(few(&mut random)),
                _ => Tags::two(few(&mut random), few(&mut random)),
            };
            let tags = match random.below(4) {
                0 => tags.with_further(),
                _ => tags,
            };
            let place = (parent, tags);
            if oracle.get(&place).is_some_and(|by| *by != number) {
                continue; // Control gives tags to one sub-interface only.
            }
            oracle.retain(|_, by| *by != number);
            if parent != 0 {
                oracle.insert(place, number);
            }
            let interface = Interface {
                parent,
                tags,
                ..Interface::default()
            };
            interfaces.set(number, &interface);
            let asked = (1 + random.below(2) as u16, tags);
            let wanted = slow_sub(&oracle, asked);
            assert_eq!(reader.search(asked.0, tags), wanted);
            assert_eq!(reader.sub(asked.0, tags, &mut before), wanted);
            let has_subs = oracle.keys().any(|(parent, _)| *parent == asked.0);
            assert_eq!(reader.has_subs(asked.0), has_subs);
            for vlan in 0..12 {
                let has = |(parent, tags): &(u16, Tags)| (*parent, tags.outer) == (asked.0, vlan);
                let word = interfaces.outer_tags.0.at(usize::from(asked.0) * 128);
                assert_eq!(word.load(Relaxed) >> vlan & 1 != 0, oracle.keys().any(has));
            }
            if let Some((&(parent, tags), &sub)) = oracle.iter().next() {
                assert_eq!(reader.search(parent, tags), Some(sub));
                assert_eq!(reader.search(parent, tags.with_service()), None);
            }
        }
    }

    #[test]
    fn any_interface_survives_the_table() {
        let mut random = Random::new(0x6966);
        let mut interfaces = empty();
        assert_eq!(interfaces.capacity(), INTERFACES);
        let reader = interfaces.reader();
        for _ in 0..100_000 {
            let number = random.below(INTERFACES as u32) as u16;
            let interface = Interface {
                mac: std::array::from_fn(|_| random.word() as u8),
                mode: Mode::ALL[random.below(5) as usize],
                mtu: random.word() as u16,
                peer: random.word() as u16,
                lane: Lane {
                    forward: random.below(2) > 0,
                    send: random.below(2) > 0,
                    send_long: random.below(2) > 0,
                },
                features: Features {
                    input: random.word() & random.word() & 0u32.wrapping_sub(random.below(2)),
                    output: random.word(),
                    interface_output: random.word(),
                    interface_input: random.word(),
                },
                parent: random.word() as u16,
                tags: any_tags(&mut random),
                l2: any_l2(&mut random),
            };
            interfaces.set(number, &interface);
            let hot = reader.load(number);
            let shown = Interface {
                mac: interface.mac,
                mode: hot.mode(),
                mtu: hot.mtu(),
                peer: hot.peer(),
                lane: hot.lane(),
                features: hot.features(),
                parent: hot.parent(),
                tags: hot.tags(),
                l2: hot.l2(),
            };
            assert_eq!(shown, interface);
            let features = interface.features;
            let plain = features.input | features.interface_input == 0;
            assert_eq!(hot.is_featured(), !plain);
            let [a, b, c, d, e, f] = interface.mac;
            let after = [random.word() as u8, random.word() as u8];
            let mac = u64::from_le_bytes([a, b, c, d, e, f, after[0], after[1]]);
            assert!(hot.is_mac(mac));
            assert_eq!(hot.is(mac, interface.mode), plain);
            let other = mac ^ 1 << random.below(48);
            assert!(!hot.is_mac(other) && !hot.is(other, interface.mode));
            let mode = Mode::ALL[random.below(5) as usize];
            assert_eq!(hot.is(mac, mode), plain && mode == interface.mode);
        }
    }

    #[test]
    fn arguments_are_by_interface_and_feature() {
        let mut random = Random::new(0x6172);
        let mut interfaces = empty();
        let reader = interfaces.reader();
        let mut oracle = std::collections::HashMap::new();
        for _ in 0..10_000 {
            let interface = random.below(INTERFACES as u32) as u16;
            let mask = Mask::ALL[random.below(3) as usize];
            let feature = Feature::new(mask, random.below(32) as u8);
            let argument = random.word();
            interfaces.set_argument(interface, feature, argument);
            oracle.insert((interface, feature), argument);
        }
        for ((interface, feature), argument) in oracle {
            assert_eq!(reader.argument(interface, feature), argument);
        }
    }

    #[test]
    fn what_was_not_set_is_down() {
        let mut interfaces = empty();
        assert_eq!(interfaces.reader().load(7).mode(), Mode::Down);
        interfaces.set(
            7,
            &Interface {
                mode: Mode::Routed,
                ..Interface::default()
            },
        );
        interfaces.set(7, &Interface::default());
        assert_eq!(interfaces.reader().load(7).mode(), Mode::Down);
        assert_eq!(Mode::of(77), Mode::Down);
        assert!(Mode::ALL.iter().all(|&mode| Mode::of(mode as u32) == mode));
    }
}
