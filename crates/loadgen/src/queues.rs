//! Predicts how a card spreads the packets of a profile over its receive queues.

use std::collections::HashSet;

use wire::rss;

use crate::clock::Nanos;
use crate::dry::Dry;

/// A card with receive-side scaling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// Key of its hash.
    pub key: [u8; rss::KEY_LEN],
    /// Whether UDP is hashed by ports, too.
    pub udp_ports: bool,
    /// The queue of each value of the hash's low bits; their number is a power of two.
    indirection: Vec<usize>,
    queues: usize,
}

/// Packets of each queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shares {
    /// Packets of each queue.
    pub queues: Vec<u64>,
    /// Number of different hashes.
    pub hashes: usize,
    /// Packets that have none: other than IP. Cards give them to the first queue.
    pub unhashed: u64,
}

impl Card {
    /// A card of `queues` queues, whose table has `entries` entries that name the queues in turn,
    /// as drivers set it up.
    ///
    /// # Errors
    /// The number of entries is no power of two, or less than that of the queues.
    pub fn new(queues: usize, entries: usize) -> Result<Self, String> {
        if !entries.is_power_of_two() {
            return Err(format!(
                "an indirection table of {entries} entries: the number is a power of two, such as 128"
            ));
        }
        if queues == 0 || entries < queues {
            return Err(format!(
                "an indirection table of {entries} entries for {queues} queues: each queue needs one"
            ));
        }
        Ok(Self {
            key: rss::KEY,
            udp_ports: true,
            indirection: (0..entries).map(|entry| entry % queues).collect(),
            queues,
        })
    }

    /// Deals the first packets of a profile to the queues, `most` at most.
    pub fn deal(&self, dry: &mut Dry, most: u64) -> Shares {
        let mut hashes = HashSet::new();
        let mut shares = Shares {
            queues: vec![0; self.queues],
            ..Shares::default()
        };
        for _ in 0..most {
            let Some((_, _, frame)) = dry.next(Nanos(u64::MAX)) else {
                break;
            };
            let hash = self.hash(frame);
            match hash {
                None => shares.unhashed += 1,
                Some(hash) => drop(hashes.insert(hash)),
            }
            shares.queues[self.queue(hash)] += 1;
        }
        shares.hashes = hashes.len();
        shares
    }

    /// True if the first packets of a profile, `most` at most, go to one queue alone. It ends at the
    /// first that does not.
    pub fn is_one_queue(&self, dry: &mut Dry, most: u64) -> bool {
        let mut one = None;
        for _ in 0..most {
            let Some((_, _, frame)) = dry.next(Nanos(u64::MAX)) else {
                break;
            };
            let queue = self.queue(self.hash(frame));
            if *one.get_or_insert(queue) != queue {
                return false;
            }
        }
        one.is_some()
    }

    /// The hash of a frame; `None` if it is not IP.
    fn hash(&self, frame: &[u8]) -> Option<u32> {
        rss::of_frame(&self.key, frame, self.udp_ports)
    }

    /// The queue for a hash.
    fn queue(&self, hash: Option<u32>) -> usize {
        hash.map_or(0, |hash| {
            self.indirection[hash as usize & (self.indirection.len() - 1)]
        })
    }
}

impl Shares {
    /// All packets.
    pub fn packets(&self) -> u64 {
        self.queues.iter().sum()
    }

    /// Packets of the busiest queue as a multiple of the mean; None without packets.
    pub fn imbalance(&self) -> Option<f64> {
        let busiest = *self.queues.iter().max()?;
        let mean = self.packets() as f64 / self.queues.len() as f64;
        (busiest > 0).then(|| busiest as f64 / mean)
    }

    /// Number of queues that got packets.
    pub fn used(&self) -> usize {
        self.queues.iter().filter(|packets| **packets > 0).count()
    }
}

#[cfg(test)]
mod tests {
    use wire::craft::{self, Packet};

    use super::*;
    use crate::model::profile::{Tunables, Way, open};
    use crate::model::stream::{Mode, Stream, StreamRate};
    use crate::model::units::Pps;

    fn dry(streams: Vec<Stream>) -> Dry {
        let streams: Vec<_> = streams.into_iter().map(|s| (s, Pps(1000.0))).collect();
        Dry::new(&streams, Pps::UNLIMITED)
    }

    fn of_profile(settings: &str) -> Dry {
        let tunables = Tunables::parse(settings).unwrap();
        dry(open("bench", Way::Out, &tunables).unwrap())
    }

    fn once(name: &str, frame: Vec<u8>) -> Stream {
        Stream {
            mode: Mode::SingleBurst { packets: 3 },
            ..Stream::new(name, frame, StreamRate::Packets(Pps(1000.0)))
        }
    }

    /// Each packet is in the queue that its own bytes say, computed here without the table.
    #[test]
    fn a_profile_is_dealt_as_its_packets_say() {
        let card = Card::new(8, 128).unwrap();
        let shares = card.deal(&mut of_profile("vm=var2"), 5000);
        let mut expected = vec![0; 8];
        let mut again = of_profile("vm=var2");
        for _ in 0..5000 {
            let (_, _, frame) = again.next(Nanos(u64::MAX)).unwrap();
            let hash = rss::toeplitz(&rss::KEY, &[&frame[26..34], &frame[34..38]].concat());
            expected[hash as usize % 128 % 8] += 1;
        }
        assert_eq!(shares.queues, expected);
        // Sources and destinations count up together, so their hashes have half of the low bits'
        // values.
        assert_eq!(
            (shares.packets(), shares.used(), shares.unhashed),
            (5000, 4, 0)
        );
        assert!(
            shares.hashes > 100 && shares.imbalance() > Some(1.9),
            "{shares:?}"
        );
    }

    #[test]
    fn one_flow_is_one_queue() {
        let shares = Card::new(8, 128).unwrap().deal(&mut of_profile(""), 100);
        assert_eq!(
            (shares.hashes, shares.used(), shares.packets()),
            (1, 1, 100)
        );
        assert_eq!(shares.imbalance(), Some(8.0));
        let is_one = |settings, most| {
            let card = Card::new(8, 128).unwrap();
            card.is_one_queue(&mut of_profile(settings), most)
        };
        assert!(is_one("", 100) && !is_one("vm=var2", 100) && !is_one("", 0));
    }

    #[test]
    fn other_packets_are_of_the_first_queue_and_a_profile_may_end() {
        let request = wire::arp::Header::request((wire::eth::Mac([2; 6]), 1), 2);
        let arp = craft::arp(&request, wire::eth::Mac::BROADCAST);
        let [one, other] = [1, 2].map(|port| Packet::udp((1, port), (3, 4)).frame());
        let mut card = Card::new(2, 2).unwrap();
        let deal = |card: &Card| {
            let streams = [("a", arp.clone()), ("b", one.clone()), ("c", other.clone())];
            let streams = streams.map(|(name, frame)| once(name, frame));
            card.deal(&mut dry(streams.to_vec()), 100)
        };
        let shares = deal(&card);
        assert_eq!(
            (shares.packets(), shares.unhashed, shares.hashes),
            (9, 3, 2)
        );
        assert!(shares.queues[0] >= 3);
        card.udp_ports = false;
        assert_eq!(deal(&card).hashes, 1);
        assert_eq!(Shares::default().imbalance(), None);
    }

    #[test]
    fn tables_that_no_card_has_are_refused() {
        for (queues, entries) in [(8, 100), (8, 4), (0, 128), (1, 0)] {
            assert!(Card::new(queues, entries).is_err(), "{queues} {entries}");
        }
    }
}
