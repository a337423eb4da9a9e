//! Stations of bridge domains: which interface an Ethernet address is behind.
//!
//! A hash table of 64-byte lines, four stations in each. Where a line is full, stations go into the
//! next one, and the line says so: a search that does not find a station mostly ends in the first
//! line.
//!
//! | word of a station | |
//! | --- | --- |
//! | 0, 1 | [`Key`], its lower half first |
//! | 2 | interface (0: none here), whether it is fixed << 16; of the last one of a line, whether a search goes on to the next line << 31 |
//! | 3 | when a frame was last seen from it: written by readers |
//!
//! Readers read word 2 first: what is behind an address is stored after the address, and the place
//! of a station that is gone is used again only after a grace period ([`crate::ids`]). So a frame
//! never leaves by the interface of another station, or of another domain.

use std::collections::HashMap;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::field::Field;
use crate::hash;
use crate::ids::{Full, Retired};
use crate::mem::{Cells, LINE};

/// Words of a station.
const WORDS: usize = 4;
/// Stations of a line.
const WAYS: usize = LINE / WORDS;
/// Words for each station that there is room for: half of them stay free, so that lines overflow
/// seldom.
pub const WORDS_FOR_EACH: usize = 2 * WORDS;

const KEY: Field = Field::word("KEY", 0);
const KEY_END: Field = Field::word("KEY_END", 1);
const INTERFACE: Field = Field::low("INTERFACE", 2);
const FIXED: Field = Field::bits("FIXED", 2, 16, 1);
const SEEN: Field = Field::word("SEEN", 3);

/// The word of a line, and its bit, that say that a search goes on to the next line.
const MORE: Field = Field::bits("MORE", LINE - 2, 31, 1);

/// An Ethernet address in a bridge domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u64);

impl Key {
    /// The address in the low 48 bits of `mac`, its first byte lowest; the other bits are ignored.
    #[inline(always)]
    pub const fn new(domain: u16, mac: u64) -> Self {
        Self(mac & 0xffff_ffff_ffff | (domain as u64) << 48)
    }

    /// Number of the domain.
    pub const fn domain(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// The address.
    pub const fn mac(self) -> [u8; 6] {
        let [a, b, c, d, e, f, _, _] = self.0.to_le_bytes();
        [a, b, c, d, e, f]
    }

    /// The line where a search begins, modulo their number.
    #[inline(always)]
    const fn home(self) -> usize {
        (hash::mixed(self.0) >> 32) as usize
    }
}

/// What is known of a station.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Station {
    /// The interface that it is behind, never 0.
    pub interface: u16,
    /// It was configured, or is the router itself: it neither moves nor ages.
    pub fixed: bool,
}

/// All stations; the one writer.
#[derive(Debug)]
pub struct Macs {
    cells: Cells,
    /// A word: the time that readers say stations are seen at.
    clock: Cells,
    /// Numbers of places, which are counted through all lines.
    places: HashMap<Key, u32>,
    /// By place: a station is here, or was and readers may still look.
    held: Vec<bool>,
    /// By line: stations that found it full on their way from home.
    passed: Vec<u32>,
    retired: Vec<u32>,
    /// Places that are held.
    count: usize,
}

impl Macs {
    /// No station yet, over zeroed memory: room for one for each [`WORDS_FOR_EACH`] words.
    pub fn new(cells: Cells) -> Self {
        Self {
            places: HashMap::new(),
            held: vec![false; cells.len() / WORDS],
            passed: vec![0; cells.len() / LINE],
            retired: Vec::new(),
            count: 0,
            clock: Cells::boxed(LINE),
            cells,
        }
    }

    /// A reader of the stations as they are now, which nobody else sees: to see one there
    /// ([`Hot::see`]) changes nothing here.
    pub fn apart(&self) -> Reader {
        let copy = |from: &Cells| {
            let to = Cells::boxed(from.len());
            for at in 0..from.len() {
                to.at(at).store(from.at(at).load(Relaxed), Relaxed);
            }
            to
        };
        Reader {
            // What was never written says that there is no station.
            cells: match self.is_empty() {
                true => Cells::boxed(LINE),
                false => copy(&self.cells),
            },
            clock: copy(&self.clock),
        }
    }

    /// Says what time it is, in the caller's unit: what readers see from now on is seen then.
    pub fn set_clock(&mut self, now: u32) {
        self.clock.at(0).store(now, Relaxed);
    }

    /// The time that it is.
    pub fn clock(&self) -> u32 {
        self.clock.at(0).load(Relaxed)
    }

    /// Number of stations.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// True if there is no station.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Most stations that there is room for.
    pub fn capacity(&self) -> usize {
        self.cells.len() / WORDS_FOR_EACH
    }

