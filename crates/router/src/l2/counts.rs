//! What is counted in a bridge domain: frames that are flooded, stations that move, and those that
//! are not learned or that control is not told of.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tables::mac::Key;

use crate::change::{InterfaceId, Mac};

/// Frames that were flooded, one for each that came in, however many copies left; and of those whose
/// station control could not be told of. All workers add to them: a flood costs copies anyway.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    broadcast: AtomicU64,
    multicast: AtomicU64,
    unknown: AtomicU64,
    untold: AtomicU64,
}

impl Frames {
    /// A frame to this address is flooded.
    pub fn flood(&self, destination: Mac) {
        let counter = match destination {
            Mac([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]) => &self.broadcast,
            Mac([first, ..]) if first & 1 != 0 => &self.multicast,
            _ => &self.unknown,
        };
        // Relaxed: nothing depends on it.
        counter.fetch_add(1, Relaxed);
    }

    /// Control could not be told where the sender of a frame is.
    pub fn lose(&self) {
        // Relaxed: nothing depends on it.
        self.untold.fetch_add(1, Relaxed);
    }

    /// Times that control could not be told where a station is.
    pub fn untold(&self) -> u64 {
        self.untold.load(Relaxed)
    }

    /// Those flooded: broadcast, multicast, and unicast to nobody known.
    pub fn flooded(&self) -> [u64; 3] {
        [&self.broadcast, &self.multicast, &self.unknown].map(|counter| counter.load(Relaxed))
    }
}

/// Seconds in which moves of a station are counted.
const WINDOW: u32 = 10;
/// Moves in that time that only a loop makes, or two stations of one address: a host that roams or a
/// switch that takes over moves a few times in all.
const MANY: u32 = 20;
/// Stations whose moves are counted at a time. In a loop nearly all move; one is enough to tell.
const MOST: usize = 256;
/// Seconds before a loop in the same domain is told of again.
const QUIET: u32 = 60;

/// What a domain has learned, and what it has not.
#[derive(Debug, Default)]
pub(super) struct Learned {
    /// Times that a station was seen behind another interface than before.
    pub moves: u64,
    /// Times that a station was not learned since a limit was reached.
    pub refused: u64,
    /// Moves since `since`: how many, and the interfaces of the last one.
    moving: BTreeMap<Key, (u32, [InterfaceId; 2])>,
    since: u32,
    /// No loop is told of before this second.
    quiet: u32,
}

impl Learned {
    /// A station that was behind the first interface is behind the second.
    pub fn moved(&mut self, station: Key, interfaces: [InterfaceId; 2]) {
        self.moves += 1;
        if self.moving.len() >= MOST && !self.moving.contains_key(&station) {
            return;
        }
        let (count, last) = self.moving.entry(station).or_default();
        (*count, *last) = (*count + 1, interfaces);
    }

    /// An interface has left the domain: it is in no loop anymore, and its number may become another's.
    pub fn left(&mut self, interface: InterfaceId) {
        self.moving
            .retain(|_, (_, last)| !last.contains(&interface));
    }

    /// It is this second: returns the station that has moved most, where that is too often.
    pub fn look(&mut self, now: u32) -> Option<(Key, u32, [InterfaceId; 2])> {
        if now.wrapping_sub(self.since) < WINDOW {
            return None;
        }
        self.since = now;
        let moving = std::mem::take(&mut self.moving).into_iter();
        let (station, (count, interfaces)) = moving.max_by_key(|(_, (count, _))| *count)?;
        if count < MANY || now < self.quiet {
            return None;
        }
        self.quiet = now + QUIET;
        Some((station, count, interfaces))
    }
}

/// A station that moves to and fro in a bridge domain: there is a loop, or another station has its
/// address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loop {
    /// Name of the bridge domain.
    pub bridge: String,
    /// Address of the station.
    pub mac: Mac,
    /// Names of the interfaces of its last move.
    pub interfaces: [String; 2],
    /// Moves in the last seconds.
    pub moves: u32,
}

impl fmt::Display for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loop {
            bridge,
            mac,
            interfaces: [from, to],
            moves,
        } = self;
        write!(
            f,
            "bridge domain {bridge}: {mac} moved {moves} times in {WINDOW} s, last from {from} to \
             {to}: look for a loop between these, or two stations of this address"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_station_that_moves_too_often_is_told_of_once_a_minute() {
        let mut learned = Learned::default();
        let [one, other] = [1, 2].map(|mac| Key::new(1, mac));
        let mut told = Vec::new();
        for second in 1..100 {
            for _ in 0..3 {
                learned.moved(one, [5, 6]);
            }
            learned.moved(other, [6, 5]);
            told.extend(
                learned
                    .look(second)
                    .map(|(key, count, _)| (second, key, count)),
            );
        }
        assert_eq!(learned.moves, 4 * 99);
        assert_eq!(told, [(10, one, 30), (70, one, 30)]);
    }

    #[test]
    fn a_few_moves_are_no_loop() {
        let mut learned = Learned::default();
        for mac in 0..2 * MOST as u64 {
            learned.moved(Key::new(1, mac), [5, 6]);
        }
        assert_eq!(learned.look(WINDOW), None);
        assert_eq!(learned.moves, 2 * MOST as u64);
    }

    #[test]
    fn a_loop_is_over_when_its_interface_leaves() {
        let mut learned = Learned::default();
        let [one, other] = [1, 2].map(|mac| Key::new(1, mac));
        for _ in 0..2 * MANY {
            learned.moved(one, [5, 6]);
            learned.moved(one, [6, 5]);
            learned.moved(other, [7, 8]);
        }
        learned.left(6);
        let told = learned.look(WINDOW).map(|(key, ..)| key);
        assert_eq!(told, Some(other));
    }

    #[test]
    fn frames_are_counted_by_their_destination() {
        let frames = Frames::default();
        for mac in [
            [255; 6],
            [1, 0, 0x5e, 0, 0, 1],
            [2, 0, 0, 0, 0, 1],
            [0x33; 6],
        ] {
            frames.flood(Mac(mac));
        }
        assert_eq!(frames.flooded(), [1, 2, 1]);
    }
}