    /// Adds a station that is seen now, or says what is known of it now.
    ///
    /// # Errors
    /// [`Full`], for a new one: those that are gone count until they are reclaimed.
    pub fn set(&mut self, key: Key, station: Station) -> Result<(), Full> {
        debug_assert_ne!(station.interface, 0, "interface 0 is none");
        let place = match self.places.get(&key) {
            Some(place) => *place as usize,
            None => self.take(key)?,
        };
        self.word(place, SEEN).store(self.clock(), Relaxed);
        let known = INTERFACE.put(station.interface.into()) | FIXED.put(station.fixed.into());
        self.publish(place, known);
        Ok(())
    }

    /// Removes a station; false if it is not known.
    pub fn delete(&mut self, key: Key) -> bool {
        let Some(place) = self.places.remove(&key) else {
            return false;
        };
        self.publish(place as usize, 0);
        for line in self.way(key, place as usize / WAYS) {
            self.passed[line] -= 1;
            if self.passed[line] == 0 {
                let word = self.cells.at(line * LINE + MORE.word);
                word.store(word.load(Relaxed) & !MORE.put(1), Release);
            }
        }
        self.retired.push(place);
        true
    }

    /// What is known of a station, and when it was last seen.
    pub fn get(&self, key: Key) -> Option<(Station, u32)> {
        self.places.get(&key).map(|place| self.at(*place as usize))
    }

    /// All stations, in no order, as [`get`](Self::get) has them.
    pub fn iter(&self) -> impl Iterator<Item = (Key, Station, u32)> {
        let places = self.places.iter();
        places.map(|(key, place)| {
            let (station, seen) = self.at(*place as usize);
            (*key, station, seen)
        })
    }

    /// The places given up since the last call. Wait for a grace period (see [`crate::ids`]), then
    /// [`reclaim`](Self::reclaim) them.
    pub fn retired(&mut self) -> Retired<Station> {
        Retired::of(std::mem::take(&mut self.retired))
    }

    /// Makes places usable again that no reader looks at any more.
    pub fn reclaim(&mut self, retired: Retired<Station>) {
        self.count -= retired.len();
        for place in retired.numbers() {
            self.held[*place as usize] = false;
        }
    }

    /// A reader; clone it for every worker.
    pub fn reader(&self) -> Reader {
        Reader {
            cells: self.cells.clone(),
            clock: self.clock.clone(),
        }
    }

    /// A free place for a new station, with its key.
    fn take(&mut self, key: Key) -> Result<usize, Full> {
        if self.count >= self.capacity() {
            return Err(Full);
        }
        // At most half of them are held.
        let places = self.held.len();
        let from_home = (0..places).map(|n| (key.home() * WAYS + n) % places);
        let mut free = from_home.filter(|place| !self.held[*place]);
        let place = free.next().ok_or(Full)?;
        self.held[place] = true;
        self.count += 1;
        self.places.insert(key, place as u32);
        self.word(place, KEY).store(key.0 as u32, Relaxed);
        self.word(place, KEY_END)
            .store((key.0 >> 32) as u32, Relaxed);
        for line in self.way(key, place / WAYS) {
            self.passed[line] += 1;
            let word = self.cells.at(line * LINE + MORE.word);
            word.store(word.load(Relaxed) | MORE.put(1), Release);
        }
        Ok(place)
    }

    /// The lines from a key's home up to, and without, `end`.
    fn way(&self, key: Key, end: usize) -> impl Iterator<Item = usize> + use<> {
        let lines = self.passed.len();
        let home = key.home() % lines;
        (0..lines)
            .map(move |n| (home + n) % lines)
            .take_while(move |line| *line != end)
    }

    /// Stores what is known of the station at a place.
    fn publish(&self, place: usize, known: u32) {
        let word = self.word(place, INTERFACE);
        let others = INTERFACE.put(u16::MAX.into()) | FIXED.put(1);
        let all = word.load(Relaxed) & !others | known;
        // Release: its key was stored before.
        word.store(all, Release);
    }

    fn at(&self, place: usize) -> (Station, u32) {
        let known = Hot {
            known: self.word(place, INTERFACE).load(Relaxed),
            seen: self.word(place, SEEN),
        };
        (known.station(), known.seen())
    }

    fn word(&self, place: usize, field: Field) -> &AtomicU32 {
        self.cells.at(place * WORDS + field.word)
    }
}

/// The workers' side.
#[derive(Debug, Clone)]
pub struct Reader {
    cells: Cells,
    clock: Cells,
}

impl Reader {
    /// The time that it is, as [`Macs::set_clock`] has said.
    #[inline(always)]
    pub fn clock(&self) -> u32 {
        self.clock.at(0).load(Relaxed)
    }

    /// Asks the processor for the line where a search begins.
    #[inline(always)]
    pub fn prefetch(&self, key: Key) {
        self.cells.prefetch(key.home().wrapping_mul(LINE));
    }

    /// What is known of a station.
    #[inline(always)]
    pub fn find(&self, key: Key) -> Option<Hot<'_>> {
        let (lower, upper) = (key.0 as u32, (key.0 >> 32) as u32);
        for n in 0..self.cells.len() / LINE {
            let line = self.cells.line(key.home().wrapping_add(n));
            for way in 0..WAYS {
                let [first, second, known, seen] = [0, 1, 2, 3].map(|n| &line[way * WORDS + n]);
                // Acquire: the key was stored before it.
                let known = known.load(Acquire);
                if first.load(Relaxed) == lower
                    && second.load(Relaxed) == upper
                    && INTERFACE.of(known) != 0
                {
                    return Some(Hot { known, seen });
                }
            }
            if MORE.of(line[MORE.word].load(Relaxed)) == 0 {
                break;
            }
        }
        None
    }
}

/// What is known of a station.
#[derive(Debug, Clone, Copy)]
pub struct Hot<'a> {
    known: u32,
    seen: &'a AtomicU32,
}

impl Hot<'_> {
    /// See [`Station`].
    #[inline(always)]
    pub const fn station(&self) -> Station {
        Station {
            interface: INTERFACE.of(self.known) as u16,
            fixed: FIXED.of(self.known) != 0,
        }
    }

    /// When a frame was last seen from it.
    #[inline(always)]
    pub fn seen(&self) -> u32 {
        self.seen.load(Relaxed)
    }

    /// A frame from it is seen at this time ([`Reader::clock`]). Stores only what changes, so that
    /// with a coarse unit of time its line stays in the caches of all workers.
    #[inline(always)]
    pub fn see(&self, now: u32) {
        if self.seen() != now {
            self.seen.store(now, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn station(interface: u16) -> Station {
        Station {
            interface,
            fixed: false,
        }
    }

    fn macs(stations: usize) -> Macs {
        Macs::new(Cells::boxed(stations * WORDS_FOR_EACH))
    }

    #[test]
    fn a_key_is_its_parts() {
        let mac = [0x02, 0, 0, 0x12, 0x34, 0x56];
        let [a, b, c, d, e, f] = mac;
        let key = Key::new(0xfedc, u64::from_le_bytes([a, b, c, d, e, f, 0x08, 0x06]));
        assert_eq!((key.domain(), key.mac()), (0xfedc, mac));
    }

    /// Any sequence of changes, in a table that is often full, leaves what a map would; what is
    /// gone is not found, and no search runs on for ever where lines overflowed once.
    #[test]
    fn as_a_map() {
        let mut random = Random::new(0x6d61_6373);
        let mut macs = macs(64);
        let reader = macs.reader();
        let mut oracle = HashMap::new();
        let mut full = 0;
        for step in 0..100_000 {
            let key = Key::new(1 + random.below(2) as u16, random.below(60).into());
            let to = Station {
                interface: 1 + random.below(9) as u16,
                fixed: random.below(2) > 0,
            };
            macs.set_clock(step);
            match random.below(3) {
                0 => assert_eq!(macs.delete(key), oracle.remove(&key).is_some()),
                _ => match macs.set(key, to) {
                    Ok(()) => drop(oracle.insert(key, (to, step))),
                    Err(Full) => full += 1,
                },
            }
            if random.below(4) == 0 {
                let retired = macs.retired();
                macs.reclaim(retired);
            }
            let asked = Key::new(1 + random.below(2) as u16, random.below(60).into());
            let found = reader.find(asked).map(|hot| (hot.station(), hot.seen()));
            assert_eq!(found, oracle.get(&asked).copied());
            assert_eq!(macs.get(asked), found);
        }
        assert!(full > 1000, "only {full} refused");
        assert_eq!(macs.iter().count(), oracle.len());
        let all: Vec<_> = oracle.into_keys().collect();
        assert!(all.into_iter().all(|key| macs.delete(key)));
        assert!(macs.passed.iter().all(|passed| *passed == 0));
        let more = |line: usize| MORE.of(macs.cells.line(line)[MORE.word].load(Relaxed));
        assert!((0..macs.passed.len()).all(|line| more(line) == 0));
    }

    #[test]
    fn a_place_is_used_again_after_a_grace_period() {
        let mut macs = macs(64);
        let keys = |domain| (0..64).map(move |mac| Key::new(domain, mac));
        assert!(keys(1).all(|key| macs.set(key, station(1)).is_ok()));
        assert!(keys(1).all(|key| macs.delete(key)));
        let retired = macs.retired();
        assert!(keys(2).all(|key| macs.set(key, station(2)) == Err(Full)));
        macs.reclaim(retired);
        assert!(keys(2).all(|key| macs.set(key, station(2)).is_ok()));
        assert!(macs.retired().is_empty());
    }

    #[test]
    fn a_station_that_was_seen_keeps_its_interface() {
        let mut macs = macs(64);
        let key = Key::new(7, 0xa);
        macs.set_clock(100);
        assert!(macs.set(key, station(3)).is_ok());
        macs.set_clock(105);
        let reader = macs.reader();
        assert!(reader.find(key).is_some_and(|hot| {
            hot.see(reader.clock());
            hot.seen() == 105
        }));
        assert_eq!(macs.get(key), Some((station(3), 105)));
        macs.set_clock(106);
        assert!(macs.set(key, station(4)).is_ok());
        assert_eq!(macs.get(key), Some((station(4), 106)));
    }
}
